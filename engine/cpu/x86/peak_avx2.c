/*
 * Measures the arithmetic peak of AVX2 on data in registers (mac_peak_fn in kernels.h). Products of
 * unsigned and signed bytes are added in pairs to 16-bit sums, which may wrap, since their values
 * are not used. The peak of floats is that of fma.
 */
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/peak_chains.h"

#include <immintrin.h>

size_t mac_peak_avx2(size_t n_rounds)
{
    const __m256i a = _mm256_set1_epi8(2);
    __m256i b = _mm256_set1_epi8(3);
#define DECLARE(i) __m256i sum##i = _mm256_setzero_si256();
    EACH_CHAIN(DECLARE)
    for (size_t r = 0; r < n_rounds; r++) {
#define MULTIPLY(i)                                                                                \
    OPAQUE(b);                                                                                     \
    sum##i = _mm256_add_epi16(sum##i, _mm256_maddubs_epi16(a, b));                                 \
    OPAQUE(sum##i);
        EACH_CHAIN(MULTIPLY)
    }
    return n_rounds * CHAINS * 32; /* bytes of a register */
}

size_t fma_peak_avx2(size_t n_rounds)
{
    const __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(1.0f);
#define DECLARE_F32(i) __m256 f##i = _mm256_setzero_ps();
    EACH_CHAIN(DECLARE_F32)
    for (size_t r = 0; r < n_rounds; r++) {
/* Converges to 2, so it becomes neither infinite nor subnormal. */
#define MULTIPLY_F32(i)                                                                            \
    f##i = _mm256_fmadd_ps(f##i, a, b);                                                            \
    OPAQUE(f##i);
        EACH_CHAIN(MULTIPLY_F32)
    }
    return n_rounds * CHAINS * 8; /* floats of a register */
}
