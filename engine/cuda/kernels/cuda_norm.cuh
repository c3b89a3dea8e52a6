/*
 * Norm and quantisation of a row by a thread block (docs/kernels.md): the parts that linear_one and
 * norm_quantise share, and those of linear_one.
 */
#ifndef CUDA_NORM_CUH
#define CUDA_NORM_CUH

#include "engine/cuda/kernels/cuda_reduce.cuh"

/* Loads of four norm weights that a thread starts before it stores to the tile: the compiler does
 * not move a load in front of a store that could overlap it. With the 256 threads of linear_one,
 * three loads cover a row of 3,072 elements. */
#define NORM_BATCH 3

/* Element i of row x after the norm. r: 1 / RMS of the row. Without weights there is no norm. */
DEV float normed(const struct norm_args *a, const float *x, float r, uint32_t i)
{
    return a->w ? (x[i] * r) * a->w[i] : x[i];
}

/* Quantises y to the int8 value of y * s, adds it to *sum and returns it as a byte. NaN becomes
 * 0. */
DEV uint32_t quantised(float y, float s, int32_t *sum)
{
    const float v = rintf(y * s);
    const int32_t q = v == v ? (int32_t)v : 0;
    *sum += q;
    return (uint32_t)q & 255u;
}

/* The factor s by which a row was multiplied to quantise it, and the sum of its int8 values. */
struct row_scale {
    float s;
    int32_t sum;
};

/* Elements i .. i + 3 of the tile become their values after the norm; f has their norm weights.
 * Returns the largest magnitude so far. */
DEV float norm_four(const struct norm_args *a, const struct four *f, float r, uint32_t i,
                    float *tile, float m)
{
    struct four y = load_four(tile, i, a->n);
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
        y.at[e] = a->w ? (y.at[e] * r) * f->at[e] : y.at[e];
        m = fabsf(y.at[e]) > m ? fabsf(y.at[e]) : m;
        tile[i + e] = y.at[e]; /* past n: in the tile, never used */
    }
    return m;
}

/* Norms (if a->w is not NULL) and quantises a row of at most ROW_TILE elements to q. Each LINE_COLS
 * values begin q_line bytes after the previous ones. w: the norm weights, in global or shared
 * memory; copies to shared memory that the caller has started are complete before w is read. All
 * threads of the block must call this; afterwards all see the result. */
DEV struct row_scale quantise_tile(const struct norm_args *a, const float *row, const float *w,
                                   float *tile, int8_t *q, uint32_t q_line)
{
    float r = 1.0f, m = 1e-5f; /* m: least maximum of a row, docs/kernels.md, "quantise" */
    if (a->w) {
        r = 1.0f / sqrtf(block_square64(row, a->n, tile) / (float)a->n + a->eps);
    } else {
        copy_row(tile, row, a->n);
        copy_async_wait(); /* a thread needs only the elements that it copied */
    }
    for (uint32_t i = 4 * thread_x(); i < a->n; i += NORM_BATCH * 4 * n_threads_x()) {
        struct four f[NORM_BATCH];
#pragma unroll
        for (uint32_t u = 0; u < NORM_BATCH; u++)
            f[u] = load_four(a->w ? w : tile, i + u * 4 * n_threads_x(), a->n);
#pragma unroll
        for (uint32_t u = 0; u < NORM_BATCH; u++)
            if (i + u * 4 * n_threads_x() < a->n)
                m = norm_four(a, &f[u], r, i + u * 4 * n_threads_x(), tile, m);
    }
    /* After the barrier of block_max, q may replace w. */
    struct row_scale result = {127.0f / block_max(m), 0};

    int32_t sum = 0;
#pragma unroll 2
    for (uint32_t i = 4 * thread_x(); i < a->q_stride; i += 4 * n_threads_x()) {
        const struct four y = load_four(tile, i, a->n);
        uint32_t word = 0;
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            word |= quantised(y.at[e], result.s, &sum) << (8 * e);
        *(uint32_t *)(q + (uint64_t)(i / LINE_COLS) * q_line + i % LINE_COLS) = word;
    }
    result.sum = block_sum_i32(sum); /* contains a barrier: now all threads see q */
    return result;
}

/* As quantise_tile, for rows of any length, which are read from global memory two or three times. q
 * may overlap the tile. */
DEV struct row_scale quantise_long(const struct norm_args *a, const float *row, float *tile,
                                   int8_t *q, uint32_t q_line)
{
    float m = 1e-5f;
    const float r =
        a->w ? 1.0f / sqrtf(block_square64(row, a->n, tile) / (float)a->n + a->eps) : 1.0f;
#pragma unroll 8
    for (uint32_t i = thread_x(); i < a->n; i += n_threads_x()) {
        const float y = fabsf(normed(a, row, r, i));
        m = y > m ? y : m;
    }
    struct row_scale result = {127.0f / block_max(m), 0};
    int32_t sum = 0;
    for (uint32_t i = 4 * thread_x(); i < a->q_stride; i += 4 * n_threads_x()) {
        uint32_t word = 0;
        for (uint32_t j = i; j < i + 4 && j < a->n; j++)
            word |= quantised(normed(a, row, r, j), result.s, &sum) << (j % 4 * 8);
        *(uint32_t *)(q + (uint64_t)(i / LINE_COLS) * q_line + i % LINE_COLS) = word;
    }
    result.sum = block_sum_i32(sum);
    return result;
}

/* Loads the norm weights into the second-level cache, whose lines have 32 floats. No kernel writes
 * norm weights, so a kernel can call this before wait_for_grid. */
DEV void prefetch_norm(const struct norm_args *a)
{
    for (uint32_t i = 32 * thread_x(); a->w && i < a->n; i += 32 * n_threads_x())
        prefetch_line(a->w + i);
}

KERNEL_EARLY(norm_quantise, norm_args, 512)
{
    SHARED_WIDE float tile[ROW_TILE];
    const float *row = a.x + (uint64_t)block_x() * a.x_stride;
    int8_t *q = a.q + (uint64_t)block_x() * a.q_stride;
    prefetch_norm(&a);
    wait_for_grid();
    const struct row_scale scale = a.n <= ROW_TILE ? quantise_tile(&a, row, a.w, tile, q, LINE_COLS)
                                                   : quantise_long(&a, row, tile, q, LINE_COLS);
    if (thread_x() == 0) {
        a.q_s[block_x()] = scale.s;
        a.q_sum[block_x()] = scale.sum;
    }
}

#endif
