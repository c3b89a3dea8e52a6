/*
 * Unpacks quantised table rows for AVX2 and AVX-512: codes to signed bytes, and the scales of a
 * block to F32. docs/formats.md describes the blocks.
 */
#ifndef ENGINE_CPU_X86_ROWS_UNPACK_AVX2_H
#define ENGINE_CPU_X86_ROWS_UNPACK_AVX2_H

#include "engine/base/force_inline.h"
#include "engine/gguf/gguf_types.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define REGISTER_COLS 32 /* columns whose codes fill a 256-bit register */

/* Scales of a block of 256 columns; value = scale * code - offset. Q6_K has a scale for every 16
 * columns and no offsets. Q4_K has a scale and an offset for every 32 columns. */
struct block_scales {
    _Alignas(32) float scale[16];
    _Alignas(32) float offset[8];
};

BN_FORCE_INLINE __m256i load_bytes32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* Four F16 at p as F32. */
BN_FORCE_INLINE __m128 load_halves4(const uint8_t *p)
{
    return _mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

/* Eight signed bytes at p as F32. */
BN_FORCE_INLINE __m256 load_signed8(const uint8_t *p)
{
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)p);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

/* Eight unsigned bytes as F32. */
BN_FORCE_INLINE __m256 unsigned8(uint64_t bytes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bytes)));
}

/* Block of Q6_K: nibbles[128], bit pairs[64], sc[16], d */
BN_FORCE_INLINE void scales_q6_k(const uint8_t *block, struct block_scales *s)
{
    const __m128 last = load_halves4(block + 202); /* d is the last of the four halves at 202 */
    const __m256 d = _mm256_broadcastss_ps(_mm_permute_ps(last, 0xff));
    _mm256_store_ps(s->scale, _mm256_mul_ps(d, load_signed8(block + 192)));
    _mm256_store_ps(s->scale + 8, _mm256_mul_ps(d, load_signed8(block + 200)));
}

/* Block of Q4_K: d, dmin, packed[12], nibbles[128]. packed is three words of four bytes. Scales 0
 * .. 3 are the low six bits of the bytes of word 0, minima 0 .. 3 those of word 1. Scales 4 .. 7
 * have their low four bits in the low nibbles of word 2, minima 4 .. 7 in the high nibbles. The
 * high two bits of these scales are the top bits of the bytes of word 0, those of these minima the
 * top bits of the bytes of word 1. */
BN_FORCE_INLINE void scales_q4_k(const uint8_t *block, struct block_scales *s)
{
    const uint32_t six = 0x3f3f3f3fu, four = 0x0f0f0f0fu, two = 0x30303030u;
    uint32_t w[3];
    memcpy(w, block + 4, sizeof w);
    const uint64_t sc_high = (w[2] & four) | (w[0] >> 2 & two);
    const uint64_t m_high = (w[2] >> 4 & four) | (w[1] >> 2 & two);
    const __m128 halves = load_halves4(block);
    const __m256 d = _mm256_broadcastss_ps(halves);
    const __m256 d_min = _mm256_broadcastss_ps(_mm_movehdup_ps(halves));
    _mm256_store_ps(s->scale, _mm256_mul_ps(d, unsigned8((w[0] & six) | sc_high << 32)));
    _mm256_store_ps(s->offset, _mm256_mul_ps(d_min, unsigned8((w[1] & six) | m_high << 32)));
}

/* type: TENSOR_Q6_K or TENSOR_Q4_K */
BN_FORCE_INLINE void block_scales_of(enum tensor_type type, const uint8_t *block,
                                     struct block_scales *s)
{
    if (type == TENSOR_Q6_K)
        scales_q6_k(block, s);
    else
        scales_q4_k(block, s);
}

/* Codes of columns 32 g .. 32 g + 31 of a block; g (0 .. 7) is a constant after unrolling. Bits 4
 * and 5 of a code come from the bit pairs. */
BN_FORCE_INLINE __m256i codes_q6_k(const uint8_t *block, int g)
{
    const __m256i nibbles = load_bytes32(block + 64 * (g / 4) + 32 * (g & 1));
    const __m256i low = g % 4 < 2 ? nibbles : _mm256_srli_epi16(nibbles, 4);
    const __m256i pairs = load_bytes32(block + 128 + 32 * (g / 4));
    const __m256i high = g % 4 == 3   ? _mm256_srli_epi16(pairs, 2)
                         : g % 4 == 2 ? pairs
                                      : _mm256_slli_epi16(pairs, 4 - 2 * (g % 4));
    const __m256i code = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi8(0x0f)),
                                         _mm256_and_si256(high, _mm256_set1_epi8(0x30)));
    return _mm256_sub_epi8(code, _mm256_set1_epi8(32));
}

/* As codes_q6_k, but the codes are plain nibbles. */
BN_FORCE_INLINE __m256i codes_q4_k(const uint8_t *block, int g)
{
    const __m256i nibbles = load_bytes32(block + 16 + 32 * (g / 2));
    return _mm256_and_si256(g % 2 ? _mm256_srli_epi16(nibbles, 4) : nibbles, _mm256_set1_epi8(15));
}

/* Codes of a block of Q4_0, from its nibbles[16]. */
BN_FORCE_INLINE __m256i codes_q4_0(const uint8_t *nibbles)
{
    const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)nibbles);
    const __m256i both = _mm256_set_m128i(_mm_srli_epi16(low, 4), low);
    return _mm256_sub_epi8(_mm256_and_si256(both, _mm256_set1_epi8(15)), _mm256_set1_epi8(8));
}

#endif
