/*
 * The loops over rows of ternary_matvec and ternary_listed that AVX2 and AVX-VNNI share. The rows
 * are divided into four streams. Two rows of different streams are multiplied together, so that one
 * load of the activations serves both.
 */
#ifndef ENGINE_CPU_X86_ROW_PAIRS_H
#define ENGINE_CPU_X86_ROW_PAIRS_H

#include "engine/base/force_inline.h"
#include "engine/cpu/kernels.h"

#include <immintrin.h>

#define ROWS 2    /* rows that are multiplied together */
#define STREAMS 4 /* kernels read four streams up to 1.4 times as fast as one */

/* n_rows (1 or ROWS) rows, step_rows apart, times one token. The sums go to acc[0] and, with two
 * rows, acc[step_rows]. */
typedef void (*row_pairs_fn)(const uint8_t *row, size_t n_lines, size_t step_rows, int n_rows,
                             const int8_t *q, int32_t q_sum, int32_t *acc);

/* ternary_matvec of kernels_ternary.h */
BN_FORCE_INLINE void row_pairs_all(row_pairs_fn pair, const struct ternary_mat *w, size_t row0,
                                   size_t row1, const int8_t *q, int32_t q_sum, int32_t *acc)
{
    const size_t n_lines = w->n_lines, row_bytes = n_lines * LINE_BYTES;
    const size_t step = (row1 - row0) / STREAMS;
    const uint8_t *row = w->lines + row0 * row_bytes;
    for (size_t r = 0; r < step; r++)
        for (size_t i = r; i < STREAMS * step; i += ROWS * step)
            pair(row + i * row_bytes, n_lines, step, ROWS, q, q_sum, acc + i);
    for (size_t r = STREAMS * step; r < row1 - row0; r++)
        pair(row + r * row_bytes, n_lines, 0, 1, q, q_sum, acc + r);
}

/* Prefetch the rows with the numbers rows[0], rows[step], ..., one row of each stream. The hardware
 * cannot predict the rows of a list. */
BN_FORCE_INLINE void row_pairs_prefetch(const struct ternary_mat *w, const int32_t *rows,
                                        size_t step)
{
    for (size_t i = 0; i < STREAMS; i++) {
        const uint8_t *row = w->lines + (size_t)rows[i * step] * w->n_lines * LINE_BYTES;
        for (size_t l = 0; l < w->n_lines; l++)
            _mm_prefetch((const char *)(row + l * LINE_BYTES), _MM_HINT_T0);
    }
}

/* ternary_listed of kernels_ternary.h */
BN_FORCE_INLINE void row_pairs_listed(row_pairs_fn pair, const struct ternary_mat *w,
                                      const int32_t *rows, size_t n, const int8_t *q, int32_t q_sum,
                                      int32_t *acc)
{
    const size_t n_lines = w->n_lines, row_bytes = n_lines * LINE_BYTES, step = n / STREAMS;
    for (size_t r = 0; r < step; r++) {
        if (r + 1 < step)
            row_pairs_prefetch(w, rows + r + 1, step);
        for (size_t i = r; i < STREAMS * step; i += ROWS * step) {
            const size_t row = (size_t)rows[i], apart = (size_t)rows[i + step] - row;
            pair(w->lines + row * row_bytes, n_lines, apart, ROWS, q, q_sum, acc + row);
        }
    }
    for (size_t r = STREAMS * step; r < n; r++)
        pair(w->lines + (size_t)rows[r] * row_bytes, n_lines, 0, 1, q, q_sum, acc + rows[r]);
}

#endif
