/*
 * Embedding rows, and products of the output head with hidden states.
 *
 * In the products, eight threads share a table row. Each has eight of the 64 partial sums of dot64,
 * and decodes eight consecutive elements at a time.
 */
#ifndef CUDA_HEAD_CUH
#define CUDA_HEAD_CUH

#include "engine/cuda/kernels/device/cuda_reduce.cuh"
#include "engine/gguf/gguf_types.h"

DEV uint32_t load_u16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

DEV float load_f16(const uint8_t *p)
{
    return f32_of_f16((uint16_t)load_u16(p));
}

/* One element of a row in F16, BF16 or F32. */
DEV float plain_element(const uint8_t *row, uint32_t type, uint32_t i)
{
    if (type == TENSOR_F16)
        return load_f16(row + 2 * (uint64_t)i);
    if (type == TENSOR_BF16)
        return f32_of_bits(load_u16(row + 2 * (uint64_t)i) << 16);
    return f32_of_bits(load_u16(row + 4 * (uint64_t)i) | load_u16(row + 4 * (uint64_t)i + 2) << 16);
}

/* Eight elements from i on, a multiple of 8; zeros past n. */
DEV void decode_plain(const uint8_t *row, uint32_t type, uint32_t i, uint32_t n, float *out)
{
    const uint32_t n_left = n - i < 8 ? n - i : 8;
    if (type == TENSOR_F16 && n_left == 8 && ((uintptr_t)row & 15) == 0) {
        const struct words w = load_once(row + 2 * (uint64_t)i);
#pragma unroll
        for (uint32_t e = 0; e < 8; e++)
            out[e] = f32_of_f16((uint16_t)(w.at[e / 2] >> (e % 2 * 16)));
        return;
    }
#pragma unroll
    for (uint32_t e = 0; e < 8; e++)
        out[e] = e < n_left ? plain_element(row, type, i + e) : 0.0f;
}

/* Block of 32 elements, 34 bytes: d, q[32]. d, and dmin of Q4_K, are F16. */
DEV void decode_q8_0(const uint8_t *row, uint32_t i, float *out)
{
    const uint8_t *block = row + (uint64_t)(i / 32) * Q8_0_BYTES;
    const float d = load_f16(block);
    for (uint32_t e = 0; e < 8; e++)
        out[e] = d * (float)(int8_t)block[2 + i % 32 + e];
}

/* Block of 32 elements, 18 bytes: d, nibbles[16]; the low nibbles are the first half. */
DEV void decode_q4_0(const uint8_t *row, uint32_t i, float *out)
{
    const uint8_t *block = row + (uint64_t)(i / 32) * Q4_0_BYTES;
    const float d = load_f16(block);
    const uint32_t shift = i % 32 < 16 ? 0 : 4;
    for (uint32_t e = 0; e < 8; e++)
        out[e] = d * (float)((int32_t)(block[2 + i % 16 + e] >> shift & 15) - 8);
}

/* Block of 256 elements, 144 bytes: d, dmin, twelve bytes of 6-bit scales and minima (packed as in
 * docs/formats.md), nibbles[128]. */
DEV void decode_q4_k(const uint8_t *row, uint32_t i, float *out)
{
    const uint8_t *block = row + (uint64_t)(i / 256) * Q4_K_BYTES, *s = block + 4;
    const uint32_t j = i % 256 / 32, l = i % 32;
    const int32_t sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    const int32_t m = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
    const float scale = load_f16(block) * (float)sc, offset = load_f16(block + 2) * (float)m;
    for (uint32_t e = 0; e < 8; e++) {
        const int32_t q = block[16 + 32 * (j / 2) + l + e] >> (4 * (j % 2)) & 15;
        out[e] = scale * (float)q - offset;
    }
}

/* Block of 256 elements, 210 bytes: low nibbles[128], high bit pairs[64], 8-bit scales[16], d.
 * Element i is element l of quarter g of half h. */
DEV void decode_q6_k(const uint8_t *row, uint32_t i, float *out)
{
    const uint8_t *block = row + (uint64_t)(i / 256) * Q6_K_BYTES;
    const uint32_t h = i % 256 / 128, g = i % 128 / 32, l = i % 32;
    const float scale = load_f16(block + 208) * (float)(int8_t)block[192 + 8 * h + l / 16 + 2 * g];
    for (uint32_t e = 0; e < 8; e++) {
        const int32_t low = block[64 * h + l + e + 32 * (g & 1)] >> (g < 2 ? 0 : 4) & 15;
        const int32_t high = block[128 + 32 * h + l + e] >> (2 * g) & 3;
        out[e] = scale * (float)((low | high << 4) - 32);
    }
}

/* Elements i .. i + 7 of a row of n elements; i is a multiple of 8. Zeros past n. */
DEV void decode_eight(const uint8_t *row, uint32_t type, uint32_t i, uint32_t n, float *out)
{
    if (type == TENSOR_Q8_0)
        decode_q8_0(row, i, out);
    else if (type == TENSOR_Q4_0)
        decode_q4_0(row, i, out);
    else if (type == TENSOR_Q4_K)
        decode_q4_k(row, i, out);
    else if (type == TENSOR_Q6_K)
        decode_q6_k(row, i, out);
    else
        decode_plain(row, type, i, n, out);
}

/* Grid: tokens, sets of EMBED_COLS columns. A thread has eight columns. */
KERNEL(embed_rows, embed_args, EMBED_COLS / 8)
{
    const uint8_t *row = a.table + (uint64_t)a.tokens[block_x()].id * a.row_bytes;
    float *h = a.h + (uint64_t)block_x() * a.stride;
    const uint32_t i = block_y() * EMBED_COLS + 8 * thread_x();
    float x[8];
    if (i >= a.n)
        return;
    decode_eight(row, a.type, i, a.n, x);
    for (uint32_t e = 0; e < 8 && i + e < a.n; e++)
        h[i + e] = x[e] * a.factor;
}

/* The tree of sum64; thread `member` of eight has partial sums 8 member + e. All lanes of a warp
 * must call it; all eight threads get the result. */
DEV float dot_tree(float *sums)
{
    for (uint32_t mask = 4; mask > 0; mask /= 2)
#pragma unroll
        for (uint32_t e = 0; e < 8; e++)
            sums[e] = sums[e] + shuffle_xor_f32(sums[e], mask);
#pragma unroll
    for (uint32_t half = 4; half > 0; half /= 2)
#pragma unroll
        for (uint32_t e = 0; e < half; e++)
            sums[e] = sums[e] + sums[e + half];
    return sums[0];
}

/* Adds the products of the first n elements of w and x to sums, n at most 8. */
DEV void add_eight(float *sums, const float *w, const float *x, uint32_t n)
{
#pragma unroll
    for (uint32_t e = 0; e < 8; e++)
        if (e < n)
            sums[e] = fmaf(w[e], x[e], sums[e]);
}

/* dot64 of a table row and x, by eight threads. All lanes of a warp must call it. */
DEV float row_dot(const struct dot_args *a, uint32_t id, const float *x)
{
    const uint32_t member = thread_x() % 8;
    const uint8_t *row = a->table + id * a->row_bytes;
    float sums[8] = {0.0f};
    for (uint32_t i = 8 * member; i < a->n; i += 64) {
        const uint32_t n_left = a->n - i < 8 ? a->n - i : 8;
        float w[8];
        decode_eight(row, a->type, i, a->n, w);
        add_eight(sums, w, x + i, n_left);
    }
    return dot_tree(sums);
}

/* Stores the best of the logits z of BEST_ROWS table rows from `first` on. Its id is valid even if
 * all logits are NaN. */
DEV void store_best(const struct logit_buffers *out, uint32_t row, uint32_t first, const float *z)
{
    struct cuda_cand best = {(int32_t)first, -INFINITY};
    for (uint32_t i = 0; i < BEST_ROWS && first + i < out->n_vocab; i++)
        if (z[i] > best.logit) {
            best.logit = z[i];
            best.id = (int32_t)(first + i);
        }
    out->bests[(uint64_t)row * out->best_stride + first / BEST_ROWS] = best;
}

/* Logits of DOT_ROWS table rows for rows x0 .. x0 + n_x - 1 of x. n_x must be a compile-time
 * constant in the caller, so that `sums` is in registers. Rows of x past a->n_rows repeat the last
 * row. */
DEV void dot_rows(const struct dot_args *a, uint32_t x0, uint32_t n_x)
{
    SHARED float zs[HEAD_ROWS][DOT_ROWS];
    const uint32_t member = thread_x() % 8, slot = thread_x() / 8, first = block_x() * DOT_ROWS;
    const uint32_t id = first + slot, n_vocab = a->out.n_vocab;
    const uint8_t *row = a->table + (id < n_vocab ? id : n_vocab - 1) * a->row_bytes;
    float sums[HEAD_ROWS][8] = {{0.0f}};
#pragma unroll 2
    for (uint32_t i = 8 * member; i < a->n; i += 64) {
        const uint32_t n_left = a->n - i < 8 ? a->n - i : 8;
        float w[8];
        decode_eight(row, a->type, i, a->n, w);
#pragma unroll
        for (uint32_t r = 0; r < n_x; r++) {
            const uint32_t at = x0 + r < a->n_rows ? x0 + r : a->n_rows - 1;
            add_eight(sums[r], w, a->x + (uint64_t)at * a->x_stride + i, n_left);
        }
    }
#pragma unroll
    for (uint32_t r = 0; r < n_x; r++) {
        const float z = dot_tree(sums[r]);
        if (member == 0 && id < n_vocab && x0 + r < a->n_rows) {
            a->out.z[(uint64_t)(x0 + r) * a->out.z_stride + id] = z;
            if (z - z != 0.0f) /* infinite or NaN */
                a->found[x0 + r].not_finite = 1;
        }
        if (member == 0)
            zs[r][slot] = z;
    }
    block_sync();
    if (thread_x() < n_x && x0 + thread_x() < a->n_rows)
        store_best(&a->out, x0 + thread_x(), first, zs[thread_x()]);
}

/* Grid: sets of DOT_ROWS table rows; rows of x, or sets of HEAD_ROWS of them. */
KERNEL(rows_dot_one, dot_args, 128)
{
    dot_rows(&a, block_y(), 1);
}

KERNEL(rows_dot_few, dot_args, 128)
{
    dot_rows(&a, HEAD_ROWS * block_y(), HEAD_ROWS);
}

/* For logits that another kernel has computed: records the best of each BEST_ROWS, and whether all
 * are finite. A thread has BEST_ROWS logits. Grid: sets of SCAN_THREADS * BEST_ROWS logits,
 * requested rows. */
KERNEL(scan_logits, dot_args, SCAN_THREADS)
{
    const uint32_t row = block_y(), n_vocab = a.out.n_vocab;
    const uint32_t first = (block_x() * n_threads_x() + thread_x()) * BEST_ROWS;
    const float *z = a.out.z + (uint64_t)row * a.out.z_stride + first;
    if (first >= n_vocab)
        return;
    for (uint32_t i = 0; i < BEST_ROWS && first + i < n_vocab; i++)
        if (z[i] - z[i] != 0.0f) /* infinite or NaN */
            a.found[row].not_finite = 1;
    store_best(&a.out, row, first, z);
}

#endif
