/*
 * Gated delta nets for AVX2. Columns of a state are independent of each other, so all tokens are
 * applied to one set of columns before the next set: 32 columns of 128 rows are 16 kB, which stay
 * in the first-level cache.
 */
#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"

#define VECS                                                                                       \
    4 /* registers of columns at a time; two sums each are eight independent chains of fma */

void conv_silu_avx2(const float *const x[DELTA_TAPS], const float *w, size_t w_stride, size_t n,
                    float *y)
{
    for (size_t i = 0; i < n; i += 8) {
        __m256 sum = _mm256_mul_ps(load_ps8(x[0], i, n), load_ps8(w, i, n));
#pragma GCC unroll 3
        for (size_t tap = 1; tap < DELTA_TAPS; tap++)
            sum = _mm256_fmadd_ps(load_ps8(x[tap], i, n), load_ps8(w + tap * w_stride, i, n), sum);
        store_ps8(y, i, n, _mm256_mul_ps(sum, sigmoid_avx2(sum)));
    }
}

void unit_norm_avx2(const float *x, size_t n, float eps, float factor, float *y)
{
    __m256 lanes[8];
#pragma GCC unroll 8
    for (size_t v = 0; v < 8; v++)
        lanes[v] = _mm256_setzero_ps();
    /* Elements from n on add 0 * 0. A sum of squares is never -0, so this changes no bit. */
    for (size_t i = 0; i < n; i += 64)
#pragma GCC unroll 8
        for (size_t v = 0; v < 8; v++) {
            const __m256 a = load_ps8(x, i + 8 * v, n);
            lanes[v] = _mm256_fmadd_ps(a, a, lanes[v]);
        }
    const float length = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(tree64_avx2(lanes))));
    const __m256 r = _mm256_set1_ps(factor / (length > eps ? length : eps));
    for (size_t i = 0; i < n; i += 8)
        store_ps8(y, i, n, _mm256_mul_ps(load_ps8(x, i, n), r));
}

void sigmoid_gate_avx2(const float *gate, const float *up, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 8)
        store_ps8(out, i, n, _mm256_mul_ps(sigmoid_avx2(load_ps8(gate, i, n)), load_ps8(up, i, n)));
}

/* One token and n_vecs registers of columns from `column` on, in the layout of delta_shape.h. a[0]
 * and a[1] are the sums over even and odd rows: u of docs/kernels.md in the first loop, o in the
 * second. */
BN_FORCE_INLINE void run_token(const struct delta_run *r, size_t t, size_t column, size_t n_vecs)
{
    const size_t strip = column / DELTA_COLS * DELTA_COLS;
    const size_t width = size_min(DELTA_COLS, r->dim - strip); /* floats between rows */
    const size_t first = strip * r->dim + column - strip;
    const float *const from = (t == 0 ? r->from : r->to) + first;
    float *const to = r->to + first;
    const float *q = r->q + t * r->stride, *k = r->k + t * r->stride;
    const struct delta_gate gate = r->gates[t * r->gate_stride];
    const __m256 decay = _mm256_set1_ps(gate.decay);
    __m256 a[2][VECS], delta[VECS];
#pragma GCC unroll 4
    for (size_t v = 0; v < n_vecs; v++)
        a[0][v] = a[1][v] = _mm256_setzero_ps();
    for (size_t i = 0; i < r->dim; i += 2)
#pragma GCC unroll 2
        for (size_t odd = 0; odd < 2; odd++) {
            const __m256 ki = _mm256_set1_ps(k[i + odd]);
#pragma GCC unroll 4
            for (size_t v = 0; v < n_vecs; v++)
                a[odd][v] = _mm256_fmadd_ps(_mm256_loadu_ps(from + (i + odd) * width + 8 * v), ki,
                                            a[odd][v]);
        }
#pragma GCC unroll 4
    for (size_t v = 0; v < n_vecs; v++) {
        const __m256 value = _mm256_loadu_ps(r->v + t * r->stride + column + 8 * v);
        delta[v] = _mm256_mul_ps(_mm256_fnmadd_ps(decay, _mm256_add_ps(a[0][v], a[1][v]), value),
                                 _mm256_set1_ps(gate.beta));
        a[0][v] = a[1][v] = _mm256_setzero_ps();
    }
    for (size_t i = 0; i < r->dim; i += 2)
#pragma GCC unroll 2
        for (size_t odd = 0; odd < 2; odd++) {
            const __m256 ki = _mm256_set1_ps(k[i + odd]), qi = _mm256_set1_ps(q[i + odd]);
#pragma GCC unroll 4
            for (size_t v = 0; v < n_vecs; v++) {
                const size_t at = (i + odd) * width + 8 * v;
                const __m256 s =
                    _mm256_fmadd_ps(ki, delta[v], _mm256_mul_ps(_mm256_loadu_ps(from + at), decay));
                _mm256_storeu_ps(to + at, s);
                a[odd][v] = _mm256_fmadd_ps(s, qi, a[odd][v]);
            }
        }
#pragma GCC unroll 4
    for (size_t v = 0; v < n_vecs; v++)
        _mm256_storeu_ps(r->out + t * r->out_stride + column + 8 * v,
                         _mm256_add_ps(a[0][v], a[1][v]));
}

BN_FORCE_INLINE void run_columns(const struct delta_run *r, size_t column, size_t n_vecs)
{
    for (size_t t = 0; t < r->n_tokens; t++)
        run_token(r, t, column, n_vecs);
}

void delta_run_avx2(const struct delta_run *r)
{
    size_t column = 0;
    for (; column + 8 * VECS <= r->dim; column += 8 * VECS)
        run_columns(r, column, VECS);
    for (; column < r->dim; column += 16)
        run_columns(r, column, 2);
}
