/*
 * Ternary weights in R16 and the kernels that multiply them. The rules of kernels.h apply.
 *
 * R16 is for activations with a scale per block of columns, and for weights with a scale per row or
 * per block of columns. It interleaves 16 rows, so that a lane of a SIMD register is a row. Each
 * lane then sums the products of a block by itself, and a block costs one conversion and one
 * multiply-add per register of rows.
 */
#ifndef ENGINE_CPU_KERNELS_R16_H
#define ENGINE_CPU_KERNELS_R16_H

#include "engine/layout/fixed_point.h"
#include "engine/layout/r16_pack.h"

#include <stddef.h>
#include <stdint.h>

/* For up to this number of tokens unpacking takes longer than it saves, so they are multiplied one
 * by one. */
#define R16_FEW 8
#define R16_TOKENS 32 /* most tokens in a call of r16_matmul */
#define R16_PANEL 2   /* most row groups that are unpacked together */

/* Ternary weights in R16. Line l of a row group holds its columns 16 l .. 16 l + 15: dword r is
 * row r, and bits 2i and 2i + 1 of byte k of the dword are the code of column 16 l + 4 i + k. */
struct r16_mat {
    const uint8_t *lines; /* (n_groups, n_lines, 64), 64-byte aligned */
    /* F16 (n_groups, n_spans, R16_ROWS) if scale_step is R16_ROWS. If it is 0, the same
     * R16_ROWS scales apply to every span of every group. 32-byte aligned. */
    const uint16_t *scales;
    size_t scale_step;
    size_t n_groups;
    size_t n_lines;   /* a multiple of R16_PAD_COLS / R16_LINE_COLS */
    size_t span_cols; /* columns that share a scale: 64 or 128 */
    /* As in ternary_mat, but used by r16_matvec of all x86 instruction sets and by
     * r16_unpack_avx512. */
    size_t ahead;
};

/* Activations of one token in blocks of block_cols columns: x = q * unit of the block. */
struct block_acts {
    const int8_t *q;       /* (n_lines * R16_LINE_COLS), zeros past the last column */
    const float *units;    /* per block */
    const int32_t *q_sums; /* per block: sum of q */
    size_t block_cols;     /* 32, 64 or 128, at most span_cols */
};

/* Quantise x (n) in blocks of block_cols columns: m = max |x| of the block,
 * q = rint(x * (127 / m)), unit = m / 127. A block with m < BLOCK_MIN_ABS gives zeros. A NaN gives
 * q = 0. All outputs are padded with zeros to a multiple of R16_PAD_COLS columns. q is 16-byte
 * aligned. */
typedef void (*quantise_blocks_fn)(const float *x, size_t n, size_t block_cols, int8_t *q,
                                   float *units, int32_t *q_sums);

/* The outputs of a quantised token, as quantise_blocks writes them. */
struct block_plane {
    int8_t *q;
    float *units;
    int32_t *q_sums;
};
/* Quantise to two bytes, planes[0] the high and planes[1] the low ones: v = rint(x * (16256 / m)),
 * high = (v + 64) >> 7, low = v - 128 high; the unit of low is m / 16256, that of high 128 times as
 * large. 16256 is 127 * 128, so that high is at most 127. Small blocks, NaN, padding and alignment
 * are as in quantise_blocks, for both planes. */
typedef void (*quantise_planes_fn)(const float *x, size_t n, size_t block_cols,
                                   const struct block_plane planes[MAX_PLANES]);

/* One token: for each row of groups group0 .. group1 - 1, y[row - 16 group0] += the product:
 * over the spans in order: g = 0; over the blocks of the span in order:
 * g = fma((float) sum of (code - 1) * q, unit, g); then y = fma(g, scale, y). */
typedef void (*r16_matvec_fn)(const struct r16_mat *w, size_t group0, size_t group1,
                              const struct block_acts *x, float *y);

/* unpack: expand row groups group0 .. group1 - 1 (at most R16_PANEL) to one byte per code, for the
 * matmul of the same struct r16_gemm. panel: (groups, n_lines, 4, 64) bytes, 64-byte aligned.
 * Does nothing where matmul reads the lines directly. */
typedef void (*r16_unpack_fn)(const struct r16_mat *w, size_t group0, size_t group1,
                              uint8_t *panel);

/* Several tokens: as r16_matvec for each of n_tokens <= R16_TOKENS tokens, with the row
 * groups that were unpacked. */
struct r16_batch {
    /* (n_tokens rounded up to 16, q_stride); rows past n_tokens are read, but have no effect */
    const int8_t *q;
    const float *units;    /* (n_tokens, block_stride) */
    const int32_t *q_sums; /* (n_tokens, block_stride) */
    size_t q_stride;       /* bytes, a multiple of 64 */
    size_t block_stride;
    size_t block_cols; /* 32, 64 or 128, at most span_cols */
    size_t n_tokens;
    const uint8_t *panel; /* the row groups as unpack has written them, if it does */
    float *y;             /* (n_tokens, y_stride) in and out: row r of the panel at [r] */
    size_t y_stride;      /* a multiple of R16_ROWS */
};
typedef void (*r16_matmul_fn)(const struct r16_mat *w, size_t group0, size_t group1,
                              const struct r16_batch *batch);

/* The product with activations x (n) that are not quantised (--activations float). It excludes the
 * error of the quantisation from comparisons. y[row - 16 group0] += the product: over the spans in
 * order: g = 0; over the columns in order: g = fma((float) (code - 1), x, g); then
 * y = fma(g, scale, y). */
typedef void (*r16_float_fn)(const struct r16_mat *w, size_t group0, size_t group1, const float *x,
                             size_t n, float *y);

struct r16_gemm {
    r16_unpack_fn unpack;
    r16_matmul_fn matmul;
};

#endif
