/*
 * From the integer sums of a tile of tokens to what the layer wants of them: stored, added to the
 * residual stream, or gated.
 */
#include "engine/cpu/ref/kernels_ref.h"

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
