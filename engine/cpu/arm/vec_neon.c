/*
 * Vector kernels for NEON. The tail of a vector is copied to a register padded with zeros, so that
 * the same code computes every element. Only scale_acc and rope_norm have scalar tails.
 */
#include "engine/base/relax.h"
#include "engine/base/size.h"
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"
#include "engine/layout/fixed_point.h"

#include <math.h>

/* The factor of RMSNorm. The sum has the 64 lanes of dot64 (docs/kernels.md). */
BN_FORCE_INLINE float norm_factor(const float *x, size_t n, float eps)
{
    float32x4_t lanes[16];
#pragma GCC unroll 16
    for (int v = 0; v < 16; v++)
        lanes[v] = vdupq_n_f32(0.0f);
    /* Elements from n on add 0 * 0. A sum of squares is never -0, so this changes no bit. */
    for (size_t i = 0; i < n; i += 64)
#pragma GCC unroll 16
        for (size_t v = 0; v < 16; v++) {
            const float32x4_t xv = load4(x, i + 4 * v, n);
            lanes[v] = vfmaq_f32(lanes[v], xv, xv);
        }
    return 1.0f / sqrtf(tree64_neon(lanes) / (float)n + eps);
}

void rms_norm_neon(const float *x, const float *w, size_t n, float eps, float *y)
{
    const float32x4_t r = vdupq_n_f32(norm_factor(x, n, eps));
    for (size_t i = 0; i < n; i += 4)
        store4(y, i, n, vmulq_f32(vmulq_f32(load4(x, i, n), r), load4(w, i, n)));
}

/* Elements i .. i + 3 of the vector to quantise, 0 from n on; i may be past n. r is the factor of
 * RMSNorm if is_normed. */
BN_FORCE_INLINE float32x4_t input4(const struct act_in *in, bool is_normed, float r, size_t i)
{
    const size_t at = size_min(i, in->n);
    const float32x4_t x = load4(in->x, at, in->n);
    return is_normed ? vmulq_f32(vmulq_n_f32(x, r), load4(in->w, at, in->n)) : x;
}

/* The largest magnitude of the vector to quantise, at least 1e-5; a NaN is ignored. */
BN_FORCE_INLINE float max_magnitude(const struct act_in *in, bool is_normed, float r)
{
    float32x4_t max[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; v++)
        max[v] = vdupq_n_f32(1e-5f);
    for (size_t i = 0; i < in->n; i += 16)
#pragma GCC unroll 4
        for (size_t v = 0; v < 4; v++)
            max[v] = max_or_second(vabsq_f32(input4(in, is_normed, r, i + 4 * v)), max[v]);
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(max[0], max[1]), vmaxq_f32(max[2], max[3])));
}

BN_FORCE_INLINE void quantise(const struct act_in *in, bool is_normed, int8_t *q,
                              struct act_scale *out)
{
    const float r = is_normed ? norm_factor(in->x, in->n, in->eps) : 1.0f;
    const float s = 127.0f / max_magnitude(in, is_normed, r);
    int32x4_t sums = vdupq_n_s32(0);
    for (size_t i = 0; i < size_round_up(in->n, LINE_COLS); i += 16) {
        int32x4_t v[4];
        if (in->ahead && i < in->n) /* 16 floats are one cache line */
            cpu_prefetch((const void *)((uintptr_t)in->ahead + i * sizeof *in->x));
#pragma GCC unroll 4
        for (size_t k = 0; k < 4; k++) { /* a NaN becomes 0; |v| <= 127, so 8 bits hold it */
            v[k] = vcvtnq_s32_f32(vmulq_n_f32(input4(in, is_normed, r, i + 4 * k), s));
            sums = vaddq_s32(sums, v[k]);
        }
        const int16x8_t a = vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]));
        const int16x8_t b = vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3]));
        vst1q_s8(q + i, vcombine_s8(vmovn_s16(a), vmovn_s16(b)));
    }
    out->s = s;
    out->q_sum = vaddvq_s32(sums);
}

void quantise_neon(const struct act_in *in, int8_t *q, struct act_scale *out)
{
    if (in->w)
        quantise(in, true, q, out);
    else
        quantise(in, false, q, out);
}

void scale_acc_neon(const int32_t *acc, size_t n, float d, float *y)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vmulq_n_f32(vcvtq_f32_s32(vld1q_s32(acc + i)), d));
    for (; i < n; i++)
        y[i] = (float)acc[i] * d;
}

void add_neon(float *h, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 4)
        store4(h, i, n, vaddq_f32(load4(h, i, n), load4(y, i, n)));
}

void relu2_gate_neon(const float *gate, const float *up, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 4) {
        const float32x4_t g = load4(gate, i, n), zero = vdupq_n_f32(0.0f);
        const float32x4_t product = vmulq_f32(vmulq_f32(g, g), load4(up, i, n));
        store4(out, i, n, vbslq_f32(vclezq_f32(g), zero, product)); /* a NaN stays a NaN */
    }
}

/* With e = exp0(-|g|), sigmoid(g) is 1 / (1 + e) for g >= 0, else e / (1 + e). */
void silu_gate_neon(const float *gate, const float *up, size_t n, float *out)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    for (size_t i = 0; i < n; i += 4) {
        const float32x4_t g = load4(gate, i, n), e = exp0_neon(vnegq_f32(vabsq_f32(g)));
        const float32x4_t top = vbslq_f32(vcgezq_f32(g), one, e);
        const float32x4_t sigmoid = vdivq_f32(top, vaddq_f32(one, e));
        store4(out, i, n, vmulq_f32(vmulq_f32(g, sigmoid), load4(up, i, n)));
    }
}

/* (a, b) rotated by the angle with cosine c and sine s */
BN_FORCE_INLINE float32x4x2_t rotate(float32x4_t a, float32x4_t b, float32x4_t c, float32x4_t s)
{
    return (float32x4x2_t){{vfmsq_f32(vmulq_f32(a, c), b, s), vfmaq_f32(vmulq_f32(a, s), b, c)}};
}

void rope_neox_neon(float *x, const float *c, const float *s, size_t n_rot)
{
    const size_t n = n_rot / 2;
    float *y = x + n;
    for (size_t i = 0; i < n; i += 4) {
        const float32x4x2_t r =
            rotate(load4(x, i, n), load4(y, i, n), load4(c, i, n), load4(s, i, n));
        store4(x, i, n, r.val[0]);
        store4(y, i, n, r.val[1]);
    }
}

void rope_norm_neon(float *x, const float *c, const float *s, size_t n_rot)
{
    const size_t n = n_rot / 2;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4x2_t pairs = vld2q_f32(x + 2 * i);
        vst2q_f32(x + 2 * i,
                  rotate(pairs.val[0], pairs.val[1], vld1q_f32(c + i), vld1q_f32(s + i)));
    }
    for (; i < n; i++) {
        const float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = fmaf(-b, s[i], a * c[i]);
        x[2 * i + 1] = fmaf(b, c[i], a * s[i]);
    }
}

void to_f16_neon(const float *x, size_t n, uint16_t *out)
{
    const float32x4_t top = vdupq_n_f32(F16_MAX);
    for (size_t i = 0; i < n; i += 4) {
        const float32x4_t v = load4(x, i, n);
        /* Comparisons with a NaN are false, so it stays a NaN. */
        const float32x4_t below = vbslq_f32(vcgtq_f32(v, top), top, v);
        const float32x4_t clamped = vbslq_f32(vcltq_f32(v, vnegq_f32(top)), vnegq_f32(top), below);
        uint16_t halves[4];
        vst1_u16(halves, vreinterpret_u16_f16(vcvt_f16_f32(clamped)));
        memcpy(out + i, halves, size_min(n - i, 4) * sizeof *out);
    }
}

void attn_merge_neon(float *big_m, float *big_l, float *big_o, const float *m, const float *l,
                     const float *o, size_t head_dim)
{
    const float top = *m > *big_m ? *m : *big_m;
    /* Both factors in one call: lane 0 for the running results, lane 1 for the block. */
    const float32x4_t factors = exp0_neon((float32x4_t){*big_m - top, *m - top, 0, 0});
    const float a = vgetq_lane_f32(factors, 0), b = vgetq_lane_f32(factors, 1);
    *big_l = fmaf(*l, b, *big_l * a);
    for (size_t i = 0; i < head_dim; i += 4)
        store4(big_o, i, head_dim,
               vfmaq_n_f32(vmulq_n_f32(load4(big_o, i, head_dim), a), load4(o, i, head_dim), b));
    *big_m = top;
}

void attn_finish_neon(const float *big_o, float big_l, size_t head_dim, float *out)
{
    const float r = 1.0f / big_l;
    for (size_t i = 0; i < head_dim; i += 4)
        store4(out, i, head_dim, vmulq_n_f32(load4(big_o, i, head_dim), r));
}
