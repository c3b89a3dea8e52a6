/*
 * The recurrent state of one sequence: for each gated delta net a matrix per value head and the
 * last inputs of the convolution.
 *
 * There are two copies. A pass reads the current copy and writes the other one, and only the end of
 * a successful pass makes the other copy current. So a pass that fails changes nothing, and the
 * copy before the last pass remains.
 */
#ifndef ENGINE_CPU_CPU_RECURRENT_H
#define ENGINE_CPU_CPU_RECURRENT_H

#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/model/model.h"

#include <stdbool.h>
#include <stddef.h>

#define RECURRENT_NONE SIZE_MAX /* length of a copy whose contents are undefined */

struct recurrent {
    struct mem_map map; /* (2, n_floats) */
    size_t n_floats;    /* of a copy; 0: the model has no delta nets */
    size_t lengths[2];  /* number of ids that each copy is the result of */
    size_t current;     /* number of the copy that belongs to the sequence's length */
};

/* Bytes of one copy, which is also a saved state. False if they overflow. */
bool recurrent_bytes(const struct hparams *hp, size_t *out);

/* The state of no ids. BN_EARG: the state is too large. BN_ENOMEM. */
bool recurrent_open(struct recurrent *r, const struct hparams *hp, struct bn_error *err);
void recurrent_close(struct recurrent *r);

/* The states of layer number `index` among the delta nets: (n_value_heads, dim * dim) as in
 * kernels_delta.h, then (DELTA_TAPS - 1, channels), oldest input first. A pass reads recurrent_from
 * in the current copy and writes recurrent_to in the other one. */
const float *recurrent_from(const struct recurrent *r, const struct delta_shape *d, size_t index);
float *recurrent_to(const struct recurrent *r, const struct delta_shape *d, size_t index);

void recurrent_begin(struct recurrent *r);                 /* a pass writes the other copy */
void recurrent_commit(struct recurrent *r, size_t length); /* the pass succeeded */

/* The largest length up to n_keep that recurrent_truncate accepts: that of a copy, or 0. */
size_t recurrent_reachable(const struct recurrent *r, size_t n_keep);
void recurrent_truncate(struct recurrent *r, size_t n_keep);

/* Make a saved state of `length` ids current. A copy of more ids is lost. */
void recurrent_load(struct recurrent *r, const void *from, size_t length);
/* The current copy, n_floats. A caller that writes it calls one of the next two functions. */
float *recurrent_now(const struct recurrent *r);
/* The current copy is the result of `length` ids, and the other copy is lost. */
void recurrent_set_length(struct recurrent *r, size_t length);
void recurrent_reset(struct recurrent *r); /* to no ids */

#endif
