/*
 * What Python's operators do with values: truth, equality, order, arithmetic, containment, hashing.
 */
#ifndef TEMPLATES_JINJA_OPS_H
#define TEMPLATES_JINJA_OPS_H

#include "templates/jinja_ast.h"
#include "templates/jinja_value.h"

bool jval_truth(struct jval v);
static inline bool jval_is_number(struct jval v)
{
    return v.kind == J_BOOL || v.kind == J_INT || v.kind == J_FLOAT;
}
static inline bool jval_is_integer(struct jval v) /* what Python's int-typed arguments take */
{
    return v.kind == J_BOOL || v.kind == J_INT;
}
static inline int64_t jval_int(struct jval v)
{
    return v.kind == J_BOOL ? v.u.b : v.u.i;
}
static inline double jval_double(struct jval v)
{
    return v.kind == J_FLOAT ? v.u.f : (double)jval_int(v);
}

bool jval_equal(struct jvm *vm, struct jval a, struct jval b, bool *out);
bool jval_hash(struct jvm *vm, struct jval v, uint64_t *out); /* fails for lists and dicts */
bool jval_same(struct jval a, struct jval b);                 /* Python's `is` */
/* op: OP_LT, OP_LE, OP_GT or OP_GE */
bool jval_order(struct jvm *vm, enum jop op, struct jval a, struct jval b, bool *out);
bool jval_contains(struct jvm *vm, struct jval item, struct jval seq, bool *out); /* item in seq */
bool jval_compare(struct jvm *vm, enum jop op, struct jval a, struct jval b,
                  bool *out); /* any of them */
bool jval_binary(struct jvm *vm, enum jop op, struct jval a, struct jval b, struct jval *out);
bool jval_negate(struct jvm *vm, struct jval v, bool minus, struct jval *out); /* -v or +v */
/* len(v) where Python has one; *out is SIZE_MAX where not. */
bool jval_length(struct jvm *vm, struct jval v, size_t *out);
struct jval jrange_item(const struct jrange *r, size_t i);

#endif
