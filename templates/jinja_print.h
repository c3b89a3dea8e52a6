/*
 * Values as text: Python's str() and repr(), and JSON.
 */
#ifndef TEMPLATES_JINJA_PRINT_H
#define TEMPLATES_JINJA_PRINT_H

#include "templates/jinja_text.h"

bool print_str(struct jbuf *b, struct jval v);                     /* str(v) */
bool print_repr(struct jbuf *b, struct jval v);                    /* repr(v) */
bool jval_to_str(struct jvm *vm, struct jval v, struct jval *out); /* a string is itself */

struct json_style {
    bool ensure_ascii, sort_keys, has_indent;
    struct jval indent;   /* J_STR, when has_indent */
    struct jval item_sep; /* J_STR */
    struct jval key_sep;  /* J_STR */
};
bool print_json(struct jbuf *b, struct jval v, const struct json_style *style);

#endif
