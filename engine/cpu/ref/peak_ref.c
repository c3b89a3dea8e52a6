/*
 * The work by which cpu_measure.c measures the arithmetic peak of plain C (mac_peak_fn in
 * kernels.h): products of bytes, and fmaf. This file is compiled without optional instructions of
 * the processor.
 */
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>

#define N 64 /* products of bytes per round, each with its own sum: 16 vectors of 128 bits */

size_t mac_peak_ref(size_t n_rounds)
{
    volatile int8_t seed = 1; /* otherwise the compiler could compute the sums in advance */
    int8_t a[N], b[N];
    int32_t sums[N] = {0};
    for (size_t i = 0; i < N; i++) {
        a[i] = (int8_t)(seed + (int8_t)(i % 3));
        b[i] = (int8_t)(seed + (int8_t)(i % 5));
    }
    for (size_t r = 0; r < n_rounds; r++) {
        for (size_t i = 0; i < N; i++)
            sums[i] += a[i] * b[i];
        a[r % N] = seed; /* otherwise the compiler could compute the products before the loop */
    }
    int32_t sum = 0;
    for (size_t i = 0; i < N; i++)
        sum ^= sums[i];
    volatile int32_t sink = sum;
    (void)sink;
    return n_rounds * N;
}

size_t fma_peak_ref(size_t n_rounds)
{
    float sums[4] = {0}; /* independent sums; fmaf is a library call if the compiler may not use an
                            FMA instruction */
    for (size_t r = 0; r < n_rounds; r++)
        for (size_t i = 0; i < 4; i++)
            sums[i] = fmaf(sums[i], 0.5f, 1.0f); /* converges to 2 */
    volatile float sink = sums[0] + sums[1] + sums[2] + sums[3];
    (void)sink;
    return n_rounds * 4;
}
