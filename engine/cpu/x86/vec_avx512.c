/*
 * RMSNorm and quantising with AVX-512: the plan of vec_avx2.c, 64 elements a step.
 */
#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/x86/fetch_ahead.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"

#include <immintrin.h>

#define VECS 4 /* registers a step */

/* What does not change from step to step. */
struct work {
    const struct act_in *in;
    bool is_normed; /* there are weights */
    __m512 r;       /* then the factor of RMSNorm */
};

/* Elements i .. i + 15 of x; is_whole: all of them exist. */
BN_FORCE_INLINE __m512 load16(const float *x, size_t i, size_t n, bool is_whole)
{
    return is_whole ? _mm512_loadu_ps(x + i) : _mm512_maskz_loadu_ps(mask_below(i, n), x + i);
}

/* The same of what is quantised. */
BN_FORCE_INLINE __m512 input16(const struct work *w, size_t i, bool is_whole)
{
    const __m512 x = load16(w->in->x, i, w->in->n, is_whole);
    if (!w->is_normed)
        return x;
    return _mm512_mul_ps(_mm512_mul_ps(x, w->r), load16(w->in->w, i, w->in->n, is_whole));
}

BN_FORCE_INLINE void square_step(const struct act_in *in, size_t i, bool is_whole,
                                 __m512 lanes[VECS])
{
#pragma GCC unroll 4
    for (size_t v = 0; v < VECS; v++) {
        const __m512 x = load16(in->x, i + 16 * v, in->n, is_whole);
        lanes[v] = _mm512_fmadd_ps(x, x, lanes[v]);
    }
}

BN_FORCE_INLINE __m512 norm_factor(const struct act_in *in, struct fetch *next)
{
    __m512 lanes[VECS];
#pragma GCC unroll 4
    for (int v = 0; v < VECS; v++)
        lanes[v] = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + 64 <= in->n; i += 64) {
        if (i % 128 == 0)
            fetch_step(next);
        square_step(in, i, true, lanes);
    }
    /* Lanes past n add 0 * 0 to sums of squares, which are never -0: no bit changes. */
    if (i < in->n)
        square_step(in, i, false, lanes);
    const __m128 mean = _mm_set_ss(tree64_avx512(lanes) / (float)in->n + in->eps);
    return _mm512_set1_ps(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(mean)));
}

BN_FORCE_INLINE void top_step(const struct work *w, size_t i, bool is_whole, __m512 top[VECS])
{
#pragma GCC unroll 4
    for (size_t v = 0; v < VECS; v++) { /* with a NaN in either, maxps gives its second operand */
        const __m512 y = _mm512_abs_ps(input16(w, i + 16 * v, is_whole));
        top[v] = _mm512_max_ps(y, top[v]);
    }
}

/* max(1e-5, |y|); a NaN is passed over */
BN_FORCE_INLINE float max_magnitude(const struct work *w, struct fetch *next)
{
    __m512 top[VECS];
#pragma GCC unroll 4
    for (int v = 0; v < VECS; v++)
        top[v] = _mm512_set1_ps(1e-5f);
    size_t i = 0;
    for (; i + 64 <= w->in->n; i += 64) {
        fetch_step(next);
        top_step(w, i, true, top);
    }
    if (i < w->in->n)
        top_step(w, i, false, top);
    return max16_avx512(
        _mm512_max_ps(_mm512_max_ps(top[0], top[1]), _mm512_max_ps(top[2], top[3])));
}

/* Half to even; a NaN gives 0. Returns sums of the 64 elements. */
BN_FORCE_INLINE __m512i round_step(const struct work *w, size_t i, bool is_whole, __m512 s,
                                   int8_t *q)
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
    struct fetch next = fetch_of(in->ahead, in->n * sizeof *in->x);
    const __m512 r = is_normed ? norm_factor(in, &next) : _mm512_setzero_ps();
    const struct work w = {in, is_normed, r};
    out->s = 127.0f / max_magnitude(&w, &next);
    const __m512 s = _mm512_set1_ps(out->s);
    __m512i sums = _mm512_setzero_si512();
    size_t i = 0;
    for (; i + 64 <= in->n; i += 64) {
        fetch_step(&next);
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
