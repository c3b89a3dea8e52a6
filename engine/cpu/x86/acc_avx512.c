/*
 * Integer sums of a tile of tokens to what the layer wants, with AVX-512: the plan of acc_avx2.c.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"

#include <immintrin.h>

/* Rows r .. r + 15 of token t, those of `rows`. */
BN_FORCE_INLINE __m512 scaled16(const struct acc_tile *a, size_t t, size_t r, __mmask16 rows)
{
    const __m512i acc = _mm512_maskz_loadu_epi32(rows, a->acc + t * a->acc_stride + r);
    __m512 v = _mm512_mul_ps(_mm512_cvtepi32_ps(acc), _mm512_set1_ps(a->d[t]));
    v = _mm512_mul_ps(v, _mm512_set1_ps(a->extra));
    return a->bias ? _mm512_add_ps(v, _mm512_maskz_loadu_ps(rows, a->bias + r)) : v;
}

void acc_store_avx512(const struct acc_tile *a, float *y, size_t stride)
{
    for (size_t t = 0; t < a->n_tokens; t++, y += stride)
        for (size_t r = 0; r < a->n_rows; r += 16) {
            const __mmask16 rows = mask_below(r, a->n_rows);
            _mm512_mask_storeu_ps(y + r, rows, scaled16(a, t, r, rows));
        }
}

void acc_add_avx512(const struct acc_tile *a, float *y, size_t stride)
{
    for (size_t t = 0; t < a->n_tokens; t++, y += stride)
        for (size_t r = 0; r < a->n_rows; r += 16) {
            const __mmask16 rows = mask_below(r, a->n_rows);
            const __m512 h = _mm512_maskz_loadu_ps(rows, y + r);
            _mm512_mask_storeu_ps(y + r, rows, _mm512_add_ps(h, scaled16(a, t, r, rows)));
        }
}

void acc_relu2_avx512(const struct acc_tile *gate, const struct acc_tile *up, float *y,
                      size_t stride)
{
    for (size_t t = 0; t < gate->n_tokens; t++, y += stride)
        for (size_t r = 0; r < gate->n_rows; r += 16) {
            const __mmask16 rows = mask_below(r, gate->n_rows);
            const __m512 g = scaled16(gate, t, r, rows);
            const __mmask16 open = _mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_NLE_UQ);
            _mm512_mask_storeu_ps(
                y + r, rows,
                _mm512_maskz_mul_ps(open, _mm512_mul_ps(g, g), scaled16(up, t, r, rows)));
        }
}

void acc_silu_avx512(const struct acc_tile *gate, const struct acc_tile *up, float *y,
                     size_t stride)
{
    const __m512 one = _mm512_set1_ps(1.0f);
    for (size_t t = 0; t < gate->n_tokens; t++, y += stride)
        for (size_t r = 0; r < gate->n_rows; r += 16) {
            const __mmask16 rows = mask_below(r, gate->n_rows);
            const __m512 g = scaled16(gate, t, r, rows);
            const __m512 e = exp0_avx512(_mm512_or_ps(g, _mm512_set1_ps(-0.0f)), 0xffff);
            const __mmask16 up_side = _mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_GE_OQ);
            const __m512 sigmoid =
                _mm512_div_ps(_mm512_mask_blend_ps(up_side, e, one), _mm512_add_ps(one, e));
            _mm512_mask_storeu_ps(
                y + r, rows, _mm512_mul_ps(_mm512_mul_ps(g, sigmoid), scaled16(up, t, r, rows)));
        }
}
