/*
 * RMSNorm and the activation rule of ternary layers, as docs/kernels.md has them.
 */
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>

/* What each element is multiplied with before its weight. */
static float factor(const float *x, size_t n, float eps)
{
    return 1.0f / sqrtf(dot64_ref(x, x, n) / (float)n + eps);
}

void rms_norm_ref(const float *x, const float *w, size_t n, float eps, float *y)
{
    const float r = factor(x, n, eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] * r) * w[i];
}

static float element(const struct act_in *in, float r, size_t i)
{
    return in->w ? (in->x[i] * r) * in->w[i] : in->x[i];
}

void quantise_ref(const struct act_in *in, int8_t *q, struct act_scale *out)
{
    const size_t n = in->n;
    const float r = in->w ? factor(in->x, n, in->eps) : 1.0f;
    float m = 1e-5f;
    for (size_t i = 0; i < n; i++)
        if (fabsf(element(in, r, i)) > m)
            m = fabsf(element(in, r, i));
    const float s = 127.0f / m;
    int32_t q_sum = 0;
    for (size_t i = 0; i < n; i++) {
        /* At most 127: x * (127 / x) is off by less than a half. */
        const float v = rintf(element(in, r, i) * s);
        q[i] = v == v ? (int8_t)v : 0;
        q_sum += q[i];
    }
    for (size_t i = n; i % LINE_COLS != 0; i++)
        q[i] = 0;
    out->s = s;
    out->q_sum = q_sum;
}
