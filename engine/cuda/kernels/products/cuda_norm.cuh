/*
 * Norm and quantisation of a row by a thread block (docs/kernels.md): the parts that linear_one and
 * norm_quantise share, and those of linear_one.
 */
#ifndef CUDA_NORM_CUH
#define CUDA_NORM_CUH

#include "engine/cuda/kernels/device/cuda_reduce.cuh"

/* Fours of norm weights that a thread holds in registers. With 256 threads and ONE_NORM_TILE
 * weights in shared memory, five cover a row of ROW_TILE elements. */
#define NORM_HELD 5
/* 1.5 * 2^23. Adding it rounds a float below 2^22 in magnitude to an integer, half to even; the
 * lowest bits of the sum are those of that integer. This is faster than a conversion. */
#define ROUND_TO_INTEGER 12582912.0f

/* Element i of row x after the norm. r: 1 / RMS of the row. Without weights there is no norm. */
DEV float normed(const struct norm_args *a, const float *x, float r, uint32_t i)
{
    return a->w ? (x[i] * r) * a->w[i] : x[i];
}

/* Quantises y to the int8 value of y * s, which is the lowest byte of the result. NaN becomes 0. */
DEV uint32_t quantised(float y, float s)
{
    const float v = y * s;
    return bits_of_f32((v == v ? v : 0.0f) + ROUND_TO_INTEGER);
}

/* The word of four quantised elements, whose sum is added to *sum. */
DEV uint32_t quantised_word(const struct four *y, float s, int32_t *sum)
{
    uint32_t bytes[4];
#pragma unroll
    for (uint32_t e = 0; e < 4; e++)
        bytes[e] = quantised(y->at[e], s);
    const uint32_t word = pack_bytes(bytes);
    *sum = dot4(word, 0x01010101u, *sum);
    return word;
}

/* The factor s by which a row was multiplied to quantise it, and the sum of its int8 values. */
struct row_scale {
    float s;
    int32_t sum;
};

/* Four elements of shared memory. Those past the end of a row are zeros (copy_row). */
DEV struct four tile_four(const float *tile, uint32_t i)
{
    const struct words w = load_words(tile + i);
    struct four f;
#pragma unroll
    for (uint32_t e = 0; e < 4; e++)
        f.at[e] = f32_of_bits(w.at[e]);
    return f;
}

/* Elements i .. i + 3 of the tile become their values after the norm with weights w. Returns the
 * largest magnitude so far; fmaxf ignores a NaN. */
DEV float norm_four(const struct four *w, float r, uint32_t i, float *tile, float m)
{
    struct four y = tile_four(tile, i);
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
        y.at[e] = (y.at[e] * r) * w->at[e];
        m = fmaxf(m, fabsf(y.at[e]));
        tile[i + e] = y.at[e];
    }
    return m;
}

/* The norm weights of a row of at most ROW_TILE elements: the first n_tile in shared memory, the
 * others in the registers of the thread that needs them. */
struct norm_weights {
    struct four held[NORM_HELD];
    const float *tile;
    uint32_t n_tile;
};

/* Starts copying the first n_tile norm weights to `tile` and loading the others. norm_tile waits
 * for the copies. No kernel writes norm weights, so a kernel can call this before wait_for_grid. */
DEV struct norm_weights load_norm(const struct norm_args *a, float *tile, uint32_t n_tile)
{
    struct norm_weights w;
    w.tile = tile;
    w.n_tile = n_tile < a->n ? n_tile : a->n;
    if (a->w)
        copy_row(tile, a->w, w.n_tile);
#pragma unroll
    for (uint32_t u = 0; u < NORM_HELD; u++) {
        const uint32_t i = w.n_tile + 4 * (thread_x() + u * n_threads_x());
        if (a->w && i < a->n)
            w.held[u] = load_four(a->w, i, a->n);
    }
    return w;
}

/* Norms a row in the tile, whose copy the caller has started. Returns the larger of m and the
 * largest magnitude. */
DEV float norm_tile(const struct norm_args *a, const struct norm_weights *w, float *tile, float m)
{
    copy_async_wait();
    block_sync();
    const float squares = thread_x() < 64 ? add_squares(tile, a->n, 0.0f) : 0.0f;
    const float r = 1.0f / sqrtf(block_sum64(squares) / (float)a->n + a->eps);
    for (uint32_t i = 4 * thread_x(); i < w->n_tile; i += 4 * n_threads_x()) {
        const struct four weights = tile_four(w->tile, i);
        m = norm_four(&weights, r, i, tile, m);
    }
#pragma unroll
    for (uint32_t u = 0; u < NORM_HELD; u++) {
        const uint32_t i = w->n_tile + 4 * (thread_x() + u * n_threads_x());
        if (i < a->n)
            m = norm_four(&w->held[u], r, i, tile, m);
    }
    return m;
}

/* Norms (if a->w is not NULL) and quantises a row of at most ROW_TILE elements to q. Each LINE_COLS
 * values begin LINE_STRIDE bytes after the previous ones. w is from load_norm; q may replace its
 * tile. All threads of the thread block must call this; afterwards all see the result. */
DEV struct row_scale quantise_tile(const struct norm_args *a, const float *row,
                                   const struct norm_weights *w, float *tile, int8_t *q)
{
    float m = MIN_ABSMAX;
    copy_row(tile, row, a->n);
    if (a->w) {
        m = norm_tile(a, w, tile, m);
    } else {
        copy_async_wait(); /* a thread needs only the elements that it copied */
        for (uint32_t i = 4 * thread_x(); i < a->n; i += 4 * n_threads_x()) {
            const struct four y = tile_four(tile, i);
#pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                m = fmaxf(m, fabsf(y.at[e]));
        }
    }
    struct row_scale result = {127.0f / block_max_positive(m), 0};

    int32_t sum = 0;
#pragma unroll 2
    for (uint32_t i = 4 * thread_x(); i < a->q_stride; i += 4 * n_threads_x()) {
        const struct four zeros = {{0.0f, 0.0f, 0.0f, 0.0f}};
        const struct four y = i < a->n ? tile_four(tile, i) : zeros;
        *(uint32_t *)(q + (uint64_t)(i / LINE_COLS) * LINE_STRIDE + i % LINE_COLS) =
            quantised_word(&y, result.s, &sum);
    }
    result.sum = block_sum_i32(sum);
    return result;
}

/* Like quantise_tile, but for rows of any length, which it reads from global memory two or three
 * times. Each LINE_COLS values begin q_line bytes after the previous ones. q may overlap the
 * tile. */
DEV struct row_scale quantise_long(const struct norm_args *a, const float *row, float *tile,
                                   int8_t *q, uint32_t q_line)
{
    float m = MIN_ABSMAX;
    const float r =
        a->w ? 1.0f / sqrtf(block_square64(row, a->n, tile) / (float)a->n + a->eps) : 1.0f;
#pragma unroll 8
    for (uint32_t i = thread_x(); i < a->n; i += n_threads_x())
        m = fmaxf(m, fabsf(normed(a, row, r, i)));
    struct row_scale result = {127.0f / block_max_positive(m), 0};
    int32_t sum = 0;
    for (uint32_t i = 4 * thread_x(); i < a->q_stride; i += 4 * n_threads_x()) {
        struct four y;
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            y.at[e] = i + e < a->n ? normed(a, row, r, i + e) : 0.0f;
        *(uint32_t *)(q + (uint64_t)(i / LINE_COLS) * q_line + i % LINE_COLS) =
            quantised_word(&y, result.s, &sum);
    }
    result.sum = block_sum_i32(sum);
    return result;
}

/* Loads the norm weights into the second-level cache, whose lines have 32 floats. */
DEV void prefetch_norm(const struct norm_args *a)
{
    for (uint32_t i = 32 * thread_x(); a->w && i < a->n; i += 32 * n_threads_x())
        prefetch_line(a->w + i);
}

#endif
