/*
 * ternary_matvec, ternary_listed and ternary_matmul for AVX-VNNI. The method is that of
 * ternary_avx512.c, applied to 256-bit halves of a line.
 *
 * Of the sixteen registers, 8 hold the sums of the matrix-vector product (2 rows x 4 fields), or 12
 * hold those of the matrix-matrix product (2 rows x 6 tokens).
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"
#include "engine/cpu/x86/row_pairs.h"
#include "engine/cpu/x86/ternary_blocks.h"

#include <immintrin.h>

#define PREFETCH_BYTES 2560 /* used in place of ternary_mat.ahead: see docs/kernels.md */

BN_FORCE_INLINE __m256i load(const void *p)
{
    return _mm256_load_si256(p);
}

/* acc[r * step] = sum of the lanes of v[r], minus q_sum */
BN_FORCE_INLINE void store_sums(const __m256i v[ROWS], int n_rows, int32_t q_sum, int32_t *acc,
                                size_t step)
{
#pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++)
        acc[(size_t)r * step] = sum_lanes_avx2(v[r]) - q_sum;
}

/* See row_pairs_fn. */
BN_FORCE_INLINE void matvec_rows(const uint8_t *row, size_t n_lines, size_t step_rows, int n_rows,
                                 const int8_t *q, int32_t q_sum, int32_t *acc)
{
    const size_t step_bytes = step_rows * n_lines * LINE_BYTES;
    __m256i sum[ROWS][4];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
        for (int f = 0; f < 4; f++)
            sum[r][f] = _mm256_setzero_si256();

    for (size_t l = 0; l < n_lines; l++) {
#pragma GCC unroll 2
        for (int r = 0; r < n_rows; r++)
            _mm_prefetch((const char *)((uintptr_t)row + (size_t)r * step_bytes + PREFETCH_BYTES +
                                        l * LINE_BYTES),
                         _MM_HINT_T0);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            const int8_t *ql = q + l * LINE_COLS + 32 * half;
            const __m256i q0 = load(ql), q1 = load(ql + 64);
            const __m256i q2 = load(ql + 128), q3 = load(ql + 192);
#pragma GCC unroll 2
            for (int r = 0; r < n_rows; r++) {
                const __m256i w = load(row + (size_t)r * step_bytes + l * LINE_BYTES + 32 * half);
                const __m256i w0 = _mm256_and_si256(w, _mm256_set1_epi8(0x03));
                const __m256i w1 = _mm256_and_si256(w, _mm256_set1_epi8(0x0c));
                const __m256i w2 = _mm256_and_si256(w, _mm256_set1_epi8(0x30));
                const __m256i w3 = _mm256_and_si256(w, _mm256_set1_epi8((char)0xc0));
                sum[r][0] = _mm256_dpbusd_avx_epi32(sum[r][0], w0, q0);
                sum[r][1] = _mm256_dpbusd_avx_epi32(sum[r][1], w1, q1);
                sum[r][2] = _mm256_dpbusd_avx_epi32(sum[r][2], w2, q2);
                sum[r][3] = _mm256_dpbusd_avx_epi32(sum[r][3], w3, q3);
            }
        }
    }
    __m256i total[ROWS];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++) {
        const __m256i a = _mm256_add_epi32(sum[r][0], _mm256_srai_epi32(sum[r][1], 2));
        const __m256i b = _mm256_add_epi32(sum[r][2], _mm256_srai_epi32(sum[r][3], 2));
        total[r] = _mm256_add_epi32(a, _mm256_srai_epi32(b, 4));
    }
    store_sums(total, n_rows, q_sum, acc, step_rows);
}

void ternary_matvec_avxvnni(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                            int32_t q_sum, int32_t *acc)
{
    row_pairs_all(matvec_rows, w, row0, row1, q, q_sum, acc);
}

void ternary_listed_avxvnni(const struct ternary_mat *w, const int32_t *rows, size_t n,
                            const int8_t *q, int32_t q_sum, int32_t *acc)
{
    row_pairs_listed(matvec_rows, w, rows, n, q, q_sum, acc);
}

/* See matmul_tile_fn. */
BN_FORCE_INLINE void matmul_tile(const uint8_t *row, size_t n_lines, int n_rows, int n_tokens,
                                 const struct ternary_batch *batch)
{
    const size_t row_bytes = n_lines * LINE_BYTES, q_bytes = n_lines * LINE_COLS;
    __m256i sum[TILE_TOKENS][ROWS];
#pragma GCC unroll 6
    for (int t = 0; t < TILE_TOKENS; t++)
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++)
            sum[t][r] = _mm256_setzero_si256();

    for (int f = 3; f >= 0; f--) { /* the sums of higher fields are divided by four for each f */
        const __m256i mask = _mm256_set1_epi8((char)(3 << 2 * f));
        const int8_t *q = batch->q + 64 * f;
#pragma GCC unroll 6
        for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 4
            for (int r = 0; r < n_rows; r++)
                sum[t][r] = _mm256_srai_epi32(sum[t][r], 2);
        for (size_t half = 0; half < 2 * n_lines; half++) {
            __m256i weights[ROWS];
            const int8_t *qh = q + half / 2 * LINE_COLS + half % 2 * 32;
#pragma GCC unroll 2
            for (int r = 0; r < n_rows; r++)
                weights[r] = _mm256_and_si256(mask, load(row + (size_t)r * row_bytes + half * 32));
#pragma GCC unroll 6
            for (int t = 0; t < n_tokens; t++) {
                const __m256i qt = load(qh + (size_t)t * q_bytes);
#pragma GCC unroll 2
                for (int r = 0; r < n_rows; r++)
                    sum[t][r] = _mm256_dpbusd_avx_epi32(sum[t][r], weights[r], qt);
            }
        }
    }
#pragma GCC unroll 6
    for (int t = 0; t < n_tokens; t++)
        store_sums(sum[t], n_rows, batch->q_sums[t], batch->acc + (size_t)t * batch->acc_stride, 1);
}

void ternary_matmul_avxvnni(const struct ternary_mat *w, size_t row0, size_t row1,
                            const struct ternary_batch *batch)
{
    matmul_tiles(matmul_tile, ROWS, w, row0, row1, batch);
}
