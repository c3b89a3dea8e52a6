/*
 * ternary_matvec and ternary_matmul for the dot product instructions (SDOT). See ternary_ref.c for
 * a line of R1-256 and its fields.
 *
 * SDOT adds four products of bytes to an int32 lane, so no sum has to be widened. Codes are at most
 * 2, so they are valid signed bytes. A register tile is 4 rows x 4 tokens: each load of codes
 * serves four tokens and each load of activations four rows.
 */
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"

#define ROWS 4 /* rows and tokens of a register tile */
#define TILE_TOKENS 4
#define PREFETCH_BYTES 1024 /* distance of prefetches in each row; ternary_mat.ahead is not used */

/* n_rows rows times n_tokens tokens. A quarter of a line is 16 bytes, one register. */
BN_FORCE_INLINE void rows_by_tokens(const uint8_t *row, size_t n_lines, int n_rows, int n_tokens,
                                    const struct ternary_batch *batch)
{
    const size_t row_bytes = n_lines * LINE_BYTES, q_bytes = n_lines * LINE_COLS;
    int32x4_t sum[TILE_TOKENS][ROWS];
#pragma GCC unroll 4
    for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++)
            sum[t][r] = vdupq_n_s32(0);
    for (size_t quarter = 0; quarter < 4 * n_lines; quarter++) {
        const int8_t *q = batch->q + quarter / 4 * LINE_COLS + quarter % 4 * 16;
        uint8x16_t bytes[ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) {
            const uint8_t *at = row + (size_t)r * row_bytes + quarter * 16;
            __builtin_prefetch((const void *)((uintptr_t)at + PREFETCH_BYTES));
            bytes[r] = vld1q_u8(at);
        }
#pragma GCC unroll 4
        for (int field = 0; field < 4; field++) {
            const int8x16_t shift = vdupq_n_s8((int8_t)(-2 * field));
            int8x16_t codes[ROWS];
#pragma GCC unroll 4
            for (int r = 0; r < n_rows; r++)
                codes[r] = field_codes(bytes[r], shift);
#pragma GCC unroll 4
            for (int t = 0; t < n_tokens; t++) {
                const int8x16_t qt = vld1q_s8(q + (size_t)t * q_bytes + 64 * field);
#pragma GCC unroll 4
                for (int r = 0; r < n_rows; r++)
                    sum[t][r] = vdotq_s32(sum[t][r], codes[r], qt);
            }
        }
    }
#pragma GCC unroll 4
    for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++)
            batch->acc[(size_t)t * batch->acc_stride + (size_t)r] =
                vaddvq_s32(sum[t][r]) - batch->q_sums[t];
}

/* n_rows (1 or ROWS) rows from r on times all tokens of the batch. acc belongs to row r. */
BN_FORCE_INLINE void all_tokens(const struct ternary_mat *w, size_t r, int n_rows,
                                const struct ternary_batch *batch, int32_t *acc)
{
    const uint8_t *row = w->lines + r * w->n_lines * LINE_BYTES;
    size_t t = 0;
    for (; t < batch->n_tokens; t += batch->n_tokens - t >= TILE_TOKENS ? TILE_TOKENS : 1) {
        const struct ternary_batch sub_batch = {
            .q = batch->q + t * w->n_lines * LINE_COLS,
            .q_sums = batch->q_sums + t,
            .acc = acc + t * batch->acc_stride,
            .acc_stride = batch->acc_stride,
        };
        if (batch->n_tokens - t >= TILE_TOKENS)
            rows_by_tokens(row, w->n_lines, n_rows, TILE_TOKENS, &sub_batch);
        else
            rows_by_tokens(row, w->n_lines, n_rows, 1, &sub_batch);
    }
}

void ternary_matmul_dotprod(const struct ternary_mat *w, size_t row0, size_t row1,
                            const struct ternary_batch *batch)
{
    size_t r = row0;
    for (; row1 - r >= ROWS; r += ROWS)
        all_tokens(w, r, ROWS, batch, batch->acc + (r - row0));
    for (; r < row1; r++)
        all_tokens(w, r, 1, batch, batch->acc + (r - row0));
}

void ternary_matvec_dotprod(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                            int32_t q_sum, int32_t *acc)
{
    const struct ternary_batch one = {.q = q, .q_sums = &q_sum, .n_tokens = 1, .acc = acc};
    ternary_matmul_dotprod(w, row0, row1, &one);
}
