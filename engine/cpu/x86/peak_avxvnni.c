/*
 * Measures the arithmetic peak of AVX-VNNI on data in registers (mac_peak_fn in kernels.h): 256-bit
 * dot products of bytes. The sums may wrap.
 */
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/peak_chains.h"

#include <immintrin.h>

size_t mac_peak_avxvnni(size_t n_rounds)
{
    const __m256i a = _mm256_set1_epi8(2), b = _mm256_set1_epi8(3);
#define DECLARE(i) __m256i sum##i = _mm256_setzero_si256();
    EACH_CHAIN(DECLARE)
    for (size_t r = 0; r < n_rounds; r++) {
#define MULTIPLY(i)                                                                                \
    sum##i = _mm256_dpbusd_avx_epi32(sum##i, a, b);                                                \
    OPAQUE(sum##i);
        EACH_CHAIN(MULTIPLY)
    }
    return n_rounds * CHAINS * 32; /* bytes of a register */
}
