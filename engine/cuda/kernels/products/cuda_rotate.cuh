/*
 * Rotations (docs/kernels.md, "Rotated inputs"): norm or reordering of heads, signs, and a
 * Walsh-Hadamard transform of each block of a row. Rows of the embedding take the inverse: the
 * transform, then the signs. A thread block has one row, in shared memory if it fits.
 */
#ifndef CUDA_ROTATE_CUH
#define CUDA_ROTATE_CUH

#include "engine/cuda/kernels/device/cuda_reduce.cuh"

/* The stages of the transforms of all blocks of a row. `block` is a power of two that divides n, so
 * no pair of elements crosses a block. In each stage one thread computes a pair; barriers separate
 * the stages. */
DEV void transform_blocks(float *y, uint32_t n, uint32_t block)
{
    for (uint32_t h = 1; h < block; h *= 2) {
        block_sync();
        for (uint32_t pair = thread_x(); pair < n / 2; pair += n_threads_x()) {
            const uint32_t i = pair / h * 2 * h + pair % h; /* an index with i & h = 0 */
            const float a = y[i], b = y[i + h];
            y[i] = a + b;
            y[i + h] = a - b;
        }
    }
    block_sync();
}

/* Index of the element of x that becomes element i after the reordering of heads (rotate_args). */
DEV uint32_t reordered(const struct rotate_args *a, uint32_t i)
{
    if (a->n_outer == 0)
        return i;
    const uint32_t dim = a->n / (a->n_outer * a->n_inner), head = i / dim;
    return (head % a->n_outer * a->n_inner + head / a->n_outer) * dim + i % dim;
}

/* Grid: rows. */
KERNEL(rotate_rows, rotate_args, 512)
{
    SHARED_WIDE float tile[ROW_TILE];
    const float *x = a.x + (uint64_t)block_x() * a.x_stride;
    float *out = a.y + (uint64_t)block_x() * a.y_stride;
    const float r = a.w ? 1.0f / sqrtf(block_square64(x, a.n, tile) / (float)a.n + a.eps) : 1.0f;
    float *y = a.n <= ROW_TILE ? tile : out;
    for (uint32_t i = thread_x(); i < a.n; i += n_threads_x()) {
        float v = a.w ? (x[i] * r) * a.w[i] : x[reordered(&a, i)];
        if (a.signs && !a.is_inverse)
            v = v * a.signs[i];
        y[i] = v;
    }
    transform_blocks(y, a.n, a.block);
    for (uint32_t i = thread_x(); i < a.n; i += n_threads_x()) {
        const float v = y[i] * a.factor;
        out[i] = a.signs && a.is_inverse ? v * a.signs[i] : v;
    }
}

#endif
