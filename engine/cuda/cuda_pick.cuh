/*
 * From logits, or bounds of them, to candidates, so that ids and not logits leave the device: a set
 * that holds at least the k best and those within the gap, or whoever may win a Gumbel draw. The
 * host sorts and cuts it.
 *
 * First a floor under what is wanted: the exact logits of the rows that look best (the best of each
 * part of the table is known), of which the k-th best is a floor under the true k-th best. Then all
 * rows whose logit or bound reaches the floor; where it is a bound the row itself is multiplied.
 */
#ifndef ENGINE_CUDA_CUDA_PICK_CUH
#define ENGINE_CUDA_CUDA_PICK_CUH

#include "engine/base/noise.h"
#include "engine/cuda/cuda_head.cuh"

#define DRAW_SEEDS 128 /* rows asked for the floor of a draw */
#define LEAST_SEEDS 32

/* Is a draw wanted, candidates, or nothing? */
DEV bool is_draw(const struct cuda_want *want)
{
    return want->beta != 0.0;
}

/* What a draw compares; the same operations in the same order everywhere. */
DEV double noisy_logit(const struct cuda_want *want, uint64_t key, float z, int32_t id)
{
    return (double)z * want->beta + noise_gumbel(key, (uint64_t)id);
}

/* The best rows of the parts, n of them or a few more as far as there is room, in any order; how
 * many there are. */
DEV uint32_t find_seeds(const struct logit_room *out, const struct cuda_cand *parts, uint32_t n,
                        struct cuda_cand *seeds)
{
    SHARED uint32_t n_seeds;
    const uint32_t n_parts = (out->n_vocab + PART_ROWS - 1) / PART_ROWS;
    float best = -INFINITY;
    if (thread_x() == 0)
        n_seeds = 0;
    for (uint32_t p = thread_x(); p < n_parts; p += n_threads_x())
        best = parts[p].logit > best ? parts[p].logit : best;
    const float least = block_kth(best, n);
    for (uint32_t p = thread_x(); p < n_parts; p += n_threads_x())
        if (parts[p].logit >= least) {
            const uint32_t at = count_up(&n_seeds, 1);
            if (at < PICK_THREADS)
                seeds[at] = parts[p];
        }
    block_sync();
    return n_seeds < PICK_THREADS ? n_seeds : PICK_THREADS;
}

/* Exact logits of the seeds, eight threads a row. */
DEV void ask_seeds(const struct dot_args *d, uint32_t row, uint32_t n, struct cuda_cand *seeds)
{
    const float *x = d->x + (uint64_t)row * d->x_stride;
    for (uint32_t first = 0; first < n; first += n_threads_x() / 8) {
        const uint32_t i = first + thread_x() / 8;
        const float z = row_dot(d, (uint32_t)seeds[i < n ? i : n - 1].id, x);
        if (i < n && thread_x() % 8 == 0)
            seeds[i].logit = z;
    }
    block_sync();
}

/* The floor of each wanted row; a block a row. */
KERNEL(pick_floor, pick_args, PICK_THREADS)
{
    SHARED struct cuda_cand seeds[PICK_THREADS];
    const uint32_t row = block_x();
    const struct cuda_want want = a.wants[row];
    struct cuda_screen *screen = a.screens + row;
    const bool draw = is_draw(&want), nothing = !draw && want.k == 0;
    const bool all = want.k > PICK_THREADS || (!a.is_exact && !screen->screened);
    if (nothing || all) {
        if (thread_x() == 0)
            screen->floor = nothing ? (double)INFINITY : -(double)INFINITY;
        return;
    }
    uint32_t n_wanted = draw ? DRAW_SEEDS : 2 * want.k > LEAST_SEEDS ? 2 * want.k : LEAST_SEEDS;
    n_wanted = n_wanted < PICK_THREADS ? n_wanted : PICK_THREADS;
    const uint32_t n = find_seeds(
        &a.dot.out, a.dot.out.parts + (uint64_t)row * a.dot.out.part_stride, n_wanted, seeds);
    if (!a.is_exact && n > 0)
        ask_seeds(&a.dot, row, n, seeds);
    const struct cuda_cand mine = seeds[thread_x() < n ? thread_x() : 0];
    double floor = -(double)INFINITY;
    if (draw) {
        const uint64_t key = noise_key(want.seed, want.position);
        if (thread_x() < n && mine.logit - mine.logit == 0.0f)
            floor = noisy_logit(&want, key, mine.logit, mine.id);
        floor = block_max_f64(floor);
    } else {
        const float z = thread_x() < n ? mine.logit : -INFINITY;
        const float worst = block_kth(z, want.k), gap_floor = block_max(z) - want.gap;
        floor = (double)(want.gap > 0.0f && gap_floor < worst ? gap_floor : worst);
    }
    if (thread_x() == 0)
        screen->floor = floor;
}

/* Does a row with this logit, or bound, reach the floor? */
DEV bool reaches(const struct cuda_want *want, uint64_t key, double floor, float z, uint32_t id)
{
    if (!is_draw(want))
        return (double)z >= floor;
    return (double)z * want->beta + NOISE_GUMBEL_MAX >= floor && /* no noise lifts it further */
           noisy_logit(want, key, z, (int32_t)id) >= floor;
}

DEV void leave_cand(const struct pick_args *a, uint32_t row, uint32_t id, float z)
{
    struct cuda_found *found = a->dot.found + row;
    const uint32_t at = count_up(&found->n, 1);
    struct cuda_cand c = {(int32_t)id, z};
    a->more[(uint64_t)row * a->dot.out.z_stride + at] = c;
    if (at < PICK_FIRST)
        found->first[at] = c;
}

/* Bit number n of those set, from the lowest; the last one if there are fewer. */
DEV uint32_t nth_bit(uint32_t mask, uint32_t n)
{
    for (; n > 0 && (mask & (mask - 1)) != 0; n--)
        mask &= mask - 1;
    return lowest_bit(mask);
}

/* All that reaches the floor. Grid: TAKE_IDS rows of the table, wanted rows. A warp looks at 32
 * bounds and multiplies four of the rows that remain at a time. */
KERNEL(pick_take, pick_args, TAKE_IDS)
{
    const uint32_t row = block_y(), id = block_x() * n_threads_x() + thread_x();
    const uint32_t lane = thread_x() % 32, group = lane / 8;
    const struct cuda_want want = a.wants[row];
    const double floor = a.screens[row].floor;
    const uint64_t key = noise_key(want.seed, want.position);
    const float *x = a.dot.x + (uint64_t)row * a.dot.x_stride;
    const bool here = id < a.dot.out.n_vocab;
    const float z = here ? a.dot.out.z[(uint64_t)row * a.dot.out.z_stride + id] : 0.0f;
    const bool stands = here && reaches(&want, key, floor, z, id);
    if (a.is_exact) {
        if (stands)
            leave_cand(&a, row, id, z);
        return;
    }
    uint32_t mask = warp_vote(stands);
    if (lane == 0 && mask != 0)
        (void)count_up(&a.dot.found[row].n_read, n_bits(mask));
    while (mask != 0) {
        const uint32_t n_left = n_bits(mask);
        const uint32_t it = id - lane + nth_bit(mask, group);
        const float exact = row_dot(&a.dot, it, x);
        if (lane % 8 == 0 && group < n_left) {
            if (exact - exact != 0.0f)
                a.dot.found[row].not_finite = 1;
            else if (reaches(&want, key, floor, exact, it))
                leave_cand(&a, row, it, exact);
        }
        for (uint32_t i = 0; i < 4; i++)
            mask &= mask - 1; /* stays 0 */
    }
}

#endif
