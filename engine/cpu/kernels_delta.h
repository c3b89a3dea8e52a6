/*
 * Kernels of gated delta nets. docs/kernels.md, "Gated delta nets", has the arithmetic, kernels.h
 * the rules for all kernels.
 */
#ifndef ENGINE_CPU_KERNELS_DELTA_H
#define ENGINE_CPU_KERNELS_DELTA_H

#include "engine/model/delta_shape.h"

#include <stddef.h>

/* y[i] = SiLU of the convolution of x, the inputs of consecutive tokens, oldest first, with w
 * (DELTA_TAPS, w_stride). x[.], y (n); y may be the last x[.]. */
typedef void (*conv_silu_fn)(const float *const x[DELTA_TAPS], const float *w, size_t w_stride,
                             size_t n, float *y);

/* y[i] = x[i] * (factor / max(length of x, eps)); x, y (n); y may be x. */
typedef void (*unit_norm_fn)(const float *x, size_t n, float eps, float factor, float *y);

/* The gates of one token and value head: D and beta of docs/kernels.md. */
struct delta_gate {
    float decay, beta;
};

/* Consecutive tokens of one value head. */
struct delta_run {
    /* (dim) of the first token; the next token is `stride` floats further */
    const float *q, *k, *v;
    size_t stride;
    const struct delta_gate *gates; /* of the first token; the next is gate_stride further */
    size_t gate_stride;
    size_t n_tokens, dim; /* dim is a multiple of 16 */
    const float *from;    /* (dim * dim) the state before the first token, as in delta_shape.h */
    float *to;            /* (dim * dim) the state after the last token; 64-byte aligned, as from */
    float *out;           /* (dim) result of the first token; may be v if out_stride is stride */
    size_t out_stride;
};
typedef void (*delta_run_fn)(const struct delta_run *r);

#endif
