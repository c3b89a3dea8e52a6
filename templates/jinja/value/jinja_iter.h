/*
 * Walking over values: what a for loop and most filters do. Generators run on demand and once, as
 * Python's do, so an error in an item that nobody asks for is never seen.
 */
#ifndef TEMPLATES_JINJA_ITER_H
#define TEMPLATES_JINJA_ITER_H

#include "templates/jinja/value/jinja_value.h"

struct jiter {
    struct jval src;
    size_t pos; /* items, of a string bytes, taken so far */
};

/* Fails for what cannot be iterated. */
bool jiter_open(struct jvm *vm, struct jval v, struct jiter *it);
/* *more is false at the end, and *out is not written then. */
bool jiter_next(struct jvm *vm, struct jiter *it, struct jval *out, bool *more);
bool jval_is_iterable(struct jval v);
bool jval_to_list(struct jvm *vm, struct jval v, struct jval *out); /* always a new J_LIST */
/* Whether reversed() takes it; if so a list of its items from the last. */
bool jval_reversed(struct jvm *vm, struct jval v, struct jval *out, bool *can);

/* len(v) where Python has one; *out is SIZE_MAX where not. */
bool jval_length(struct jvm *vm, struct jval v, size_t *out);
/* v[a:b:c]; a part is J_NONE or J_MISSING where it was left out. */
bool jval_slice(struct jvm *vm, struct jval v, const struct jval part[3], struct jval *out);

/* A generator: `next` is called until it sets *more to false; what it keeps is in `self`. */
typedef bool (*jgen_next_fn)(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more);
struct jgen {
    jgen_next_fn next;
    struct jiter it; /* over the source, opened by the first call */
    struct jval src;
    void *self;
    bool started, ended, running;
};
bool jgen_new(struct jvm *vm, jgen_next_fn next, struct jval src, void *self, struct jval *out);

/* The loop variable. Its iterator may be a step ahead of the body, for loop.last and loop.nextitem.
 */
struct jloop {
    struct jiter it;
    struct jval prev, item, ahead; /* J_MISSING: none */
    size_t index0;
    size_t length;              /* SIZE_MAX: not known */
    const struct jnode *filter; /* {% for ... if filter %}, NULL: none */
    const struct jnode *target;
    struct jscope *outer; /* around the loop: where the filter runs */
    struct jval changed;  /* the arguments of the last loop.changed(), J_MISSING: not called */
    bool asked;           /* `ahead` is known */
};
bool jloop_advance(struct jvm *vm, struct jloop *loop, bool *more);
bool jloop_peek(struct jvm *vm, struct jloop *loop);
bool jloop_length(struct jvm *vm, struct jloop *loop, size_t *out);

#endif
