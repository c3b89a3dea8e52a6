/*
 * Markup: text whose HTML is already escaped, as |safe and |escape give it.
 */
#ifndef TEMPLATES_JINJA_MARKUP_H
#define TEMPLATES_JINJA_MARKUP_H

#include "templates/jinja/value/jinja_value.h"

/* str(v) with & < > ' " escaped, marked as markup; markup is itself. */
bool markup_escape(struct jvm *vm, struct jval v, struct jval *out);
/* The same text with the mark set or not; the string may be copied. */
bool markup_mark(struct jvm *vm, struct jval v, bool is_markup, struct jval *out);

#endif
