/*
 * The rotation of inputs for AVX2. Three stages pair lanes within a register, and the next three
 * pair eight registers, so one pass over the memory is enough for blocks of up to 64 elements.
 * Larger blocks have more passes of up to three stages each.
 */
#include "engine/base/size.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"

#define LANES 8
#define VECS 8 /* most registers that a pass combines */

/* The stages h = 1, 2, 4 of a register. The permutation swaps the two lanes of each pair. So the
 * first lane of a pair becomes (other + lane), the second (other - lane). The product with 1 or -1
 * is exact. */
BN_FORCE_INLINE __m256 stage1(__m256 v)
{
    const __m256 pattern = _mm256_setr_ps(1, -1, 1, -1, 1, -1, 1, -1);
    return _mm256_fmadd_ps(v, pattern, _mm256_permute_ps(v, 0xb1));
}

BN_FORCE_INLINE __m256 stage2(__m256 v)
{
    const __m256 pattern = _mm256_setr_ps(1, 1, -1, -1, 1, 1, -1, -1);
    return _mm256_fmadd_ps(v, pattern, _mm256_permute_ps(v, 0x4e));
}

BN_FORCE_INLINE __m256 stage4(__m256 v)
{
    const __m256 pattern = _mm256_setr_ps(1, 1, 1, 1, -1, -1, -1, -1);
    return _mm256_fmadd_ps(v, pattern, _mm256_permute2f128_ps(v, v, 1));
}

/* The stages that pair n registers; n is a power of two. */
BN_FORCE_INLINE void pair_vecs(__m256 v[VECS], size_t n)
{
#pragma GCC unroll 3
    for (size_t h = 1; h < n; h *= 2)
#pragma GCC unroll 8
        for (size_t i = 0; i < n; i++) {
            if (i & h)
                continue;
            const __m256 a = v[i], b = v[i + h];
            v[i] = _mm256_add_ps(a, b);
            v[i + h] = _mm256_sub_ps(a, b);
        }
}

/* The signs and the first stages, up to h = LANES * n_vecs / 2, of n_vecs registers. */
BN_FORCE_INLINE void first_pass(const float *x, const float *signs, size_t n_vecs, __m256 factor,
                                float *y)
{
    __m256 v[VECS];
#pragma GCC unroll 8
    for (size_t i = 0; i < n_vecs; i++) {
        v[i] = _mm256_loadu_ps(x + LANES * i);
        if (signs)
            v[i] = _mm256_mul_ps(v[i], _mm256_loadu_ps(signs + LANES * i));
        v[i] = stage4(stage2(stage1(v[i])));
    }
    pair_vecs(v, n_vecs);
#pragma GCC unroll 8
    for (size_t i = 0; i < n_vecs; i++)
        _mm256_storeu_ps(y + LANES * i, _mm256_mul_ps(v[i], factor));
}

/* The stages h, 2 h, ... n h / 2 of y, which has n runs of h elements. n is a power of two. */
BN_FORCE_INLINE void later_pass(float *y, size_t h, size_t n, __m256 factor)
{
    for (size_t j = 0; j < h; j += LANES) {
        __m256 v[VECS];
#pragma GCC unroll 8
        for (size_t i = 0; i < n; i++)
            v[i] = _mm256_loadu_ps(y + i * h + j);
        pair_vecs(v, n);
#pragma GCC unroll 8
        for (size_t i = 0; i < n; i++)
            _mm256_storeu_ps(y + i * h + j, _mm256_mul_ps(v[i], factor));
    }
}

/* Makes n a constant, so that the registers of later_pass are not an array in memory. */
BN_FORCE_INLINE void pass_of(float *y, size_t h, size_t n, __m256 factor)
{
    if (n == 2)
        later_pass(y, h, 2, factor);
    else if (n == 4)
        later_pass(y, h, 4, factor);
    else
        later_pass(y, h, 8, factor);
}

/* A block of 64 elements or more. Only the last pass has a factor other than 1. */
static void rotate_block(const float *x, const float *signs, size_t block, __m256 factor, float *y)
{
    const __m256 one = _mm256_set1_ps(1.0f);
    for (size_t i = 0; i < block; i += LANES * VECS)
        first_pass(x + i, signs ? signs + i : NULL, VECS, block == LANES * VECS ? factor : one,
                   y + i);
    for (size_t h = LANES * VECS; h < block; h *= VECS) {
        const size_t n = size_min(block / h, VECS);
        for (size_t i = 0; i < block; i += h * n)
            pass_of(y + i, h, n, h * n == block ? factor : one);
    }
}

/* Blocks of four elements, two in each register; the last register may have only one. */
static void rotate_fours(const float *x, const float *signs, size_t n, __m256 factor, float *y)
{
    for (size_t at = 0; at < n; at += LANES) {
        __m256 v = load_ps8(x, at, n);
        if (signs)
            v = _mm256_mul_ps(v, load_ps8(signs, at, n));
        store_ps8(y, at, n, _mm256_mul_ps(stage2(stage1(v)), factor));
    }
}

void rotate_avx2(const float *x, const float *signs, size_t n, size_t block, float *y)
{
    const __m256 factor = _mm256_set1_ps((float)(1.0 / sqrt((double)block)));
    if (block < LANES) {
        rotate_fours(x, signs, n, factor, y);
        return;
    }
    for (size_t at = 0; at < n; at += block) {
        const float *const s = signs ? signs + at : NULL;
        if (block == LANES)
            first_pass(x + at, s, 1, factor, y + at);
        else if (block == 2 * LANES)
            first_pass(x + at, s, 2, factor, y + at);
        else if (block == 4 * LANES)
            first_pass(x + at, s, 4, factor, y + at);
        else
            rotate_block(x + at, s, block, factor, y + at);
    }
}
