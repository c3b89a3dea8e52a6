/*
 * From rows of logits to candidates, so that ids and not logits leave the device: Gumbel draws, and
 * a set that holds at least the k best and those within the gap. The host sorts and cuts it.
 */
#ifndef ENGINE_CUDA_CUDA_PICK_CUH
#define ENGINE_CUDA_CUDA_PICK_CUH

#include "engine/base/noise.h"
#include "engine/cuda/cuda_math.cuh"

/* Does draw a stand before b? Ties go to the lower id. */
DEV bool draw_before(struct cuda_draw a, struct cuda_draw b)
{
    return a.noisy > b.noisy || (a.noisy == b.noisy && a.id < b.id);
}

/* The best of what the threads of a block hold, for thread 0. */
DEV struct cuda_draw block_draw(struct cuda_draw mine)
{
    SHARED struct cuda_draw draws[PICK_THREADS];
    draws[thread_x()] = mine;
    block_sync();
    for (uint32_t half = n_threads_x() / 2; half > 0; half /= 2) {
        if (thread_x() < half && draw_before(draws[thread_x() + half], draws[thread_x()]))
            draws[thread_x()] = draws[thread_x() + half];
        block_sync();
    }
    return draws[0];
}

DEV struct cuda_draw no_draw(void)
{
    struct cuda_draw d = {-INFINITY, INT32_MAX, 0};
    return d;
}

/* Gumbel noise: argmax of z / temp + g(seed, position, id) of a part of the ids. Grid: parts, rows.
 * In double, where z / temp is a number for every finite z and every temp above zero. */
KERNEL(pick_draw, pick_args, 256)
{
    const struct cuda_want want = a.wants[block_y()];
    const float *z = a.z + (uint64_t)block_y() * a.z_stride;
    const uint64_t key = noise_key(want.seed, want.position);
    struct cuda_draw best = no_draw();
    if (want.beta == 0.0)
        return;
    for (uint32_t id = block_x() * n_threads_x() + thread_x(); id < a.n_vocab;
         id += n_blocks_x() * n_threads_x()) {
        const double scaled = (double)z[id] * want.beta;
        if (scaled + NOISE_GUMBEL_MAX <= best.noisy)
            continue; /* no noise lifts it that far */
        struct cuda_draw one = {scaled + noise_gumbel(key, id), (int32_t)id, 0};
        best = draw_before(one, best) ? one : best;
    }
    best = block_draw(best);
    if (thread_x() == 0)
        a.draws[(uint64_t)block_y() * n_blocks_x() + block_x()] = best;
}

/* The k-th largest of what the threads hold, k from 1 to their number: at least k logits are as
 * large as that. */
DEV float block_kth(float mine, uint32_t k)
{
    SHARED float all[PICK_THREADS];
    uint32_t n_greater = 0;
    all[thread_x()] = mine;
    block_sync();
    for (uint32_t i = 0; i < n_threads_x(); i++)
        n_greater += all[i] > mine;
    /* The smallest that has fewer than k above it, as a maximum of negatives. */
    return -block_max(n_greater < k ? -mine : -INFINITY);
}

/* One row of logits: is every one finite, and which may be wanted? A block a row. */
KERNEL(pick_rows, pick_args, PICK_THREADS)
{
    SHARED uint32_t n_found;
    const struct cuda_want want = a.wants[block_x()];
    const float *z = a.z + (uint64_t)block_x() * a.z_stride;
    struct cuda_found *found = a.found + block_x();
    struct cuda_cand *more = a.more + (uint64_t)block_x() * a.z_stride;
    float best = -INFINITY;
    int32_t not_finite = 0;
#pragma unroll 8
    for (uint32_t id = thread_x(); id < a.n_vocab; id += n_threads_x()) {
        not_finite |= (bits_of_f32(z[id]) & 0x7fffffffu) >= 0x7f800000u;
        best = z[id] > best ? z[id] : best;
    }
    not_finite = block_sum_i32(not_finite);
    if (thread_x() == 0) {
        n_found = 0;
        found->not_finite = (uint32_t)not_finite;
    }
    if (want.beta != 0.0) {
        const struct cuda_draw *draws = a.draws + (uint64_t)block_x() * GUMBEL_PARTS;
        const struct cuda_draw draw =
            block_draw(thread_x() < GUMBEL_PARTS ? draws[thread_x()] : no_draw());
        if (thread_x() == 0 && not_finite == 0) {
            struct cuda_cand c = {draw.id, z[draw.id]};
            found->first[0] = c;
            found->n = 1;
        }
        return;
    }
    /* More than there are threads: let the host have all. */
    float floor = want.k <= n_threads_x() ? block_kth(best, want.k > 0 ? want.k : 1) : -INFINITY;
    const float gap_floor = block_max(best) - want.gap;
    if (want.gap > 0.0f && gap_floor < floor)
        floor = gap_floor;
    const uint32_t n_ids = want.k > 0 ? a.n_vocab : 0;
#pragma unroll 8
    for (uint32_t id = thread_x(); id < n_ids; id += n_threads_x())
        if (z[id] >= floor) {
            struct cuda_cand c = {(int32_t)id, z[id]};
            const uint32_t at = count_up(&n_found);
            more[at] = c;
            if (at < PICK_FIRST)
                found->first[at] = c;
        }
    block_sync();
    if (thread_x() == 0)
        found->n = n_found;
}

KERNEL(gather_logits, gather_args, 128)
{
    for (uint32_t i = block_x() * n_threads_x() + thread_x(); i < a.n;
         i += n_blocks_x() * n_threads_x())
        a.out[i] = a.z[a.ids[i]];
}

#endif
