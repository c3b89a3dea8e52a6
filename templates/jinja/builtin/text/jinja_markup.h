/*
 * Markup: text that counts as safe HTML, such as the result of |safe and |escape.
 */
#ifndef TEMPLATES_JINJA_MARKUP_H
#define TEMPLATES_JINJA_MARKUP_H

#include "templates/jinja/value/jinja_value.h"

/* str(v) as markup with & < > ' " escaped; markup is returned unchanged. */
bool markup_escape(struct jvm *vm, struct jval v, struct jval *out);
/* The string v with is_markup set as given: v itself or a copy, v does not change. */
bool markup_mark(struct jvm *vm, struct jval v, bool is_markup, struct jval *out);

#endif
