/*
 * Inline functions that the NEON kernels share. A register has four F32 lanes.
 */
#ifndef ENGINE_CPU_ARM_LANES_NEON_H
#define ENGINE_CPU_ARM_LANES_NEON_H

#include "engine/base/force_inline.h"

#include <arm_neon.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Elements i .. i + 3 of x (n). Elements from n on are not read; their lanes are 0. */
BN_FORCE_INLINE float32x4_t load4(const float *x, size_t i, size_t n)
{
    if (i + 4 <= n)
        return vld1q_f32(x + i);
    float some[4] = {0};
    if (i < n)
        memcpy(some, x + i, (n - i) * sizeof *some);
    return vld1q_f32(some);
}

/* Store v to elements i .. i + 3 of y (n), except those from n on. */
BN_FORCE_INLINE void store4(float *y, size_t i, size_t n, float32x4_t v)
{
    if (i + 4 <= n) {
        vst1q_f32(y + i, v);
        return;
    }
    float some[4];
    vst1q_f32(some, v);
    if (i < n)
        memcpy(y + i, some, (n - i) * sizeof *some);
}

/* Pairwise sum of four lanes: (0 + 2) + (1 + 3), the last two levels of sum64. */
BN_FORCE_INLINE float tree4_neon(float32x4_t v)
{
    const float32x2_t two = vadd_f32(vget_low_f32(v), vget_high_f32(v));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* The pairwise sum of sum64 (docs/kernels.md); lanes[v] holds its lanes 4 v .. 4 v + 3. */
BN_FORCE_INLINE float tree64_neon(const float32x4_t lanes[16])
{
    float32x4_t v[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        v[i] = vaddq_f32(lanes[i], lanes[i + 8]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        v[i] = vaddq_f32(v[i], v[i + 4]);
    return tree4_neon(vaddq_f32(vaddq_f32(v[0], v[2]), vaddq_f32(v[1], v[3])));
}

/* exp0 of docs/kernels.md: +0 below -60 and for a NaN. Method and constants are those of
 * exp0_ref. */
BN_FORCE_INLINE float32x4_t exp0_neon(float32x4_t x)
{
    const float32x4_t n = vrndnq_f32(vmulq_f32(x, vdupq_n_f32(1.44269504f)));
    float32x4_t r = vfmaq_f32(x, n, vdupq_n_f32(-0.693359375f));
    r = vfmaq_f32(r, n, vdupq_n_f32(2.12194440e-4f));
    float32x4_t p = vdupq_n_f32(1.0f / 5040);
    p = vfmaq_f32(vdupq_n_f32(1.0f / 720), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f / 120), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f / 24), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f / 6), p, r);
    p = vfmaq_f32(vdupq_n_f32(0.5f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    const int32x4_t scaled =
        vaddq_s32(vreinterpretq_s32_f32(p), vshlq_n_s32(vcvtnq_s32_f32(n), 23));
    const uint32x4_t is_near = vcgeq_f32(x, vdupq_n_f32(-60.0f));
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_s32(scaled), is_near));
}

/* Codes of one field of 16 bytes of a line (R1-256 or R16). shift is the negated bit position of
 * the field, because NEON shifts right if the count is negative. */
BN_FORCE_INLINE int8x16_t field_codes(uint8x16_t bytes, int8x16_t shift)
{
    return vreinterpretq_s8_u8(vandq_u8(vshlq_u8(bytes, shift), vdupq_n_u8(3)));
}

/* The maximum of each lane; `second` where either value is a NaN. */
BN_FORCE_INLINE float32x4_t max_or_second(float32x4_t first, float32x4_t second)
{
    return vbslq_f32(vcgtq_f32(first, second), first, second);
}

/* Turn the scores of a head into probabilities exp0(z - m) in place; positions from n_seen on get
 * +0. m is the maximum of the seen scores, without NaN, l the sum of the probabilities. */
static inline void softmax_block_neon(float z[64], size_t n_seen, float *m, float *l)
{
    static const uint32_t counts[4] = {0, 1, 2, 3};
    const uint32x4_t count = vld1q_u32(counts);
    float32x4_t lanes[16], max = vdupq_n_f32(-INFINITY);
    for (size_t v = 0; v < 16; v++) {
        const uint32x4_t seen = vcltq_u32(vaddq_u32(count, vdupq_n_u32((uint32_t)(4 * v))),
                                          vdupq_n_u32((uint32_t)n_seen));
        max = max_or_second(vbslq_f32(seen, vld1q_f32(z + 4 * v), vdupq_n_f32(-INFINITY)), max);
    }
    *m = vmaxvq_f32(max) + 0.0f; /* -0 becomes +0 */
    for (size_t v = 0; v < 16; v++) {
        const uint32x4_t seen = vcltq_u32(vaddq_u32(count, vdupq_n_u32((uint32_t)(4 * v))),
                                          vdupq_n_u32((uint32_t)n_seen));
        const float32x4_t p = exp0_neon(vsubq_f32(vld1q_f32(z + 4 * v), vdupq_n_f32(*m)));
        lanes[v] = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(p), seen));
        vst1q_f32(z + 4 * v, lanes[v]);
    }
    *l = tree64_neon(lanes);
}

#endif
