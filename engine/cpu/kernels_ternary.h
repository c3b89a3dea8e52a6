/*
 * Ternary weights and the kernels that multiply them with one token. The rules of kernels.h apply.
 * With squared ReLU, weights that are multiplied with zero need not be read: rows of ffn_up whose
 * gate is <= 0, and columns of ffn_down whose input is zero.
 */
#ifndef ENGINE_CPU_KERNELS_TERNARY_H
#define ENGINE_CPU_KERNELS_TERNARY_H

#include "engine/layout/r1_pack.h"

#include <stddef.h>
#include <stdint.h>

/* Ternary weights in R1-256. */
struct ternary_mat {
    const uint8_t *lines; /* (n_rows, n_lines, LINE_BYTES), 32-byte aligned */
    size_t n_rows;
    size_t n_lines; /* per row */
    /* Prefetch distance in bytes: with each line, the kernel prefetches the line that begins
     * `ahead` bytes after it; 0: no prefetch. Only ternary_matvec_avx512 uses it. Other kernels
     * have a distance of their own, prefetch the next rows, or do not prefetch. */
    size_t ahead;
};

/* One token: acc[r - row0] = sum over columns of (code - 1) * q, rows row0 .. row1 - 1.
 * q (n_lines * LINE_COLS), 64-byte aligned. q_sum is the sum of q. */
typedef void (*ternary_matvec_fn)(const struct ternary_mat *w, size_t row0, size_t row1,
                                  const int8_t *q, int32_t q_sum, int32_t *acc);

/* The product for the rows rows[i], i < n, which ascend: sets acc[rows[i]] and no other element. */
typedef void (*ternary_listed_fn)(const struct ternary_mat *w, const int32_t *rows, size_t n,
                                  const int8_t *q, int32_t q_sum, int32_t *acc);

/* Most columns of a sum: a kernel may sum 64 times the products (a code in the top two bits of a
 * byte), and sums of 64 * 2 * 127 per column fit int32. */
#define MAX_SUMMED 131072
/* Ternary weights by column, so that a column whose q is 0 need not be read: line l of column c
 * holds its rows 256 l .. 256 l + 255 in the order in which a line of ternary_mat holds columns. */
#define LINE_ROWS LINE_COLS
struct ternary_cols {
    const uint8_t *lines; /* (n_cols, n_lines, LINE_BYTES), 64-byte aligned */
    size_t n_cols;
    size_t n_lines; /* per column */
};
/* acc[r] = sum over cols[i], i < n <= MAX_SUMMED, of (code - 1) * q[cols[i]], r < n_lines *
 * LINE_ROWS. acc is 64-byte aligned. */
typedef void (*ternary_columns_fn)(const struct ternary_cols *w, const int32_t *cols, size_t n,
                                   const int8_t *q, int32_t *acc);

/* Write to `out`, in ascending order, the indices of the gates that are not <= 0 (a NaN is listed),
 * or of the q that are not 0. Returns their count. `out` has room for n + LIVE_SLACK. */
#define LIVE_SLACK 16 /* AVX-512 always stores a register of 16 indices */
typedef size_t (*live_gates_fn)(const float *gate, size_t n, int32_t *out);
typedef size_t (*live_inputs_fn)(const int8_t *q, size_t n, int32_t *out);

#endif
