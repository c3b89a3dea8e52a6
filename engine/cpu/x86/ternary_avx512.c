/*
 * Ternary products with AVX-512 VNNI: a line of R1-256 is one register, and a mask is all the
 * unpacking.
 *
 * Masks 0x03, 0x0c, 0x30, 0xc0 leave 1, 4, 16 and 64 times the code. The matrix-vector product
 * keeps a sum for each field and divides at the end; the matrix-matrix product has no registers for
 * that, so it goes over the row once a field, highest first, dividing its sums by four in between.
 * All divisions are exact, and a sum of n lines stays below n * 4 * 128 * 127, so rows of 8 million
 * columns are safe.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"

#include <immintrin.h>

/* Rows at a time: they share the loads of q. In the matrix-vector product they are a quarter of the
 * range apart: one core then has four streams in flight and reads 1.4 times as fast as from one. */
#define ROWS 4
#define PREFETCH_BYTES 2560
#define BLOCK_TOKENS 6 /* 4 rows x 6 tokens = 24 sums; with 4 weights and q, 29 of 32 registers */

/* (sum of a, of b, of c, of d) */
BN_FORCE_INLINE __m128i sum_lanes(const __m512i v[4])
{
    __m256i half[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        half[i] =
            _mm256_add_epi32(_mm512_castsi512_si256(v[i]), _mm512_extracti64x4_epi64(v[i], 1));
    const __m256i ab = _mm256_hadd_epi32(half[0], half[1]);
    const __m256i cd = _mm256_hadd_epi32(half[2], half[3]);
    const __m256i abcd = _mm256_hadd_epi32(ab, cd);
    return _mm_add_epi32(_mm256_castsi256_si128(abcd), _mm256_extracti128_si256(abcd, 1));
}

/* Put the sums of n_rows rows, less q_sum, at acc. */
BN_FORCE_INLINE void store_sums(const __m512i v[ROWS], int n_rows, int32_t q_sum, int32_t *acc)
{
    const __m128i sums = _mm_sub_epi32(sum_lanes(v), _mm_set1_epi32(q_sum));
    _mm_mask_storeu_epi32(acc, (__mmask8)((1 << n_rows) - 1), sums);
}

BN_FORCE_INLINE __m512i load(const void *p)
{
    return _mm512_load_si512(p);
}

/* n_rows (1 or ROWS) rows, step_rows apart, against one token; sums at acc, step_rows apart. */
BN_FORCE_INLINE void matvec_rows(const uint8_t *row, size_t n_lines, size_t step_rows, int n_rows,
                                 const int8_t *q, int32_t q_sum, int32_t *acc)
{
    const size_t step_bytes = step_rows * n_lines * LINE_BYTES;
    __m512i sum[ROWS][4];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int f = 0; f < 4; f++)
            sum[r][f] = _mm512_setzero_si512();

    for (size_t l = 0; l < n_lines; l++) {
        const __m512i q0 = load(q + l * LINE_COLS), q1 = load(q + l * LINE_COLS + 64);
        const __m512i q2 = load(q + l * LINE_COLS + 128), q3 = load(q + l * LINE_COLS + 192);
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) {
            const uint8_t *line = row + (size_t)r * step_bytes + l * LINE_BYTES;
            const __m512i w = load(line);
            _mm_prefetch((const char *)((uintptr_t)line + PREFETCH_BYTES), _MM_HINT_T0);
            const __m512i w0 = _mm512_and_si512(w, _mm512_set1_epi8(0x03));
            const __m512i w1 = _mm512_and_si512(w, _mm512_set1_epi8(0x0c));
            const __m512i w2 = _mm512_and_si512(w, _mm512_set1_epi8(0x30));
            const __m512i w3 = _mm512_and_si512(w, _mm512_set1_epi8((char)0xc0));
            sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], w0, q0);
            sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], w1, q1);
            sum[r][2] = _mm512_dpbusd_epi32(sum[r][2], w2, q2);
            sum[r][3] = _mm512_dpbusd_epi32(sum[r][3], w3, q3);
        }
    }
    __m512i total[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++) {
        const __m512i a = _mm512_add_epi32(sum[r][0], _mm512_srai_epi32(sum[r][1], 2));
        const __m512i b = _mm512_add_epi32(sum[r][2], _mm512_srai_epi32(sum[r][3], 2));
        total[r] = _mm512_add_epi32(a, _mm512_srai_epi32(b, 4));
    }
    const __m128i sums = _mm_sub_epi32(sum_lanes(total), _mm_set1_epi32(q_sum));
    _Alignas(16) int32_t out[ROWS];
    _mm_store_si128((__m128i *)(void *)out, sums);
#pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++)
        acc[(size_t)r * step_rows] = out[r];
}

void ternary_matvec_avx512(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                           int32_t q_sum, int32_t *acc)
{
    const size_t row_bytes = w->n_lines * LINE_BYTES, step_rows = (row1 - row0) / ROWS;
    const uint8_t *row = w->lines + row0 * row_bytes;
    for (size_t r = 0; r < step_rows; r++)
        matvec_rows(row + r * row_bytes, w->n_lines, step_rows, ROWS, q, q_sum, acc + r);
    for (size_t r = ROWS * step_rows; r < row1 - row0; r++)
        matvec_rows(row + r * row_bytes, w->n_lines, 0, 1, q, q_sum, acc + r);
}

/* n_rows (1 or ROWS) rows against n_tokens (1 .. BLOCK_TOKENS) tokens from the first of `batch`. */
BN_FORCE_INLINE void matmul_block(const uint8_t *row, size_t n_lines, int n_rows, int n_tokens,
                                  const struct ternary_batch *batch)
{
    const size_t row_bytes = n_lines * LINE_BYTES, q_bytes = n_lines * LINE_COLS;
    __m512i sum[BLOCK_TOKENS][ROWS];
#pragma GCC unroll 6
    for (int t = 0; t < BLOCK_TOKENS; t++)
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++)
            sum[t][r] = _mm512_setzero_si512();

    for (int f = 3; f >= 0; f--) {
        const __m512i mask = _mm512_set1_epi8((char)(3 << 2 * f));
        const int8_t *q = batch->q + 64 * f;
#pragma GCC unroll 6
        for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 4
            for (int r = 0; r < n_rows; r++)
                sum[t][r] = _mm512_srai_epi32(sum[t][r], 2);
        for (size_t l = 0; l < n_lines; l++) {
            __m512i weights[ROWS];
#pragma GCC unroll 4
            for (int r = 0; r < n_rows; r++)
                weights[r] =
                    _mm512_and_si512(mask, load(row + (size_t)r * row_bytes + l * LINE_BYTES));
#pragma GCC unroll 6
            for (int t = 0; t < n_tokens; t++) {
                const __m512i qt = load(q + (size_t)t * q_bytes + l * LINE_COLS);
#pragma GCC unroll 4
                for (int r = 0; r < n_rows; r++)
                    sum[t][r] = _mm512_dpbusd_epi32(sum[t][r], weights[r], qt);
            }
        }
    }
#pragma GCC unroll 6
    for (int t = 0; t < n_tokens; t++)
        store_sums(sum[t], n_rows, batch->q_sums[t], batch->acc + (size_t)t * batch->acc_stride);
}

BN_FORCE_INLINE void matmul_tokens(const uint8_t *row, size_t n_lines, int n_rows, size_t n_tokens,
                                   const struct ternary_batch *batch)
{
    switch (n_tokens) {
    case 1:
        matmul_block(row, n_lines, n_rows, 1, batch);
        break;
    case 2:
        matmul_block(row, n_lines, n_rows, 2, batch);
        break;
    case 3:
        matmul_block(row, n_lines, n_rows, 3, batch);
        break;
    case 4:
        matmul_block(row, n_lines, n_rows, 4, batch);
        break;
    case 5:
        matmul_block(row, n_lines, n_rows, 5, batch);
        break;
    default:
        matmul_block(row, n_lines, n_rows, BLOCK_TOKENS, batch);
        break;
    }
}

void ternary_matmul_avx512(const struct ternary_mat *w, size_t row0, size_t row1,
                           const struct ternary_batch *batch)
{
    const size_t row_bytes = w->n_lines * LINE_BYTES;
    /* Blocks as equal as they can be: 16 tokens are 6 + 5 + 5, not 6 + 6 + 4. */
    const size_t n_blocks = (batch->n_tokens + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    for (size_t r = row0; r < row1; r += row1 - r >= ROWS ? ROWS : 1)
        for (size_t i = 0; i < n_blocks; i++) {
            const size_t t0 = batch->n_tokens * i / n_blocks;
            const size_t n_tokens = batch->n_tokens * (i + 1) / n_blocks - t0;
            const struct ternary_batch part = {
                .q = batch->q + t0 * w->n_lines * LINE_COLS,
                .q_sums = batch->q_sums + t0,
                .acc = batch->acc + t0 * batch->acc_stride + (r - row0),
                .acc_stride = batch->acc_stride,
            };
            const uint8_t *row = w->lines + r * row_bytes;
            if (row1 - r >= ROWS)
                matmul_tokens(row, w->n_lines, ROWS, n_tokens, &part);
            else
                matmul_tokens(row, w->n_lines, 1, n_tokens, &part);
        }
}
