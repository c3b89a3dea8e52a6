/*
 * The element-wise steps of a layer: scaling, residual, gates, RoPE, narrowing to F16.
 */
#include "engine/base/fp16.h"
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>

#define F16_MAX 65504.0f

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
    for (size_t i = 0; i < n; i++) {
        out[i] = gate[i] <= 0.0f ? 0.0f : (gate[i] * gate[i]) * up[i]; /* a NaN stays */
    }
}

void silu_gate_ref(const float *gate, const float *up, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (gate[i] * sigmoid_ref(gate[i])) * up[i];
}

static void rotate(float *a, float *b, float c, float s)
{
    const float x = *a, y = *b;
    *a = fmaf(-y, s, x * c);
    *b = fmaf(y, c, x * s);
}

void rope_neox_ref(float *x, const float *c, const float *s, size_t n_rot)
{
    for (size_t i = 0; i < n_rot / 2; i++)
        rotate(&x[i], &x[i + n_rot / 2], c[i], s[i]);
}

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
