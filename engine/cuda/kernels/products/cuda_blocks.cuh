/*
 * Quantisation of inputs in blocks of columns, with one or two bytes for each element
 * (docs/kernels.md, "Activations in blocks"). Without quantisation (n_planes 0) the elements are
 * only normed or copied.
 */
#ifndef CUDA_BLOCKS_CUH
#define CUDA_BLOCKS_CUH

#include "engine/cuda/kernels/device/cuda_reduce.cuh"
#include "engine/model/fixed_point.h"

/* Quantises block b of a token by a warp; lane l has the elements l, l + 32, ... of the block. r is
 * the factor of RMSNorm; s is the factor of the whole row, used if per_token. */
DEV void quantise_block(const struct blocks_args *a, uint32_t token, uint32_t b, float r, float s)
{
    const struct block_inputs *out = &a->out;
    const uint32_t lane = thread_x() % 32, n_parts = out->block_cols / 32;
    const uint64_t at = (uint64_t)token * out->q_stride + (uint64_t)b * out->block_cols + lane;
    const uint64_t block = (uint64_t)token * out->block_stride + b;
    const float *x = a->x + (uint64_t)token * a->x_stride;
    float y[GROUP_PAD_COLS / 32], m = 0.0f;
    int32_t sums[MAX_PLANES] = {0, 0};
#pragma unroll
    for (uint32_t k = 0; k < GROUP_PAD_COLS / 32; k++) {
        const uint32_t i = b * out->block_cols + 32 * k + lane;
        y[k] = k < n_parts && i < a->n ? x[i] : 0.0f;
        if (a->w && k < n_parts && i < a->n)
            y[k] = (y[k] * r) * a->w[i];
        m = fabsf(y[k]) > m ? fabsf(y[k]) : m;
    }
    m = warp_max(m);
    const bool empty = !a->per_token && m < BLOCK_MIN_ABS;
    const float most = out->n_planes == 2 ? (float)FIXED_POINT_MAX : 127.0f; /* largest |v| */
    if (!a->per_token)
        s = empty ? 0.0f : most / m;
#pragma unroll
    for (uint32_t k = 0; k < GROUP_PAD_COLS / 32; k++) {
        if (k >= n_parts)
            continue;
        if (out->n_planes == 0) {
            out->x[at + 32 * k] = y[k];
            continue;
        }
        const float rounded = empty ? 0.0f : rintf(y[k] * s);
        const int32_t v = rounded == rounded ? (int32_t)rounded : 0;
        /* two planes: v = 128 high + low, with low from -64 to 63 */
        const int32_t high = out->n_planes == 2 ? (v + 64) >> 7 : v;
        out->q[0][at + 32 * k] = (int8_t)high;
        sums[0] += high;
        if (out->n_planes == 2) {
            out->q[1][at + 32 * k] = (int8_t)(v - 128 * high);
            sums[1] += v - 128 * high;
        }
    }
    const float unit = empty ? 0.0f : a->per_token ? 1.0f / s : m / most;
#pragma unroll
    for (uint32_t p = 0; p < MAX_PLANES; p++) {
        for (uint32_t mask = 16; mask > 0; mask /= 2)
            sums[p] += (int32_t)shuffle_xor_u32((uint32_t)sums[p], mask);
        if (lane == 0 && p < out->n_planes) {
            out->q_sums[p][block] = sums[p];
            out->units[p][block] = out->n_planes == 2 && p == 0 ? unit * 128.0f : unit;
        }
    }
}

/* One token per thread block, one block of columns per warp at a time. Grid: tokens. */
KERNEL(blocks_quantise, blocks_args, 512)
{
    SHARED_WIDE float tile[ROW_TILE];
    const uint32_t token = block_x();
    const uint32_t n_padded = (a.n + GROUP_PAD_COLS - 1) / GROUP_PAD_COLS * GROUP_PAD_COLS;
    const float *x = a.x + (uint64_t)token * a.x_stride;
    const float r = a.w ? 1.0f / sqrtf(block_square64(x, a.n, tile) / (float)a.n + a.eps) : 1.0f;
    float s = 0.0f;
    if (a.per_token) {
        float m = MIN_ABSMAX;
        for (uint32_t i = thread_x(); i < a.n; i += n_threads_x()) {
            const float y = fabsf(a.w ? (x[i] * r) * a.w[i] : x[i]);
            m = y > m ? y : m;
        }
        s = 127.0f / block_max(m);
    }
    for (uint32_t b = thread_x() / 32; b < n_padded / a.out.block_cols; b += n_threads_x() / 32)
        quantise_block(&a, token, b, r, s);
}

#endif
