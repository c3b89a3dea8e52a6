/*
 * The sizes of gated delta nets and of their recurrent states. docs/kernels.md, "Gated delta nets",
 * has the arithmetic.
 */
#ifndef ENGINE_MODEL_DELTA_SHAPE_H
#define ENGINE_MODEL_DELTA_SHAPE_H

#include <stddef.h>

/* Shape of the gated delta nets, see docs/formats.md, "Gated delta nets". Value head h uses the
 * query and the key of key head h mod n_key_heads. */
struct delta_shape {
    size_t n_key_heads, n_value_heads; /* both 0: the model has no delta nets */
    size_t dim;                        /* elements of a head: queries, keys and values */
    size_t interval; /* layers interval - 1, 2 interval - 1, ... (from 0) have attention instead */
};
#define DELTA_TAPS 4      /* tokens of the convolution, the current one included */
#define DELTA_DIM_UNIT 16 /* dim is a multiple of this, so kernels need no code for remainders */
#define DELTA_MAX_DIM 256 /* largest dim that is accepted */
/* The matrix of a value head (dim, dim) has a row for each element of a key and a column for each
 * element of a value. It is stored in strips of DELTA_COLS columns one after the other; the last
 * strip may have fewer. Each strip is row-major, (dim, its columns), which is at most 32 KiB for
 * dim 128 and fits a first-level cache. All backends use this layout, so each can load the states
 * that another has saved. */
#define DELTA_COLS 64

/* Channels of the convolution: queries, keys, values. */
static inline size_t delta_channels(const struct delta_shape *d)
{
    return (2 * d->n_key_heads + d->n_value_heads) * d->dim;
}
/* Elements of all value heads: the width of the output of a delta net before ssm_out. */
static inline size_t delta_width(const struct delta_shape *d)
{
    return d->n_value_heads * d->dim;
}
/* Floats of the state of one layer: a matrix per value head, and the last inputs of the
 * convolution. */
static inline size_t delta_state_floats(const struct delta_shape *d)
{
    return d->n_value_heads * d->dim * d->dim + (DELTA_TAPS - 1) * delta_channels(d);
}

#endif
