/*
 * Upper bounds of all logits, from the coarse plane and the queries (quantised hidden states). The
 * order of operations is that of coarse_bound on the CPU, also for several queries:
 * docs/kernels.md, "The head, screened".
 */
#ifndef CUDA_BOUNDS_CUH
#define CUDA_BOUNDS_CUH

#include "engine/cuda/kernels/head/cuda_head.cuh"
#include "engine/layout/coarse_code.h"

/* A warp has BEST_ROWS rows of the plane. It copies BOUND_BLOCKS blocks of columns of them to
 * shared memory at a time, so that the number of copies in flight does not depend on the order in
 * which the compiler places loads. While one part is used, the next one is on its way. Steps are
 * copied for STEP_BLOCKS blocks, which are 16 bytes. */
#define BOUND_WARPS 4
#define BOUND_BLOCKS 4
#define STEP_BLOCKS 8
#define PART_BYTES (BOUND_BLOCKS * LINE_BYTES) /* of a row */

struct bound_tile {
    uint8_t lines[2][BEST_ROWS * PART_BYTES];
    uint16_t steps[2][BEST_ROWS * STEP_BLOCKS];
};

/* Place of block b of a row in the part. The line of a block covers half of the banks, and all rows
 * start at the same bank. Eight lanes that load at once read the same block of two rows that are 2
 * apart, which would use the same banks. So every other pair of rows has neighbouring blocks
 * exchanged. */
DEV uint32_t place_of(uint32_t row, uint32_t b)
{
    return row * PART_BYTES + (b ^ (row / 2 % 2)) * LINE_BYTES;
}

/* Starts copying part `part` of the BEST_ROWS rows from `first` on, and ends a copy group. A
 * part past the last one is an empty copy group. Rows past the vocabulary repeat the last row.
 * coarse_bound_one (n_x = 1) runs for a single query, so it reads the plane once, and the
 * second-level cache need not keep it. With more queries, each set of HEAD_ROWS queries reads
 * it. */
DEV void copy_part(const struct bound_args *a, uint32_t first, uint32_t part, uint32_t n_x,
                   struct bound_tile *tile)
{
    const struct coarse_plane *plane = &a->plane;
    const uint32_t lane = thread_x() % 32, b0 = part * BOUND_BLOCKS, piece = lane % 16;
    const uint32_t last = a->out.n_vocab - 1 - first, row_bytes = plane->n_blocks * LINE_BYTES;
    const uint8_t *lines = plane->lines + (uint64_t)first * row_bytes + b0 * LINE_BYTES;
    const uint16_t *steps = plane->steps + (uint64_t)first * plane->step_stride + b0;
    if (b0 + piece / 4 < plane->n_blocks)
#pragma unroll
        for (uint32_t i = 0; i < BEST_ROWS / 2; i++) {
            const uint32_t row = 2 * i + lane / 16, at = row < last ? row : last;
            uint8_t *to = tile->lines[part % 2] + place_of(row, piece / 4) + piece % 4 * 16;
            if (n_x == 1)
                copy_stream(to, lines + at * row_bytes + 16 * piece);
            else
                copy_async(to, lines + at * row_bytes + 16 * piece, true);
        }
    if (b0 % STEP_BLOCKS == 0 && b0 < plane->n_blocks && lane < BEST_ROWS)
        copy_async(tile->steps[b0 / STEP_BLOCKS % 2] + lane * STEP_BLOCKS,
                   steps + (lane < last ? lane : last) * plane->step_stride, true);
    copy_async_commit();
}

/* Adds a line of two plane rows to four of their 16 partial sums. codes[r]: the thread's 16 bytes
 * of the line, columns c .. c + 15 and c + 64 .. c + 79; x: the query from column c on. The
 * terms of a sum are (2 code - 15) x: low bytes are stored doubled, so high bytes count 2 * 128,
 * and fix is the sum of -15 x. */
DEV void bound_line(const struct words *codes, const int8_t *x, const int32_t *fix,
                    const float *steps, float (*sums)[4])
{
    const struct words high0 = load_words(x), high1 = load_words(x + 64);
    const struct words low0 = load_words(x + COARSE_COLS), low1 = load_words(x + COARSE_COLS + 64);
    const struct words add = load_words(fix);
#pragma unroll
    for (uint32_t r = 0; r < 2; r++)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t c0 = codes[r].at[i] & 0x0f0f0f0fu,
                           c1 = codes[r].at[i] >> 4 & 0x0f0f0f0fu;
            const int32_t high = dot4(c0, high0.at[i], dot4(c1, high1.at[i], 0));
            const int32_t sum = dot4(c0, low0.at[i], dot4(c1, low1.at[i], 256 * high));
            sums[r][i] = fmaf((float)(sum + (int32_t)add.at[i]), steps[r], sums[r][i]);
        }
}

/* A step as F32. */
DEV float step_of(uint16_t step)
{
    return f32_of_bits((uint32_t)step << 16);
}

/* Adds the next STEP_BLOCKS blocks of a row to two of its eight sums of squares: thread `member` of
 * four has blocks 2 member and 2 member + 1. */
DEV void add_errors(const uint16_t *steps, const float *spread, uint32_t member, float *squares)
{
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        const float t = step_of(steps[2 * member + i]) * spread[2 * member + i];
        squares[i] = fmaf(t, t, squares[i]);
    }
}

/* Square of the error bound of a plane row, without COARSE_UNDERFLOW. All lanes of a warp must call
 * it; the four threads that share the row all get the result. */
DEV float square_of(float *squares)
{
    for (uint32_t mask = 2; mask > 0; mask /= 2)
#pragma unroll
        for (uint32_t i = 0; i < 2; i++)
            squares[i] = squares[i] + shuffle_xor_f32(squares[i], mask);
    return squares[0] + squares[1];
}

/* The tree of the 16 partial sums of a row; thread `member` of four has 4 member .. 4 member + 3.
 * All lanes of a warp must call it; all four threads get the result. */
DEV float tree_of(float *sums)
{
    for (uint32_t mask = 2; mask > 0; mask /= 2)
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            sums[i] = sums[i] + shuffle_xor_f32(sums[i], mask);
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* Sums of two plane rows for one query. */
struct bound_sums {
    float sums[2][4];    /* of the product */
    float squares[2][2]; /* of the error */
};

/* Number of the query i of the queries from x0 on. Queries past the last one repeat it. */
DEV uint32_t query_at(const struct bound_args *a, uint32_t x0, uint32_t i)
{
    return x0 + i < a->n_rows ? x0 + i : a->n_rows - 1;
}

/* Adds a part to the sums of the thread's two rows, for n_x queries. */
DEV void add_part(const struct bound_args *a, const struct bound_tile *tile, uint32_t part,
                  uint32_t x0, uint32_t n_x, struct bound_sums *sums)
{
    const struct query_buffers *q = &a->query;
    const uint32_t member = thread_x() % 4, row0 = thread_x() % 32 / 4 * 2;
    const uint32_t n_blocks = a->plane.n_blocks, b0 = part * BOUND_BLOCKS;
    const uint32_t n_here = n_blocks - b0 < BOUND_BLOCKS ? n_blocks - b0 : BOUND_BLOCKS;
    const uint8_t *lines = tile->lines[part % 2] + 16 * member;
    const uint16_t *steps = tile->steps[b0 / STEP_BLOCKS % 2];
#pragma unroll
    for (uint32_t i = 0; b0 % STEP_BLOCKS == 0 && i < n_x; i++)
#pragma unroll
        for (uint32_t r = 0; r < 2; r++)
            add_errors(steps + (row0 + r) * STEP_BLOCKS,
                       q->spread + (uint64_t)query_at(a, x0, i) * q->step_stride + b0, member,
                       sums[i].squares[r]);
#pragma unroll 2
    for (uint32_t u = 0; u < n_here; u++) {
        struct words codes[2];
        float step[2];
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            codes[r] = load_words(lines + place_of(row0 + r, u));
            step[r] = step_of(steps[(row0 + r) * STEP_BLOCKS + b0 % STEP_BLOCKS + u]);
        }
#pragma unroll
        for (uint32_t i = 0; i < n_x; i++) {
            const uint64_t at = (uint64_t)query_at(a, x0, i) * n_blocks + b0 + u;
            bound_line(codes, q->x + at * 2 * COARSE_COLS + 16 * member,
                       q->fix + at * COARSE_SUMS + 4 * member, step, sums[i].sums);
        }
    }
}

/* Stores the bounds of the thread's two rows, id and id + 1, for one query, and the warp's best. */
DEV void store_bounds(const struct bound_args *a, uint32_t row, uint32_t id,
                      struct bound_sums *sums)
{
    const struct cuda_screen *screen = a->query.screens + row;
    const uint32_t n_vocab = a->out.n_vocab;
    struct indexed_float best = {-INFINITY, id < n_vocab ? id : n_vocab - 1};
#pragma unroll
    for (uint32_t r = 0; r < 2; r++) {
        const float square = square_of(sums->squares[r]), tree = tree_of(sums->sums[r]);
        const float up =
            screen->screened ? screen->unit * tree + sqrtf(square + COARSE_UNDERFLOW) : INFINITY;
        if (id + r >= n_vocab)
            continue;
        if (thread_x() % 4 == 0)
            a->out.z[(uint64_t)row * a->out.z_stride + id + r] = up;
        if (up > best.v) {
            best.v = up;
            best.index = id + r;
        }
    }
    best = warp_largest(best);
    if (thread_x() % 32 == 0) {
        struct cuda_cand *to = a->out.bests + (uint64_t)row * a->out.best_stride + id / BEST_ROWS;
        to->id = (int32_t)best.index;
        to->logit = best.v;
    }
}

/* Bounds for queries x0 .. x0 + n_x - 1. n_x must be a compile-time constant in the caller, so
 * that the sums are in registers. Queries past the last one store its results again. Four threads
 * share two rows of the plane. The plane is constant, so the first copies start early. */
DEV void bound_rows(const struct bound_args *a, uint32_t x0, uint32_t n_x)
{
    SHARED_WIDE struct bound_tile tiles[BOUND_WARPS];
    struct bound_tile *tile = tiles + thread_x() / 32;
    const uint32_t first = block_x() * BOUND_ROWS + thread_x() / 32 * BEST_ROWS;
    const uint32_t n_parts = (a->plane.n_blocks + BOUND_BLOCKS - 1) / BOUND_BLOCKS;
    struct bound_sums sums[HEAD_ROWS] = {{{{0.0f}}, {{0.0f}}}};
    const bool exists = first < a->out.n_vocab;
    for (uint32_t part = 0; exists && part < 2; part++)
        copy_part(a, first, part, n_x, tile);
    wait_for_grid();
    if (!exists)
        return;
#pragma unroll 1
    for (uint32_t part = 0; part < n_parts; part++) {
        copy_async_wait_but_one();
        warp_sync();
        add_part(a, tile, part, x0, n_x, sums);
        warp_sync();
        copy_part(a, first, part + 2, n_x, tile);
    }
#pragma unroll
    for (uint32_t i = 0; i < n_x; i++)
        store_bounds(a, query_at(a, x0, i), first + thread_x() % 32 / 4 * 2, sums + i);
}

/* Grid: sets of BOUND_ROWS plane rows; 1 for the single query, or sets of HEAD_ROWS queries. */
KERNEL_EARLY(coarse_bound_one, bound_args, 128)
{
    bound_rows(&a, block_y(), 1);
}

KERNEL_EARLY(coarse_bound_few, bound_args, 128)
{
    bound_rows(&a, HEAD_ROWS * block_y(), HEAD_ROWS);
}

#endif
