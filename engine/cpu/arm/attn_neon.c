/*
 * Attention over a block of 64 positions with NEON. Scores have positions as lanes, values have the
 * head dimension as lanes: no sum ever runs across a register, and each K or V element is widened
 * once for up to four query heads. Sixteen chains of fma hide its latency.
 */
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"
#include "engine/cpu/ref/attn_tokens.h"

#include <math.h>

#define MAX_HEADS 4
#define MAX_VECS 16

/* Scores, then probabilities, of up to four heads. */
struct scores {
    float z[MAX_HEADS][ATTN_BLOCK];
};

BN_FORCE_INLINE float32x4_t widen4(const uint16_t *halves)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves)));
}

/* Scores of positions pos .. pos + 4 n_vecs - 1 for n_heads heads from `head` on. */
BN_FORCE_INLINE void score_span(const struct attn_block *b, size_t head, int n_heads, size_t pos,
                                int n_vecs, struct scores *s)
{
    float32x4_t z[MAX_HEADS][MAX_VECS];
    const float *q = b->q + head * b->head_dim;
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 16
        for (int v = 0; v < n_vecs; v++)
            z[h][v] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < b->head_dim; i++) {
        const uint16_t *k = b->k + i * ATTN_BLOCK + pos;
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

/* Turn a head's scores into probabilities; unseen positions get +0. */
static void softmax_block(float z[ATTN_BLOCK], size_t n_seen, float *m, float *l)
{
    static const uint32_t counts[4] = {0, 1, 2, 3};
    const uint32x4_t count = vld1q_u32(counts);
    float32x4_t lanes[16], top = vdupq_n_f32(-INFINITY);
    for (size_t v = 0; v < 16; v++) {
        const uint32x4_t seen = vcltq_u32(vaddq_u32(count, vdupq_n_u32((uint32_t)(4 * v))),
                                          vdupq_n_u32((uint32_t)n_seen));
        top = max_or_top(vbslq_f32(seen, vld1q_f32(z + 4 * v), vdupq_n_f32(-INFINITY)), top);
    }
    *m = vmaxvq_f32(top) + 0.0f; /* -0 becomes +0 */
    for (size_t v = 0; v < 16; v++) {
        const uint32x4_t seen = vcltq_u32(vaddq_u32(count, vdupq_n_u32((uint32_t)(4 * v))),
                                          vdupq_n_u32((uint32_t)n_seen));
        const float32x4_t p = exp0_neon(vsubq_f32(vld1q_f32(z + 4 * v), vdupq_n_f32(*m)));
        lanes[v] = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(p), seen));
        vst1q_f32(z + 4 * v, lanes[v]);
    }
    *l = tree64_neon(lanes);
}

/* Columns col .. col + 4 n_vecs - 1 of the weighted values, as far as head_dim goes. */
BN_FORCE_INLINE void value_span(const struct attn_block *b, size_t head, int n_heads, size_t col,
                                int n_vecs, const struct scores *s)
{
    float32x4_t o[MAX_HEADS][MAX_VECS];
#pragma GCC unroll 4
    for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 16
        for (int v = 0; v < n_vecs; v++)
            o[h][v] = vdupq_n_f32(0.0f);
    for (size_t j = 0; j < b->n_seen; j++) {
        const uint16_t *row = b->v + j * b->v_stride + col;
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

/* n_heads heads from `head` on, each with n_vecs registers: 4 n_vecs divides 64 and 32 divides or
 * is divided by it, the padding of v being 32. */
BN_FORCE_INLINE void heads_block(const struct attn_block *b, size_t head, int n_heads, int k_vecs,
                                 int v_vecs)
{
    struct scores s = {.z = {{0}}}; /* positions past n_seen are read, then masked */
    for (size_t pos = 0; pos < b->n_seen; pos += 4 * (size_t)k_vecs)
        score_span(b, head, n_heads, pos, k_vecs, &s);
    for (int h = 0; h < n_heads; h++)
        softmax_block(s.z[h], b->n_seen, &b->m[head + (size_t)h], &b->l[head + (size_t)h]);
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
