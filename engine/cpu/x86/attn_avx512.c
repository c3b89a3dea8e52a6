/*
 * Attention over a block of 64 positions with AVX-512: the plan of attn_avx2.c with registers of 16
 * lanes, a whole block of scores in four of them.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"

#include <immintrin.h>
#include <math.h>

#define MAX_HEADS 4

/* Scores, then probabilities, of up to four heads. */
struct scores {
    _Alignas(64) float z[MAX_HEADS][ATTN_BLOCK];
};

BN_FORCE_INLINE __m512 widen16(const uint16_t *halves)
{
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(const void *)halves));
}

/* Scores of positions pos .. pos + 16 n_vecs - 1 for n_heads heads from `head` on. */
BN_FORCE_INLINE void score_span(const struct attn_block *b, size_t head, int n_heads, size_t pos,
                                int n_vecs, struct scores *s)
{
    __m512 z[MAX_HEADS][4];
    const float *q = b->q + head * b->head_dim;
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            z[h][v] = _mm512_setzero_ps();
    for (size_t i = 0; i < b->head_dim; i++) {
        const uint16_t *k = b->k + i * ATTN_BLOCK + pos;
        __m512 kv[4];
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            kv[v] = widen16(k + 16 * v);
#pragma GCC unroll 4
        for (int h = 0; h < n_heads; h++) {
            const __m512 qv = _mm512_set1_ps(q[(size_t)h * b->head_dim + i]);
#pragma GCC unroll 4
            for (int v = 0; v < n_vecs; v++)
                z[h][v] = _mm512_fmadd_ps(qv, kv[v], z[h][v]);
        }
    }
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            _mm512_store_ps(s->z[h] + pos + 16 * (size_t)v, z[h][v]);
}

/* Turn a head's scores into probabilities; unseen positions get +0. */
BN_FORCE_INLINE void softmax_block(float z[ATTN_BLOCK], size_t n_seen, float *m, float *l)
{
    __m512 lanes[4], top = _mm512_set1_ps(-INFINITY);
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; v++) {
        const __mmask16 seen = mask_below(16 * v, n_seen);
        top = _mm512_mask_max_ps(top, seen, _mm512_load_ps(z + 16 * v), top);
    }
    *m = max16_avx512(top) + 0.0f; /* -0 becomes +0 */
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; v++) {
        const __m512 x = _mm512_sub_ps(_mm512_load_ps(z + 16 * v), _mm512_set1_ps(*m));
        lanes[v] = exp0_avx512(x, mask_below(16 * v, n_seen));
        _mm512_store_ps(z + 16 * v, lanes[v]);
    }
    *l = tree64_avx512(lanes);
}

/* Columns col .. col + 16 n_vecs - 1 of the weighted values, as far as head_dim goes. */
BN_FORCE_INLINE void value_span(const struct attn_block *b, size_t head, int n_heads, size_t col,
                                int n_vecs, const struct scores *s)
{
    __m512 o[MAX_HEADS][4];
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            o[h][v] = _mm512_setzero_ps();
    for (size_t j = 0; j < b->n_seen; j++) {
        const uint16_t *row = b->v + j * b->v_stride + col;
        __m512 vv[4];
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            vv[v] = widen16(row + 16 * v);
#pragma GCC unroll 4
        for (int h = 0; h < n_heads; h++) {
            const __m512 p = _mm512_set1_ps(s->z[h][j]);
#pragma GCC unroll 4
            for (int v = 0; v < n_vecs; v++)
                o[h][v] = _mm512_fmadd_ps(p, vv[v], o[h][v]);
        }
    }
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++) {
            const size_t at = col + 16 * (size_t)v;
            _mm512_mask_storeu_ps(b->o + (head + (size_t)h) * b->head_dim + at,
                                  mask_below(at, b->head_dim), o[h][v]);
        }
}

BN_FORCE_INLINE void heads_block(const struct attn_block *b, size_t head, int n_heads)
{
    struct scores s = {.z = {{0}}}; /* positions past n_seen are read, then masked */
    if (b->n_seen > 32)
        score_span(b, head, n_heads, 0, 4, &s);
    else
        score_span(b, head, n_heads, 0, 2, &s);
    for (int h = 0; h < n_heads; h++)
        softmax_block(s.z[h], b->n_seen, &b->m[head + (size_t)h], &b->l[head + (size_t)h]);
    size_t col = 0;
    for (; b->v_stride - col >= 64; col += 64)
        value_span(b, head, n_heads, col, 4, &s);
    if (col < b->v_stride) /* rows of v are padded to 32 */
        value_span(b, head, n_heads, col, 2, &s);
}

void attn_block_avx512(const struct attn_block *b)
{
    size_t head = 0;
    for (; b->n_q - head >= 4; head += 4)
        heads_block(b, head, 4);
    for (; b->n_q - head >= 2; head += 2)
        heads_block(b, head, 2);
    if (head < b->n_q)
        heads_block(b, head, 1);
}
