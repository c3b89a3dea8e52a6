/*
 * Float functions that docs/kernels.md specifies, shuffles of floats, and loads of four.
 *
 * Assumes --fmad=false: the compiler must not form an fma that the source does not contain.
 */
#ifndef CUDA_MATH_CUH
#define CUDA_MATH_CUH

#include "engine/cuda/kernels/device/cuda_intrinsics.cuh"

#define MIN_ABSMAX 1e-5f /* of a row that is quantised: docs/kernels.md, "quantise" */

DEV float shuffle_xor_f32(float v, uint32_t mask)
{
    return f32_of_bits(shuffle_xor_u32(bits_of_f32(v), mask));
}

DEV float shuffle_f32(float v, uint32_t lane)
{
    return f32_of_bits(shuffle_u32(bits_of_f32(v), lane));
}

/* exp(x) for x <= 0; +0 below -60 and for a NaN. x = n ln 2 + r, with ln 2 in two terms after Cody
 * and Waite. The Taylor series of exp(r) has the coefficients 1 / k!, highest power first. */
DEV float exp0(float x)
{
    if (!(x >= -60.0f))
        return 0.0f;
    const float n = rintf(x * 1.44269504f);
    const float r = fmaf(n, 2.12194440e-4f, fmaf(n, -0.693359375f, x));
    float p = 1.0f / 5040;
    p = fmaf(p, r, 1.0f / 720);
    p = fmaf(p, r, 1.0f / 120);
    p = fmaf(p, r, 1.0f / 24);
    p = fmaf(p, r, 1.0f / 6);
    p = fmaf(p, r, 1.0f / 2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    /* n is added to the exponent, which multiplies by 2^n */
    return f32_of_bits(bits_of_f32(p) + ((uint32_t)(int32_t)n << 23));
}

DEV float sigmoid(float x)
{
    const float e = exp0(-fabsf(x));
    return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}

struct four {
    float at[4];
};
/* Four elements of x (n) from i on, a multiple of 4; zeros past n. x must be 16-byte aligned. */
DEV struct four load_four(const float *x, uint32_t i, uint32_t n)
{
    struct four f;
    if (i + 4 <= n) {
        const struct words w = load_words(x + i);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            f.at[e] = f32_of_bits(w.at[e]);
    } else {
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            f.at[e] = i + e < n ? x[i + e] : 0.0f;
    }
    return f;
}

#endif
