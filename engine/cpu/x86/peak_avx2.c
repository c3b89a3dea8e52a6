/*
 * The arithmetic peak of AVX2: products of unsigned and signed bytes in pairs, added to sums of 16
 * bits, from registers (sums may wrap: nobody looks at them), and fused multiply-adds of floats.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/peak_chains.h"

#include <immintrin.h>

#define MACS 32 /* an instruction, of bytes */
#define FMACS 8 /* of floats */

/* The same, but nobody knows: a product of known values is made once. */
BN_FORCE_INLINE __m256i opaque(__m256i v)
{
    __asm__ volatile("" : "+x"(v));
    return v;
}

size_t mac_peak_avx2(size_t n_rounds)
{
    const __m256i a = _mm256_set1_epi8(2), b = _mm256_set1_epi8(3);
#define DECLARE(i) __m256i sum##i = _mm256_setzero_si256();
    EACH_CHAIN(DECLARE)
    for (size_t r = 0; r < n_rounds; r++) {
/* The sum is unknown after each step, or the compiler would foretell the last one. */
#define MULTIPLY(i)                                                                                \
    sum##i = _mm256_add_epi16(sum##i, _mm256_maddubs_epi16(a, opaque(b)));                         \
    __asm__ volatile("" : "+x"(sum##i));
        EACH_CHAIN(MULTIPLY)
    }
    return n_rounds * CHAINS * MACS;
}

size_t fma_peak_avx2(size_t n_rounds)
{
    const __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(1.0f);
#define DECLARE_F32(i) __m256 f##i = _mm256_setzero_ps();
    EACH_CHAIN(DECLARE_F32)
    for (size_t r = 0; r < n_rounds; r++) {
/* Goes to 2: neither infinite nor subnormal. */
#define MULTIPLY_F32(i)                                                                            \
    f##i = _mm256_fmadd_ps(f##i, a, b);                                                            \
    __asm__ volatile("" : "+x"(f##i));
        EACH_CHAIN(MULTIPLY_F32)
    }
    return n_rounds * CHAINS * FMACS;
}
