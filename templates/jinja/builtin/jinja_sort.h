/*
 * A stable merge sort over values that may turn out not to be comparable.
 */
#ifndef TEMPLATES_JINJA_SORT_H
#define TEMPLATES_JINJA_SORT_H

#include "templates/jinja/value/jinja_value.h"

/* Sort items (n) by keys (n), both moved; they may be one array. Equal keys keep their order, also
 * when reversed. Fails where Python's < fails. */
bool sort_values(struct jvm *vm, struct jval *items, struct jval *keys, size_t n, bool reverse);

#endif
