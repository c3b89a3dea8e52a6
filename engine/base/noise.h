/*
 * Random numbers for sampling, as a function of (seed, position, number). When a token is drawn,
 * `number` is the token id. Other code, such as the coarse plane, calls noise_bits with keys of its
 * own.
 *
 * There is no generator state, so the draw at a position does not depend on how the program reached
 * it. With logits z and Gumbel noise g, argmax(z / temp + g) is a draw from softmax(z / temp).
 * Integers and doubles in a fixed order without fused operations produce the same bits on every
 * device and compiler.
 */
#ifndef ENGINE_BASE_NOISE_H
#define ENGINE_BASE_NOISE_H

#include <stdint.h>

#ifdef __CUDACC__
#define NOISE_FN static __host__ __device__ inline
#else
#define NOISE_FN static inline
#endif

/* Upper bound of noise_gumbel: -log(-log(1 - 2^-25)) is 17.33. */
#define NOISE_GUMBEL_MAX 17.4

/* Finaliser of SplitMix64 (Steele, Lea and Flood): every input bit reaches every output bit. */
NOISE_FN uint64_t noise_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The key of a position, for noise_bits and noise_gumbel. */
NOISE_FN uint64_t noise_key(uint64_t seed, uint64_t position)
{
    return noise_mix(noise_mix(seed) ^ position);
}

/* 64 random bits. */
NOISE_FN uint64_t noise_bits(uint64_t key, uint64_t number)
{
    return noise_mix(key ^ noise_mix(number));
}

/* Natural logarithm of a positive normal number, relative error below 1e-12: x = 2^e m, m in
 * (1/sqrt 2, sqrt 2], log m = 2 artanh((m - 1) / (m + 1)), a power series up to the 17th power. */
NOISE_FN double noise_log(double x)
{
    union {
        double d;
        uint64_t u;
    } v = {x};
    int e = (int)(v.u >> 52) - 1023;
    v.u = (v.u & 0xfffffffffffffu) | (uint64_t)1023 << 52;
    if (v.d > 1.4142135623730951) {
        v.d *= 0.5;
        e++;
    }
    const double t = (v.d - 1.0) / (v.d + 1.0), t2 = t * t;
    double p = 1.0 / 17;
    for (int k = 15; k > 0; k -= 2)
        p = p * t2 + 1.0 / k;
    return (double)e * 0.6931471805599453 + 2.0 * t * p;
}

/* Standard Gumbel noise -log(-log(u)), where u is one of 2^24 values inside (0, 1). */
NOISE_FN double noise_gumbel(uint64_t key, uint64_t number)
{
    const double u = ((double)(noise_bits(key, number) >> 40) + 0.5) * (1.0 / 16777216.0);
    return -noise_log(-noise_log(u));
}

#endif
