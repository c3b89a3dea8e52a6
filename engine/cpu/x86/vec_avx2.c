/*
 * Vector kernels for AVX2. Tails use masked loads, and masked stores where AVX2 has them, so that
 * the same code computes every element.
 */
#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"
#include "engine/cpu/x86/prefetch_ahead.h"
#include "engine/layout/fixed_point.h"

#include <immintrin.h>
#include <string.h>

/* The factor of RMSNorm. Calls prefetch_step every 128 elements. In quantise, the loops together
 * call it often enough to prefetch all of `next`, if n is a multiple of 64. */
BN_FORCE_INLINE __m256 norm_factor(const float *x, size_t n, float eps, struct prefetch *next)
{
    __m256 lanes[8];
#pragma GCC unroll 8
    for (int v = 0; v < 8; v++)
        lanes[v] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
        if (i % 128 == 0)
            prefetch_step(next);
#pragma GCC unroll 8
        for (size_t v = 0; v < 8; v++) {
            const __m256 xv = _mm256_loadu_ps(x + i + 8 * v);
            lanes[v] = _mm256_fmadd_ps(xv, xv, lanes[v]);
        }
    }
    /* Elements from n on add 0 * 0. A sum of squares is never -0, so this changes no bit. */
    if (i < n)
#pragma GCC unroll 8
        for (size_t v = 0; v < 8; v++) {
            const __m256 xv = _mm256_maskload_ps(x + i + 8 * v, lanes_below(i + 8 * v, n));
            lanes[v] = _mm256_fmadd_ps(xv, xv, lanes[v]);
        }
    const __m128 mean = _mm_set_ss(tree64_avx2(lanes) / (float)n + eps);
    return _mm256_set1_ps(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(mean)));
}

void rms_norm_avx2(const float *x, const float *w, size_t n, float eps, float *y)
{
    struct prefetch none = prefetch_of(NULL, 0);
    const __m256 r = norm_factor(x, n, eps, &none);
    for (size_t i = 0; i < n; i += 8) {
        const __m256 xr = _mm256_mul_ps(load_ps8(x, i, n), r);
        store_ps8(y, i, n, _mm256_mul_ps(xr, load_ps8(w, i, n)));
    }
}

BN_FORCE_INLINE __m256 magnitude(__m256 v)
{
    return _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)));
}

struct quantise_input {
    const struct act_in *in;
    bool is_normed; /* apply RMSNorm */
    __m256 r;       /* the factor of RMSNorm */
};

/* Elements i .. i + 7 of the vector to quantise; i may be past n. is_whole: all of them are below
 * n. Elements from n on are 0, or NaN if r is not finite; neither changes the maximum, and their q
 * is 0. */
BN_FORCE_INLINE __m256 input8(const struct quantise_input *w, size_t i, bool is_whole)
{
    const size_t n = w->in->n, at = size_min(i, n);
    const __m256 x = is_whole ? _mm256_loadu_ps(w->in->x + i) : load_ps8(w->in->x, at, n);
    if (!w->is_normed)
        return x;
    const __m256 weight = is_whole ? _mm256_loadu_ps(w->in->w + i) : load_ps8(w->in->w, at, n);
    return _mm256_mul_ps(_mm256_mul_ps(x, w->r), weight);
}

/* Raise the lanes of max to the magnitudes of 32 elements from i on. */
BN_FORCE_INLINE void max_step(const struct quantise_input *w, size_t i, bool is_whole,
                              __m256 max[4])
{
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; v++) /* VMAXPS returns its second operand if either is a NaN */
        max[v] = _mm256_max_ps(magnitude(input8(w, i + 8 * v, is_whole)), max[v]);
}

/* The largest magnitude, at least 1e-5; a NaN is ignored. Prefetches a step every 64 elements. */
BN_FORCE_INLINE float max_magnitude(const struct quantise_input *w, struct prefetch *next)
{
    __m256 max[4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; v++)
        max[v] = _mm256_set1_ps(1e-5f);
    size_t i = 0;
    for (; i + 32 <= w->in->n; i += 32) {
        if (i % 64 == 0)
            prefetch_step(next);
        max_step(w, i, true, max);
    }
    if (i < w->in->n)
        max_step(w, i, false, max);
    return max8_avx2(_mm256_max_ps(_mm256_max_ps(max[0], max[1]), _mm256_max_ps(max[2], max[3])));
}

/* Quantise 32 elements from i on; a NaN becomes 0. Each lane of the result is a sum of four q. */
BN_FORCE_INLINE __m256i round_step(const struct quantise_input *w, size_t i, bool is_whole,
                                   __m256 s, int8_t *q)
{
    /* The pack instructions work within 128-bit lanes; `order` restores the order of the dwords. */
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i v[4];
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; k++) {
        const __m256 y = _mm256_mul_ps(input8(w, i + 8 * k, is_whole), s);
        v[k] = _mm256_cvtps_epi32(_mm256_and_ps(y, _mm256_cmp_ps(y, y, _CMP_ORD_Q)));
    }
    const __m256i bytes =
        _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    _mm256_storeu_si256((__m256i *)(void *)(q + i), _mm256_permutevar8x32_epi32(bytes, order));
    return _mm256_add_epi32(_mm256_add_epi32(v[0], v[1]), _mm256_add_epi32(v[2], v[3]));
}

/* Computes the normed elements twice, which avoids storing them. */
BN_FORCE_INLINE void quantise(const struct act_in *in, bool is_normed, int8_t *q,
                              struct act_scale *out)
{
    struct prefetch next = prefetch_of(in->ahead, in->n * sizeof *in->x);
    const __m256 r = is_normed ? norm_factor(in->x, in->n, in->eps, &next) : _mm256_setzero_ps();
    const struct quantise_input w = {in, is_normed, r};
    out->s = 127.0f / max_magnitude(&w, &next);
    const __m256 s = _mm256_set1_ps(out->s);
    __m256i sums = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 32 <= in->n; i += 32) {
        if (i % 64 == 0)
            prefetch_step(&next);
        sums = _mm256_add_epi32(sums, round_step(&w, i, true, s, q));
    }
    for (; i < size_round_up(in->n, LINE_COLS); i += 32)
        sums = _mm256_add_epi32(sums, round_step(&w, i, false, s, q));
    out->q_sum = sum_lanes_avx2(sums);
}

void quantise_avx2(const struct act_in *in, int8_t *q, struct act_scale *out)
{
    if (in->w)
        quantise(in, true, q, out);
    else
        quantise(in, false, q, out);
}

void scale_acc_avx2(const int32_t *acc, size_t n, float d, float *y)
{
    const __m256 dv = _mm256_set1_ps(d);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(acc + i));
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_cvtepi32_ps(a), dv));
    }
    if (i < n) {
        const __m256i mask = lanes_below(i, n), a = _mm256_maskload_epi32(acc + i, mask);
        _mm256_maskstore_ps(y + i, mask, _mm256_mul_ps(_mm256_cvtepi32_ps(a), dv));
    }
}

void add_avx2(float *h, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 8)
        store_ps8(h, i, n, _mm256_add_ps(load_ps8(h, i, n), load_ps8(y, i, n)));
}

void relu2_gate_avx2(const float *gate, const float *up, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 8) {
        const __m256 g = load_ps8(gate, i, n);
        /* false for a NaN, so a NaN stays */
        const __m256 is_closed = _mm256_cmp_ps(g, _mm256_setzero_ps(), _CMP_LE_OQ);
        store_ps8(
            out, i, n,
            _mm256_andnot_ps(is_closed, _mm256_mul_ps(_mm256_mul_ps(g, g), load_ps8(up, i, n))));
    }
}

void silu_gate_avx2(const float *gate, const float *up, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 8) {
        const __m256 g = load_ps8(gate, i, n);
        store_ps8(out, i, n, _mm256_mul_ps(_mm256_mul_ps(g, sigmoid_avx2(g)), load_ps8(up, i, n)));
    }
}

void rope_neox_avx2(float *x, const float *c, const float *s, size_t n_rot)
{
    const size_t n = n_rot / 2;
    float *y = x + n;
    for (size_t i = 0; i < n; i += 8) {
        const __m256 a = load_ps8(x, i, n), b = load_ps8(y, i, n);
        const __m256 cv = load_ps8(c, i, n), sv = load_ps8(s, i, n);
        const __m256 first = _mm256_fnmadd_ps(b, sv, _mm256_mul_ps(a, cv));
        store_ps8(y, i, n, _mm256_fmadd_ps(b, cv, _mm256_mul_ps(a, sv)));
        store_ps8(x, i, n, first);
    }
}

/* Rotate four pairs of neighbours (a, b): (a c - b s, a s + b c). */
BN_FORCE_INLINE __m256 rotate_pairs(__m256 x, __m128 c, __m128 s)
{
    const __m128 minus_s = _mm_xor_ps(s, _mm_set1_ps(-0.0f));
    const __m256 cs = _mm256_set_m128(_mm_unpackhi_ps(c, s), _mm_unpacklo_ps(c, s));
    const __m256 sc = _mm256_set_m128(_mm_unpackhi_ps(minus_s, c), _mm_unpacklo_ps(minus_s, c));
    const __m256 a = _mm256_moveldup_ps(x), b = _mm256_movehdup_ps(x);
    return _mm256_fmadd_ps(b, sc, _mm256_mul_ps(a, cs));
}

void rope_norm_avx2(float *x, const float *c, const float *s, size_t n_rot)
{
    const size_t n = n_rot / 2;
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        _mm256_storeu_ps(x + 2 * i, rotate_pairs(_mm256_loadu_ps(x + 2 * i), _mm_loadu_ps(c + i),
                                                 _mm_loadu_ps(s + i)));
    if (i < n) {
        const __m256i mask = lanes_below(2 * i, 2 * n);
        const __m128i few = _mm256_castsi256_si128(lanes_below(i, n));
        const __m256 v = rotate_pairs(_mm256_maskload_ps(x + 2 * i, mask),
                                      _mm_maskload_ps(c + i, few), _mm_maskload_ps(s + i, few));
        _mm256_maskstore_ps(x + 2 * i, mask, v);
    }
}

void to_f16_avx2(const float *x, size_t n, uint16_t *out)
{
    /* MINPS and MAXPS return the second operand if either is a NaN, so a NaN stays. */
    const __m256 top = _mm256_set1_ps(F16_MAX), bottom = _mm256_set1_ps(-F16_MAX);
    for (size_t i = 0; i < n; i += 8) {
        const __m256 v = _mm256_max_ps(bottom, _mm256_min_ps(top, load_ps8(x, i, n)));
        const __m128i h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        uint16_t some[8];
        _mm_storeu_si128((__m128i *)(void *)(i + 8 <= n ? out + i : some), h);
        if (i + 8 > n)
            memcpy(out + i, some, (n - i) * sizeof *out);
    }
}

void attn_merge_avx2(float *big_m, float *big_l, float *big_o, const float *m, const float *l,
                     const float *o, size_t head_dim)
{
    const float top = *m > *big_m ? *m : *big_m;
    /* Both factors in one call: lane 0 for the running results, lane 1 for the block. */
    const __m256 factors = exp0_avx2(_mm256_setr_ps(*big_m - top, *m - top, 0, 0, 0, 0, 0, 0));
    const __m128 low = _mm256_castps256_ps128(factors);
    const __m256 a = _mm256_broadcastss_ps(low);
    const __m256 b = _mm256_broadcastss_ps(_mm_movehdup_ps(low));
    const __m128 scaled = _mm_mul_ss(_mm_set_ss(*big_l), low);
    *big_l = _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(*l), _mm256_castps256_ps128(b), scaled));
    for (size_t i = 0; i < head_dim; i += 8)
        store_ps8(big_o, i, head_dim,
                  _mm256_fmadd_ps(load_ps8(o, i, head_dim), b,
                                  _mm256_mul_ps(load_ps8(big_o, i, head_dim), a)));
    *big_m = top;
}

void attn_finish_avx2(const float *big_o, float big_l, size_t head_dim, float *out)
{
    const __m256 r = _mm256_set1_ps(1.0f / big_l);
    for (size_t i = 0; i < head_dim; i += 8)
        store_ps8(out, i, head_dim, _mm256_mul_ps(load_ps8(big_o, i, head_dim), r));
}

/* Rows r .. r + 7 of token t as F32: the value v that struct acc_tile defines. */
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
            const __m256 is_closed = _mm256_cmp_ps(g, _mm256_setzero_ps(), _CMP_LE_OQ);
            const __m256 product = _mm256_mul_ps(_mm256_mul_ps(g, g), scaled8(up, t, r));
            store_ps8(y, r, gate->n_rows, _mm256_andnot_ps(is_closed, product));
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
