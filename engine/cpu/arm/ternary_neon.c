/*
 * ternary_matvec and ternary_matmul for NEON without dot products. See ternary_ref.c for a line of
 * R1-256 and its fields.
 *
 * Products of bytes are added to int16 sums, which are widened to int32 before they can overflow: a
 * code is at most 2 and an activation at most 127 in magnitude, so a product is at most 254. A line
 * adds 32 products to each of the 8 lanes of a row's int16 sum, so the sum holds 4 lines (32,512 of
 * 32,767). A register tile is 2 rows x 4 tokens.
 */
#include "engine/base/size.h"
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"

#define ROWS 2 /* rows and tokens of a register tile */
#define TILE_TOKENS 4
#define WIDEN_LINES 4       /* lines that an int16 sum can hold */
#define PREFETCH_BYTES 1024 /* distance of prefetches in each row; ternary_mat.ahead is not used */

/* x (8 x int16) += codes * q, 16 columns */
BN_FORCE_INLINE int16x8_t add_products(int16x8_t x, int8x16_t codes, int8x16_t q)
{
    return vmlal_high_s8(vmlal_s8(x, vget_low_s8(codes), vget_low_s8(q)), codes, q);
}

/* n_rows rows times n_tokens tokens. A quarter is 16 bytes of each row, one register. */
BN_FORCE_INLINE void rows_by_tokens(const uint8_t *row, size_t n_lines, int n_rows, int n_tokens,
                                    const struct ternary_batch *batch)
{
    const size_t row_bytes = n_lines * LINE_BYTES, q_bytes = n_lines * LINE_COLS;
    int32x4_t sum[TILE_TOKENS][ROWS];
#pragma GCC unroll 4
    for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
        for (int r = 0; r < n_rows; r++)
            sum[t][r] = vdupq_n_s32(0);

    for (size_t l0 = 0; l0 < n_lines; l0 += WIDEN_LINES) {
        const size_t l1 = size_min(l0 + WIDEN_LINES, n_lines);
        int16x8_t x[TILE_TOKENS][ROWS];
#pragma GCC unroll 4
        for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
            for (int r = 0; r < n_rows; r++)
                x[t][r] = vdupq_n_s16(0);
        for (size_t quarter = 4 * l0; quarter < 4 * l1; quarter++) {
            const int8_t *q = batch->q + quarter / 4 * LINE_COLS + quarter % 4 * 16;
            uint8x16_t bytes[ROWS];
#pragma GCC unroll 2
            for (int r = 0; r < n_rows; r++) {
                const uint8_t *at = row + (size_t)r * row_bytes + quarter * 16;
                __builtin_prefetch((const void *)((uintptr_t)at + PREFETCH_BYTES));
                bytes[r] = vld1q_u8(at);
            }
#pragma GCC unroll 4
            for (int field = 0; field < 4; field++) {
                const int8x16_t shift = vdupq_n_s8((int8_t)(-2 * field));
                int8x16_t codes[ROWS];
#pragma GCC unroll 2
                for (int r = 0; r < n_rows; r++)
                    codes[r] = field_codes(bytes[r], shift);
#pragma GCC unroll 4
                for (int t = 0; t < n_tokens; t++) {
                    const int8x16_t qt = vld1q_s8(q + (size_t)t * q_bytes + 64 * field);
#pragma GCC unroll 2
                    for (int r = 0; r < n_rows; r++)
                        x[t][r] = add_products(x[t][r], codes[r], qt);
                }
            }
        }
#pragma GCC unroll 4
        for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
            for (int r = 0; r < n_rows; r++)
                sum[t][r] = vpadalq_s16(sum[t][r], x[t][r]);
    }
#pragma GCC unroll 4
    for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
        for (int r = 0; r < n_rows; r++)
            batch->acc[(size_t)t * batch->acc_stride + (size_t)r] =
                vaddvq_s32(sum[t][r]) - batch->q_sums[t];
}

/* The first TILE_TOKENS of n_tokens tokens, or all if there are fewer. Makes their number a
 * constant, so that the loops over tokens unroll. */
BN_FORCE_INLINE void rows_by_first_tokens(const uint8_t *row, size_t n_lines, int n_rows,
                                          size_t n_tokens, const struct ternary_batch *batch)
{
    switch (n_tokens) {
    case 1:
        rows_by_tokens(row, n_lines, n_rows, 1, batch);
        break;
    case 2:
        rows_by_tokens(row, n_lines, n_rows, 2, batch);
        break;
    case 3:
        rows_by_tokens(row, n_lines, n_rows, 3, batch);
        break;
    default:
        rows_by_tokens(row, n_lines, n_rows, TILE_TOKENS, batch);
        break;
    }
}

void ternary_matmul_neon(const struct ternary_mat *w, size_t row0, size_t row1,
                         const struct ternary_batch *batch)
{
    const size_t row_bytes = w->n_lines * LINE_BYTES;
    for (size_t r = row0; r < row1; r += row1 - r >= ROWS ? ROWS : 1)
        for (size_t t = 0; t < batch->n_tokens; t += TILE_TOKENS) {
            const struct ternary_batch sub_batch = {
                .q = batch->q + t * w->n_lines * LINE_COLS,
                .q_sums = batch->q_sums + t,
                .acc = batch->acc + t * batch->acc_stride + (r - row0),
                .acc_stride = batch->acc_stride,
            };
            const uint8_t *row = w->lines + r * row_bytes;
            if (row1 - r >= ROWS)
                rows_by_first_tokens(row, w->n_lines, ROWS, batch->n_tokens - t, &sub_batch);
            else
                rows_by_first_tokens(row, w->n_lines, 1, batch->n_tokens - t, &sub_batch);
        }
}

void ternary_matvec_neon(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                         int32_t q_sum, int32_t *acc)
{
    const struct ternary_batch one = {.q = q, .q_sums = &q_sum, .n_tokens = 1, .acc = acc};
    ternary_matmul_neon(w, row0, row1, &one);
}
