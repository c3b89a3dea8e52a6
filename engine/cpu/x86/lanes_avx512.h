/*
 * Inline functions that the AVX-512 kernels share.
 */
#ifndef ENGINE_CPU_X86_LANES_AVX512_H
#define ENGINE_CPU_X86_LANES_AVX512_H

#include "engine/cpu/x86/lanes_avx2.h"

/* Mask of elements i .. i + 15: the lanes of elements below n. */
BN_FORCE_INLINE __mmask16 mask_below(size_t i, size_t n)
{
    return i >= n ? 0 : n - i >= 16 ? 0xffff : (__mmask16)((1u << (n - i)) - 1);
}

/* Pairwise sum of 16 lanes: the last four levels of sum64 (docs/kernels.md). */
BN_FORCE_INLINE float tree16_avx512(__m512 l16)
{
    return tree8_avx2(_mm256_add_ps(_mm512_castps512_ps256(l16), _mm512_extractf32x8_ps(l16, 1)));
}

/* The pairwise sum of sum64; lanes[v] holds its lanes 16 v .. 16 v + 15. */
BN_FORCE_INLINE float tree64_avx512(const __m512 lanes[4])
{
    const __m512 even = _mm512_add_ps(lanes[0], lanes[2]), odd = _mm512_add_ps(lanes[1], lanes[3]);
    return tree16_avx512(_mm512_add_ps(even, odd));
}

/* Lane i of the result is the sum of the lanes of v[i]. */
BN_FORCE_INLINE __m128i sum_lanes_avx512(const __m512i v[4])
{
    __m256i half[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        half[i] =
            _mm256_add_epi32(_mm512_castsi512_si256(v[i]), _mm512_extracti64x4_epi64(v[i], 1));
    const __m256i ab = _mm256_hadd_epi32(half[0], half[1]);
    const __m256i cd = _mm256_hadd_epi32(half[2], half[3]);
    const __m256i abcd = _mm256_hadd_epi32(ab, cd);
    return _mm_add_epi32(_mm256_castsi256_si128(abcd), _mm256_extracti128_si256(abcd, 1));
}

/* The largest lane; unspecified if a lane is a NaN. */
BN_FORCE_INLINE float max16_avx512(__m512 v)
{
    return max8_avx2(_mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}

/* exp0 of docs/kernels.md: +0 below -60, for a NaN, and in lanes that are not in `keep`. Method and
 * constants are those of exp0_ref. */
BN_FORCE_INLINE __m512 exp0_avx512(__m512 x, __mmask16 keep)
{
    const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)),
                                          _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0.693359375f), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.0f / 5040);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 720));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    const __mmask16 mask = _mm512_mask_cmp_ps_mask(keep, x, _mm512_set1_ps(-60.0f), _CMP_GE_OQ);
    const __m512i scaled = _mm512_maskz_add_epi32(mask, _mm512_castps_si512(p),
                                                  _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23));
    return _mm512_castsi512_ps(scaled);
}

/* Turn the scores of a head into probabilities exp0(z - m) in place; positions from n_seen on get
 * +0. z is 64-byte aligned. m is the maximum of the seen scores, without NaN, l the sum of the
 * probabilities. */
BN_FORCE_INLINE void softmax_block_avx512(float z[64], size_t n_seen, float *m, float *l)
{
    __m512 lanes[4], max = _mm512_set1_ps(-INFINITY);
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; v++) {
        const __mmask16 seen = mask_below(16 * v, n_seen);
        max = _mm512_mask_max_ps(max, seen, _mm512_load_ps(z + 16 * v), max);
    }
    *m = max16_avx512(max) + 0.0f; /* -0 becomes +0 */
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; v++) {
        const __m512 x = _mm512_sub_ps(_mm512_load_ps(z + 16 * v), _mm512_set1_ps(*m));
        lanes[v] = exp0_avx512(x, mask_below(16 * v, n_seen));
        _mm512_store_ps(z + 16 * v, lanes[v]);
    }
    *l = tree64_avx512(lanes);
}

/* sigmoid of docs/kernels.md. */
BN_FORCE_INLINE __m512 sigmoid_avx512(__m512 x)
{
    const __m512 one = _mm512_set1_ps(1.0f);
    const __m512 e = exp0_avx512(_mm512_or_ps(x, _mm512_set1_ps(-0.0f)), 0xffff); /* of -|x| */
    const __mmask16 positive = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GE_OQ);
    return _mm512_div_ps(_mm512_mask_blend_ps(positive, e, one), _mm512_add_ps(one, e));
}

#endif
