/*
 * Quantisation of inputs in blocks of columns, with one or two bytes for each element
 * (docs/kernels.md, "Activations in blocks"). Without quantisation (n_planes 0) the elements are
 * only normed or copied.
 */
#ifndef CUDA_BLOCKS_CUH
#define CUDA_BLOCKS_CUH

#include "engine/cuda/kernels/products/cuda_norm.cuh"
#include "engine/layout/fixed_point.h"

/* The sum of the n_lanes lanes (8, 16 or 32) that share a block of columns. */
DEV int32_t lanes_sum(int32_t v, uint32_t n_lanes)
{
    for (uint32_t mask = n_lanes / 2; mask > 0; mask /= 2)
        v += (int32_t)shuffle_xor_u32((uint32_t)v, mask);
    return v;
}

/* Quantises elements i .. i + 3 of a token, which are y. The lanes that have the other elements of
 * the block do the same for these. s is the factor of the whole row, used if per_token. All lanes
 * of a warp must call this. */
DEV void quantise_four(const struct blocks_args *a, uint32_t token, uint32_t i,
                       const struct four *y, float s)
{
    const struct block_inputs *out = &a->out;
    const uint32_t n_lanes = out->block_cols / 4;
    const uint64_t at = (uint64_t)token * out->q_stride + i;
    const uint64_t block = (uint64_t)token * out->block_stride + i / out->block_cols;
    float m = 0.0f;
#pragma unroll
    for (uint32_t e = 0; e < 4; e++)
        m = fabsf(y->at[e]) > m ? fabsf(y->at[e]) : m; /* ignores a NaN */
    m = lanes_max(m, n_lanes);
    const bool empty = !a->per_token && m < BLOCK_MIN_ABS;
    const float most = out->n_planes == 2 ? (float)FIXED_POINT_MAX : 127.0f; /* largest |v| */
    if (!a->per_token)
        s = empty ? 0.0f : most / m;
    uint32_t bytes[MAX_PLANES][4];
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
        const float rounded = empty ? 0.0f : rintf(y->at[e] * s);
        const int32_t v = rounded == rounded ? (int32_t)rounded : 0;
        /* two planes: v = 128 high + low, with low from -64 to 63 */
        const int32_t high = out->n_planes == 2 ? (v + 64) >> 7 : v;
        bytes[0][e] = (uint32_t)high;
        bytes[1][e] = (uint32_t)(v - 128 * high);
    }
    const float unit = empty ? 0.0f : a->per_token ? 1.0f / s : m / most;
#pragma unroll
    for (uint32_t p = 0; p < MAX_PLANES; p++) {
        if (p >= out->n_planes)
            continue;
        const uint32_t word = pack_bytes(bytes[p]);
        const int32_t sum = lanes_sum(dot4(word, 0x01010101u, 0), n_lanes);
        *(uint32_t *)(void *)(out->q[p] + at) = word;
        if (i % out->block_cols == 0) {
            out->q_sums[p][block] = sum;
            out->units[p][block] = out->n_planes == 2 && p == 0 ? unit * 128.0f : unit;
        }
    }
}

/* The factor by which all elements of the row are multiplied, with per_token. r: 1 / RMS. */
DEV float factor_of_row(const struct blocks_args *a, const float *x, float r)
{
    float m = MIN_ABSMAX;
    for (uint32_t i = thread_x(); i < a->n; i += n_threads_x()) {
        const float y = fabsf(a->w ? (x[i] * r) * a->w[i] : x[i]);
        m = y > m ? y : m;
    }
    return 127.0f / block_max(m);
}

/* A thread processes four elements at a time. For few tokens, the grid has so many thread blocks
 * for each row that a thread processes only four, and waits for memory once. To norm its elements,
 * each thread block reads the whole row. Grid: tokens, thread blocks that share a row. */
KERNEL_EARLY(blocks_quantise, blocks_args, BLOCKS_THREADS)
{
    SHARED_WIDE float tile[ROW_TILE];
    const uint32_t token = block_x();
    const uint32_t first = 4 * (block_y() * n_threads_x() + thread_x());
    const uint32_t step = 4 * n_blocks_y() * n_threads_x();
    const uint32_t n_padded = (a.n + R16_PAD_COLS - 1) / R16_PAD_COLS * R16_PAD_COLS;
    const float *x = a.x + (uint64_t)token * a.x_stride;
    struct four w = load_four(a.w, first, a.w ? a.n : 0);
    wait_for_grid();
    const float r = a.w ? 1.0f / sqrtf(block_square64(x, a.n, tile) / (float)a.n + a.eps) : 1.0f;
    const float s = a.per_token ? factor_of_row(&a, x, r) : 0.0f;
    const bool in_tile = a.w && a.n <= ROW_TILE;
    for (uint32_t i = first; i < n_padded; i += step) {
        struct four y = in_tile && i < a.n ? tile_four(tile, i) : load_four(x, i, a.n);
        if (i != first)
            w = load_four(a.w, i, a.w ? a.n : 0);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            if (a.w && i + e < a.n)
                y.at[e] = (y.at[e] * r) * w.at[e];
            if (a.out.n_planes == 0)
                a.out.x[(uint64_t)token * a.out.q_stride + i + e] = y.at[e];
        }
        if (a.out.n_planes > 0)
            quantise_four(&a, token, i, &y, s);
    }
}

#endif
