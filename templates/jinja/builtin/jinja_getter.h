/*
 * The attribute= argument of filters: "a.b.0" looked up part by part, and what is done to the
 * result.
 */
#ifndef TEMPLATES_JINJA_GETTER_H
#define TEMPLATES_JINJA_GETTER_H

#include "templates/jinja/value/jinja_value.h"

struct getter {
    struct jval parts; /* J_LIST of names and numbers */
    bool ignore_case;
    struct jval fallback; /* instead of undefined; J_MISSING or J_NONE: none */
};

/* `attribute`: a string, an integer, or J_MISSING or J_NONE for the value itself. */
bool getter_init(struct jvm *vm, struct jval attribute, bool ignore_case, struct getter *g);
bool getter_get(struct jvm *vm, const struct getter *g, struct jval v, struct jval *out);

#endif
