/*
 * The coarse plane of the output head and the kernels that make and read it. docs/kernels.md, "The
 * head, screened", has the arithmetic, kernels.h the rules for all kernels.
 */
#ifndef ENGINE_CPU_KERNELS_COARSE_H
#define ENGINE_CPU_KERNELS_COARSE_H

#include "engine/layout/coarse_code.h"

#include <stddef.h>
#include <stdint.h>

/* A table with four bits per weight: (2 code - 15) * step. A line is a block of COARSE_COLS
 * columns: byte j holds column j in its low half and column j + 64 in its high half. */
struct coarse_mat {
    const uint8_t *lines;  /* (n_rows, n_blocks, LINE_BYTES), 64-byte aligned */
    const uint16_t *steps; /* (n_rows, step_stride) BF16, zeros past n_blocks */
    size_t n_blocks;
    size_t step_stride; /* a multiple of 8 */
    size_t ahead;       /* as in ternary_mat, but used only by coarse_bound_avx512 */
};
/* A hidden state x * unit, with integers x = 128 high + low. A weight is (2 code - 15) * step, so
 * its product with x is step * (code * (256 high + 2 low) - 15 x). The kernels sum code * high and
 * code * (2 low); `fix` has the part with -15. */
struct coarse_query {
    const int8_t *x; /* (n_blocks, 2, 128) high, then 2 * low, low in -64 .. 63; 64-byte aligned */
    /* (n_blocks, 16) lane j: -15 times the sum of x over columns 4 j .. 4 j + 3 and
     * 4 j + 64 .. 4 j + 67; 64-byte aligned */
    const int32_t *fix;
    const float *spread; /* (step_stride) s(b) of docs/kernels.md, zeros past n_blocks */
    float unit;
};

/* Convert row number `row` of a table, w (n_blocks * COARSE_COLS), to lines (n_blocks, LINE_BYTES)
 * and steps (n_blocks). The hash that rounds depends on `row`. Returns the largest magnitude, or a
 * NaN if w has one. Blocks with a magnitude above COARSE_MAX (coarse_code.h) or a NaN become 0. */
typedef float (*coarse_pack_fn)(const float *w, size_t n_blocks, size_t row, uint8_t *lines,
                                uint16_t *steps);
/* bound[r - row0] = unit * (row r of m times x) + sqrt(COARSE_UNDERFLOW + sum (step * spread)^2) */
typedef void (*coarse_bound_fn)(const struct coarse_mat *m, size_t row0, size_t row1,
                                const struct coarse_query *q, float *bound);

/* As coarse_query, for n <= COARSE_STATES hidden states in one reading of the coarse_mat. Entries
 * past n are zero, arrays 64-byte aligned. coarse_bound_states gives other bounds than
 * coarse_bound. */
#define COARSE_STATES 16
#define COARSE_MIN 1e-37f /* least step^2 and spread^2; an underflow would lower the bound */
struct coarse_states {
    size_t n;
    /* (n_blocks, 4, 16, COARSE_STATES, 4) the 256 bytes of a block in coarse_query.x, in quarters;
     * entry i of a quarter has bytes 4 i .. 4 i + 3 of this quarter of each hidden state */
    const int8_t *x;
    const int32_t *fix;   /* (n_blocks, COARSE_STATES) sum of the 16 lanes of coarse_query.fix */
    const float *spread2; /* (n_blocks, COARSE_STATES) spread^2; at least COARSE_MIN for i < n */
    const float *unit;    /* (COARSE_STATES) */
};
/* Bring n coarse_query.x, (n_blocks, 256) each, into the layout of coarse_states.x. */
typedef void (*coarse_gather_fn)(const int8_t *const *x, size_t n, size_t n_blocks, int8_t *out);
/* bounds[i][r - row0], for i < n: unit * (row r of m times x) + sqrt(COARSE_UNDERFLOW + sum over
 * blocks of max(step^2, COARSE_MIN) * spread2) */
typedef void (*coarse_bound_states_fn)(const struct coarse_mat *m, size_t row0, size_t row1,
                                       const struct coarse_states *g, float *const *bounds);

#endif
