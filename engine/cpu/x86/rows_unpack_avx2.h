/*
 * 32 elements of a quantised table row as signed bytes and their scales: what the AVX2 and AVX-512
 * row kernels have in common. Blocks as docs/formats.md has them.
 */
#ifndef ENGINE_CPU_X86_ROWS_UNPACK_AVX2_H
#define ENGINE_CPU_X86_ROWS_UNPACK_AVX2_H

#include "engine/base/force_inline.h"
#include "engine/gguf/gguf_types.h"

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define GROUP_COLS 32

struct row_group {
    __m256i codes;  /* 32 x int8 */
    float scale[2]; /* of codes 0 .. 15 and 16 .. 31 */
    float offset;   /* Q4_K: value = scale * code - offset */
};

BN_FORCE_INLINE float load_half(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return _cvtsh_ss(h);
}

BN_FORCE_INLINE __m256i load_bytes32(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* d, q[32] */
BN_FORCE_INLINE struct row_group unpack_q8_0(const uint8_t *row, size_t group)
{
    const uint8_t *block = row + 34 * group;
    const float d = load_half(block);
    return (struct row_group){.codes = load_bytes32(block + 2), .scale = {d, d}};
}

/* d, nibbles[16] */
BN_FORCE_INLINE struct row_group unpack_q4_0(const uint8_t *row, size_t group)
{
    const uint8_t *block = row + 18 * group;
    const float d = load_half(block);
    const __m128i nibbles = _mm_loadu_si128((const __m128i *)(const void *)(block + 2));
    const __m256i both = _mm256_set_m128i(_mm_srli_epi16(nibbles, 4), nibbles);
    const __m256i codes = _mm256_and_si256(both, _mm256_set1_epi8(15));
    return (struct row_group){.codes = _mm256_sub_epi8(codes, _mm256_set1_epi8(8)),
                              .scale = {d, d}};
}

/* d, dmin, s[12], nibbles[128]; scales and minima have 6 bits */
BN_FORCE_INLINE struct row_group unpack_q4_k(const uint8_t *row, size_t group)
{
    const uint8_t *block = row + 144 * (group / 8), *s = block + 4;
    const size_t j = group % 8;
    const int sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    const int m = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
    const float scale = load_half(block) * (float)sc;
    const __m128i shift = _mm_cvtsi32_si128((int)(4 * (j % 2)));
    const __m256i nibbles = _mm256_srl_epi16(load_bytes32(block + 16 + 32 * (j / 2)), shift);
    return (struct row_group){.codes = _mm256_and_si256(nibbles, _mm256_set1_epi8(15)),
                              .scale = {scale, scale},
                              .offset = load_half(block + 2) * (float)m};
}

/* nibbles[128], bit pairs[64], sc[16], d */
BN_FORCE_INLINE struct row_group unpack_q6_k(const uint8_t *row, size_t group)
{
    const uint8_t *block = row + 210 * (group / 8);
    const size_t h = group % 8 / 4, g = group % 4;
    const int8_t *sc = (const int8_t *)(block + 192 + 8 * h + 2 * g);
    const float d = load_half(block + 208);
    const __m256i nibbles = _mm256_srl_epi16(load_bytes32(block + 64 * h + 32 * (g & 1)),
                                             _mm_cvtsi32_si128(g < 2 ? 0 : 4));
    const __m256i pairs =
        _mm256_srl_epi16(load_bytes32(block + 128 + 32 * h), _mm_cvtsi32_si128((int)(2 * g)));
    const __m256i low = _mm256_and_si256(nibbles, _mm256_set1_epi8(15));
    const __m256i high = _mm256_slli_epi16(_mm256_and_si256(pairs, _mm256_set1_epi8(3)), 4);
    const __m256i codes = _mm256_sub_epi8(_mm256_or_si256(low, high), _mm256_set1_epi8(32));
    return (struct row_group){.codes = codes, .scale = {d * (float)sc[0], d * (float)sc[1]}};
}

BN_FORCE_INLINE struct row_group unpack_group(enum tensor_type type, const uint8_t *row,
                                              size_t group)
{
    switch (type) {
    case TENSOR_Q8_0:
        return unpack_q8_0(row, group);
    case TENSOR_Q4_0:
        return unpack_q4_0(row, group);
    case TENSOR_Q4_K:
        return unpack_q4_k(row, group);
    default:
        return unpack_q6_k(row, group);
    }
}

#endif
