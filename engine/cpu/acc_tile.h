/*
 * Part of the kernel table of kernels.h: from integer sums of several tokens to what a layer wants
 * of them. Outputs do not overlap the sums; the rules of kernels.h hold.
 */
#ifndef ENGINE_CPU_ACC_TILE_H
#define ENGINE_CPU_ACC_TILE_H

#include <stddef.h>
#include <stdint.h>

/* Sums of a tile of tokens on their way to F32: v = ((float)acc * d) * extra, then + bias if there
 * is one; element (t, r) of y is at y + t * stride + r. */
struct acc_tile {
    const int32_t *acc; /* (n_tokens, acc_stride) */
    size_t acc_stride;
    size_t n_tokens, n_rows;
    const float *d; /* (n_tokens) */
    float extra;
    const float *bias; /* (n_rows) or NULL */
};
/* y = v, or y = y + v */
typedef void (*acc_out_fn)(const struct acc_tile *a, float *y, size_t stride);
/* y = act(v of gate) * (v of up); the two have the same tokens and rows */
typedef void (*acc_gate_fn)(const struct acc_tile *gate, const struct acc_tile *up, float *y,
                            size_t stride);

#endif
