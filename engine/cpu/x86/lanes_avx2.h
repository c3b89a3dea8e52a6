/*
 * Inline functions for AVX2, which the kernels of AVX2, AVX-VNNI and AVX-512 share.
 */
#ifndef ENGINE_CPU_X86_LANES_AVX2_H
#define ENGINE_CPU_X86_LANES_AVX2_H

#include "engine/base/force_inline.h"

#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* Mask of elements i .. i + 7: all ones in the lanes of elements below n. */
BN_FORCE_INLINE __m256i lanes_below(size_t i, size_t n)
{
    const int left = i >= n ? 0 : n - i >= 8 ? 8 : (int)(n - i);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(left), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* Elements i .. i + 7 of x (n). Elements from n on are not read; their lanes are 0. */
BN_FORCE_INLINE __m256 load_ps8(const float *x, size_t i, size_t n)
{
    return i + 8 <= n ? _mm256_loadu_ps(x + i) : _mm256_maskload_ps(x + i, lanes_below(i, n));
}

/* Store v to elements i .. i + 7 of y (n), except those from n on. */
BN_FORCE_INLINE void store_ps8(float *y, size_t i, size_t n, __m256 v)
{
    if (i + 8 <= n)
        _mm256_storeu_ps(y + i, v);
    else
        _mm256_maskstore_ps(y + i, lanes_below(i, n), v);
}

/* Pairwise sum of eight lanes: the last three levels of sum64 (docs/kernels.md). */
BN_FORCE_INLINE float tree8_avx2(__m256 l8)
{
    const __m128 l4 = _mm_add_ps(_mm256_castps256_ps128(l8), _mm256_extractf128_ps(l8, 1));
    const __m128 l2 = _mm_add_ps(l4, _mm_movehl_ps(l4, l4));
    return _mm_cvtss_f32(_mm_add_ss(l2, _mm_movehdup_ps(l2)));
}

/* The largest lane; unspecified if a lane is a NaN. */
BN_FORCE_INLINE float max8_avx2(__m256 m8)
{
    const __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    const __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m2, _mm_movehdup_ps(m2)));
}

BN_FORCE_INLINE int32_t sum_lanes_avx2(__m256i v)
{
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e)); /* the halves swapped */
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)); /* neighbours swapped */
    return _mm_cvtsi128_si32(s);
}

/* The pairwise sum of sum64; lanes[v] holds its lanes 8 v .. 8 v + 7. */
BN_FORCE_INLINE float tree64_avx2(const __m256 lanes[8])
{
    const __m256 a = _mm256_add_ps(lanes[0], lanes[4]), b = _mm256_add_ps(lanes[1], lanes[5]);
    const __m256 c = _mm256_add_ps(lanes[2], lanes[6]), d = _mm256_add_ps(lanes[3], lanes[7]);
    return tree8_avx2(_mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d)));
}

/* exp0 of docs/kernels.md: +0 below -60 and for a NaN. Method and constants are those of
 * exp0_ref. */
BN_FORCE_INLINE __m256 exp0_avx2(__m256 x)
{
    const __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                                     _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-0.693359375f), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(2.12194440e-4f), r);
    __m256 p = _mm256_set1_ps(1.0f / 5040);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 720));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    const __m256i scaled =
        _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23));
    return _mm256_and_ps(_mm256_castsi256_ps(scaled),
                         _mm256_cmp_ps(x, _mm256_set1_ps(-60.0f), _CMP_GE_OQ));
}

/* sigmoid of docs/kernels.md. */
BN_FORCE_INLINE __m256 sigmoid_avx2(__m256 x)
{
    const __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_set1_ps(-0.0f);
    const __m256 e = exp0_avx2(_mm256_or_ps(x, sign)); /* of -|x| */
    const __m256 positive = _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GE_OQ);
    return _mm256_div_ps(_mm256_blendv_ps(e, one, positive), _mm256_add_ps(one, e));
}

/* Turn the scores of a head into probabilities exp0(z - m) in place; positions from n_seen on get
 * +0. z is 32-byte aligned. m is the maximum of the seen scores, without NaN, l the sum of the
 * probabilities. */
static inline void softmax_block_avx2(float z[64], size_t n_seen, float *m, float *l)
{
    const __m256 lowest = _mm256_set1_ps(-INFINITY);
    __m256 lanes[8], max = lowest;
    for (size_t v = 0; v < 8; v++) {
        const __m256 seen = _mm256_castsi256_ps(lanes_below(8 * v, n_seen));
        max = _mm256_max_ps(_mm256_blendv_ps(lowest, _mm256_load_ps(z + 8 * v), seen), max);
    }
    *m = max8_avx2(max) + 0.0f; /* -0 becomes +0 */
    for (size_t v = 0; v < 8; v++) {
        const __m256 seen = _mm256_castsi256_ps(lanes_below(8 * v, n_seen));
        const __m256 x = _mm256_sub_ps(_mm256_load_ps(z + 8 * v), _mm256_set1_ps(*m));
        lanes[v] = _mm256_and_ps(exp0_avx2(x), seen);
        _mm256_store_ps(z + 8 * v, lanes[v]);
    }
    *l = tree64_avx2(lanes);
}

#endif
