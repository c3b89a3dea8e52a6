/*
 * Measures the arithmetic peak of AVX-512 VNNI on data in registers (mac_peak_fn in kernels.h):
 * 512-bit dot products of bytes, and fused multiply-adds of floats. Integer sums may wrap.
 */
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/peak_chains.h"

#include <immintrin.h>

size_t mac_peak_avx512(size_t n_rounds)
{
    const __m512i a = _mm512_set1_epi8(2), b = _mm512_set1_epi8(3);
#define DECLARE(i) __m512i sum##i = _mm512_setzero_si512();
    EACH_CHAIN(DECLARE)
    for (size_t r = 0; r < n_rounds; r++) {
#define MULTIPLY(i)                                                                                \
    sum##i = _mm512_dpbusd_epi32(sum##i, a, b);                                                    \
    OPAQUE(sum##i);
        EACH_CHAIN(MULTIPLY)
    }
    return n_rounds * CHAINS * 64; /* bytes of a register */
}

size_t fma_peak_avx512(size_t n_rounds)
{
    const __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(1.0f);
#define DECLARE_F32(i) __m512 f##i = _mm512_setzero_ps();
    EACH_CHAIN(DECLARE_F32)
    for (size_t r = 0; r < n_rounds; r++) {
/* Converges to 2, so it becomes neither infinite nor subnormal. */
#define MULTIPLY_F32(i)                                                                            \
    f##i = _mm512_fmadd_ps(f##i, a, b);                                                            \
    OPAQUE(f##i);
        EACH_CHAIN(MULTIPLY_F32)
    }
    return n_rounds * CHAINS * 16; /* floats of a register */
}
