/*
 * Codes of quantised rows, 64 columns at once: both halves of a register take the same bytes and
 * shift them by counts of their own. Scales are those of rows_unpack_avx2.h.
 */
#ifndef ENGINE_CPU_X86_ROWS_UNPACK_AVX512_H
#define ENGINE_CPU_X86_ROWS_UNPACK_AVX512_H

#include "engine/cpu/x86/rows_unpack_avx2.h"

/* (low, high): 16-bit counts for the halves of a register */
BN_FORCE_INLINE __m512i half_counts(short low, short high)
{
    return _mm512_inserti64x4(_mm512_set1_epi16(low), _mm256_set1_epi16(high), 1);
}

BN_FORCE_INLINE __m512i both_halves(const uint8_t *p)
{
    return _mm512_broadcast_i64x4(load_bytes32(p));
}

/* Columns 64 g .. 64 g + 63 of a block of 256; g is a constant. */
BN_FORCE_INLINE __m512i codes64_q6_k(const uint8_t *block, int g)
{
    const __m512i nibbles = _mm512_loadu_si512(block + 64 * (g / 2));
    const __m512i pairs = both_halves(block + 128 + 32 * (g / 2));
    const __m512i low = g % 2 ? _mm512_srli_epi16(nibbles, 4) : nibbles;
    const __m512i high = g % 2 ? _mm512_srlv_epi16(pairs, half_counts(0, 2))
                               : _mm512_sllv_epi16(pairs, half_counts(4, 2));
    const __m512i code = _mm512_or_si512(_mm512_and_si512(low, _mm512_set1_epi8(0x0f)),
                                         _mm512_and_si512(high, _mm512_set1_epi8(0x30)));
    return _mm512_sub_epi8(code, _mm512_set1_epi8(32));
}

BN_FORCE_INLINE __m512i codes64_q4_k(const uint8_t *block, int g)
{
    const __m512i nibbles = both_halves(block + 16 + 32 * g);
    return _mm512_and_si512(_mm512_srlv_epi16(nibbles, half_counts(0, 4)), _mm512_set1_epi8(15));
}

/* The 32 columns of a block of Q4_0, from its nibbles[16]. */
BN_FORCE_INLINE __m256i codes32_q4_0(const uint8_t *nibbles)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)nibbles);
    const __m256i counts = _mm256_set_m128i(_mm_set1_epi16(4), _mm_setzero_si128());
    const __m256i both = _mm256_srlv_epi16(_mm256_broadcastsi128_si256(bytes), counts);
    return _mm256_sub_epi8(_mm256_and_si256(both, _mm256_set1_epi8(15)), _mm256_set1_epi8(8));
}

#endif
