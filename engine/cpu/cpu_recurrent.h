/*
 * The recurrent state of one sequence: for each gated delta net a matrix per value head and the
 * last inputs of the convolution. There are two copies, see recurrent_copies.h.
 */
#ifndef ENGINE_CPU_CPU_RECURRENT_H
#define ENGINE_CPU_CPU_RECURRENT_H

#include "engine/backend/recurrent_copies.h"
#include "engine/base/error.h"
#include "engine/base/memory.h"
#include "engine/model/model.h"

#include <stdbool.h>
#include <stddef.h>

struct recurrent {
    struct mem_map map; /* (2, n_floats) */
    size_t n_floats;    /* of a copy; 0: the model has no delta nets */
    struct recurrent_copies copies;
};

/* Allocate both copies; the current one is the state of no ids, all zeros. BN_EARG: the state is
 * too large. BN_ENOMEM. After an error recurrent_close may be called or not. */
bool recurrent_open(struct recurrent *r, const struct hparams *hp, struct bn_error *err);
void recurrent_close(struct recurrent *r); /* also accepts a struct of zeros */

/* The states of layer number `index` among the delta nets, in the copy that a pass reads (from) and
 * in the one that it writes (to): (n_value_heads, dim * dim) in the layout of delta_shape.h, then
 * the inputs of the convolution (DELTA_TAPS - 1, channels), oldest first. */
const float *recurrent_from(const struct recurrent *r, const struct delta_shape *d, size_t index);
float *recurrent_to(const struct recurrent *r, const struct delta_shape *d, size_t index);

/* Cut to a length that copies_reachable returned. For 0 the state becomes that of no ids. This
 * and recurrent_load do nothing if n_floats is 0. */
void recurrent_truncate(struct recurrent *r, size_t n_keep);
/* Copy a saved state of `length` ids, n_floats floats, and make it current. */
void recurrent_load(struct recurrent *r, const void *from, size_t length);
/* The current copy (n_floats), not to be used if n_floats is 0. A caller that writes it also sets
 * its length. */
float *recurrent_current(const struct recurrent *r);
void recurrent_reset(struct recurrent *r); /* to the state of no ids */

#endif
