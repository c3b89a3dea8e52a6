/*
 * Cuts the rows and tokens of a call of ternary_matmul into register tiles of n_rows rows (1 for
 * the rows at the end) and at most TILE_TOKENS tokens, for AVX-VNNI and AVX-512. Both numbers are
 * constants for the compiler, so that the loops over a register tile unroll.
 */
#ifndef ENGINE_CPU_X86_TERNARY_BLOCKS_H
#define ENGINE_CPU_X86_TERNARY_BLOCKS_H

#include "engine/base/force_inline.h"
#include "engine/cpu/kernels.h"

#define TILE_TOKENS 6 /* most tokens of a register tile */

/* One register tile: n_rows rows from `row` on times the first n_tokens tokens of `batch`. acc of
 * `batch` points to the sum of the first row and token. */
typedef void (*matmul_tile_fn)(const uint8_t *row, size_t n_lines, int n_rows, int n_tokens,
                               const struct ternary_batch *batch);

/* Makes the number of tokens a constant. */
BN_FORCE_INLINE void matmul_tokens(matmul_tile_fn tile, const uint8_t *row, size_t n_lines,
                                   int n_rows, size_t n_tokens, const struct ternary_batch *batch)
{
    switch (n_tokens) {
    case 1:
        tile(row, n_lines, n_rows, 1, batch);
        break;
    case 2:
        tile(row, n_lines, n_rows, 2, batch);
        break;
    case 3:
        tile(row, n_lines, n_rows, 3, batch);
        break;
    case 4:
        tile(row, n_lines, n_rows, 4, batch);
        break;
    case 5:
        tile(row, n_lines, n_rows, 5, batch);
        break;
    default:
        tile(row, n_lines, n_rows, TILE_TOKENS, batch);
        break;
    }
}

/* ternary_matmul of kernels.h. Register tiles have nearly equal numbers of tokens: 16 tokens are 5
 * + 5 + 6, not 6 + 6 + 4. */
BN_FORCE_INLINE void matmul_tiles(matmul_tile_fn tile, int n_rows, const struct ternary_mat *w,
                                  size_t row0, size_t row1, const struct ternary_batch *batch)
{
    const size_t row_bytes = w->n_lines * LINE_BYTES;
    const size_t n_tiles = (batch->n_tokens + TILE_TOKENS - 1) / TILE_TOKENS;
    for (size_t r = row0; r < row1; r += row1 - r >= (size_t)n_rows ? (size_t)n_rows : 1)
        for (size_t i = 0; i < n_tiles; i++) {
            const size_t t0 = batch->n_tokens * i / n_tiles;
            const size_t n_tokens = batch->n_tokens * (i + 1) / n_tiles - t0;
            const struct ternary_batch sub_batch = {
                .q = batch->q + t0 * w->n_lines * LINE_COLS,
                .q_sums = batch->q_sums + t0,
                .acc = batch->acc + t0 * batch->acc_stride + (r - row0),
                .acc_stride = batch->acc_stride,
            };
            const uint8_t *row = w->lines + r * row_bytes;
            if (row1 - r >= (size_t)n_rows)
                matmul_tokens(tile, row, w->n_lines, n_rows, n_tokens, &sub_batch);
            else
                matmul_tokens(tile, row, w->n_lines, 1, n_tokens, &sub_batch);
        }
}

#endif
