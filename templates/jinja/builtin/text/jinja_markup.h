/*
 * Markup: text with escaped HTML, the result of |safe and |escape.
 */
#ifndef TEMPLATES_JINJA_MARKUP_H
#define TEMPLATES_JINJA_MARKUP_H

#include "templates/jinja/value/jinja_value.h"

/* str(v) as markup with & < > ' " escaped; markup is returned unchanged. */
bool markup_escape(struct jvm *vm, struct jval v, struct jval *out);
/* The same text with is_markup set as given. Never changes the string v. */
bool markup_mark(struct jvm *vm, struct jval v, bool is_markup, struct jval *out);

#endif
