/*
 * Norm and quantisation of the rows of several tokens, for the products that follow. A thread keeps
 * its elements in registers from the norm on. With 256 threads per row, the rows of 512 tokens run
 * at once on a device with 132 multiprocessors, so that none of them waits for a second wave.
 */
#ifndef CUDA_NORM_ROWS_CUH
#define CUDA_NORM_ROWS_CUH

#include "engine/cuda/kernels/products/cuda_norm.cuh"

#define NORM_BLOCKS 4                            /* thread blocks that fit on a multiprocessor */
#define NORM_FOURS (ROW_TILE / 4 / NORM_THREADS) /* most fours of elements of a thread */

/* Index of the first element of this thread's elements number u, four at a time. */
DEV uint32_t four_index(uint32_t u)
{
    return 4 * (thread_x() + u * NORM_THREADS);
}

/* Returns the largest magnitude of this thread's elements of the normed row, at least
 * MIN_ABSMAX. y has the norm weights on entry and the normed elements on return. The tile has
 * the row. */
DEV float norm_fours(const struct norm_args *a, const float *tile, struct four *y)
{
    const float squares = a->w && thread_x() < 64 ? add_squares(tile, a->n, 0.0f) : 0.0f;
    const float r = a->w ? 1.0f / sqrtf(block_sum64(squares) / (float)a->n + a->eps) : 1.0f;
    float m = MIN_ABSMAX;
#pragma unroll
    for (uint32_t u = 0; u < NORM_FOURS; u++) {
        if (four_index(u) >= a->n)
            break; /* these fours stay zero */
        const struct four x = tile_four(tile, four_index(u));
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            y[u].at[e] = a->w ? (x.at[e] * r) * y[u].at[e] : x.at[e];
            m = fmaxf(m, fabsf(y[u].at[e])); /* ignores a NaN */
        }
    }
    return m;
}

/* Norms and quantises a row of at most ROW_TILE elements. w has the norm weights of this thread. */
DEV struct row_scale quantise_row(const struct norm_args *a, const float *row, float *tile,
                                  struct four *w, int8_t *q)
{
    int32_t sum = 0;
    copy_row(tile, row, a->n);
    copy_async_wait();
    block_sync();
    struct row_scale result = {127.0f / block_max_positive(norm_fours(a, tile, w)), 0};
#pragma unroll
    for (uint32_t u = 0; u < NORM_FOURS; u++) {
        if (four_index(u) >= a->q_stride)
            break;
        *(uint32_t *)(q + four_index(u)) = quantised_word(&w[u], result.s, &sum);
    }
    result.sum = block_sum_i32(sum);
    return result;
}

KERNEL_EARLY_DENSE(norm_quantise, norm_args, NORM_THREADS, NORM_BLOCKS)
{
    SHARED_WIDE float tile[ROW_TILE];
    const float *row = a.x + (uint64_t)block_x() * a.x_stride;
    int8_t *q = a.q + (uint64_t)block_x() * a.q_stride;
    struct four w[NORM_FOURS];
#pragma unroll
    for (uint32_t u = 0; u < NORM_FOURS; u++)
        w[u] = load_four(a.w, four_index(u), a.w ? a.n : 0);
    wait_for_grid();
    const struct row_scale scale = a.n <= ROW_TILE ? quantise_row(&a, row, tile, w, q)
                                                   : quantise_long(&a, row, tile, q, LINE_COLS);
    if (thread_x() == 0) {
        a.q_s[block_x()] = scale.s;
        a.q_sum[block_x()] = scale.sum;
    }
}

#endif
