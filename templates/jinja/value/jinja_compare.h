/*
 * Python's comparisons (equality, identity, order, containment) and hashing. Identity, equality and
 * hashing are in jinja_dict.c, because dicts and equality call each other; order and containment
 * are in jinja_compare.c.
 */
#ifndef TEMPLATES_JINJA_COMPARE_H
#define TEMPLATES_JINJA_COMPARE_H

#include "templates/jinja/value/jinja_vm.h"

/* Binary operators of the language, except `and`, `or` and ~, which are nodes of their own. */
enum jop {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_LE,
    OP_GT,
    OP_GE,
    OP_IN,
    OP_NOTIN,
};

static inline bool jval_is_number(struct jval v)
{
    return v.kind == J_BOOL || v.kind == J_INT || v.kind == J_FLOAT;
}
static inline bool jval_is_integer(struct jval v) /* bool is a kind of int, as in Python */
{
    return v.kind == J_BOOL || v.kind == J_INT;
}
/* Only if jval_is_integer. */
static inline int64_t jval_int(struct jval v)
{
    return v.kind == J_BOOL ? v.u.b : v.u.i;
}
/* Only if jval_is_number. */
static inline double jval_double(struct jval v)
{
    return v.kind == J_FLOAT ? v.u.f : (double)jval_int(v);
}

/* Only if both are jval_is_number. -1, 0, 1 or JNUM_UNORDERED. */
int jval_compare_numbers(struct jval a, struct jval b);
/* a == b, also for values of different kinds. Apart from memory and limits, it fails only where
 * items() with an unhashable value is compared with keys(). */
bool jval_equal(struct jvm *vm, struct jval a, struct jval b, bool *out);
bool jval_hash(struct jvm *vm, struct jval v, uint64_t *out); /* fails for unhashable values */
/* Python's `is`, as far as it is known here. Numbers of one kind are the same if they have the same
 * bits. Strings, lists and other objects are the same if they share one pointer. */
bool jval_same(struct jval a, struct jval b);
/* Whether Python finds two items of lists, dicts or views equal: those that are the same, as a NaN
 * and itself, or equal. Fails as jval_equal does. */
bool jval_same_or_equal(struct jvm *vm, struct jval a, struct jval b, bool *out);
/* op: OP_LT, OP_LE, OP_GT or OP_GE. Orders two numbers, two strings, two lists or two tuples. Fails
 * for all other values; Python orders some of them (the sets keys() and items()). */
bool jval_order(struct jvm *vm, enum jop op, struct jval a, struct jval b, bool *out);
/* op: OP_EQ to OP_NOTIN. Fails where jval_equal or jval_order fails. `in` also fails if b is not
 * iterable, if reading its items fails, if b is a string and a is not, or if b is a dict or keys()
 * and a is unhashable. */
bool jval_compare(struct jvm *vm, enum jop op, struct jval a, struct jval b, bool *out);

#endif
