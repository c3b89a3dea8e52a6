/*
 * The arithmetic peak of AVX2: products of unsigned and signed bytes in pairs, added to sums of 16
 * bits, from registers. Sums may wrap: nobody looks at them.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/peak_chains.h"

#include <immintrin.h>

#define MACS 32 /* an instruction */

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
