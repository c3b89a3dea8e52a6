/*
 * Iteration over values, used by loops and filters. Generators run on demand and once, as in
 * Python, so an error in an item that is never read is never raised.
 */
#ifndef TEMPLATES_JINJA_ITER_H
#define TEMPLATES_JINJA_ITER_H

#include "templates/jinja/value/jinja_vm.h"

struct jiter {
    struct jval src;
    size_t pos; /* items read so far, bytes of a string; not used for J_GENERATOR and J_LOOP */
};

/* Fails if v is not iterable. An undefined value has no items. */
bool jiter_open(struct jvm *vm, struct jval v, struct jiter *it);
/* At the end *more is false and *out must not be used. */
bool jiter_next(struct jvm *vm, struct jiter *it, struct jval *out, bool *more);
bool jval_is_iterable(struct jval v);
/* *out is always a new J_LIST. Fails if v is not iterable. */
bool jval_to_list(struct jvm *vm, struct jval v, struct jval *out);
/* *can: whether Python's reversed() accepts v. If so, *out is a new list of the items, the last one
 * first. */
bool jval_reversed(struct jvm *vm, struct jval v, struct jval *out, bool *can);

/* len(v), or SIZE_MAX if v has no length in Python. 0 for an undefined value. */
bool jval_length(struct jvm *vm, struct jval v, size_t *out);
/* v[bound[0]:bound[1]:bound[2]]; J_NONE or J_MISSING: not given. Fails if v is not a string, list,
 * tuple or range, if a given bound is not an integer, or if bound[2] is 0. */
bool jval_slice(struct jvm *vm, struct jval v, const struct jval bound[3], struct jval *out);

/* A generator. `next` is called until it sets *more to false; `self` is its private state. */
typedef bool (*jgen_next_fn)(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more);
struct jgen {
    jgen_next_fn next;
    struct jiter it; /* for `next`: most open it over src in their first call */
    struct jval src; /* the value whose items `next` reads; not checked by jgen_new */
    void *self;
    bool started; /* `next` has returned at least once */
    bool ended;   /* there are no more items, or `next` failed */
    bool running; /* `next` is being called */
};
bool jgen_new(struct jvm *vm, jgen_next_fn next, struct jval src, void *self, struct jval *out);

/* The loop variable. loop.last and loop.nextitem read one item ahead. */
struct jloop {
    struct jiter it;
    struct jval prev, item, ahead; /* previous, current and next item; J_MISSING: none */
    size_t index0;                 /* of `item`, from 0; SIZE_MAX before the first item */
    size_t length;                 /* SIZE_MAX: unknown */
    const struct jnode *filter;    /* {% for ... if filter %}; NULL: none, or already applied */
    const struct jnode *target;    /* the names that an item is assigned to */
    struct jscope *outer;          /* the scope around the loop, in which the filter runs */
    struct jval changed; /* arguments of the last loop.changed(); J_MISSING: not called yet */
    bool has_ahead;      /* `ahead` is valid: J_MISSING at the end, else the item after `item` */
};
/* Move to the next item. At the end set *more to false and keep `item`. */
bool jloop_advance(struct jvm *vm, struct jloop *loop, bool *more);
/* Read the next item to `ahead`, if has_ahead is false. */
bool jloop_peek(struct jvm *vm, struct jloop *loop);
/* Number of items that pass the filter. If necessary, all items that are left are read. */
bool jloop_length(struct jvm *vm, struct jloop *loop, size_t *out);

#endif
