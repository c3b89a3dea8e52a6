/*
 * Values as JSON text.
 */
#ifndef TEMPLATES_JINJA_JSON_H
#define TEMPLATES_JINJA_JSON_H

#include "templates/jinja/value/jinja_text.h"

struct json_style {
    bool ensure_ascii, sort_keys, has_indent;
    struct jval indent;   /* J_STR, if has_indent */
    struct jval item_sep; /* J_STR */
    struct jval key_sep;  /* J_STR */
};
bool print_json(struct jbuf *b, struct jval v, const struct json_style *style);

#endif
