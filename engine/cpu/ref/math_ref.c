/*
 * Reference for the float functions that docs/kernels.md defines: exp0, sigmoid, the sum over 64
 * lanes and the dot product.
 *
 * Assumes round to nearest even and no contraction (-ffp-contract=off). fmaf of the C library
 * rounds once; on a processor without fma it is slow.
 */
#include "engine/base/fp16.h"
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>

/* ln 2 as LN2_HIGH + LN2_LOW, after Cody and Waite. LN2_HIGH has few bits, so that n * LN2_HIGH is
 * exact. */
#define LN2_HIGH 0.693359375f
#define LN2_LOW (-2.12194440e-4f)

float exp0_ref(float x)
{
    /* 1 / k!, highest power first */
    static const float taylor[8] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24,
                                    1.0f / 6,    1.0f / 2,   1.0f,       1.0f};
    if (!(x >= -60.0f))
        return 0.0f;
    const float n = rintf(x * 1.44269504f); /* x / ln 2 */
    const float r = fmaf(n, -LN2_LOW, fmaf(n, -LN2_HIGH, x));
    float p = taylor[0];
    for (size_t i = 1; i < 8; i++)
        p = fmaf(p, r, taylor[i]);
    /* p * 2^n: add n to the exponent field, which begins at bit 23. The result is a normal number
     * because x >= -60. */
    return f32_from_bits(f32_bits(p) + ((uint32_t)(int32_t)n << 23));
}

float sigmoid_ref(float x)
{
    const float e = exp0_ref(-fabsf(x));
    return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}

float sum64_tree_ref(float lanes[64])
{
    for (size_t half = 32; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lanes[l] = lanes[l] + lanes[l + half];
    return lanes[0];
}

float dot64_ref(const float *a, const float *b, size_t n)
{
    float lanes[64] = {0};
    for (size_t i = 0; i < n; i++)
        lanes[i % 64] = fmaf(a[i], b[i], lanes[i % 64]);
    return sum64_tree_ref(lanes);
}
