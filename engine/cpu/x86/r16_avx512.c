/*
 * quantise_blocks, r16_matvec, r16_unpack and r16_matmul for AVX-512 VNNI.
 *
 * A line of R16 is one register: a lane is a row. The product with one token masks the line, and
 * the line shifted right by 4, with 0x03 and 0x0c. 0x03 leaves codes, 0x0c four times the code, so
 * a block needs two sums, and the second is divided by four. Four row groups at a time share the
 * loads of q. They are a quarter of the range apart, because a core reads four streams 1.4 times as
 * fast as one.
 *
 * The product with several tokens reads codes that were unpacked to bytes: 2 row groups x 6 tokens
 * are 12 integer sums and 12 sums of a span in registers. The sums of all spans are in y, which
 * stays in the first-level cache. The sums of a block start at -(sum of q) instead of zero, which
 * subtracts the 1 of each code.
 */
#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"

#include <immintrin.h>
#include <string.h>

#define STREAMS 4     /* row groups that are multiplied together */
#define TILE_TOKENS 6 /* most tokens of a register tile */
#define LINE_QUADS 4  /* groups of four columns in a line */

/* Four bytes of q in every lane. */
BN_FORCE_INLINE __m512i quad_of(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm512_set1_epi32(v);
}

/* The scales of 16 rows as F32. */
BN_FORCE_INLINE __m512 scales_of(const uint16_t *scales)
{
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(const void *)scales));
}

/* ---- activations ---- */

/* Quantise one block x (n), n <= block_cols; q (block_cols) gets zeros from n on. */
BN_FORCE_INLINE void quantise_block(const float *x, size_t n, size_t block_cols, int8_t *q,
                                    float *unit, int32_t *q_sum)
{
    const __m512 sign = _mm512_set1_ps(-0.0f);
    __m512 max = _mm512_setzero_ps();
    for (size_t i = 0; i < n; i += 16) /* VMAXPS returns its second operand if either is a NaN */
        max = _mm512_max_ps(_mm512_andnot_ps(sign, _mm512_maskz_loadu_ps(mask_below(i, n), x + i)),
                            max);
    const float m = max16_avx512(max);
    const bool is_zero = m < BLOCK_MIN_ABS;
    const __m512 s = _mm512_set1_ps(is_zero ? 0.0f : 127.0f / m);
    __m512i sum = _mm512_setzero_si512();
    for (size_t i = 0; i < block_cols; i += 16) {
        const __mmask16 below = is_zero ? 0 : mask_below(i, n);
        const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(below, x + i), s);
        const __mmask16 is_number = _mm512_cmp_ps_mask(v, v, _CMP_ORD_Q);
        const __m512i rounded = _mm512_maskz_cvtps_epi32(is_number, v);
        sum = _mm512_add_epi32(sum, rounded);
        _mm_store_si128((__m128i *)(void *)(q + i), _mm512_cvtepi32_epi8(rounded));
    }
    *unit = is_zero ? 0.0f : m / 127.0f;
    *q_sum = _mm512_reduce_add_epi32(sum);
}

void quantise_blocks_avx512(const float *x, size_t n, size_t block_cols, int8_t *q, float *units,
                            int32_t *q_sums)
{
    const size_t n_blocks = size_round_up(n, R16_PAD_COLS) / block_cols;
    for (size_t b = 0; b < n_blocks; b++) {
        const size_t begin = size_min(b * block_cols, n);
        quantise_block(x + begin, size_min(block_cols, n - begin), block_cols, q + b * block_cols,
                       &units[b], &q_sums[b]);
    }
}

/* ---- one token ---- */

/* Row groups that are multiplied together. */
struct group_set {
    const uint8_t *lines[STREAMS];
    const uint16_t *scales[STREAMS];
    float *y[STREAMS];
};

/* n_groups (1 or STREAMS) row groups of w times one token. */
BN_FORCE_INLINE void matvec_groups(const struct group_set *s, const struct r16_mat *w, int n_groups,
                                   const struct block_acts *x)
{
    const size_t block_lines = x->block_cols / R16_LINE_COLS;
    const size_t span_blocks = w->span_cols / x->block_cols;
    const __m512i low_mask = _mm512_set1_epi8(0x03), high_mask = _mm512_set1_epi8(0x0c);
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    const int8_t *q = x->q;
    const float *unit = x->units;
    const int32_t *q_sum = x->q_sums;
    size_t at = 0;
    __m512 y[STREAMS];
#pragma GCC unroll 4
    for (int i = 0; i < n_groups; i++)
        y[i] = _mm512_loadu_ps(s->y[i]);
    for (size_t span = 0; span < n_spans; span++) {
        __m512 g[STREAMS];
#pragma GCC unroll 4
        for (int i = 0; i < n_groups; i++)
            g[i] = _mm512_setzero_ps();
        for (size_t b = 0; b < span_blocks; b++, unit++, q_sum++) {
            __m512i x1[STREAMS], x4[STREAMS]; /* sums of codes and of fourfold codes */
#pragma GCC unroll 4
            for (int i = 0; i < n_groups; i++) {
                x1[i] = _mm512_set1_epi32(-*q_sum);
                x4[i] = _mm512_setzero_si512();
            }
            for (size_t l = 0; l < block_lines; l++, at += LINE_BYTES, q += R16_LINE_COLS) {
                const __m512i q0 = quad_of(q), q1 = quad_of(q + 4);
                const __m512i q2 = quad_of(q + 8), q3 = quad_of(q + 12);
#pragma GCC unroll 4
                for (int i = 0; i < n_groups; i++) {
                    const __m512i low = _mm512_load_si512(s->lines[i] + at);
                    const __m512i high = _mm512_srli_epi32(low, 4);
                    _mm_prefetch((const char *)((uintptr_t)(s->lines[i] + at) + w->ahead),
                                 _MM_HINT_T0);
                    x1[i] = _mm512_dpbusd_epi32(x1[i], _mm512_and_si512(low, low_mask), q0);
                    x4[i] = _mm512_dpbusd_epi32(x4[i], _mm512_and_si512(low, high_mask), q1);
                    x1[i] = _mm512_dpbusd_epi32(x1[i], _mm512_and_si512(high, low_mask), q2);
                    x4[i] = _mm512_dpbusd_epi32(x4[i], _mm512_and_si512(high, high_mask), q3);
                }
            }
#pragma GCC unroll 4
            for (int i = 0; i < n_groups; i++) {
                const __m512i sum = _mm512_add_epi32(x1[i], _mm512_srai_epi32(x4[i], 2));
                g[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(*unit), g[i]);
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < n_groups; i++)
            y[i] = _mm512_fmadd_ps(g[i], scales_of(s->scales[i] + span * w->scale_step), y[i]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < n_groups; i++)
        _mm512_storeu_ps(s->y[i], y[i]);
}

/* STREAMS row groups: g, g + step, g + 2 * step, ... The result of row group group0 is at y. */
BN_FORCE_INLINE struct group_set groups_apart(const struct r16_mat *w, size_t group0, size_t g,
                                              size_t step, float *y)
{
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    struct group_set s;
#pragma GCC unroll 4
    for (size_t i = 0; i < STREAMS; i++) {
        const size_t group = g + i * step;
        s.lines[i] = w->lines + group * w->n_lines * LINE_BYTES;
        s.scales[i] = w->scales + group * n_spans * w->scale_step;
        s.y[i] = y + (group - group0) * R16_ROWS;
    }
    return s;
}

void r16_matvec_avx512(const struct r16_mat *w, size_t group0, size_t group1,
                       const struct block_acts *x, float *y)
{
    const size_t step = (group1 - group0) / STREAMS;
    for (size_t g = 0; g < step; g++) {
        const struct group_set s = groups_apart(w, group0, group0 + g, step, y);
        matvec_groups(&s, w, STREAMS, x);
    }
    for (size_t g = group0 + STREAMS * step; g < group1; g++) {
        const struct group_set s = groups_apart(w, group0, g, 0, y);
        matvec_groups(&s, w, 1, x);
    }
}

/* ---- several tokens ---- */

/* A line of R16 has 16 columns of each of 16 rows. Its field i, bits 2 i and 2 i + 1 of each byte,
 * has four columns of each row and becomes the bytes 64 i .. 64 i + 63. */
void r16_unpack_avx512(const struct r16_mat *w, size_t group0, size_t group1, uint8_t *panel)
{
    const __m512i mask = _mm512_set1_epi8(3);
    const uint8_t *line = w->lines + group0 * w->n_lines * LINE_BYTES;
    for (size_t l = 0; l < (group1 - group0) * w->n_lines; l++, line += LINE_BYTES) {
        const __m512i v = _mm512_load_si512(line);
        _mm_prefetch((const char *)((uintptr_t)line + w->ahead), _MM_HINT_T0);
        _mm512_store_si512(panel, _mm512_and_si512(v, mask));
        _mm512_store_si512(panel + 64, _mm512_and_si512(_mm512_srli_epi32(v, 2), mask));
        _mm512_store_si512(panel + 128, _mm512_and_si512(_mm512_srli_epi32(v, 4), mask));
        _mm512_store_si512(panel + 192, _mm512_and_si512(_mm512_srli_epi32(v, 6), mask));
        panel += 256;
    }
}

/* n_groups (1 or R16_PANEL) row groups times n_tokens tokens from token t0 on. */
BN_FORCE_INLINE void matmul_tile(const struct r16_mat *w, size_t group0, int n_groups, int n_tokens,
                                 const struct r16_batch *batch, size_t t0)
{
    const size_t block_quads = batch->block_cols / 4;
    const size_t span_blocks = w->span_cols / batch->block_cols;
    const size_t group_bytes = w->n_lines * LINE_QUADS * 64;
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    const int8_t *q = batch->q + t0 * batch->q_stride;
    const float *unit = batch->units + t0 * batch->block_stride;
    const int32_t *q_sum = batch->q_sums + t0 * batch->block_stride;
    float *const y = batch->y + t0 * batch->y_stride;
    const uint8_t *codes = batch->panel;
    for (size_t span = 0; span < n_spans; span++) {
        __m512 g[TILE_TOKENS][R16_PANEL];
#pragma GCC unroll 6
        for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
            for (int i = 0; i < n_groups; i++)
                g[t][i] = _mm512_setzero_ps();
        for (size_t b = 0; b < span_blocks; b++, unit++, q_sum++) {
            __m512i sum[TILE_TOKENS][R16_PANEL];
#pragma GCC unroll 6
            for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
                for (int i = 0; i < n_groups; i++)
                    sum[t][i] = _mm512_set1_epi32(-q_sum[(size_t)t * batch->block_stride]);
#pragma GCC unroll 2
            for (size_t quad = 0; quad < block_quads; quad++, codes += 64, q += 4) {
                __m512i c[R16_PANEL];
#pragma GCC unroll 2
                for (int i = 0; i < n_groups; i++)
                    c[i] = _mm512_load_si512(codes + (size_t)i * group_bytes);
#pragma GCC unroll 6
                for (int t = 0; t < n_tokens; t++) {
                    const __m512i qt = quad_of(q + (size_t)t * batch->q_stride);
#pragma GCC unroll 2
                    for (int i = 0; i < n_groups; i++)
                        sum[t][i] = _mm512_dpbusd_epi32(sum[t][i], c[i], qt);
                }
            }
#pragma GCC unroll 6
            for (int t = 0; t < n_tokens; t++) {
                const __m512 u = _mm512_set1_ps(unit[(size_t)t * batch->block_stride]);
#pragma GCC unroll 2
                for (int i = 0; i < n_groups; i++)
                    g[t][i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[t][i]), u, g[t][i]);
            }
        }
#pragma GCC unroll 2
        for (int i = 0; i < n_groups; i++) {
            const size_t at = ((group0 + (size_t)i) * n_spans + span) * w->scale_step;
            const __m512 d = scales_of(w->scales + at);
#pragma GCC unroll 6
            for (int t = 0; t < n_tokens; t++) {
                float *out = y + (size_t)t * batch->y_stride + R16_ROWS * (size_t)i;
                _mm512_storeu_ps(out, _mm512_fmadd_ps(g[t][i], d, _mm512_loadu_ps(out)));
            }
        }
    }
}

/* Makes the number of tokens a constant, so that the loops over them unroll. */
BN_FORCE_INLINE void matmul_tokens(const struct r16_mat *w, size_t group0, int n_groups,
                                   size_t n_tokens, const struct r16_batch *batch, size_t t0)
{
    switch (n_tokens) {
    case 1:
        matmul_tile(w, group0, n_groups, 1, batch, t0);
        break;
    case 2:
        matmul_tile(w, group0, n_groups, 2, batch, t0);
        break;
    case 3:
        matmul_tile(w, group0, n_groups, 3, batch, t0);
        break;
    case 4:
        matmul_tile(w, group0, n_groups, 4, batch, t0);
        break;
    case 5:
        matmul_tile(w, group0, n_groups, 5, batch, t0);
        break;
    default:
        matmul_tile(w, group0, n_groups, TILE_TOKENS, batch, t0);
        break;
    }
}

/* Register tiles have nearly equal numbers of tokens: 16 tokens are 5 + 5 + 6, not 6 + 6 + 4. */
void r16_matmul_avx512(const struct r16_mat *w, size_t group0, size_t group1,
                       const struct r16_batch *batch)
{
    const size_t n_tiles = (batch->n_tokens + TILE_TOKENS - 1) / TILE_TOKENS;
    for (size_t i = 0; i < n_tiles; i++) {
        const size_t t0 = batch->n_tokens * i / n_tiles;
        const size_t n = batch->n_tokens * (i + 1) / n_tiles - t0;
        if (group1 - group0 == R16_PANEL)
            matmul_tokens(w, group0, R16_PANEL, n, batch, t0);
        else
            matmul_tokens(w, group0, 1, n, batch, t0);
    }
}
