/*
 * The arithmetic peak of plain C: sums of products of bytes as the compiler makes them for any
 * processor of the family.
 */
#include "engine/cpu/ref/kernels_ref.h"

#define N 64

size_t mac_peak_ref(size_t n_rounds)
{
    volatile int8_t seed = 1; /* or the compiler would know the sums */
    int8_t a[N], b[N];
    int32_t sums[N] = {0};
    for (size_t i = 0; i < N; i++) {
        a[i] = (int8_t)(seed + (int8_t)(i % 3));
        b[i] = (int8_t)(seed + (int8_t)(i % 5));
    }
    for (size_t r = 0; r < n_rounds; r++) {
        for (size_t i = 0; i < N; i++)
            sums[i] += a[i] * b[i];
        a[r % N] = seed;
    }
    int32_t sum = 0;
    for (size_t i = 0; i < N; i++)
        sum ^= sums[i];
    volatile int32_t sink = sum;
    (void)sink;
    return n_rounds * N;
}
