/*
 * ternary_matmul for AVX-512 VNNI, for few tokens: small batches, short prompts and verification of
 * drafts. Each line of weights is read from memory once for up to six tokens, so two or three
 * tokens take little longer than one.
 *
 * A line of R1-256 is copied and shifted right by four, so that two masks unpack four fields. One
 * sum is for fields 0 and 2; the other, for fields 1 and 3, is four times too large and is divided
 * by four at the end. A register tile is four rows for up to three tokens, or two rows for up to
 * six: 24 sums. Its rows are a quarter, or half, of the range apart, because a core reads several
 * streams faster than one. Each stream is prefetched.
 */
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"

#define MAX_ROWS 4
#define MAX_TOKENS 6
#define MAX_TOKENS_4 3      /* most tokens for four rows */
#define PREFETCH_BYTES 2560 /* used in place of ternary_mat.ahead: see docs/kernels.md */

/* n_rows (1, 2 or 4) rows, `apart` rows from each other, times n_tokens tokens. sum[t][0] is for
 * fields 0 and 2, sum[t][1] for fields 1 and 3. acc: the sum of the first row and token. */
BN_FORCE_INLINE void multiply_rows(const uint8_t *row, size_t n_lines, size_t apart, int n_rows,
                                   int n_tokens, const struct ternary_batch *batch, int32_t *acc)
{
    const size_t q_bytes = n_lines * LINE_COLS, row_step = apart * n_lines * LINE_BYTES;
    __m512i sum[MAX_TOKENS][2][MAX_ROWS];
#pragma GCC unroll 6
    for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 4
        for (int r = 0; r < MAX_ROWS; r++)
            sum[t][0][r] = sum[t][1][r] = _mm512_setzero_si512();

    for (size_t l = 0; l < n_lines; l++) {
        __m512i low[MAX_ROWS], high[MAX_ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) {
            const uint8_t *at = row + (size_t)r * row_step + l * LINE_BYTES;
            low[r] = _mm512_loadu_si512(at);
            high[r] = _mm512_srli_epi32(low[r], 4);
            _mm_prefetch((const char *)((uintptr_t)at + PREFETCH_BYTES), _MM_HINT_T0);
        }
#pragma GCC unroll 2
        for (int f = 0; f < 2; f++) {
            const __m512i mask = _mm512_set1_epi8((char)(3 << 2 * f));
            const int8_t *q = batch->q + l * LINE_COLS + 64 * f;
            __m512i w0[MAX_ROWS], w2[MAX_ROWS]; /* fields f and f + 2, as q0 and q2 */
#pragma GCC unroll 4
            for (int r = 0; r < n_rows; r++) {
                w0[r] = _mm512_and_si512(low[r], mask);
                w2[r] = _mm512_and_si512(high[r], mask);
            }
#pragma GCC unroll 6
            for (int t = 0; t < n_tokens; t++) {
                const __m512i q0 = _mm512_load_si512(q + (size_t)t * q_bytes);
                const __m512i q2 = _mm512_load_si512(q + (size_t)t * q_bytes + 128);
#pragma GCC unroll 4
                for (int r = 0; r < n_rows; r++) {
                    sum[t][f][r] = _mm512_dpbusd_epi32(sum[t][f][r], w0[r], q0);
                    sum[t][f][r] = _mm512_dpbusd_epi32(sum[t][f][r], w2[r], q2);
                }
            }
        }
    }
#pragma GCC unroll 6
    for (int t = 0; t < n_tokens; t++) {
        int32_t out[MAX_ROWS];
        __m512i total[MAX_ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < MAX_ROWS; r++)
            total[r] = _mm512_add_epi32(sum[t][0][r], _mm512_srai_epi32(sum[t][1][r], 2));
        _mm_storeu_si128((__m128i *)(void *)out,
                         _mm_sub_epi32(sum_lanes_avx512(total), _mm_set1_epi32(batch->q_sums[t])));
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++)
            acc[(size_t)t * batch->acc_stride + (size_t)r * apart] = out[r];
    }
}

BN_FORCE_INLINE void multiply_tokens(const struct ternary_mat *w, size_t row0, size_t row1,
                                     int n_tokens, const struct ternary_batch *batch)
{
    const int n_rows = n_tokens <= MAX_TOKENS_4 ? 4 : 2;
    const size_t row_bytes = w->n_lines * LINE_BYTES;
    const size_t step = (row1 - row0) / (size_t)n_rows;
    const uint8_t *rows = w->lines + row0 * row_bytes;
    for (size_t r = 0; r < step; r++)
        multiply_rows(rows + r * row_bytes, w->n_lines, step, n_rows, n_tokens, batch,
                      batch->acc + r);
    for (size_t r = (size_t)n_rows * step; r < row1 - row0; r++)
        multiply_rows(rows + r * row_bytes, w->n_lines, 0, 1, n_tokens, batch, batch->acc + r);
}

void ternary_matmul_few_avx512(const struct ternary_mat *w, size_t row0, size_t row1,
                               const struct ternary_batch *batch)
{
    /* More than six tokens are cut into parts of nearly equal size. Unless rows are very long, the
     * rows of a call are still in the second-level cache when the second part reads them. */
    const size_t n_tiles = (batch->n_tokens + MAX_TOKENS - 1) / MAX_TOKENS;
    for (size_t i = 0; i < n_tiles; i++) {
        const size_t t0 = batch->n_tokens * i / n_tiles;
        const struct ternary_batch part = {.q = batch->q + t0 * w->n_lines * LINE_COLS,
                                           .q_sums = batch->q_sums + t0,
                                           .acc = batch->acc + t0 * batch->acc_stride,
                                           .acc_stride = batch->acc_stride};
        switch (batch->n_tokens * (i + 1) / n_tiles - t0) {
        case 1:
            multiply_tokens(w, row0, row1, 1, &part);
            break;
        case 2:
            multiply_tokens(w, row0, row1, 2, &part);
            break;
        case 3:
            multiply_tokens(w, row0, row1, 3, &part);
            break;
        case 4:
            multiply_tokens(w, row0, row1, 4, &part);
            break;
        case 5:
            multiply_tokens(w, row0, row1, 5, &part);
            break;
        default:
            multiply_tokens(w, row0, row1, MAX_TOKENS, &part);
            break;
        }
    }
}
