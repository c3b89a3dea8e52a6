/*
 * The rotation of inputs for NEON. Two stages pair lanes within a register, and the next three pair
 * eight registers. So one pass over the memory is enough for blocks of up to 32 elements. Larger
 * blocks need more passes, of up to three stages each.
 */
#include "engine/base/size.h"
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"

#define LANES 4
#define VECS 8 /* registers of a pass */

/* The stages h = 1, 2 of a register. The permutation swaps the two lanes of each pair. So the first
 * lane of a pair becomes (other + lane), the second (other - lane). The product with 1 or -1 is
 * exact. */
BN_FORCE_INLINE float32x4_t stage1(float32x4_t v)
{
    const float32x4_t pattern = {1, -1, 1, -1};
    return vfmaq_f32(vrev64q_f32(v), v, pattern);
}

BN_FORCE_INLINE float32x4_t stage2(float32x4_t v)
{
    const float32x4_t pattern = {1, 1, -1, -1};
    return vfmaq_f32(vextq_f32(v, v, 2), v, pattern);
}

/* The stages that pair n registers; n is a power of two. */
BN_FORCE_INLINE void pair_vecs(float32x4_t v[VECS], size_t n)
{
#pragma GCC unroll 3
    for (size_t h = 1; h < n; h *= 2)
#pragma GCC unroll 8
        for (size_t i = 0; i < n; i++) {
            if (i & h)
                continue;
            const float32x4_t a = v[i], b = v[i + h];
            v[i] = vaddq_f32(a, b);
            v[i + h] = vsubq_f32(a, b);
        }
}

/* The signs, unless `signs` is NULL, and the first stages, up to h = LANES * n_vecs / 2, of n_vecs
 * registers; then the product with `factor`. */
BN_FORCE_INLINE void first_pass(const float *x, const float *signs, size_t n_vecs,
                                float32x4_t factor, float *y)
{
    float32x4_t v[VECS];
#pragma GCC unroll 8
    for (size_t i = 0; i < n_vecs; i++) {
        v[i] = vld1q_f32(x + LANES * i);
        if (signs)
            v[i] = vmulq_f32(v[i], vld1q_f32(signs + LANES * i));
        v[i] = stage2(stage1(v[i]));
    }
    pair_vecs(v, n_vecs);
#pragma GCC unroll 8
    for (size_t i = 0; i < n_vecs; i++)
        vst1q_f32(y + LANES * i, vmulq_f32(v[i], factor));
}

/* The stages h, 2 h, ... n h / 2 of y, which has n runs of h elements. n is a power of two. */
BN_FORCE_INLINE void later_pass(float *y, size_t h, size_t n, float32x4_t factor)
{
    for (size_t j = 0; j < h; j += LANES) {
        float32x4_t v[VECS];
#pragma GCC unroll 8
        for (size_t i = 0; i < n; i++)
            v[i] = vld1q_f32(y + i * h + j);
        pair_vecs(v, n);
#pragma GCC unroll 8
        for (size_t i = 0; i < n; i++)
            vst1q_f32(y + i * h + j, vmulq_f32(v[i], factor));
    }
}

/* Makes n a constant, so that the registers of later_pass are not an array in memory. */
BN_FORCE_INLINE void pass_of(float *y, size_t h, size_t n, float32x4_t factor)
{
    if (n == 2)
        later_pass(y, h, 2, factor);
    else if (n == 4)
        later_pass(y, h, 4, factor);
    else
        later_pass(y, h, 8, factor);
}

/* A block of 32 elements or more. Only the last pass has a factor other than 1. */
static void rotate_block(const float *x, const float *signs, size_t block, float32x4_t factor,
                         float *y)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    for (size_t i = 0; i < block; i += LANES * VECS)
        first_pass(x + i, signs ? signs + i : NULL, VECS, block == LANES * VECS ? factor : one,
                   y + i);
    for (size_t h = LANES * VECS; h < block; h *= VECS) {
        const size_t n = size_min(block / h, VECS);
        for (size_t i = 0; i < block; i += h * n)
            pass_of(y + i, h, n, h * n == block ? factor : one);
    }
}

void rotate_neon(const float *x, const float *signs, size_t n, size_t block, float *y)
{
    const float32x4_t factor = vdupq_n_f32((float)(1.0 / sqrt((double)block)));
    for (size_t at = 0; at < n; at += block) {
        const float *const s = signs ? signs + at : NULL;
        if (block == LANES)
            first_pass(x + at, s, 1, factor, y + at);
        else if (block == 2 * LANES)
            first_pass(x + at, s, 2, factor, y + at);
        else if (block == 4 * LANES)
            first_pass(x + at, s, 4, factor, y + at);
        else
            rotate_block(x + at, s, block, factor, y + at);
    }
}
