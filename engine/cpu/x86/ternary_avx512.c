/*
 * ternary_matvec, ternary_listed and ternary_matmul for AVX-512 VNNI.
 *
 * A line of R1-256 (see ternary_ref.c) is one register, and a mask unpacks a field: masks 0x03,
 * 0x0c, 0x30 and 0xc0 select 1, 4, 16 and 64 times the code. The matrix-vector product has one sum
 * per field and divides the sums at the end. The matrix-matrix product does not have the registers
 * for that: it passes over the row once per field, from the highest field down, and divides its
 * sums by four between the passes.
 *
 * All divisions are exact: each term of a divided sum is a multiple of the divisor, and no sum
 * overflows. One lane adds four products per line and field, of at most 128 (code 2, 64 times)
 * times 127. So a sum over n lines is at most n * 4 * 128 * 127 in magnitude, and the sums of rows
 * of 8 million columns fit in 32 bits.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"
#include "engine/cpu/x86/ternary_blocks.h"

#include <immintrin.h>

/* ROWS rows at a time share the loads of q. In the matrix-vector product, they are a quarter of the
 * range apart: a core reads four streams up to 1.4 times as fast as one. In the matrix-matrix
 * product, 4 rows x 6 tokens are 24 sums: with 4 weights, q and the mask, 30 of 32 registers. */
#define ROWS 4
#define NEXT_ROWS 4 /* ternary_listed prefetches NEXT_ROWS rows ahead in each part of its list */

/* acc[r] = sum of the lanes of v[r], minus q_sum, for r < n_rows */
BN_FORCE_INLINE void store_sums(const __m512i v[ROWS], int n_rows, int32_t q_sum, int32_t *acc)
{
    const __m128i sums = _mm_sub_epi32(sum_lanes_avx512(v), _mm_set1_epi32(q_sum));
    _mm_mask_storeu_epi32(acc, (__mmask8)((1 << n_rows) - 1), sums);
}

BN_FORCE_INLINE __m512i load(const void *p)
{
    return _mm512_loadu_si512(p); /* lines are 32-byte aligned only */
}

/* Rows that are multiplied together. While row i is read, the memory at ahead[i] is prefetched. */
struct row_set {
    const uint8_t *row[ROWS];
    uintptr_t ahead[ROWS];
};

/* n_rows (1 or ROWS) rows times one token. All ROWS elements of out are written. */
BN_FORCE_INLINE void matvec_rows(const struct row_set *s, size_t n_lines, int n_rows,
                                 const int8_t *q, int32_t q_sum, int32_t out[ROWS])
{
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
            const __m512i w = load(s->row[r] + l * LINE_BYTES);
            _mm_prefetch((const char *)(s->ahead[r] + l * LINE_BYTES), _MM_HINT_T0);
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
    const __m128i sums = _mm_sub_epi32(sum_lanes_avx512(total), _mm_set1_epi32(q_sum));
    _mm_storeu_si128((__m128i *)(void *)out, sums);
}

/* Rows r, r + step, ... of w. With step 0 all are row r, and the caller uses one. */
BN_FORCE_INLINE struct row_set rows_apart(const struct ternary_mat *w, size_t r, size_t step)
{
    struct row_set s;
#pragma GCC unroll 4
    for (size_t i = 0; i < ROWS; i++) {
        s.row[i] = w->lines + (r + i * step) * w->n_lines * LINE_BYTES;
        s.ahead[i] = (uintptr_t)s.row[i] + w->ahead;
    }
    return s;
}

/* Rows rows[0], rows[step], ... of a list: one of each part, which has n_left rows left, this one
 * included. With step 0 all are rows[0], and the caller uses one. */
BN_FORCE_INLINE struct row_set rows_listed(const struct ternary_mat *w, const int32_t *rows,
                                           size_t step, size_t n_left)
{
    const size_t row_bytes = w->n_lines * LINE_BYTES;
    const size_t next = n_left > NEXT_ROWS ? NEXT_ROWS : n_left - 1;
    struct row_set s;
#pragma GCC unroll 4
    for (size_t i = 0; i < ROWS; i++) {
        s.row[i] = w->lines + (size_t)rows[i * step] * row_bytes;
        s.ahead[i] = (uintptr_t)(w->lines + (size_t)rows[i * step + next] * row_bytes);
    }
    return s;
}

void ternary_matvec_avx512(const struct ternary_mat *w, size_t row0, size_t row1, const int8_t *q,
                           int32_t q_sum, int32_t *acc)
{
    const size_t step = (row1 - row0) / ROWS;
    int32_t out[ROWS];
    for (size_t r = 0; r < step; r++) {
        const struct row_set s = rows_apart(w, row0 + r, step);
        matvec_rows(&s, w->n_lines, ROWS, q, q_sum, out);
        for (size_t i = 0; i < ROWS; i++)
            acc[r + i * step] = out[i];
    }
    for (size_t r = ROWS * step; r < row1 - row0; r++) {
        const struct row_set s = rows_apart(w, row0 + r, 0);
        matvec_rows(&s, w->n_lines, 1, q, q_sum, out);
        acc[r] = out[0];
    }
}

void ternary_listed_avx512(const struct ternary_mat *w, const int32_t *rows, size_t n,
                           const int8_t *q, int32_t q_sum, int32_t *acc)
{
    const size_t step = n / ROWS;
    int32_t out[ROWS];
    for (size_t r = 0; r < step; r++) {
        const struct row_set s = rows_listed(w, rows + r, step, step - r);
        matvec_rows(&s, w->n_lines, ROWS, q, q_sum, out);
        for (size_t i = 0; i < ROWS; i++)
            acc[rows[r + i * step]] = out[i];
    }
    for (size_t r = ROWS * step; r < n; r++) {
        const struct row_set s = rows_listed(w, rows + r, 0, 1);
        matvec_rows(&s, w->n_lines, 1, q, q_sum, out);
        acc[rows[r]] = out[0];
    }
}

/* See matmul_tile_fn. */
BN_FORCE_INLINE void matmul_tile(const uint8_t *row, size_t n_lines, int n_rows, int n_tokens,
                                 const struct ternary_batch *batch)
{
    const size_t row_bytes = n_lines * LINE_BYTES, q_bytes = n_lines * LINE_COLS;
    __m512i sum[TILE_TOKENS][ROWS];
#pragma GCC unroll 6
    for (int t = 0; t < TILE_TOKENS; t++)
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++)
            sum[t][r] = _mm512_setzero_si512();

    for (int f = 3; f >= 0; f--) { /* the sums of higher fields are divided by four for each f */
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

void ternary_matmul_avx512(const struct ternary_mat *w, size_t row0, size_t row1,
                           const struct ternary_batch *batch)
{
    matmul_tiles(matmul_tile, ROWS, w, row0, row1, batch);
}
