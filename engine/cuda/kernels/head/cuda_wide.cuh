/*
 * Products of single table rows with a hidden state, for the few rows that a request or the
 * selection names. For few rows the time is that of waiting for memory. So 16 threads share a row,
 * and each of them starts all loads of its part of up to 2,560 columns before it uses one.
 */
#ifndef CUDA_WIDE_CUH
#define CUDA_WIDE_CUH

#include "engine/cuda/kernels/head/cuda_head.cuh"

#define WIDE_BATCH 40 /* 8-byte loads that a thread of wide_dot has in flight: 2,560 columns */
#define WIDE_TILE (3 * 64 * WIDE_BATCH) /* columns of x in shared memory: 30 kB */

/* Whether wide_dot can compute dot64 of table rows and x. */
DEV bool is_wide(const struct dot_args *a)
{
    return a->type == TENSOR_F16 && a->n % 64 == 0 && a->row_bytes % 8 == 0 && a->n <= WIDE_TILE;
}

/* Starts copying x to shared memory if is_wide. It returns the copy or x itself, for wide_dot. The
 * thread block must call copy_async_wait and then block_sync before it uses the copy. */
DEV const float *copy_wide(const struct dot_args *a, const float *x)
{
    SHARED_WIDE float tile[WIDE_TILE];
    if (!is_wide(a))
        return x;
    copy_row(tile, x, a->n);
    return tile;
}

/* dot64 of a table row and x (copy_wide), by 16 threads; all of them get the result. All lanes of a
 * warp must call it. Each thread has four of the 64 partial sums. */
DEV float wide_dot(const struct dot_args *a, uint32_t id, const float *x)
{
    const uint32_t member = thread_x() % 16;
    const uint8_t *row = a->table + id * a->row_bytes + 8 * member;
    float sums[4] = {0.0f};
    if (!is_wide(a))
        return row_dot(a, id, x); /* two sets of eight threads compute the same */
    for (uint32_t first = 0; first < a->n; first += 64 * WIDE_BATCH) {
        uint64_t w[WIDE_BATCH];
#pragma unroll
        for (uint32_t u = 0; u < WIDE_BATCH; u++)
            w[u] = first + 64 * u < a->n ? load_once_u64(row + 2 * (first + 64 * u)) : 0;
        warp_sync();
#pragma unroll
        for (uint32_t u = 0; u < WIDE_BATCH; u++) {
            const bool exists = first + 64 * u < a->n;
            const struct words v = load_words(x + first + 64 * u + 4 * member); /* in the tile */
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                const float f = f32_of_f16((uint16_t)(w[u] >> 16 * e));
                sums[e] = exists ? fmaf(f, f32_of_bits(v.at[e]), sums[e]) : sums[e];
            }
        }
    }
    for (uint32_t mask = 8; mask > 0; mask /= 2)
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            sums[e] = sums[e] + shuffle_xor_f32(sums[e], mask);
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* Logits of the table rows in ids, in that order, for one row x. Grid: sets of DOT_ROWS ids. */
KERNEL(rows_dot_listed, dot_args, 16 * DOT_ROWS)
{
    const uint32_t i = block_x() * DOT_ROWS + thread_x() / 16, n = a.out.n_vocab;
    const float *x = copy_wide(&a, a.x);
    copy_async_wait();
    block_sync();
    const float z = wide_dot(&a, (uint32_t)a.ids[i < n ? i : n - 1], x);
    if (thread_x() % 16 == 0 && i < n)
        a.out.z[i] = z;
}

#endif
