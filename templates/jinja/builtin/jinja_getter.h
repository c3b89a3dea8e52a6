/*
 * The attribute= argument of filters: a path such as "a.b.0", looked up one component at a time.
 */
#ifndef TEMPLATES_JINJA_GETTER_H
#define TEMPLATES_JINJA_GETTER_H

#include "templates/jinja/value/jinja_value.h"

struct getter {
    struct jval parts; /* J_LIST of the keys to look up in turn; empty: no attribute */
    bool ignore_case;  /* convert a result that is a string to lower case */
    /* default= of the filter: replaces an undefined result of each component. J_MISSING or J_NONE:
     * none. getter_init sets J_MISSING; a filter with a default= sets it afterwards. */
    struct jval fallback;
};

/* attribute: a path, or one key of any other kind, such as an index. If it is J_MISSING or J_NONE,
 * getter_get returns v itself (in lower case with ignore_case). */
bool getter_init(struct jvm *vm, struct jval attribute, bool ignore_case, struct getter *g);
/* Fails if a component is looked up in an undefined value: in v, or in the result of the component
 * before it. */
bool getter_get(struct jvm *vm, const struct getter *g, struct jval v, struct jval *out);

#endif
