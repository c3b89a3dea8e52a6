/*
 * ternary_matvec, ternary_listed and ternary_matmul for AVX2. See ternary_ref.c for a line of
 * R1-256 and its fields.
 *
 * VPMADDUBSW adds pairs of products of bytes to int16, which are summed and widened to int32 before
 * they can overflow. A pair is at most 2 * 2 * 127 = 508 in magnitude for a field in bits 0 and 1
 * of a byte, and 2,032 for a field in bits 2 and 3 (four times the code).
 *
 * The matrix-vector product masks the line, and the line shifted right by 4, with 0x03 and 0x0c. A
 * line adds four pairs of each kind to an int16 sum, so the sum of the plain codes holds 16 lines
 * (32,512 of 32,767) and the sum of the fourfold codes holds 4. The matrix-matrix product shifts
 * every field down to the plain code, once for all tokens of the register tile of 2 rows x 4
 * tokens: a line adds eight pairs to a sum, which holds 8 lines.
 */
#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"
#include "engine/cpu/x86/row_pairs.h"

#include <immintrin.h>

#define PREFETCH_BYTES 2560 /* used in place of ternary_mat.ahead: see docs/kernels.md */
#define TILE_TOKENS 4       /* most tokens of a register tile */
/* Lines after which int16 sums are widened: of plain codes, of fourfold codes, of all fields. */
#define WIDEN_X1_LINES 16
#define WIDEN_X4_LINES 4
#define WIDEN_ALL_LINES 8

BN_FORCE_INLINE __m256i load(const void *p)
{
    return _mm256_load_si256(p);
}

/* sum (8 x int32) plus the sums of neighbouring elements of pairs (16 x int16) */
BN_FORCE_INLINE __m256i widen(__m256i sum, __m256i pairs)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

/* Half a line of one row: x1 sums fields 0 and 2 as plain codes, x4 fields 1 and 3 as fourfold
 * codes. */
BN_FORCE_INLINE void half_line(const uint8_t *half, const int8_t *q, __m256i *x1, __m256i *x4)
{
    const __m256i low = load(half), high = _mm256_srli_epi16(low, 4);
    const __m256i m1 = _mm256_set1_epi8(0x03), m4 = _mm256_set1_epi8(0x0c);
    const __m256i p0 = _mm256_maddubs_epi16(_mm256_and_si256(low, m1), load(q));
    const __m256i p1 = _mm256_maddubs_epi16(_mm256_and_si256(low, m4), load(q + 64));
    const __m256i p2 = _mm256_maddubs_epi16(_mm256_and_si256(high, m1), load(q + 128));
    const __m256i p3 = _mm256_maddubs_epi16(_mm256_and_si256(high, m4), load(q + 192));
    *x1 = _mm256_add_epi16(*x1, _mm256_add_epi16(p0, p2));
    *x4 = _mm256_add_epi16(*x4, _mm256_add_epi16(p1, p3));
}

/* See row_pairs_fn. */
BN_FORCE_INLINE void matvec_rows(const uint8_t *row, size_t n_lines, size_t step_rows, int n_rows,
                                 const int8_t *q, int32_t q_sum, int32_t *acc)
{
    const size_t step_bytes = step_rows * n_lines * LINE_BYTES;
    const __m256i zero = _mm256_setzero_si256();
    __m256i sum1[ROWS] = {zero, zero}, sum4[ROWS] = {zero, zero};

    for (size_t l0 = 0; l0 < n_lines; l0 += WIDEN_X1_LINES) {
        const size_t l1 = size_min(l0 + WIDEN_X1_LINES, n_lines);
        __m256i x1[ROWS] = {zero, zero};
        for (size_t m0 = l0; m0 < l1; m0 += WIDEN_X4_LINES) {
            const size_t m1 = size_min(m0 + WIDEN_X4_LINES, l1);
            __m256i x4[ROWS] = {zero, zero};
            for (size_t l = m0; l < m1; l++) {
#pragma GCC unroll 2
                for (int r = 0; r < n_rows; r++) {
                    const uint8_t *line = row + (size_t)r * step_bytes + l * LINE_BYTES;
                    _mm_prefetch((const char *)((uintptr_t)line + PREFETCH_BYTES), _MM_HINT_T0);
                    half_line(line, q + l * LINE_COLS, &x1[r], &x4[r]);
                    half_line(line + 32, q + l * LINE_COLS + 32, &x1[r], &x4[r]);
                }
            }
#pragma GCC unroll 4
            for (int r = 0; r < n_rows; r++)
                sum4[r] = widen(sum4[r], x4[r]);
        }
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++)
            sum1[r] = widen(sum1[r], x1[r]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++)
        acc[(size_t)r * step_rows] =
            sum_lanes_avx2(_mm256_add_epi32(sum1[r], _mm256_srai_epi32(sum4[r], 2))) - q_sum;
}

void ternary_matvec_avx2(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                         int32_t q_sum, int32_t *acc)
{
    row_pairs_all(matvec_rows, w, row0, row1, q, q_sum, acc);
}

void ternary_listed_avx2(const struct ternary_mat *w, const int32_t *rows, size_t n,
                         const int8_t *q, int32_t q_sum, int32_t *acc)
{
    row_pairs_listed(matvec_rows, w, rows, n, q, q_sum, acc);
}

/* A register tile of n_rows (1 or ROWS) rows from `row` on and the first n_tokens (1 ..
 * TILE_TOKENS) tokens of `batch`. acc of `batch` points to the sum of the first row and token. */
BN_FORCE_INLINE void matmul_tile(const uint8_t *row, size_t n_lines, int n_rows, int n_tokens,
                                 const struct ternary_batch *batch)
{
    const size_t row_bytes = n_lines * LINE_BYTES, q_bytes = n_lines * LINE_COLS;
    __m256i sum[TILE_TOKENS][ROWS];
#pragma GCC unroll 4
    for (int t = 0; t < TILE_TOKENS; t++)
#pragma GCC unroll 2
        for (int r = 0; r < ROWS; r++)
            sum[t][r] = _mm256_setzero_si256();

    for (size_t l0 = 0; l0 < n_lines; l0 += WIDEN_ALL_LINES) {
        const size_t l1 = size_min(l0 + WIDEN_ALL_LINES, n_lines);
        __m256i x[TILE_TOKENS][ROWS];
#pragma GCC unroll 4
        for (int t = 0; t < TILE_TOKENS; t++)
#pragma GCC unroll 2
            for (int r = 0; r < ROWS; r++)
                x[t][r] = _mm256_setzero_si256();
        for (int field = 0; field < 4; field++) {
            const __m128i shift = _mm_cvtsi32_si128(2 * field);
            for (size_t half = 2 * l0; half < 2 * l1; half++) {
                const int8_t *q = batch->q + half / 2 * LINE_COLS + half % 2 * 32 + 64 * field;
                __m256i weights[ROWS];
#pragma GCC unroll 2
                for (int r = 0; r < n_rows; r++) {
                    const __m256i codes = load(row + (size_t)r * row_bytes + half * 32);
                    weights[r] =
                        _mm256_and_si256(_mm256_srl_epi16(codes, shift), _mm256_set1_epi8(0x03));
                }
#pragma GCC unroll 4
                for (int t = 0; t < n_tokens; t++) {
                    const __m256i qt = load(q + (size_t)t * q_bytes);
#pragma GCC unroll 2
                    for (int r = 0; r < n_rows; r++)
                        x[t][r] = _mm256_add_epi16(x[t][r], _mm256_maddubs_epi16(weights[r], qt));
                }
            }
        }
#pragma GCC unroll 4
        for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
            for (int r = 0; r < n_rows; r++)
                sum[t][r] = widen(sum[t][r], x[t][r]);
    }
#pragma GCC unroll 4
    for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
        for (int r = 0; r < n_rows; r++)
            batch->acc[(size_t)t * batch->acc_stride + (size_t)r] =
                sum_lanes_avx2(sum[t][r]) - batch->q_sums[t];
}

/* Makes the number of tokens a constant, so that the loops over them unroll. */
BN_FORCE_INLINE void matmul_tokens(const uint8_t *row, size_t n_lines, int n_rows, size_t n_tokens,
                                   const struct ternary_batch *batch)
{
    switch (n_tokens) {
    case 1:
        matmul_tile(row, n_lines, n_rows, 1, batch);
        break;
    case 2:
        matmul_tile(row, n_lines, n_rows, 2, batch);
        break;
    case 3:
        matmul_tile(row, n_lines, n_rows, 3, batch);
        break;
    default:
        matmul_tile(row, n_lines, n_rows, TILE_TOKENS, batch);
        break;
    }
}

void ternary_matmul_avx2(const struct ternary_mat *w, size_t row0, size_t row1,
                         const struct ternary_batch *batch)
{
    const size_t row_bytes = w->n_lines * LINE_BYTES;
    /* The parts of the tokens have nearly equal sizes: 9 tokens are 3 + 3 + 3, not 4 + 4 + 1. */
    const size_t n_tiles = (batch->n_tokens + TILE_TOKENS - 1) / TILE_TOKENS;
    for (size_t r = row0; r < row1; r += row1 - r >= ROWS ? ROWS : 1)
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
            if (row1 - r >= ROWS)
                matmul_tokens(row, w->n_lines, ROWS, n_tokens, &sub_batch);
            else
                matmul_tokens(row, w->n_lines, 1, n_tokens, &sub_batch);
        }
}
