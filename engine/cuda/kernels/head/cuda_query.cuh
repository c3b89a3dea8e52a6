/*
 * The final norm and the query, which is its result quantised for the coarse plane. Every operation
 * of the query has the result of the CPU backend, so queries have the same bits there
 * (docs/kernels.md, "The head, screened").
 */
#ifndef CUDA_QUERY_CUH
#define CUDA_QUERY_CUH

#include "engine/cuda/kernels/device/cuda_reduce.cuh"
#include "engine/layout/coarse_code.h"
#include "engine/layout/fixed_point.h"

/* The working memory of a query. x: the hidden state after the norm. errors: its rounding errors.
 * norms: two numbers for each block, first |x|^2 and |error|^2, later the terms of the bound that
 * follow from them. Shapes as in query_buffers. */
struct query_work {
    const float *x;
    double *errors, *norms;
};

/* The memory is shared memory if there is room, because head_norm runs alone and waits for each
 * load. x is in the tile if it has ROW_TILE elements or fewer. */
DEV struct query_work query_work_of(const struct query_buffers *q, uint32_t row, const float *x,
                                    float *tile)
{
    const uint32_t n_columns = q->n_blocks * COARSE_COLS, n_doubles = n_columns + 2 * q->n_blocks;
    struct query_work work = {x, (double *)(void *)(tile + n_columns), NULL};
    work.norms = work.errors + n_columns;
    if (n_columns + 2 * n_doubles > ROW_TILE) {
        work.errors = q->errors + (uint64_t)row * n_columns;
        work.norms = q->norms + (uint64_t)row * 2 * q->n_blocks;
    }
    return work;
}

/* rint(h / unit). Multiplying by the inverse gives the same integer unless h / unit is very close
 * to the middle between two integers. The slow division is needed only then. */
DEV int32_t fixed_point(double h, double unit, double inverse)
{
    const double v = rint(h * inverse);
    return (int32_t)(fabs(h - v * unit) <= 0.499999 * unit ? v : rint(h / unit));
}

/* Quantises block b of x to v = 128 high + low, with low from -64 to 63, by one warp, and stores
 * the rounding errors. The block has its high bytes, then its low bytes. Low bytes are doubled: a
 * weight is (2 code - 15) steps, and the kernels of cuda_bounds.cuh multiply the codes by twice v.
 * fix is -15 times the sum of v over the eight columns of a partial sum. These are four columns and
 * the four that are 64 columns further; the lane with the latter has an index that is 16 larger. */
DEV void split_query_block(const struct query_buffers *q, uint32_t row, uint32_t b,
                           const struct query_work *work, uint32_t n, double unit, double inverse)
{
    const uint32_t lane = thread_x() % 32, first = b * COARSE_COLS + 4 * lane;
    const uint64_t block = (uint64_t)row * q->n_blocks + b;
    const struct four h = load_four(work->x, first, n);
    uint32_t *bytes = (uint32_t *)(void *)(q->x + block * 2 * COARSE_COLS);
    uint32_t high_bytes = 0, low_bytes = 0;
    int32_t sum = 0;
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
        const int32_t v = fixed_point((double)h.at[e], unit, inverse), high = (v + 64) >> 7;
        work->errors[first + e] = (double)h.at[e] - (double)v * unit;
        high_bytes |= ((uint32_t)high & 255) << 8 * e;
        low_bytes |= ((uint32_t)(2 * (v - 128 * high)) & 255) << 8 * e;
        sum += v;
    }
    bytes[lane] = high_bytes;
    bytes[COARSE_COLS / 4 + lane] = low_bytes;
    sum += (int32_t)shuffle_xor_u32((uint32_t)sum, 16);
    if (lane < COARSE_SUMS)
        q->fix[block * COARSE_SUMS + lane] = -15 * sum;
}

/* Sums of squares, added in ascending order. The loop is unrolled so that later squares are
 * computed while the additions, which depend on each other, wait. */
DEV double squares_of_f32(const float *x, uint32_t n)
{
    double sum = 0.0;
#pragma unroll 16
    for (uint32_t j = 0; j < n; j++)
        sum = sum + (double)x[j] * (double)x[j];
    return sum;
}

DEV double squares_of_f64(const double *x, uint32_t n)
{
    double sum = 0.0;
#pragma unroll 16
    for (uint32_t j = 0; j < n; j++)
        sum = sum + x[j] * x[j];
    return sum;
}

/* Error bound per block, as a factor of the block's step. The formulas are in docs/kernels.md, "The
 * bound". Sums over blocks are in ascending order. All sums of squares start at the same bank of
 * shared memory. So neighbouring sums are in different warps: in one warp they would wait for each
 * other at every load. */
DEV void spread_query(const struct query_buffers *q, uint32_t row, const struct query_work *work,
                      uint32_t n)
{
    const uint32_t n_warps = n_threads_x() / 32;
    double *norms = work->norms, a2 = 0.0, c2 = 0.0;
    for (uint32_t i = thread_x() % 32 * n_warps + thread_x() / 32; i < 2 * q->n_blocks;
         i += n_threads_x()) {
        const uint32_t first = i / 2 * COARSE_COLS;
        const uint32_t n_here = n - first < COARSE_COLS ? n - first : COARSE_COLS;
        norms[i] = i % 2 ? squares_of_f64(work->errors + first, n_here)
                         : squares_of_f32(work->x + first, n_here);
    }
    block_sync();
    for (uint32_t b = thread_x(); b < q->n_blocks; b += n_threads_x()) {
        const double h = sqrt(norms[2 * b]), miss = sqrt(norms[2 * b + 1]);
        norms[2 * b] = q->kappa * h;
        norms[2 * b + 1] =
            q->root * (15.0 * (miss + q->gamma * (2.0 * h + miss)) + (1.0 / 16384.0) * h);
    }
    block_sync();
    if (thread_x() >= q->step_stride)
        return;
#pragma unroll 4
    for (uint32_t b = 0; b < q->n_blocks; b++) {
        a2 = a2 + norms[2 * b] * norms[2 * b];
        c2 = c2 + norms[2 * b + 1] * norms[2 * b + 1];
    }
    /* a2 and c2 are not 0, because the largest |x| is at least COARSE_X_MIN. */
    const double theta = sqrt(c2 / a2);
    for (uint32_t b = thread_x(); b < q->step_stride; b += n_threads_x()) {
        const double a = b < q->n_blocks ? norms[2 * b] : 0.0;
        const double c = b < q->n_blocks ? norms[2 * b + 1] : 0.0;
        q->spread[(uint64_t)row * q->step_stride + b] =
            (float)(1.01 * sqrt((1.0 + theta) * a * a + (1.0 + 1.0 / theta) * c * c));
    }
}

/* Norms elements i .. i + 3 with the factors w and r, to x and, unless it is NULL, to the tile.
 * Returns the bit pattern of the largest magnitude, where NaN compares above infinity. */
DEV uint32_t head_norm_four(const struct head_norm_args *a, struct four h, struct four w, float r,
                            uint32_t i, float *x, float *tile)
{
    uint32_t largest = 0;
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
        const float y = ((h.at[e] * r) * w.at[e]) * a->factor;
        const uint32_t magnitude = bits_of_f32(y) & 0x7fffffffu;
        if (i + e >= a->n)
            continue;
        largest = magnitude > largest ? magnitude : largest;
        x[i + e] = y;
        if (tile)
            tile[i + e] = y;
    }
    return largest;
}

#define NORM_AHEAD 2 /* fours of norm weights that a thread loads early: 4,096 elements */

/* Grid: requested rows. The norm weights are constant, so they are loaded early. */
KERNEL_EARLY(head_norm, head_norm_args, 512)
{
    SHARED_WIDE float tile[ROW_TILE];
    const uint32_t row = block_x(), step = 4 * n_threads_x();
    const float *h = a.h + (uint64_t)a.requests[row].token * a.h_stride;
    float *x = a.x + (uint64_t)row * a.stride, *copy = a.n <= ROW_TILE ? tile : NULL;
    const float *from = a.n <= ROW_TILE ? tile : h;
    struct four w[NORM_AHEAD];
#pragma unroll
    for (uint32_t u = 0; u < NORM_AHEAD; u++)
        w[u] = load_four(a.w, 4 * thread_x() + u * step, a.n);
    wait_for_grid();
    const float r = 1.0f / sqrtf(block_square64(h, a.n, tile) / (float)a.n + a.eps);
    uint32_t largest = 0, i = 4 * thread_x();
#pragma unroll
    for (uint32_t u = 0; u < NORM_AHEAD; u++, i += step) {
        const uint32_t most = head_norm_four(&a, load_four(from, i, a.n), w[u], r, i, x, copy);
        largest = most > largest ? most : largest;
    }
    for (; i < a.n; i += step) {
        const uint32_t most =
            head_norm_four(&a, load_four(from, i, a.n), load_four(a.w, i, a.n), r, i, x, copy);
        largest = most > largest ? most : largest;
    }
    if (thread_x() == 0)
        a.found[row].n = a.found[row].not_finite = a.found[row].n_read = 0;
    if (a.query.n_blocks == 0)
        return;
    const float most = f32_of_bits(block_max_u32(largest)); /* contains a barrier: all see x */
    const float unit = (float)((double)most / FIXED_POINT_MAX);
    const bool screened = most >= COARSE_X_MIN && most <= COARSE_X_MAX;
    if (thread_x() == 0) {
        a.query.screens[row].unit = unit;
        a.query.screens[row].screened = screened;
    }
    if (!screened)
        return;
    const struct query_work work = query_work_of(&a.query, row, copy ? copy : x, tile);
    for (uint32_t b = thread_x() / 32; b < a.query.n_blocks; b += n_threads_x() / 32)
        split_query_block(&a.query, row, b, &work, a.n, (double)unit, 1.0 / (double)unit);
    block_sync();
    spread_query(&a.query, row, &work, a.n);
}

#endif
