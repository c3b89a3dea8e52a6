/*
 * Attention over one position block of a Q8 KV cache (keys and values as bytes): the steps that all
 * instruction sets share. Each instruction set supplies the three expensive loops (struct
 * attn_q8_loops). docs/kernels.md, "Keys and values as bytes", specifies the arithmetic.
 *
 * Sums of products are integer sums, so their order is free. Keys are multiplied with the query,
 * values with weighted probabilities: each probability times the scale of its value. The query and
 * the weighted probabilities become fixed-point numbers x * unit with abs(x) <= 127 * 128. An
 * instruction set stores x as 16 bits, or as two bytes: x = 128 high + low, 0 <= low < 128.
 */
#ifndef ENGINE_CPU_REF_ATTN_Q8_H
#define ENGINE_CPU_REF_ATTN_Q8_H

#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/kernels_attn.h"
#include "engine/layout/fixed_point.h"

#define Q8_HEADS 4 /* query heads at a time: they share each load of keys and values */
#define FIXED_MAX ((float)FIXED_POINT_MAX)
#define FIXED_MIN 1e-30f /* lower bound of the largest magnitude, to avoid a division by 0 */

/* The query of a head (head_dim), or its weighted probabilities (n_seen), as fixed-point numbers,
 * padded with zeros to a multiple of ATTN_QUAD. */
struct attn_fixed {
    union {
        int16_t x[Q8_DIM_MOST];
        int8_t planes[2][Q8_DIM_MOST]; /* high, low: only AVX-512 uses them */
    };
    int32_t sum; /* sum of x; used only by AVX-512 */
};

/* One integer matrix product: bytes (n_quads, n_lanes, 4) times n_heads rows of fixed-point numbers
 * (n_quads, 4). A lane is a position for keys, an element of the head for values. AVX2 and AVX-512
 * also prefetch the ahead_bytes bytes at `ahead`, or a part of them if n_quads is small. */
struct attn_quads {
    const int8_t *bytes;
    size_t n_lanes, n_quads;
    const struct attn_fixed *x; /* (n_heads) */
    const void *ahead;
    size_t ahead_bytes;
};

/* Convert x (n) to fixed-point numbers; a NaN becomes 0. Returns the unit. */
typedef float (*attn_to_fixed_fn)(const float *x, size_t n, struct attn_fixed *out);
/* out[h][i] = product of lane lane0 + i for head h, i < n; n is 32 or 64. */
typedef void (*attn_sums_fn)(const struct attn_quads *w, int n_heads, size_t lane0, size_t n,
                             int32_t out[Q8_HEADS][KV_BLOCK]);
/* Turn scores z into probabilities exp0(z - m) in place; positions from n_seen on get +0. m is the
 * maximum of the scores before n_seen, without NaN, l the sum of the probabilities. */
typedef void (*attn_softmax_fn)(float z[KV_BLOCK], size_t n_seen, float *m, float *l);

struct attn_q8_loops {
    attn_to_fixed_fn to_fixed;
    attn_sums_fn sums;
    attn_softmax_fn softmax;
};

/* Write b->o of heads head .. head + n_heads - 1; x and unit are their weighted probabilities. */
BN_FORCE_INLINE void attn_q8_values(const struct attn_block *b, size_t head, int n_heads,
                                    const struct attn_fixed *x, const float *unit,
                                    attn_sums_fn sums)
{
    const struct attn_quads w = {.bytes = b->v,
                                 .n_lanes = b->v_stride,
                                 .n_quads = (b->n_seen + ATTN_QUAD - 1) / ATTN_QUAD,
                                 .x = x,
                                 .ahead = b->ahead,
                                 .ahead_bytes = b->head_dim * KV_BLOCK};
    _Alignas(64) int32_t sum[Q8_HEADS][KV_BLOCK];
    for (size_t col = 0; col < b->head_dim; col += KV_BLOCK) {
        sums(&w, n_heads, col, size_min(b->v_stride - col, KV_BLOCK), sum);
        const size_t n = size_min(b->head_dim - col, KV_BLOCK);
        for (int h = 0; h < n_heads; h++) {
            float *o = b->o + (head + (size_t)h) * b->head_dim + col;
            for (size_t i = 0; i < n; i++)
                o[i] = (float)sum[h][i] * unit[h];
        }
    }
}

/* Attention of heads head .. head + n_heads - 1 over the block. */
BN_FORCE_INLINE void attn_q8_heads(const struct attn_block *b, size_t head, int n_heads,
                                   struct attn_q8_loops loops)
{
    struct attn_fixed x[Q8_HEADS];
    float unit[Q8_HEADS];
    _Alignas(64) int32_t sum[Q8_HEADS][KV_BLOCK];
    _Alignas(64) float z[KV_BLOCK];
    const float *const k_scale = b->scales, *const v_scale = b->scales + KV_BLOCK;
    /* `ahead` is the values of the block if all are needed; otherwise k, which is read anyway. */
    const struct attn_quads w = {.bytes = b->k,
                                 .n_lanes = KV_BLOCK,
                                 .n_quads = (b->head_dim + ATTN_QUAD - 1) / ATTN_QUAD,
                                 .x = x,
                                 .ahead = b->n_seen == KV_BLOCK ? b->v : b->k,
                                 .ahead_bytes = b->head_dim * KV_BLOCK};
    for (int h = 0; h < n_heads; h++)
        unit[h] = loops.to_fixed(b->q + (head + (size_t)h) * b->head_dim, b->head_dim, &x[h]);
    loops.sums(&w, n_heads, 0, KV_BLOCK, sum);
    for (int h = 0; h < n_heads; h++) {
        for (size_t j = 0; j < KV_BLOCK; j++) /* softmax ignores the scores from n_seen on */
            z[j] = (float)sum[h][j] * (unit[h] * k_scale[j]);
        attn_hide_scores(z, b->first_seen);
        loops.softmax(z, b->n_seen, &b->m[head + (size_t)h], &b->l[head + (size_t)h]);
        for (size_t j = b->first_seen; j < b->n_seen; j++) /* z is 0 before first_seen */
            z[j] = z[j] * v_scale[j];
        unit[h] = loops.to_fixed(z, b->n_seen, &x[h]);
    }
    attn_q8_values(b, head, n_heads, x, unit, loops.sums);
}

/* attn_block_fn for Q8. n_heads is a constant in each call, so that the inlined loops unroll. */
BN_FORCE_INLINE void attn_q8_block(const struct attn_block *b, struct attn_q8_loops loops)
{
    size_t head = 0;
    for (; b->n_q - head >= 4; head += 4)
        attn_q8_heads(b, head, 4, loops);
    for (; b->n_q - head >= 2; head += 2)
        attn_q8_heads(b, head, 2, loops);
    if (head < b->n_q)
        attn_q8_heads(b, head, 1, loops);
}

#endif
