/*
 * Integer sums of a tile of tokens to what the layer wants, with AVX2: each is touched once.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"

#include <immintrin.h>

/* Rows r .. r + 7 of token t; lanes past n_rows are anything. */
BN_FORCE_INLINE __m256 scaled8(const struct acc_tile *a, size_t t, size_t r)
{
    const int32_t *at = a->acc + t * a->acc_stride + r;
    const __m256i acc = r + 8 <= a->n_rows ? _mm256_loadu_si256((const __m256i *)(const void *)at)
                                           : _mm256_maskload_epi32(at, lanes_below(r, a->n_rows));
    __m256 v = _mm256_mul_ps(_mm256_cvtepi32_ps(acc), _mm256_set1_ps(a->d[t]));
    v = _mm256_mul_ps(v, _mm256_set1_ps(a->extra));
    return a->bias ? _mm256_add_ps(v, load_ps8(a->bias, r, a->n_rows)) : v;
}

void acc_store_avx2(const struct acc_tile *a, float *y, size_t stride)
{
    for (size_t t = 0; t < a->n_tokens; t++, y += stride)
        for (size_t r = 0; r < a->n_rows; r += 8)
            store_ps8(y, r, a->n_rows, scaled8(a, t, r));
}

void acc_add_avx2(const struct acc_tile *a, float *y, size_t stride)
{
    for (size_t t = 0; t < a->n_tokens; t++, y += stride)
        for (size_t r = 0; r < a->n_rows; r += 8)
            store_ps8(y, r, a->n_rows, _mm256_add_ps(load_ps8(y, r, a->n_rows), scaled8(a, t, r)));
}

void acc_relu2_avx2(const struct acc_tile *gate, const struct acc_tile *up, float *y, size_t stride)
{
    for (size_t t = 0; t < gate->n_tokens; t++, y += stride)
        for (size_t r = 0; r < gate->n_rows; r += 8) {
            const __m256 g = scaled8(gate, t, r);
            const __m256 shut = _mm256_cmp_ps(g, _mm256_setzero_ps(), _CMP_LE_OQ); /* not a NaN */
            const __m256 product = _mm256_mul_ps(_mm256_mul_ps(g, g), scaled8(up, t, r));
            store_ps8(y, r, gate->n_rows, _mm256_andnot_ps(shut, product));
        }
}

void acc_silu_avx2(const struct acc_tile *gate, const struct acc_tile *up, float *y, size_t stride)
{
    for (size_t t = 0; t < gate->n_tokens; t++, y += stride)
        for (size_t r = 0; r < gate->n_rows; r += 8) {
            const __m256 g = scaled8(gate, t, r);
            const __m256 gated = _mm256_mul_ps(g, sigmoid_avx2(g));
            store_ps8(y, r, gate->n_rows, _mm256_mul_ps(gated, scaled8(up, t, r)));
        }
}
