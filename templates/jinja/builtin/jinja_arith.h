/*
 * Python's arithmetic operators.
 */
#ifndef TEMPLATES_JINJA_ARITH_H
#define TEMPLATES_JINJA_ARITH_H

#include "templates/jinja/value/jinja_compare.h"

/* op: OP_ADD to OP_POW. */
bool jval_binary(struct jvm *vm, enum jop op, struct jval a, struct jval b, struct jval *out);
bool jval_negate(struct jvm *vm, struct jval v, bool minus, struct jval *out); /* -v or +v */

#endif
