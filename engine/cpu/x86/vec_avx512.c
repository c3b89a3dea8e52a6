/*
 * Vector kernels for AVX-512. The method is that of vec_avx2.c, with 64 elements per step.
 */
#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"
#include "engine/cpu/x86/prefetch_ahead.h"

#include <immintrin.h>

#define VECS 4 /* registers per step */

struct quantise_input {
    const struct act_in *in;
    bool is_normed; /* apply RMSNorm */
    __m512 r;       /* the factor of RMSNorm */
};

/* Elements i .. i + 15 of x, 0 from n on. is_whole: all of them are below n. */
BN_FORCE_INLINE __m512 load16(const float *x, size_t i, size_t n, bool is_whole)
{
    return is_whole ? _mm512_loadu_ps(x + i) : _mm512_maskz_loadu_ps(mask_below(i, n), x + i);
}

/* Elements i .. i + 15 of the vector to quantise. Elements from n on are 0, or NaN if r is not
 * finite; neither changes the maximum, and their q is 0. */
BN_FORCE_INLINE __m512 input16(const struct quantise_input *w, size_t i, bool is_whole)
{
    const __m512 x = load16(w->in->x, i, w->in->n, is_whole);
    if (!w->is_normed)
        return x;
    return _mm512_mul_ps(_mm512_mul_ps(x, w->r), load16(w->in->w, i, w->in->n, is_whole));
}

/* Add the squares of 64 elements from i on to the lanes. */
BN_FORCE_INLINE void square_step(const struct act_in *in, size_t i, bool is_whole,
                                 __m512 lanes[VECS])
{
#pragma GCC unroll 4
    for (size_t v = 0; v < VECS; v++) {
        const __m512 x = load16(in->x, i + 16 * v, in->n, is_whole);
        lanes[v] = _mm512_fmadd_ps(x, x, lanes[v]);
    }
}

/* The factor of RMSNorm. Calls prefetch_step every 128 elements. In quantise, the loops together
 * call it often enough to prefetch all of `next`, if n is a multiple of 64. */
BN_FORCE_INLINE __m512 norm_factor(const struct act_in *in, struct prefetch *next)
{
    __m512 lanes[VECS];
#pragma GCC unroll 4
    for (int v = 0; v < VECS; v++)
        lanes[v] = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + 64 <= in->n; i += 64) {
        if (i % 128 == 0)
            prefetch_step(next);
        square_step(in, i, true, lanes);
    }
    /* Elements from n on add 0 * 0. A sum of squares is never -0, so this changes no bit. */
    if (i < in->n)
        square_step(in, i, false, lanes);
    const __m128 mean = _mm_set_ss(tree64_avx512(lanes) / (float)in->n + in->eps);
    return _mm512_set1_ps(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(mean)));
}

/* Raise the lanes of max to the magnitudes of 64 elements from i on. */
BN_FORCE_INLINE void max_step(const struct quantise_input *w, size_t i, bool is_whole,
                              __m512 max[VECS])
{
#pragma GCC unroll 4
    for (size_t v = 0; v < VECS; v++) { /* VMAXPS returns its second operand if either is a NaN */
        const __m512 y = _mm512_abs_ps(input16(w, i + 16 * v, is_whole));
        max[v] = _mm512_max_ps(y, max[v]);
    }
}

/* The largest magnitude, at least 1e-5; a NaN is ignored. */
BN_FORCE_INLINE float max_magnitude(const struct quantise_input *w, struct prefetch *next)
{
    __m512 max[VECS];
#pragma GCC unroll 4
    for (int v = 0; v < VECS; v++)
        max[v] = _mm512_set1_ps(1e-5f);
    size_t i = 0;
    for (; i + 64 <= w->in->n; i += 64) {
        prefetch_step(next);
        max_step(w, i, true, max);
    }
    if (i < w->in->n)
        max_step(w, i, false, max);
    return max16_avx512(
        _mm512_max_ps(_mm512_max_ps(max[0], max[1]), _mm512_max_ps(max[2], max[3])));
}

/* Quantise 64 elements from i on; a NaN becomes 0. Each lane of the result is a sum of four q. */
BN_FORCE_INLINE __m512i round_step(const struct quantise_input *w, size_t i, bool is_whole,
                                   __m512 s, int8_t *q)
{
    __m512i sums = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (size_t v = 0; v < VECS; v++) {
        const __m512 y = _mm512_mul_ps(input16(w, i + 16 * v, is_whole), s);
        const __m512i x = _mm512_maskz_cvtps_epi32(_mm512_cmp_ps_mask(y, y, _CMP_ORD_Q), y);
        sums = _mm512_add_epi32(sums, x);
        _mm_store_si128((__m128i *)(void *)(q + i + 16 * v), _mm512_cvtepi32_epi8(x));
    }
    return sums;
}

BN_FORCE_INLINE void quantise(const struct act_in *in, bool is_normed, int8_t *q,
                              struct act_scale *out)
{
    struct prefetch next = prefetch_of(in->ahead, in->n * sizeof *in->x);
    const __m512 r = is_normed ? norm_factor(in, &next) : _mm512_setzero_ps();
    const struct quantise_input w = {in, is_normed, r};
    out->s = 127.0f / max_magnitude(&w, &next);
    const __m512 s = _mm512_set1_ps(out->s);
    __m512i sums = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 64 <= in->n; i += 64) {
        prefetch_step(&next);
        sums = _mm512_add_epi32(sums, round_step(&w, i, true, s, q));
    }
    for (; i < size_round_up(in->n, LINE_COLS); i += 64)
        sums = _mm512_add_epi32(sums, round_step(&w, i, false, s, q));
    out->q_sum = _mm512_reduce_add_epi32(sums);
}

void quantise_avx512(const struct act_in *in, int8_t *q, struct act_scale *out)
{
    if (in->w)
        quantise(in, true, q, out);
    else
        quantise(in, false, q, out);
}

/* Rows r .. r + 15 of token t (mask `rows`) as F32: v of struct acc_tile. */
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
            const __mmask16 is_open = _mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_NLE_UQ);
            _mm512_mask_storeu_ps(
                y + r, rows,
                _mm512_maskz_mul_ps(is_open, _mm512_mul_ps(g, g), scaled16(up, t, r, rows)));
        }
}

void acc_silu_avx512(const struct acc_tile *gate, const struct acc_tile *up, float *y,
                     size_t stride)
{
    for (size_t t = 0; t < gate->n_tokens; t++, y += stride)
        for (size_t r = 0; r < gate->n_rows; r += 16) {
            const __mmask16 rows = mask_below(r, gate->n_rows);
            const __m512 g = scaled16(gate, t, r, rows);
            const __m512 silu = _mm512_mul_ps(g, sigmoid_avx512(g));
            _mm512_mask_storeu_ps(y + r, rows, _mm512_mul_ps(silu, scaled16(up, t, r, rows)));
        }
}
