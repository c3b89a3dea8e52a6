/*
 * Reference for gated delta nets. docs/kernels.md, "Gated delta nets", specifies the order of the
 * operations.
 */
#include "engine/cpu/ref/kernels_ref.h"

#include "engine/base/size.h"

#include <math.h>

void conv_silu_ref(const float *const x[DELTA_TAPS], const float *w, size_t w_stride, size_t n,
                   float *y)
{
    for (size_t i = 0; i < n; i++) {
        float sum = x[0][i] * w[i];
        for (size_t tap = 1; tap < DELTA_TAPS; tap++)
            sum = fmaf(x[tap][i], w[tap * w_stride + i], sum);
        y[i] = sum * sigmoid_ref(sum);
    }
}

void unit_norm_ref(const float *x, size_t n, float eps, float factor, float *y)
{
    const float length = sqrtf(dot64_ref(x, x, n));
    const float r = factor / (length > eps ? length : eps);
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * r;
}

void sigmoid_gate_ref(const float *gate, const float *up, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = sigmoid_ref(gate[i]) * up[i];
}

/* log(1 + e) = 2 atanh(s), s = e / (2 + e) <= 1/3. atanh(s) is s times the sum of s^(2i) / (2i + 1)
 * from i = 0 on. The first term that the sum leaves out, s^16 / 17, is below 2^-29. */
float softplus_ref(float x)
{
    const float e = exp0_ref(-fabsf(x));
    const float s = e / (2.0f + e), s2 = s * s;
    float p = 1.0f / 15;
    for (int odd = 13; odd > 0; odd -= 2)
        p = fmaf(p, s2, 1.0f / (float)odd);
    return (x > 0.0f ? x : 0.0f) + (s + s) * p;
}

/* Update one column of a state with token t, and return the token's result for the column. `from`
 * and `to` are the column's first row before and after the token; rows are `width` floats apart. */
static float run_column(const struct delta_run *r, size_t t, size_t column, const float *from,
                        float *to, size_t width)
{
    const float *q = r->q + t * r->stride, *k = r->k + t * r->stride;
    const struct delta_gate gate = r->gates[t * r->gate_stride];
    float recalled[2] = {0.0f, 0.0f}, sums[2] = {0.0f, 0.0f}; /* u and o of docs/kernels.md */
    for (size_t i = 0; i < r->dim; i++)
        recalled[i % 2] = fmaf(from[i * width], k[i], recalled[i % 2]);
    const float v = r->v[t * r->stride + column];
    const float delta = fmaf(-gate.decay, recalled[0] + recalled[1], v) * gate.beta;
    for (size_t i = 0; i < r->dim; i++) {
        to[i * width] = fmaf(k[i], delta, from[i * width] * gate.decay);
        sums[i % 2] = fmaf(to[i * width], q[i], sums[i % 2]);
    }
    return sums[0] + sums[1];
}

void delta_run_ref(const struct delta_run *r)
{
    for (size_t t = 0; t < r->n_tokens; t++)
        for (size_t column = 0; column < r->dim; column++) {
            const size_t strip = column / DELTA_COLS * DELTA_COLS;
            const size_t width = size_min(DELTA_COLS, r->dim - strip);
            const size_t at = strip * r->dim + column - strip; /* the layout of DELTA_COLS */
            r->out[t * r->out_stride + column] =
                run_column(r, t, column, (t == 0 ? r->from : r->to) + at, r->to + at, width);
        }
}
