/*
 * Upper bounds of all logits, from the coarse plane and the queries (quantised hidden states). The
 * order of operations is that of coarse_bound on the CPU, also for several queries:
 * docs/kernels.md, "The head, screened".
 */
#ifndef CUDA_BOUNDS_CUH
#define CUDA_BOUNDS_CUH

#include "engine/cuda/kernels/cuda_head.cuh"

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

/* The step of block b as F32. */
DEV float step_of(const uint16_t *steps, uint32_t b)
{
    return f32_of_bits((uint32_t)steps[b] << 16);
}

/* Square of the error bound of a plane row, without the 1e-36. All lanes of a warp must call it;
 * the four threads that share the row all get the result. */
DEV float square_of(const uint16_t *steps, const float *spread, uint32_t member, uint32_t stride)
{
    float squares[2] = {0.0f, 0.0f};
    for (uint32_t b = 2 * member; b < stride; b += 8)
#pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            const float t = step_of(steps, b + i) * spread[b + i];
            squares[i] = fmaf(t, t, squares[i]);
        }
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

/* Returns the best candidate of the warp to all lanes; of equal logits, the lowest id wins. */
DEV struct cuda_cand warp_best(struct cuda_cand mine)
{
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
        const float z = shuffle_xor_f32(mine.logit, mask);
        const int32_t id = (int32_t)shuffle_xor_u32((uint32_t)mine.id, mask);
        if (z > mine.logit || (z == mine.logit && id < mine.id)) {
            mine.logit = z;
            mine.id = id;
        }
    }
    return mine;
}

/* 16 bytes of the plane. coarse_bound_one (n_x = 1) runs for a single query, so it reads the plane
 * once, and the second-level cache need not keep it. With more queries, each group of HEAD_ROWS
 * queries reads it. */
DEV struct words load_plane(const uint8_t *p, uint32_t n_x)
{
    return n_x == 1 ? load_stream(p) : load_once(p);
}

/* Bounds for queries x0 .. x0 + n_x - 1. n_x must be a compile-time constant in the caller, so
 * that `sums` is in registers. Queries past the last one repeat it and store its results again.
 * Four threads share two rows of the plane, so a warp processes BEST_ROWS rows. */
DEV void bound_rows(const struct bound_args *a, uint32_t x0, uint32_t n_x)
{
    const struct coarse_plane *plane = &a->plane;
    const struct query_buffers *q = &a->query;
    const uint32_t member = thread_x() % 4, n_vocab = a->out.n_vocab, n_blocks = plane->n_blocks;
    const uint32_t id = (block_x() * n_threads_x() + thread_x()) / 4 * 2;
    const uint8_t *lines[2];
    const uint16_t *steps[2];
    float sums[HEAD_ROWS][2][4] = {{{0.0f}}};
    for (uint32_t r = 0; r < 2; r++) {
        const uint64_t at = id + r < n_vocab ? id + r : n_vocab - 1;
        lines[r] = plane->lines + at * n_blocks * LINE_BYTES + 16 * member;
        steps[r] = plane->steps + at * plane->step_stride;
    }
#pragma unroll 4
    for (uint32_t b = 0; b < n_blocks; b++) {
        const struct words codes[2] = {load_plane(lines[0] + LINE_BYTES * b, n_x),
                                       load_plane(lines[1] + LINE_BYTES * b, n_x)};
        const float step[2] = {step_of(steps[0], b), step_of(steps[1], b)};
#pragma unroll
        for (uint32_t i = 0; i < n_x; i++) {
            const uint64_t at =
                (uint64_t)(x0 + i < a->n_rows ? x0 + i : a->n_rows - 1) * n_blocks + b;
            bound_line(codes, q->x + at * 2 * COARSE_COLS + 16 * member,
                       q->fix + at * COARSE_SUMS + 4 * member, step, sums[i]);
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < n_x; i++) {
        const uint32_t row = x0 + i < a->n_rows ? x0 + i : a->n_rows - 1;
        const struct cuda_screen *screen = q->screens + row;
        struct cuda_cand best = {(int32_t)(id < n_vocab ? id : n_vocab - 1), -INFINITY};
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            const float square = square_of(steps[r], q->spread + (uint64_t)row * q->step_stride,
                                           member, plane->step_stride);
            const float tree = tree_of(sums[i][r]);
            const float up =
                screen->screened ? screen->unit * tree + sqrtf(square + 1e-36f) : INFINITY;
            if (id + r >= n_vocab)
                continue;
            if (member == 0)
                a->out.z[(uint64_t)row * a->out.z_stride + id + r] = up;
            if (up > best.logit) {
                best.logit = up;
                best.id = (int32_t)(id + r);
            }
        }
        best = warp_best(best);
        if (thread_x() % 32 == 0 && id < n_vocab)
            a->out.bests[(uint64_t)row * a->out.best_stride + id / BEST_ROWS] = best;
    }
}

/* Grid: groups of BOUND_ROWS plane rows; 1 for the single query, or groups of HEAD_ROWS queries. */
KERNEL(coarse_bound_one, bound_args, 128)
{
    bound_rows(&a, block_y(), 1);
}

KERNEL(coarse_bound_few, bound_args, 128)
{
    bound_rows(&a, HEAD_ROWS * block_y(), HEAD_ROWS);
}

/* For logits that another kernel has computed: records the best of each BEST_ROWS, and whether all
 * are finite. A thread has BEST_ROWS logits. Grid: groups of SCAN_THREADS * BEST_ROWS logits,
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
