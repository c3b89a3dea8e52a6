/*
 * pack_token and ternary_matmul for the int8 matrix multiply (SMMLA), for two tokens and more. See
 * ternary_ref.c for a line of R1-256 and its fields.
 *
 * One instruction multiplies two rows by two tokens over eight columns. Tokens are packed in pairs:
 * eight columns of the first token, the same eight of the second token, and so on. The codes of two
 * rows are interleaved to the same layout in registers. A register tile is 4 rows x 8 tokens. A
 * result of the instruction is a 2 x 2 matrix: row-major, with tokens as columns.
 */
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"

#define PAIR_COLS 8 /* consecutive columns of one token in a packed pair */
#define ROW_PAIRS 2 /* pairs of rows and of tokens of a register tile */
#define TOKEN_PAIRS 4

void pack_token_i8mm(const int8_t *q, size_t n_lines, size_t t, int8_t *packed)
{
    const size_t n_cols = n_lines * LINE_COLS;
    int8_t *pair = packed + t / 2 * 2 * n_cols + t % 2 * PAIR_COLS;
    for (size_t i = 0; i < n_cols; i += PAIR_COLS)
        vst1_s8(pair + 2 * i, vld1_s8(q + i));
}

/* 16 columns of two rows, interleaved: `first` has columns 0 .. 7 of both, `second` 8 .. 15. */
struct row_pair {
    int8x16_t first, second;
};
BN_FORCE_INLINE struct row_pair pair_rows(int8x16_t a, int8x16_t b)
{
    const int64x2_t a2 = vreinterpretq_s64_s8(a), b2 = vreinterpretq_s64_s8(b);
    return (struct row_pair){vreinterpretq_s8_s64(vzip1q_s64(a2, b2)),
                             vreinterpretq_s8_s64(vzip2q_s64(a2, b2))};
}

/* Store the sums of a pair of rows and a pair of tokens, of which n_rows and n_tokens (1 or 2)
 * exist. */
BN_FORCE_INLINE void store_pairs(int32x4_t sum, size_t n_rows, size_t n_tokens,
                                 const struct ternary_batch *batch)
{
    int32_t cell[4];
    vst1q_s32(cell, sum);
    for (size_t r = 0; r < n_rows; r++)
        for (size_t t = 0; t < n_tokens; t++)
            batch->acc[t * batch->acc_stride + r] = cell[2 * r + t] - batch->q_sums[t];
}

/* n_rows (at most 4) rows times n_pairs (at most 4) pairs of tokens. A row past n_rows repeats the
 * last row, and its sums are not stored. A quarter is 16 bytes of each row, one register. */
BN_FORCE_INLINE void rows_by_pairs(const uint8_t *row, size_t n_lines, size_t n_rows, int n_pairs,
                                   const struct ternary_batch *batch)
{
    const size_t row_bytes = n_lines * LINE_BYTES, pair_bytes = 2 * n_lines * LINE_COLS;
    const uint8_t *rows[2 * ROW_PAIRS];
    int32x4_t sum[ROW_PAIRS][TOKEN_PAIRS];
    for (size_t r = 0; r < 2 * ROW_PAIRS; r++)
        rows[r] = row + (r < n_rows ? r : n_rows - 1) * row_bytes;
#pragma GCC unroll 2
    for (int p = 0; p < ROW_PAIRS; p++)
#pragma GCC unroll 4
        for (int t = 0; t < n_pairs; t++)
            sum[p][t] = vdupq_n_s32(0);
    for (size_t quarter = 0; quarter < 4 * n_lines; quarter++) {
        const int8_t *q = batch->q + 2 * (quarter / 4 * LINE_COLS + quarter % 4 * 16);
        uint8x16_t bytes[2 * ROW_PAIRS];
#pragma GCC unroll 4
        for (int r = 0; r < 2 * ROW_PAIRS; r++)
            bytes[r] = vld1q_u8(rows[r] + quarter * 16);
#pragma GCC unroll 4
        for (int field = 0; field < 4; field++) {
            const int8x16_t shift = vdupq_n_s8((int8_t)(-2 * field));
            struct row_pair w[ROW_PAIRS];
#pragma GCC unroll 2
            for (int p = 0; p < ROW_PAIRS; p++)
                w[p] = pair_rows(field_codes(bytes[2 * p], shift),
                                 field_codes(bytes[2 * p + 1], shift));
#pragma GCC unroll 4
            for (int t = 0; t < n_pairs; t++) {
                const int8_t *at = q + (size_t)t * pair_bytes + 128 * field;
                const int8x16_t q0 = vld1q_s8(at), q1 = vld1q_s8(at + 16);
#pragma GCC unroll 2
                for (int p = 0; p < ROW_PAIRS; p++)
                    sum[p][t] = vmmlaq_s32(vmmlaq_s32(sum[p][t], w[p].first, q0), w[p].second, q1);
            }
        }
    }
    for (size_t p = 0; 2 * p < n_rows; p++)
        for (size_t t = 0; t < (size_t)n_pairs; t++) {
            const struct ternary_batch cell = {
                .q_sums = batch->q_sums + 2 * t,
                .acc = batch->acc + 2 * t * batch->acc_stride + 2 * p,
                .acc_stride = batch->acc_stride,
            };
            store_pairs(sum[p][t], n_rows - 2 * p < 2 ? 1 : 2, batch->n_tokens - 2 * t < 2 ? 1 : 2,
                        &cell);
        }
}

void ternary_matmul_i8mm(const struct ternary_mat *w, size_t row0, size_t row1,
                         const struct ternary_batch *batch)
{
    const size_t row_bytes = w->n_lines * LINE_BYTES;
    for (size_t r = row0; r < row1; r += 2 * ROW_PAIRS)
        for (size_t t = 0; t < batch->n_tokens;) {
            const size_t n_rows = row1 - r < 2 * ROW_PAIRS ? row1 - r : 2 * ROW_PAIRS;
            const size_t left = batch->n_tokens - t;
            /* A whole tile, else one pair. The last pair may have one token; then the sums of the
             * other are not stored. */
            const size_t n_tokens = left >= 2 * TOKEN_PAIRS ? 2 * TOKEN_PAIRS : left < 2 ? left : 2;
            const struct ternary_batch sub_batch = {
                .q = batch->q + t * w->n_lines * LINE_COLS,
                .q_sums = batch->q_sums + t,
                .n_tokens = n_tokens,
                .acc = batch->acc + t * batch->acc_stride + (r - row0),
                .acc_stride = batch->acc_stride,
            };
            if (n_tokens == 2 * TOKEN_PAIRS)
                rows_by_pairs(w->lines + r * row_bytes, w->n_lines, n_rows, TOKEN_PAIRS,
                              &sub_batch);
            else
                rows_by_pairs(w->lines + r * row_bytes, w->n_lines, n_rows, 1, &sub_batch);
            t += n_tokens;
        }
}
