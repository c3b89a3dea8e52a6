/*
 * Data of the screened head: the coarse plane of the table, and the query, which is the hidden
 * state after the final norm, quantised. Every operation is the same as in the CPU backend, so
 * planes and queries have the same bits there (docs/kernels.md, "The head, screened").
 */
#ifndef CUDA_SCREEN_CUH
#define CUDA_SCREEN_CUH

#include "engine/base/noise.h"
#include "engine/cuda/kernels/cuda_head.cuh"
#include "engine/model/coarse_code.h"

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

/* Quantises x to v = 128 high + low, with low from -64 to 63, and stores the rounding errors. Each
 * block has its high bytes, then its low bytes. Low bytes are doubled: a weight is (2 code - 15)
 * steps, and the kernels of cuda_bounds.cuh multiply the codes by twice v. */
DEV void split_query(const struct query_buffers *q, uint32_t row, const float *x, uint32_t n,
                     double unit)
{
    const uint32_t n_columns = q->n_blocks * COARSE_COLS;
    int8_t *bytes = q->x + (uint64_t)row * 2 * n_columns;
    double *errors = q->errors + (uint64_t)row * n_columns;
    for (uint32_t i = thread_x(); i < n_columns; i += n_threads_x()) {
        const uint32_t at = i / COARSE_COLS * 2 * COARSE_COLS + i % COARSE_COLS;
        const double h = i < n ? (double)x[i] : 0.0;
        const int32_t v = (int32_t)rint(h / unit), high = (v + 64) >> 7;
        errors[i] = h - (double)v * unit;
        bytes[at] = (int8_t)high;
        bytes[at + COARSE_COLS] = (int8_t)(2 * (v - 128 * high));
    }
}

/* fix = -15 times the sum of v (split_query) over the eight columns of each partial sum: four
 * columns are a word, and the other four are 64 columns, which is 16 words, further. The low bytes
 * of a block follow 32 words after its high bytes. */
DEV void fix_query(const struct query_buffers *q, uint32_t row)
{
    const uint32_t n = q->n_blocks * COARSE_SUMS;
    const uint32_t *words =
        (const uint32_t *)(q->x + (uint64_t)row * q->n_blocks * 2 * COARSE_COLS);
    for (uint32_t i = thread_x(); i < n; i += n_threads_x()) {
        const uint32_t *w = words + i / COARSE_SUMS * (2 * COARSE_COLS / 4) + i % COARSE_SUMS;
        const int32_t high = dot4(w[0], 0x01010101u, dot4(w[16], 0x01010101u, 0));
        const int32_t low2 = dot4(w[32], 0x01010101u, dot4(w[48], 0x01010101u, 0));
        q->fix[(uint64_t)row * n + i] = -15 * (128 * high + low2 / 2);
    }
}

/* Error bound per block, as a factor of the block's step. The formulas are in docs/kernels.md, "The
 * bound". Sums over blocks are in ascending order. */
DEV void spread_query(const struct query_buffers *q, uint32_t row, const float *x, uint32_t n)
{
    SHARED double theta;
    double *norms = q->norms + (uint64_t)row * 2 * q->n_blocks;
    const double *errors = q->errors + (uint64_t)row * q->n_blocks * COARSE_COLS;
    float *spread = q->spread + (uint64_t)row * q->step_stride;
    for (uint32_t i = thread_x(); i < 2 * q->n_blocks; i += n_threads_x()) {
        const uint32_t first = i / 2 * COARSE_COLS;
        const uint32_t end = first + COARSE_COLS < n ? first + COARSE_COLS : n;
        double sum = 0.0;
#pragma unroll 16
        for (uint32_t j = first; j < end; j++) {
            const double e = i % 2 ? errors[j] : (double)x[j];
            sum = sum + e * e;
        }
        norms[i] = sum;
    }
    block_sync();
    for (uint32_t b = thread_x(); b < q->n_blocks; b += n_threads_x()) {
        const double h = sqrt(norms[2 * b]), miss = sqrt(norms[2 * b + 1]);
        norms[2 * b] = q->kappa * h;
        norms[2 * b + 1] =
            q->root * (15.0 * (miss + q->gamma * (2.0 * h + miss)) + (1.0 / 16384.0) * h);
    }
    block_sync();
    if (thread_x() == 0) {
        double a2 = 0.0, c2 = 0.0;
        for (uint32_t b = 0; b < q->n_blocks; b++) {
            a2 = a2 + norms[2 * b] * norms[2 * b];
            c2 = c2 + norms[2 * b + 1] * norms[2 * b + 1];
        }
        theta = sqrt(c2 / a2); /* neither is 0: the largest |x| is at least COARSE_X_MIN */
    }
    block_sync();
    for (uint32_t b = thread_x(); b < q->step_stride; b += n_threads_x()) {
        const double a = b < q->n_blocks ? norms[2 * b] : 0.0;
        const double c = b < q->n_blocks ? norms[2 * b + 1] : 0.0;
        spread[b] = (float)(1.01 * sqrt((1.0 + theta) * a * a + (1.0 + 1.0 / theta) * c * c));
    }
}

/* Grid: requested rows. */
KERNEL(head_norm, head_norm_args, 512)
{
    SHARED_WIDE float tile[ROW_TILE];
    const uint32_t row = block_x();
    const float *h = a.h + (uint64_t)a.requests[row].token * a.h_stride;
    float *x = a.x + (uint64_t)row * a.stride;
    const float r = 1.0f / sqrtf(block_square64(h, a.n, tile) / (float)a.n + a.eps);
    uint32_t largest = 0; /* bit pattern: NaN compares above infinity */
    const float *from = a.n <= ROW_TILE ? tile : h;
#pragma unroll 2
    for (uint32_t i = 4 * thread_x(); i < a.n; i += 4 * n_threads_x()) {
        const struct four in = load_four(from, i, a.n), w = load_four(a.w, i, a.n);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            const float y = ((in.at[e] * r) * w.at[e]) * a.factor;
            const uint32_t magnitude = bits_of_f32(y) & 0x7fffffffu;
            if (i + e >= a.n)
                continue;
            largest = magnitude > largest ? magnitude : largest;
            x[i + e] = y;
        }
    }
    if (thread_x() == 0)
        a.found[row].n = a.found[row].not_finite = a.found[row].n_read = 0;
    if (a.query.n_blocks == 0)
        return;
    const float most = f32_of_bits(block_max_u32(largest)); /* contains a barrier: all see x */
    const float unit = (float)((double)most / COARSE_LIMIT);
    const bool screened = most >= COARSE_X_MIN && most <= COARSE_X_MAX;
    if (thread_x() == 0) {
        a.query.screens[row].unit = unit;
        a.query.screens[row].screened = screened;
    }
    if (!screened)
        return;
    split_query(&a.query, row, x, a.n, (double)unit);
    block_sync();
    fix_query(&a.query, row);
    spread_query(&a.query, row, x, a.n);
}

#endif
