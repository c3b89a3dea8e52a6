/*
 * A stable merge sort of values. Comparing two values can fail.
 */
#ifndef TEMPLATES_JINJA_SORT_H
#define TEMPLATES_JINJA_SORT_H

#include "templates/jinja/value/jinja_value.h"

/* Sort items (n) by keys (n). Both arrays are permuted; they may be the same array. Equal keys keep
 * their order, also with `reverse`. Fails where Python's < fails. */
bool sort_values(struct jvm *vm, struct jval *items, struct jval *keys, size_t n, bool reverse);

#endif
