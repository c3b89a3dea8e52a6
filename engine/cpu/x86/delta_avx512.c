/*
 * Gated delta nets for AVX-512. The method is that of delta_avx2.c with 64 columns at a time: 32 kB
 * of a state with 128 rows, and eight independent chains of sums.
 */
#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"

#define VECS                                                                                       \
    4 /* registers of columns at a time; two sums each are eight independent chains of fma */

void conv_silu_avx512(const float *const x[DELTA_TAPS], const float *w, size_t w_stride, size_t n,
                      float *y)
{
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 in = mask_below(i, n);
        __m512 sum =
            _mm512_mul_ps(_mm512_maskz_loadu_ps(in, x[0] + i), _mm512_maskz_loadu_ps(in, w + i));
#pragma GCC unroll 3
        for (size_t tap = 1; tap < DELTA_TAPS; tap++)
            sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(in, x[tap] + i),
                                  _mm512_maskz_loadu_ps(in, w + tap * w_stride + i), sum);
        _mm512_mask_storeu_ps(y + i, in, _mm512_mul_ps(sum, sigmoid_avx512(sum)));
    }
}

/* One token and n_vecs registers of columns from `column` on; a[0] and a[1] are as in delta_avx2.c.
 * streams: write the state past the caches, because it is not read again soon. Then its cache lines
 * are not fetched before they are written. */
BN_FORCE_INLINE void run_token(const struct delta_run *r, size_t t, size_t column, size_t n_vecs,
                               bool streams)
{
    const size_t strip = column / DELTA_COLS * DELTA_COLS;
    const size_t width = size_min(DELTA_COLS, r->dim - strip); /* floats between rows */
    const size_t first = strip * r->dim + column - strip;
    const float *const from = (t == 0 ? r->from : r->to) + first;
    float *const to = r->to + first;
    const float *q = r->q + t * r->stride, *k = r->k + t * r->stride;
    const struct delta_gate gate = r->gates[t * r->gate_stride];
    const __m512 decay = _mm512_set1_ps(gate.decay);
    __m512 a[2][VECS], delta[VECS];
#pragma GCC unroll 4
    for (size_t v = 0; v < n_vecs; v++)
        a[0][v] = a[1][v] = _mm512_setzero_ps();
    for (size_t i = 0; i < r->dim; i += 2)
#pragma GCC unroll 2
        for (size_t odd = 0; odd < 2; odd++) {
            const __m512 ki = _mm512_set1_ps(k[i + odd]);
#pragma GCC unroll 4
            for (size_t v = 0; v < n_vecs; v++)
                a[odd][v] = _mm512_fmadd_ps(_mm512_load_ps(from + (i + odd) * width + 16 * v), ki,
                                            a[odd][v]);
        }
#pragma GCC unroll 4
    for (size_t v = 0; v < n_vecs; v++) {
        const __m512 value = _mm512_loadu_ps(r->v + t * r->stride + column + 16 * v);
        delta[v] = _mm512_mul_ps(_mm512_fnmadd_ps(decay, _mm512_add_ps(a[0][v], a[1][v]), value),
                                 _mm512_set1_ps(gate.beta));
        a[0][v] = a[1][v] = _mm512_setzero_ps();
    }
    for (size_t i = 0; i < r->dim; i += 2)
#pragma GCC unroll 2
        for (size_t odd = 0; odd < 2; odd++) {
            const __m512 ki = _mm512_set1_ps(k[i + odd]), qi = _mm512_set1_ps(q[i + odd]);
#pragma GCC unroll 4
            for (size_t v = 0; v < n_vecs; v++) {
                const size_t at = (i + odd) * width + 16 * v;
                const __m512 s =
                    _mm512_fmadd_ps(ki, delta[v], _mm512_mul_ps(_mm512_load_ps(from + at), decay));
                if (streams)
                    _mm512_stream_ps(to + at, s);
                else
                    _mm512_store_ps(to + at, s);
                a[odd][v] = _mm512_fmadd_ps(s, qi, a[odd][v]);
            }
        }
#pragma GCC unroll 4
    for (size_t v = 0; v < n_vecs; v++)
        _mm512_storeu_ps(r->out + t * r->out_stride + column + 16 * v,
                         _mm512_add_ps(a[0][v], a[1][v]));
}

BN_FORCE_INLINE void run_columns(const struct delta_run *r, size_t column, size_t n_vecs)
{
    if (r->n_tokens == 1) {
        run_token(r, 0, column, n_vecs, true);
        return;
    }
    for (size_t t = 0; t < r->n_tokens; t++)
        run_token(r, t, column, n_vecs, false);
}

void delta_run_avx512(const struct delta_run *r)
{
    size_t column = 0;
    for (; column + 16 * VECS <= r->dim; column += 16 * VECS)
        run_columns(r, column, VECS);
    for (; column < r->dim; column += 16)
        run_columns(r, column, 1);
    if (r->n_tokens == 1)
        _mm_sfence(); /* other threads read the state after a barrier */
}
