/*
 * attn_block and attn_tile for NEON, KV cache in F16. Lanes are positions for scores, and elements
 * of the head for results, so no sum of products runs across a register. Each key or value is
 * widened once for up to four query heads. Sixteen independent sums (eight for the values of a
 * single head) hide the latency of fma. Nothing is prefetched.
 */
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"
#include "engine/cpu/ref/attn_tokens.h"

#define MAX_HEADS 4 /* query heads at a time */
#define MAX_VECS 16 /* most registers per head: the scores of a position block */

/* Scores, then probabilities, of up to four heads. */
struct scores {
    float z[MAX_HEADS][KV_BLOCK];
};

BN_FORCE_INLINE float32x4_t widen4(const uint16_t *halves)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves)));
}

/* Scores of positions pos .. pos + 4 n_vecs - 1 for heads head .. head + n_heads - 1. */
BN_FORCE_INLINE void score_span(const struct attn_block *b, size_t head, int n_heads, size_t pos,
                                int n_vecs, struct scores *s)
{
    float32x4_t z[MAX_HEADS][MAX_VECS];
    const uint16_t *const keys = b->k;
    const float *q = b->q + head * b->head_dim;
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 16
        for (int v = 0; v < n_vecs; v++)
            z[h][v] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < b->head_dim; i++) {
        const uint16_t *k = keys + i * KV_BLOCK + pos;
#pragma GCC unroll 16
        for (int v = 0; v < n_vecs; v++) {
            const float32x4_t kv = widen4(k + 4 * v);
#pragma GCC unroll 4
            for (int h = 0; h < n_heads; h++)
                z[h][v] = vfmaq_n_f32(z[h][v], kv, q[(size_t)h * b->head_dim + i]);
        }
    }
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 16
        for (int v = 0; v < n_vecs; v++)
            vst1q_f32(s->z[h] + pos + 4 * (size_t)v, z[h][v]);
}

/* Columns col .. col + 4 n_vecs - 1 of the sum of probability * value; stores only columns below
 * head_dim. */
BN_FORCE_INLINE void value_span(const struct attn_block *b, size_t head, int n_heads, size_t col,
                                int n_vecs, const struct scores *s)
{
    const uint16_t *const values = b->v;
    float32x4_t o[MAX_HEADS][MAX_VECS];
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 16
        for (int v = 0; v < n_vecs; v++)
            o[h][v] = vdupq_n_f32(0.0f);
    for (size_t j = b->first_seen; j < b->n_seen; j++) {
        const uint16_t *row = values + j * b->v_stride + col;
#pragma GCC unroll 16
        for (int v = 0; v < n_vecs; v++) {
            const float32x4_t vv = widen4(row + 4 * v);
#pragma GCC unroll 4
            for (int h = 0; h < n_heads; h++)
                o[h][v] = vfmaq_n_f32(o[h][v], vv, s->z[h][j]);
        }
    }
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 16
        for (int v = 0; v < n_vecs; v++)
            store4(b->o + (head + (size_t)h) * b->head_dim, col + 4 * (size_t)v, b->head_dim,
                   o[h][v]);
}

/* Attention of heads head .. head + n_heads - 1. k_vecs registers of scores and v_vecs registers of
 * results are computed at a time: 4 k_vecs divides KV_BLOCK, and 4 v_vecs divides 32, the padding
 * of v. */
BN_FORCE_INLINE void heads_block(const struct attn_block *b, size_t head, int n_heads, int k_vecs,
                                 int v_vecs)
{
    struct scores s = {.z = {{0}}}; /* the softmax also loads positions from n_seen on */
    for (size_t pos = 0; pos < b->n_seen; pos += 4 * (size_t)k_vecs)
        score_span(b, head, n_heads, pos, k_vecs, &s);
    for (int h = 0; h < n_heads; h++) {
        attn_hide_scores(s.z[h], b->first_seen);
        softmax_block_neon(s.z[h], b->n_seen, &b->m[head + (size_t)h], &b->l[head + (size_t)h]);
    }
    for (size_t col = 0; col < b->head_dim; col += 4 * (size_t)v_vecs)
        value_span(b, head, n_heads, col, v_vecs, &s);
}

void attn_block_neon(const struct attn_block *b)
{
    size_t head = 0;
    for (; b->n_q - head >= 4; head += 4)
        heads_block(b, head, 4, 4, 4);
    for (; b->n_q - head >= 2; head += 2)
        heads_block(b, head, 2, 8, 8);
    if (head < b->n_q)
        heads_block(b, head, 1, 16, 8);
}

void attn_tile_neon(const struct attn_tile *a)
{
    attn_tile_by_token(a, attn_block_neon, attn_merge_neon);
}
