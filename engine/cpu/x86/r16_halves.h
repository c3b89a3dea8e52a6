/*
 * r16_matvec and r16_matmul for 256-bit registers, shared by AVX2 and AVX-VNNI. A register
 * holds half a line of R16: eight rows. The method is that of r16_avx512.c, except that only
 * two row groups are multiplied at a time (one in r16_matmul), and that the sum of q is
 * subtracted at the end of a block, because AVX2 has two 16-bit sums per row in place of a 32-bit
 * sum. The two instruction sets differ in how a product of bytes is added to a sum; a struct of
 * inline functions describes the difference, and the compiler resolves the calls.
 */
#ifndef ENGINE_CPU_X86_R16_HALVES_H
#define ENGINE_CPU_X86_R16_HALVES_H

#include "engine/base/force_inline.h"
#include "engine/cpu/kernels.h"

#include <immintrin.h>
#include <string.h>

#define STREAMS 2     /* row groups that are multiplied together, half of the range apart */
#define HALF_ROWS 8   /* rows of a register */
#define TILE_TOKENS 4 /* most tokens of a register tile */
#define LINE_QUADS 4  /* groups of four columns in a line */

/* How products are summed. Fourfold codes are fields in bits 2 and 3 of a byte: four times the
 * code. */
struct byte_products {
    /* sum + products of unsigned codes and signed q. For a block, it is called for one sum at most
     * 16 times with fourfold codes or 32 times with plain codes. */
    __m256i (*add)(__m256i sum, __m256i codes, __m256i q);
    /* plain sum + fourfold sum / 4, as int32 per row */
    __m256i (*finish)(__m256i plain, __m256i fourfold);
};

/* Four bytes of q in every lane. */
BN_FORCE_INLINE __m256i quad_of(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return _mm256_set1_epi32(v);
}

/* The scales of eight rows as F32. */
BN_FORCE_INLINE __m256 scales_of(const uint16_t *scales)
{
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(const void *)scales));
}

/* Row groups that are multiplied together. */
struct group_set {
    const uint8_t *lines[STREAMS];
    const uint16_t *scales[STREAMS];
    float *y[STREAMS];
};

/* n_groups (1 or STREAMS) row groups of w times one token. */
BN_FORCE_INLINE void matvec_groups(struct byte_products p, const struct group_set *s,
                                   const struct r16_mat *w, int n_groups,
                                   const struct block_acts *x)
{
    const size_t block_lines = x->block_cols / R16_LINE_COLS;
    const size_t span_blocks = w->span_cols / x->block_cols;
    const __m256i low_mask = _mm256_set1_epi8(0x03), high_mask = _mm256_set1_epi8(0x0c);
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    const int8_t *q = x->q;
    const float *unit = x->units;
    const int32_t *q_sum = x->q_sums;
    size_t at = 0;
    for (size_t span = 0; span < n_spans; span++) {
        __m256 g[STREAMS][2];
#pragma GCC unroll 2
        for (int i = 0; i < n_groups; i++)
            g[i][0] = g[i][1] = _mm256_setzero_ps();
        for (size_t b = 0; b < span_blocks; b++, unit++, q_sum++) {
            __m256i x1[STREAMS][2], x4[STREAMS][2]; /* sums of plain and of fourfold codes */
#pragma GCC unroll 2
            for (int i = 0; i < n_groups; i++)
                x1[i][0] = x1[i][1] = x4[i][0] = x4[i][1] = _mm256_setzero_si256();
            for (size_t l = 0; l < block_lines; l++, at += LINE_BYTES, q += R16_LINE_COLS) {
                const __m256i q0 = quad_of(q), q1 = quad_of(q + 4);
                const __m256i q2 = quad_of(q + 8), q3 = quad_of(q + 12);
#pragma GCC unroll 2
                for (int i = 0; i < n_groups; i++) {
                    _mm_prefetch((const char *)((uintptr_t)(s->lines[i] + at) + w->ahead),
                                 _MM_HINT_T0);
#pragma GCC unroll 2
                    for (int half = 0; half < 2; half++) {
                        const __m256i low = _mm256_load_si256(
                            (const __m256i *)(const void *)(s->lines[i] + at + 32 * half));
                        const __m256i high = _mm256_srli_epi32(low, 4);
                        x1[i][half] = p.add(x1[i][half], _mm256_and_si256(low, low_mask), q0);
                        x4[i][half] = p.add(x4[i][half], _mm256_and_si256(low, high_mask), q1);
                        x1[i][half] = p.add(x1[i][half], _mm256_and_si256(high, low_mask), q2);
                        x4[i][half] = p.add(x4[i][half], _mm256_and_si256(high, high_mask), q3);
                    }
                }
            }
            const __m256 u = _mm256_set1_ps(*unit);
            const __m256i fix = _mm256_set1_epi32(*q_sum);
#pragma GCC unroll 2
            for (int i = 0; i < n_groups; i++)
#pragma GCC unroll 2
                for (int half = 0; half < 2; half++) {
                    const __m256i sum = _mm256_sub_epi32(p.finish(x1[i][half], x4[i][half]), fix);
                    g[i][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), u, g[i][half]);
                }
        }
#pragma GCC unroll 2
        for (int i = 0; i < n_groups; i++)
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                float *y = s->y[i] + HALF_ROWS * half;
                const __m256 d = scales_of(s->scales[i] + span * w->scale_step + HALF_ROWS * half);
                _mm256_storeu_ps(y, _mm256_fmadd_ps(g[i][half], d, _mm256_loadu_ps(y)));
            }
    }
}

/* STREAMS row groups: g, g + step, g + 2 * step, ... The result of row group group0 is at y. */
BN_FORCE_INLINE struct group_set groups_apart(const struct r16_mat *w, size_t group0, size_t g,
                                              size_t step, float *y)
{
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    struct group_set s;
#pragma GCC unroll 2
    for (size_t i = 0; i < STREAMS; i++) {
        const size_t group = g + i * step;
        s.lines[i] = w->lines + group * w->n_lines * LINE_BYTES;
        s.scales[i] = w->scales + group * n_spans * w->scale_step;
        s.y[i] = y + (group - group0) * R16_ROWS;
    }
    return s;
}

BN_FORCE_INLINE void r16_matvec_halves(struct byte_products p, const struct r16_mat *w,
                                       size_t group0, size_t group1, const struct block_acts *x,
                                       float *y)
{
    const size_t step = (group1 - group0) / STREAMS;
    for (size_t g = 0; g < step; g++) {
        const struct group_set s = groups_apart(w, group0, group0 + g, step, y);
        matvec_groups(p, &s, w, STREAMS, x);
    }
    for (size_t g = group0 + STREAMS * step; g < group1; g++) {
        const struct group_set s = groups_apart(w, group0, g, 0, y);
        matvec_groups(p, &s, w, 1, x);
    }
}

/* One row group times n_tokens tokens. The sums of a span are kept in registers or spilled by the
 * compiler; the sums of all spans are in y, which stays in the first-level cache. */
BN_FORCE_INLINE void matmul_tile(struct byte_products p, const struct r16_mat *w, size_t group,
                                 int n_tokens, const struct r16_batch *batch)
{
    const size_t block_quads = batch->block_cols / 4;
    const size_t span_blocks = w->span_cols / batch->block_cols;
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    const int8_t *q = batch->q;
    const float *unit = batch->units;
    const int32_t *q_sum = batch->q_sums;
    float *const y = batch->y;
    const uint8_t *codes = batch->panel;
    for (size_t span = 0; span < n_spans; span++) {
        __m256 g[TILE_TOKENS][2];
#pragma GCC unroll 4
        for (int t = 0; t < n_tokens; t++)
            g[t][0] = g[t][1] = _mm256_setzero_ps();
        for (size_t b = 0; b < span_blocks; b++, unit++, q_sum++) {
            __m256i sum[TILE_TOKENS][2];
#pragma GCC unroll 4
            for (int t = 0; t < n_tokens; t++)
                sum[t][0] = sum[t][1] = _mm256_setzero_si256();
#pragma GCC unroll 2
            for (size_t quad = 0; quad < block_quads; quad++, codes += 64, q += 4) {
                const __m256i c0 = _mm256_load_si256((const __m256i *)(const void *)codes);
                const __m256i c1 = _mm256_load_si256((const __m256i *)(const void *)(codes + 32));
#pragma GCC unroll 4
                for (int t = 0; t < n_tokens; t++) {
                    const __m256i qt = quad_of(q + (size_t)t * batch->q_stride);
                    sum[t][0] = p.add(sum[t][0], c0, qt);
                    sum[t][1] = p.add(sum[t][1], c1, qt);
                }
            }
#pragma GCC unroll 4
            for (int t = 0; t < n_tokens; t++) {
                const __m256 u = _mm256_set1_ps(unit[(size_t)t * batch->block_stride]);
                const __m256i fix = _mm256_set1_epi32(q_sum[(size_t)t * batch->block_stride]);
#pragma GCC unroll 2
                for (int half = 0; half < 2; half++) {
                    const __m256i total =
                        _mm256_sub_epi32(p.finish(sum[t][half], _mm256_setzero_si256()), fix);
                    g[t][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total), u, g[t][half]);
                }
            }
        }
        const uint16_t *scales = w->scales + (group * n_spans + span) * w->scale_step;
#pragma GCC unroll 4
        for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 2
            for (int half = 0; half < 2; half++) {
                float *out = y + (size_t)t * batch->y_stride + HALF_ROWS * half;
                const __m256 d = scales_of(scales + HALF_ROWS * half);
                _mm256_storeu_ps(out, _mm256_fmadd_ps(g[t][half], d, _mm256_loadu_ps(out)));
            }
    }
}

/* Makes the number of tokens a constant, so that the loops over them unroll. */
BN_FORCE_INLINE void matmul_tokens(struct byte_products p, const struct r16_mat *w, size_t group,
                                   const struct r16_batch *batch)
{
    switch (batch->n_tokens) {
    case 1:
        matmul_tile(p, w, group, 1, batch);
        break;
    case 2:
        matmul_tile(p, w, group, 2, batch);
        break;
    case 3:
        matmul_tile(p, w, group, 3, batch);
        break;
    default:
        matmul_tile(p, w, group, TILE_TOKENS, batch);
        break;
    }
}

/* Register tiles have nearly equal numbers of tokens: 9 tokens are 3 + 3 + 3, not 4 + 4 + 1. */
BN_FORCE_INLINE void r16_matmul_halves(struct byte_products p, const struct r16_mat *w,
                                       size_t group0, size_t group1, const struct r16_batch *batch)
{
    const size_t n_tiles = (batch->n_tokens + TILE_TOKENS - 1) / TILE_TOKENS;
    for (size_t g = group0; g < group1; g++)
        for (size_t i = 0; i < n_tiles; i++) {
            const size_t t0 = batch->n_tokens * i / n_tiles;
            struct r16_batch tile = *batch;
            tile.n_tokens = batch->n_tokens * (i + 1) / n_tiles - t0;
            tile.q += t0 * batch->q_stride;
            tile.units += t0 * batch->block_stride;
            tile.q_sums += t0 * batch->block_stride;
            tile.panel += (g - group0) * w->n_lines * LINE_QUADS * 64;
            tile.y += t0 * batch->y_stride + (g - group0) * R16_ROWS;
            matmul_tokens(p, w, g, &tile);
        }
}

#endif
