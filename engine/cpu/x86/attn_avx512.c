/*
 * attn_block for AVX-512, KV cache in F16. The method, including the prefetches, is that of
 * attn_avx2.c. A register has 16 lanes, so the scores of a head and a whole block are four
 * registers.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"
#include "engine/cpu/x86/prefetch_ahead.h"

#include <immintrin.h>

#define MAX_HEADS 4

/* Scores, then probabilities, of up to four heads. */
struct scores {
    _Alignas(64) float z[MAX_HEADS][KV_BLOCK];
};

/* Bytes of the keys of a block; the values have as many, apart from their padding. */
BN_FORCE_INLINE size_t half_block_bytes(const struct attn_block *b)
{
    return b->head_dim * KV_BLOCK * sizeof(uint16_t);
}

BN_FORCE_INLINE __m512 widen16(const uint16_t *halves)
{
    return _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(const void *)halves));
}

/* Scores of positions pos .. pos + 16 n_vecs - 1 for heads head .. head + n_heads - 1. */
BN_FORCE_INLINE void score_span(const struct attn_block *b, size_t head, int n_heads, size_t pos,
                                int n_vecs, struct scores *s)
{
    __m512 z[MAX_HEADS][4];
    const uint16_t *const keys = b->k;
    const float *q = b->q + head * b->head_dim;
    const void *const next = b->n_seen == KV_BLOCK ? b->v : b->k;
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            z[h][v] = _mm512_setzero_ps();
    for (size_t i = 0; i < b->head_dim; i++) {
        const uint16_t *k = keys + i * KV_BLOCK + pos;
        __m512 kv[4];
        prefetch_ahead(next, half_block_bytes(b), i, 1);
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

/* Columns col .. col + 16 n_vecs - 1 of the sum of probability * value; stores only columns below
 * head_dim. */
BN_FORCE_INLINE void value_span(const struct attn_block *b, size_t head, int n_heads, size_t col,
                                int n_vecs, const struct scores *s)
{
    const uint16_t *const values = b->v;
    __m512 o[MAX_HEADS][4];
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 4
        for (int v = 0; v < n_vecs; v++)
            o[h][v] = _mm512_setzero_ps();
    for (size_t j = b->first_seen; j < b->n_seen; j++) {
        const uint16_t *row = values + j * b->v_stride + col;
        __m512 vv[4];
        prefetch_ahead(b->ahead, half_block_bytes(b), col + j, 1);
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
    struct scores s = {.z = {{0}}}; /* the softmax also loads positions from n_seen on */
    if (b->n_seen > 32)             /* otherwise half of the keys are enough */
        score_span(b, head, n_heads, 0, 4, &s);
    else
        score_span(b, head, n_heads, 0, 2, &s);
    for (int h = 0; h < n_heads; h++) {
        attn_hide_scores(s.z[h], b->first_seen);
        softmax_block_avx512(s.z[h], b->n_seen, &b->m[head + (size_t)h], &b->l[head + (size_t)h]);
    }
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
