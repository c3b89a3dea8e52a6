/*
 * The arguments of the kernels for weights in R16, with all classes of scales, and for activations
 * with a scale per block of columns or per token, or without quantisation. A span is 64 or 128
 * columns of weights with one scale; it consists of whole blocks of activations (docs/kernels.md,
 * "Activations in blocks"). Part of cuda_args.h, which describes the conventions;
 * engine/layout/r16_pack.h describes R16.
 */
#ifndef ENGINE_CUDA_KERNELS_CUDA_R16_ARGS_H
#define ENGINE_CUDA_KERNELS_CUDA_R16_ARGS_H

#include "engine/layout/fixed_point.h"
#include "engine/layout/layout_units.h"

#include <stdint.h>

#define R16_SPAN_LANES 16  /* spans of a row group that r16_one multiplies in parallel */
#define BLOCKS_THREADS 512 /* blocks_quantise: four columns of an input for each thread */
#define R16_THREADS 128    /* r16_one: two row groups; r16_many: one for each warp */
/* Row groups per thread block of r16_float and experts_float, with a thread for each row. */
#define R16_FLOAT_GROUPS (R16_THREADS / R16_ROWS)
/* Row groups per thread block of r16_many and experts_many, with a warp for each. */
#define R16_MANY_GROUPS (R16_THREADS / 32)
#define R16_WARP_TOKENS 16 /* tokens of a warp of r16_many: two mma tiles of 8 */
#define SPAN_TILE 64       /* spans whose sums are in shared memory */
#define SPAN_LINES 8       /* most lines in a span: those of 128 columns */

/* Inputs of one or several tokens. Plane p of token t has q[p] from t * q_stride on, and units and
 * q_sums of its blocks from t * block_stride on. An input is about the sum of unit * q over the
 * planes. */
struct block_inputs {
    int8_t *q[MAX_PLANES];
    float *units[MAX_PLANES];
    int32_t *q_sums[MAX_PLANES];
    float *x; /* (n_tokens, q_stride) not quantised; used if n_planes is 0 */
    uint32_t q_stride, block_stride, block_cols, n_planes;
};

/* RMSNorm of x unless w is NULL, then quantisation. With per_token all blocks have the scale of the
 * whole row. Without planes, the normed x goes to out.x. x and w must be 16-byte aligned, and
 * x_stride a multiple of 4, because four elements are loaded together. Grid: tokens, thread blocks
 * of a row. */
struct blocks_args {
    const float *x, *w;
    struct block_inputs out;
    float eps;
    uint32_t n, x_stride, per_token;
};

/* One matrix of the file. Scales are F16 (n_groups, spans, R16_ROWS), or NULL for 1. group0 and
 * row0 are its first row group and its first output among those of all sections. `scale` is that of
 * the tensor, `extra` a factor after it. */
struct r16_section {
    const uint8_t *lines; /* (n_groups, n_lines, LINE_BYTES) */
    const uint16_t *scales;
    const float *row_scales; /* (n_rows), or NULL */
    uint32_t group0, n_groups, n_rows, row0, span_cols;
    float scale, extra;
};

/* y = W x. With a gate (kind RELU2, SILU) section 0 is the gate and section 1 is up. Missing
 * sections have group0 = UINT32_MAX. */
struct r16_args {
    struct r16_section sections[3]; /* PASS_MAX_SECTIONS of pass_matrix.h */
    struct block_inputs in;
    const float *bias; /* of the rows of all sections in order, or NULL */
    float *y;          /* (n_tokens, y_stride) */
    uint32_t n_groups; /* of all sections */
    uint32_t n_lines;  /* of a row group */
    uint32_t n_cols, n_tokens, y_stride;
    int32_t kind; /* enum linear_kind */
};

#endif
