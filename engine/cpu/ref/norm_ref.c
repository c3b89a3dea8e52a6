/*
 * RMSNorm and the activation rule of ternary layers, as docs/kernels.md has them.
 */
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>

void rms_norm_ref(const float *x, const float *w, size_t n, float eps, float *y)
{
    const float ss = dot64_ref(x, x, n);
    const float r = 1.0f / sqrtf(ss / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] * r) * w[i];
}

void quantise_ref(const float *x, size_t n, int8_t *q, struct act_scale *out)
{
    float m = 1e-5f;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > m)
            m = fabsf(x[i]);
    const float s = 127.0f / m;
    int32_t q_sum = 0;
    for (size_t i = 0; i < n; i++) {
        const float v = rintf(x[i] * s); /* at most 127: x * (127 / x) is off by less than a half */
        q[i] = v == v ? (int8_t)v : 0;
        q_sum += q[i];
    }
    for (size_t i = n; i % LINE_COLS != 0; i++)
        q[i] = 0;
    out->s = s;
    out->q_sum = q_sum;
}
