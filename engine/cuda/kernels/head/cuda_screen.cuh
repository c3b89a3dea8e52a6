/*
 * Packs the coarse plane of the head's table. Every operation is the same as in the CPU backend, so
 * planes have the same bits there (docs/kernels.md, "The head, screened").
 */
#ifndef CUDA_SCREEN_CUH
#define CUDA_SCREEN_CUH

#include "engine/base/noise.h"
#include "engine/cuda/kernels/head/cuda_head.cuh"
#include "engine/layout/coarse_code.h"

/* The step of a block as BF16 bits: code c stands for (2 c - 15) steps. It is rounded up, so that
 * 15 steps are at least the largest magnitude, whose bit pattern is `largest`. The last test is for
 * a division by 15 that has rounded down to a BF16. */
DEV uint32_t coarse_step(uint32_t largest)
{
    if (largest == 0)
        return 0;
    uint32_t step = (bits_of_f32(f32_of_bits(largest) / 15.0f) + 0xffffu) >> 16;
    if (step < COARSE_MIN_STEP)
        step = COARSE_MIN_STEP;
    return 15.0f * f32_of_bits(step << 16) < f32_of_bits(largest) ? step + 1 : step;
}

/* Code of a weight with stochastic rounding: if the weight is a fraction f above the lower code, it
 * gets the upper code with probability f. `up` is a 16-bit random number. The sum is above 0 and
 * below 16, so the conversion to int32_t rounds down; the limit of 15 is a precaution. */
DEV uint32_t coarse_code(float w, float inverse, uint32_t up)
{
    const float offset = ((float)(int32_t)up + 0.5f) * (1.0f / 65536.0f);
    const int32_t c = (int32_t)((w * inverse + 15.0f) * 0.5f + offset);
    return (uint32_t)(c < 15 ? c : 15);
}

/* Byte j of a line, from the weights of columns j (low) and j + 64 (high). The hash is that of
 * engine/cpu/ref/coarse_pack.h. */
DEV uint32_t coarse_byte(float low, float high, float inverse, uint64_t key, uint32_t j)
{
    uint32_t x = j * 0x9e3779b9u + (uint32_t)key;
    x = (x ^ x >> 16) * 0x85ebca6bu + (uint32_t)(key >> 32);
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    x ^= x >> 16;
    return coarse_code(low, inverse, x & 0xffffu) | coarse_code(high, inverse, x >> 16) << 4;
}

/* Columns i and i + 1 of a row of n elements; i is even. Zeros past n. */
DEV void decode_pair(const uint8_t *row, uint32_t type, uint32_t i, uint32_t n, float *out)
{
    float x[8];
    out[0] = out[1] = 0.0f;
    if (i >= n)
        return;
    decode_eight(row, type, i - i % 8, n, x);
    out[0] = x[i % 8];
    out[1] = i + 1 < n ? x[i % 8 + 1] : 0.0f;
}

/* Packs block b of a row by one warp. `line` is the number of the block in the whole plane. Lane l
 * has columns 2 l, 2 l + 1, 2 l + 64, 2 l + 65. */
DEV void pack_block(const struct coarse_args *a, const uint8_t *row, uint64_t line, uint32_t b,
                    uint16_t *step_at)
{
    const uint32_t lane = thread_x() % 32;
    float w[4];
    uint32_t largest = 0;
    decode_pair(row, a->type, b * COARSE_COLS + 2 * lane, a->n, w);
    decode_pair(row, a->type, b * COARSE_COLS + 2 * lane + 64, a->n, w + 2);
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t magnitude = bits_of_f32(w[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
        const uint32_t other = shuffle_xor_u32(largest, mask);
        largest = other > largest ? other : largest;
    }
    const bool fits = f32_of_bits(largest) <= COARSE_MAX; /* false for NaN */
    const uint32_t step = fits ? coarse_step(largest) : 0;
    const float inverse = fits && largest ? 1.0f / f32_of_bits(step << 16) : 0.0f;
    const uint64_t key = noise_bits(COARSE_KEY, line);
    uint32_t two = 0;
    if (fits)
        two = coarse_byte(w[0], w[2], inverse, key, 2 * lane) |
              coarse_byte(w[1], w[3], inverse, key, 2 * lane + 1) << 8;
    ((uint16_t *)(a->plane.lines + line * LINE_BYTES))[lane] = (uint16_t)two;
    if (lane == 0) {
        *step_at = (uint16_t)step;
        if (!fits)
            *a->too_large = 1;
    }
}

/* Builds the plane of a table. One warp per row. */
KERNEL(coarse_pack, coarse_args, 128)
{
    const uint32_t id = (block_x() * n_threads_x() + thread_x()) / 32;
    if (id >= a.n_vocab)
        return;
    const uint8_t *row = a.table + id * a.row_bytes;
    uint16_t *steps = a.plane.steps + (uint64_t)id * a.plane.step_stride;
    for (uint32_t b = 0; b < a.plane.n_blocks; b++)
        pack_block(&a, row, (uint64_t)id * a.plane.n_blocks + b, b, steps + b);
    const uint32_t past = a.plane.n_blocks + thread_x() % 32;
    if (past < a.plane.step_stride) /* at most 7 steps: one per lane */
        steps[past] = 0;
}

#endif
