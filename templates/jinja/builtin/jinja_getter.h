/*
 * The attribute= argument of filters: a path such as "a.b.0", looked up one component at a time.
 */
#ifndef TEMPLATES_JINJA_GETTER_H
#define TEMPLATES_JINJA_GETTER_H

#include "templates/jinja/value/jinja_value.h"

struct getter {
    struct jval parts;    /* J_LIST of the names and indices of the path */
    bool ignore_case;     /* convert a string result to lower case */
    struct jval fallback; /* replaces undefined; J_MISSING or J_NONE: no fallback */
};

/* attribute: a path, an index, or J_MISSING or J_NONE for the value itself. */
bool getter_init(struct jvm *vm, struct jval attribute, bool ignore_case, struct getter *g);
bool getter_get(struct jvm *vm, const struct getter *g, struct jval v, struct jval *out);

#endif
