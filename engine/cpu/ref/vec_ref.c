/*
 * Reference for vectors of F32 and for the conversion of integer sums to F32. docs/kernels.md
 * specifies the formulas and the order of the operations.
 */
#include "engine/base/fp16.h"
#include "engine/cpu/ref/kernels_ref.h"
#include "engine/layout/fixed_point.h"

#include <math.h>

/* 1 / root mean square of x (n), with eps. */
static float norm_factor(const float *x, size_t n, float eps)
{
    return 1.0f / sqrtf(dot64_ref(x, x, n) / (float)n + eps);
}

void rms_norm_ref(const float *x, const float *w, size_t n, float eps, float *y)
{
    const float r = norm_factor(x, n, eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] * r) * w[i];
}

/* Element i of the vector to quantise; r is the factor of RMSNorm. */
static float act_element(const struct act_in *in, float r, size_t i)
{
    return in->w ? (in->x[i] * r) * in->w[i] : in->x[i];
}

void quantise_ref(const struct act_in *in, int8_t *q, struct act_scale *out)
{
    const size_t n = in->n;
    const float r = in->w ? norm_factor(in->x, n, in->eps) : 1.0f;
    float m = 1e-5f; /* the least value, as in training: vectors of zeros have a finite scale */
    for (size_t i = 0; i < n; i++)
        if (fabsf(act_element(in, r, i)) > m)
            m = fabsf(act_element(in, r, i));
    const float s = 127.0f / m;
    int32_t q_sum = 0;
    for (size_t i = 0; i < n; i++) {
        /* |v| <= 127: no magnitude is above m, and the rounding error of m * (127 / m) is below one
         * half. */
        const float v = rintf(act_element(in, r, i) * s);
        q[i] = v == v ? (int8_t)v : 0; /* 0 for a NaN */
        q_sum += q[i];
    }
    for (size_t i = n; i % LINE_COLS != 0; i++)
        q[i] = 0;
    out->s = s;
    out->q_sum = q_sum;
}

void scale_acc_ref(const int32_t *acc, size_t n, float d, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (float)acc[i] * d;
}

void add_ref(float *h, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h[i] = h[i] + y[i];
}

void relu2_gate_ref(const float *gate, const float *up, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = gate[i] <= 0.0f ? 0.0f : (gate[i] * gate[i]) * up[i]; /* a NaN stays a NaN */
}

void silu_gate_ref(const float *gate, const float *up, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (gate[i] * sigmoid_ref(gate[i])) * up[i];
}

/* Rotate the pair (*a, *b) by the angle with the cosine c and the sine s. */
static void rotate(float *a, float *b, float c, float s)
{
    const float x = *a, y = *b;
    *a = fmaf(-y, s, x * c);
    *b = fmaf(y, c, x * s);
}

/* The elements of a pair are n_rot / 2 apart, as in GPT-NeoX. */
void rope_neox_ref(float *x, const float *c, const float *s, size_t n_rot)
{
    for (size_t i = 0; i < n_rot / 2; i++)
        rotate(&x[i], &x[i + n_rot / 2], c[i], s[i]);
}

/* The elements of a pair are adjacent ("norm" is llama.cpp's name of this mode). */
void rope_norm_ref(float *x, const float *c, const float *s, size_t n_rot)
{
    for (size_t i = 0; i < n_rot / 2; i++)
        rotate(&x[2 * i], &x[2 * i + 1], c[i], s[i]);
}

void to_f16_ref(const float *x, size_t n, uint16_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (fabsf(x[i]) > F16_MAX)
            out[i] = f32_to_f16(x[i] < 0.0f ? -F16_MAX : F16_MAX);
        else
            out[i] = f32_to_f16(x[i]);
    }
}

/* The sum of token t and row r as F32: the value v that struct acc_tile defines. */
static float scaled(const struct acc_tile *a, size_t t, size_t r)
{
    float v = (float)a->acc[t * a->acc_stride + r] * a->d[t];
    v = v * a->extra;
    return a->bias ? v + a->bias[r] : v;
}

void acc_store_ref(const struct acc_tile *a, float *y, size_t stride)
{
    for (size_t t = 0; t < a->n_tokens; t++)
        for (size_t r = 0; r < a->n_rows; r++)
            y[t * stride + r] = scaled(a, t, r);
}

void acc_add_ref(const struct acc_tile *a, float *y, size_t stride)
{
    for (size_t t = 0; t < a->n_tokens; t++)
        for (size_t r = 0; r < a->n_rows; r++)
            y[t * stride + r] = y[t * stride + r] + scaled(a, t, r);
}

void acc_relu2_ref(const struct acc_tile *gate, const struct acc_tile *up, float *y, size_t stride)
{
    for (size_t t = 0; t < gate->n_tokens; t++)
        for (size_t r = 0; r < gate->n_rows; r++) {
            const float g = scaled(gate, t, r);
            y[t * stride + r] = g <= 0.0f ? 0.0f : (g * g) * scaled(up, t, r);
        }
}

void acc_silu_ref(const struct acc_tile *gate, const struct acc_tile *up, float *y, size_t stride)
{
    for (size_t t = 0; t < gate->n_tokens; t++)
        for (size_t r = 0; r < gate->n_rows; r++) {
            const float g = scaled(gate, t, r);
            y[t * stride + r] = (g * sigmoid_ref(g)) * scaled(up, t, r);
        }
}
