/*
 * Reductions over a warp or a thread block: sum64 of docs/kernels.md, which has 64 partial sums,
 * and others that are exact in any order.
 */
#ifndef CUDA_REDUCE_CUH
#define CUDA_REDUCE_CUH

#include "engine/cuda/kernels/device/cuda_math.cuh"

#define MAX_WARPS 32   /* per thread block: 1024 threads */
#define SQUARE_BATCH 6 /* elements that a thread of add_squares loads ahead */

/* The last steps of sum64. In lane l, v is partial sum l plus partial sum l + 32. Addition is
 * commutative, so both lanes of a pair compute the same bits. */
DEV float warp_tree(float v)
{
    for (uint32_t mask = 16; mask > 0; mask /= 2)
        v = v + shuffle_xor_f32(v, mask);
    return v;
}

/* sum64: threads 0 .. 63 pass the partial sums, every thread gets the total. Needs at least 64
 * threads, and all threads of the thread block must call it. Every warp computes the same tree,
 * which costs less than a second barrier. A kernel needs a barrier between two calls. */
DEV float block_sum64(float v)
{
    SHARED float sums[64];
    const uint32_t lane = thread_x() % 32;
    if (thread_x() < 64)
        sums[thread_x()] = v;
    block_sync();
    return warp_tree(sums[lane] + sums[lane + 32]);
}

/* Starts copying n elements to shared memory, 16 bytes at a time; the last n % 4 elements are
 * stored directly, and zeros after them up to a multiple of 4. Both addresses must be 16-byte
 * aligned. After copy_async_wait and a barrier all threads see the elements. */
DEV void copy_row(float *to, const float *x, uint32_t n)
{
#pragma unroll 1
    for (uint32_t i = 4 * thread_x(); i < n; i += 4 * n_threads_x())
        if (i + 4 <= n) {
            copy_async(to + i, x + i, true);
        } else {
#pragma unroll 1
            for (uint32_t j = i; j < i + 4; j++)
                to[j] = j < n ? x[j] : 0.0f;
        }
}

/* The sum of v and the squares of elements thread_x(), thread_x() + 64, ... of tile (n), in this
 * order. The loads of a batch start before the previous batch is added, because otherwise each
 * batch would wait for shared memory. Whole batches need no comparison for each element. */
DEV float add_squares(const float *tile, uint32_t n, float v)
{
    const float *x = tile + thread_x();
    const uint32_t n_steps = thread_x() < n ? (n - thread_x() + 63) / 64 : 0;
    uint32_t step = SQUARE_BATCH;
    float next[SQUARE_BATCH];
    if (n_steps < SQUARE_BATCH) {
        step = 0;
    } else {
#pragma unroll
        for (uint32_t u = 0; u < SQUARE_BATCH; u++)
            next[u] = x[64 * u];
        for (; step + SQUARE_BATCH <= n_steps; step += SQUARE_BATCH) {
            float now[SQUARE_BATCH];
#pragma unroll
            for (uint32_t u = 0; u < SQUARE_BATCH; u++) {
                now[u] = next[u];
                next[u] = x[64 * (step + u)];
            }
#pragma unroll
            for (uint32_t u = 0; u < SQUARE_BATCH; u++)
                v = fmaf(now[u], now[u], v);
        }
#pragma unroll
        for (uint32_t u = 0; u < SQUARE_BATCH; u++)
            v = fmaf(next[u], next[u], v);
    }
#pragma unroll 4
    for (; step < n_steps; step++)
        v = fmaf(x[64 * step], x[64 * step], v);
    return v;
}

/* dot64(x, x) of one row by the whole block. The row is copied to shared memory by all threads,
 * because the 64 threads that compute would wait for each load. ROW_TILE is a multiple of 64, so a
 * thread adds to the same partial sum in every tile. If the row has ROW_TILE elements or fewer,
 * `tile` contains it afterwards. */
DEV float block_square64(const float *x, uint32_t n, float *tile)
{
    float v = 0.0f;
    for (uint32_t first = 0; first < n; first += ROW_TILE) {
        const uint32_t n_here = n - first < ROW_TILE ? n - first : ROW_TILE;
        if (first > 0)
            block_sync();
        copy_row(tile, x + first, n_here);
        copy_async_wait();
        block_sync();
        if (thread_x() < 64)
            v = add_squares(tile, n_here, v);
    }
    return block_sum64(v);
}

/* The maximum of each n_lanes lanes in a row, a power of two. No lane may pass a NaN. All lanes of
 * the warp must call this. */
DEV float lanes_max(float v, uint32_t n_lanes)
{
    for (uint32_t mask = n_lanes / 2; mask > 0; mask /= 2) {
        const float other = shuffle_xor_f32(v, mask);
        v = other > v ? other : v;
    }
    return v;
}

/* The maximum of the lanes of a warp. No lane may pass a NaN. */
DEV float warp_max(float v)
{
    return lanes_max(v, 32);
}

DEV double shuffle_xor_f64(double v, uint32_t mask)
{
    union {
        double d;
        uint32_t u[2];
    } other = {v};
    other.u[0] = shuffle_xor_u32(other.u[0], mask);
    other.u[1] = shuffle_xor_u32(other.u[1], mask);
    return other.d;
}

/* Defines a function that returns the maximum over all threads of the thread block, whose number
 * must be a multiple of 32. All threads of the block must call it, and none may pass a NaN. It ends
 * with a barrier, so that the next call may overwrite `best` at once. */
#define BLOCK_MAX(name, type, shuffle_xor)                                                         \
    DEV type name(type v)                                                                          \
    {                                                                                              \
        SHARED type best[MAX_WARPS];                                                               \
        for (uint32_t mask = 16; mask > 0; mask /= 2) {                                            \
            const type other = shuffle_xor(v, mask);                                               \
            v = other > v ? other : v;                                                             \
        }                                                                                          \
        if (thread_x() % 32 == 0)                                                                  \
            best[thread_x() / 32] = v;                                                             \
        block_sync();                                                                              \
        for (uint32_t i = 0; i < n_threads_x() / 32; i++)                                          \
            v = best[i] > v ? best[i] : v;                                                         \
        block_sync();                                                                              \
        return v;                                                                                  \
    }

BLOCK_MAX(block_max, float, shuffle_xor_f32)
BLOCK_MAX(block_max_u32, uint32_t, shuffle_xor_u32)
BLOCK_MAX(block_max_f64, double, shuffle_xor_f64)

struct indexed_float {
    float v;
    uint32_t index;
};

/* The largest value of the warp, for all lanes; of equal values the one with the lowest index. */
DEV struct indexed_float warp_largest(struct indexed_float mine)
{
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
        const float v = shuffle_xor_f32(mine.v, mask);
        const uint32_t index = shuffle_xor_u32(mine.index, mask);
        if (v > mine.v || (v == mine.v && index < mine.index)) {
            mine.v = v;
            mine.index = index;
        }
    }
    return mine;
}

/* As block_max, for values that are not negative: their bit patterns have the same order. A kernel
 * needs a barrier between two calls. */
DEV float block_max_positive(float v)
{
    SHARED uint32_t best[MAX_WARPS];
    const uint32_t of_warp = warp_max_u32(bits_of_f32(v)), lane = thread_x() % 32;
    if (lane == 0)
        best[thread_x() / 32] = of_warp;
    block_sync();
    return f32_of_bits(warp_max_u32(lane < n_threads_x() / 32 ? best[lane] : 0));
}

/* Maps floats to integers in the same order, -0 below +0; NaN becomes the smallest integer. */
DEV uint32_t order_of(float v)
{
    const uint32_t bits = bits_of_f32(v);
    if (v != v)
        return 0;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The k-th largest of one value per thread; k is at least 1 and at most the number of threads. The
 * loop finds, bit by bit, the largest integer that at least k results of order_of reach. Returns
 * -infinity if fewer than k values are numbers. All threads of the thread block must call it. */
DEV float block_kth(float mine, uint32_t k)
{
    const uint32_t order = order_of(mine);
    uint32_t kth = 0;
    for (uint32_t bit = 0x80000000u; bit > 0; bit >>= 1)
        if (block_count(order >= (kth | bit)) >= k)
            kth |= bit;
    if (kth == 0)
        return -INFINITY;
    return f32_of_bits(kth >> 31 ? kth & 0x7fffffffu : ~kth);
}

/* The sum over all threads of the thread block, whose number must be a multiple of 32. All of them
 * must call it. Contains a barrier, after which all threads see earlier writes of the others. A
 * kernel needs another barrier between two calls. */
DEV int32_t block_sum_i32(int32_t v)
{
    SHARED int32_t sums[MAX_WARPS];
    const int32_t warp_sum = warp_sum_i32(v);
    const uint32_t lane = thread_x() % 32;
    if (lane == 0)
        sums[thread_x() / 32] = warp_sum;
    block_sync();
    return warp_sum_i32(lane < n_threads_x() / 32 ? sums[lane] : 0);
}

#endif
