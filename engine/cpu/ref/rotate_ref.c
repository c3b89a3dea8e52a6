/*
 * Reference for the rotation of inputs: signs, then Walsh-Hadamard transforms of rotation blocks.
 * docs/kernels.md, "Rotated inputs", specifies the arithmetic.
 */
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>
#include <string.h>

/* Walsh-Hadamard transform of y (block) in place, without the factor. */
static void transform(float *y, size_t block)
{
    for (size_t h = 1; h < block; h *= 2)
        for (size_t i = 0; i < block; i++) {
            if (i & h)
                continue;
            const float a = y[i], b = y[i + h];
            y[i] = a + b;
            y[i + h] = a - b;
        }
}

void rotate_ref(const float *x, const float *signs, size_t n, size_t block, float *y)
{
    const float factor = (float)(1.0 / sqrt((double)block));
    if (signs)
        for (size_t i = 0; i < n; i++)
            y[i] = x[i] * signs[i];
    else
        memmove(y, x, n * sizeof *y); /* not memcpy: y may be x */
    for (size_t i = 0; i < n; i += block)
        transform(y + i, block);
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] * factor;
}
