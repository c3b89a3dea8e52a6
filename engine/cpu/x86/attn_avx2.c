/*
 * attn_block and attn_tile for AVX2, KV cache in F16.
 *
 * Keys are stored as (head_dim, 64 positions), values as (64 positions, head dimension padded to
 * 32). So the lanes of the score registers are positions, the lanes of the output registers are
 * elements of the head, and no sum of products runs across a register. Each key or value is widened
 * once for up to four query heads. docs/kernels.md prescribes one chain of fma per sum; many
 * independent chains hide the latency of fma: four heads x two registers, two heads x four, or one
 * head x eight (four for values).
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/ref/attn_tokens.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"
#include "engine/cpu/x86/prefetch_ahead.h"

#include <immintrin.h>

#define MAX_HEADS 4

/* Scores, then probabilities, of up to four heads. */
struct scores {
    _Alignas(32) float z[MAX_HEADS][KV_BLOCK];
};

/* Bytes of the keys of a block; the values have as many, apart from their padding. While a kernel
 * reads the keys, it prefetches the values if n_seen is 64; otherwise it prefetches keys, many of
 * which it reads anyway. While it reads the values, it prefetches the keys of the next block. If
 * all 64 positions are seen, the calls of prefetch_ahead for some heads cover the range once,
 * and a little more if head_dim is not a multiple of the columns of a value_span. */
BN_FORCE_INLINE size_t half_block_bytes(const struct attn_block *b)
{
    return b->head_dim * KV_BLOCK * sizeof(uint16_t);
}

BN_FORCE_INLINE __m256 widen8(const uint16_t *halves)
{
    return _mm256_cvtph_ps(_mm_load_si128((const __m128i *)(const void *)halves));
}

/* Scores of positions pos .. pos + 8 n_vecs - 1 for heads head .. head + n_heads - 1. */
BN_FORCE_INLINE void score_span(const struct attn_block *b, size_t head, int n_heads, size_t pos,
                                int n_vecs, struct scores *s)
{
    __m256 z[MAX_HEADS][8];
    const uint16_t *const keys = b->k;
    const float *q = b->q + head * b->head_dim;
    const void *const next = b->n_seen == KV_BLOCK ? b->v : b->k;
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vecs; v++)
            z[h][v] = _mm256_setzero_ps();
    for (size_t i = 0; i < b->head_dim; i++) {
        const uint16_t *k = keys + i * KV_BLOCK + pos;
        prefetch_ahead(next, half_block_bytes(b), pos / (8 * (size_t)n_vecs) * b->head_dim + i,
                       8 / (size_t)n_vecs);
#pragma GCC unroll 8
        for (int v = 0; v < n_vecs; v++) {
            const __m256 kv = widen8(k + 8 * v);
#pragma GCC unroll 4
            for (int h = 0; h < n_heads; h++)
                z[h][v] =
                    _mm256_fmadd_ps(_mm256_set1_ps(q[(size_t)h * b->head_dim + i]), kv, z[h][v]);
        }
    }
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vecs; v++)
            _mm256_store_ps(s->z[h] + pos + 8 * (size_t)v, z[h][v]);
}

/* Columns col .. col + 8 n_vecs - 1 of the sum of probability * value; stores only columns below
 * head_dim. */
BN_FORCE_INLINE void value_span(const struct attn_block *b, size_t head, int n_heads, size_t col,
                                int n_vecs, const struct scores *s)
{
    const uint16_t *const values = b->v;
    __m256 o[MAX_HEADS][8];
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vecs; v++)
            o[h][v] = _mm256_setzero_ps();
    for (size_t j = b->first_seen; j < b->n_seen; j++) {
        const uint16_t *row = values + j * b->v_stride + col;
        prefetch_ahead(b->ahead, half_block_bytes(b), col / (8 * (size_t)n_vecs) * KV_BLOCK + j,
                       8 / (size_t)n_vecs);
#pragma GCC unroll 8
        for (int v = 0; v < n_vecs; v++) {
            const __m256 vv = widen8(row + 8 * v);
#pragma GCC unroll 4
            for (int h = 0; h < n_heads; h++)
                o[h][v] = _mm256_fmadd_ps(_mm256_set1_ps(s->z[h][j]), vv, o[h][v]);
        }
    }
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 8
        for (int v = 0; v < n_vecs; v++) {
            const size_t at = col + 8 * (size_t)v;
            float *out = b->o + (head + (size_t)h) * b->head_dim + at;
            if (at + 8 <= b->head_dim)
                _mm256_storeu_ps(out, o[h][v]);
            else if (at < b->head_dim)
                _mm256_maskstore_ps(out, lanes_below(at, b->head_dim), o[h][v]);
        }
}

/* Attention of heads head .. head + n_heads - 1. k_vecs registers of scores and v_vecs registers of
 * results are computed at a time: 8 k_vecs divides KV_BLOCK, and 8 v_vecs divides 32, the padding
 * of v. */
BN_FORCE_INLINE void heads_block(const struct attn_block *b, size_t head, int n_heads, int k_vecs,
                                 int v_vecs)
{
    struct scores s = {.z = {{0}}}; /* the softmax also loads positions from n_seen on */
    for (size_t pos = 0; pos < b->n_seen; pos += 8 * (size_t)k_vecs)
        score_span(b, head, n_heads, pos, k_vecs, &s);
    for (int h = 0; h < n_heads; h++) {
        attn_hide_scores(s.z[h], b->first_seen);
        softmax_block_avx2(s.z[h], b->n_seen, &b->m[head + (size_t)h], &b->l[head + (size_t)h]);
    }
    for (size_t col = 0; col < b->head_dim; col += 8 * (size_t)v_vecs)
        value_span(b, head, n_heads, col, v_vecs, &s);
}

void attn_block_avx2(const struct attn_block *b)
{
    size_t head = 0;
    for (; b->n_q - head >= 4; head += 4)
        heads_block(b, head, 4, 2, 2);
    for (; b->n_q - head >= 2; head += 2)
        heads_block(b, head, 2, 4, 4);
    if (head < b->n_q)
        heads_block(b, head, 1, 8, 4);
}

/* Several tokens together gain nothing: with four heads that share each widened element, attn_block
 * runs near the peak fma rate. */
void attn_tile_avx2(const struct attn_tile *a)
{
    attn_tile_by_token(a, attn_block_avx2, attn_merge_avx2);
}
