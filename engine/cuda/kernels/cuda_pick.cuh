/*
 * Selects candidates from logits or bounds, so that only few ids and logits are copied to the host.
 * The result contains at least the k best and those within the gap, or every id that can win a
 * Gumbel draw. The host sorts it and removes the surplus.
 *
 * pick_floor computes a lower limit, the floor, from the exact logits of probes: table rows with
 * the largest of the recorded logits or bounds (the best of each BEST_ROWS rows is recorded). The
 * floor is the k-th best logit of the probes, or the best minus the gap if that is lower; for a
 * draw it is the best logit with noise. It is never above the same number for all rows. It is
 * -infinity if the bounds are not valid or k is above PICK_THREADS. pick_collect then collects
 * every row whose logit or bound reaches the floor; if it was a bound, the exact logit must reach
 * the floor, too.
 */
#ifndef CUDA_PICK_CUH
#define CUDA_PICK_CUH

#include "engine/base/noise.h"
#include "engine/cuda/kernels/cuda_head.cuh"

/* The next two numbers affect only the speed: more probes give a higher floor. */
#define DRAW_PROBES 128 /* probes for the floor of a draw */
#define MIN_PROBES 32   /* fewest probes for the floor of the k best; otherwise 2 k */

DEV bool is_draw(const struct cuda_request *request)
{
    return request->beta != 0.0;
}

/* The value that a draw compares. The host and the CPU backend compute it in the same way. */
DEV double noisy_logit(const struct cuda_request *request, uint64_t key, float z, int32_t id)
{
    return (double)z * request->beta + noise_gumbel(key, (uint64_t)id);
}

#define PROBE_BATCH 8 /* recorded rows that a thread loads before it uses them */

/* Logits or bounds of the recorded best rows p, p + n_threads, ...; -infinity past the last one. */
DEV void load_bests(const struct cuda_cand *bests, uint32_t p, uint32_t n_bests, float *z)
{
#pragma unroll
    for (uint32_t u = 0; u < PROBE_BATCH; u++)
        z[u] = p + u * n_threads_x() < n_bests ? bests[p + u * n_threads_x()].logit : -INFINITY;
}

/* Selects about n of the recorded best rows, in any order, at most PICK_THREADS. Returns their
 * number. The limit `least` is the n-th largest of the best logits or bounds of each thread. So at
 * least n rows reach it if n threads have a row. */
DEV uint32_t find_probes(const struct logit_buffers *out, const struct cuda_cand *bests, uint32_t n,
                         struct cuda_cand *probes)
{
    SHARED uint32_t n_probes;
    const uint32_t n_bests = (out->n_vocab + BEST_ROWS - 1) / BEST_ROWS;
    float best = -INFINITY;
    if (thread_x() == 0)
        n_probes = 0;
    for (uint32_t p = thread_x(); p < n_bests; p += PROBE_BATCH * n_threads_x()) {
        float z[PROBE_BATCH];
        load_bests(bests, p, n_bests, z);
#pragma unroll
        for (uint32_t u = 0; u < PROBE_BATCH; u++)
            best = z[u] > best ? z[u] : best;
    }
    const float least = block_kth(best, n);
    for (uint32_t p = thread_x(); p < n_bests; p += PROBE_BATCH * n_threads_x()) {
        float z[PROBE_BATCH];
        load_bests(bests, p, n_bests, z);
#pragma unroll
        for (uint32_t u = 0; u < PROBE_BATCH; u++) {
            const uint32_t i = p + u * n_threads_x();
            if (i >= n_bests || !(z[u] >= least))
                continue;
            const uint32_t at = atomic_add(&n_probes, 1);
            if (at < PICK_THREADS)
                probes[at] = bests[i];
        }
    }
    block_sync();
    return n_probes < PICK_THREADS ? n_probes : PICK_THREADS;
}

/* Replaces the bounds of the probes by exact logits. Eight threads compute a logit. */
DEV void multiply_probes(const struct dot_args *d, uint32_t row, uint32_t n,
                         struct cuda_cand *probes)
{
    const float *x = d->x + (uint64_t)row * d->x_stride;
    for (uint32_t first = 0; first < n; first += n_threads_x() / 8) {
        const uint32_t i = first + thread_x() / 8;
        const float z = row_dot(d, (uint32_t)probes[i < n ? i : n - 1].id, x);
        if (i < n && thread_x() % 8 == 0)
            probes[i].logit = z;
    }
    block_sync();
}

/* Grid: requested rows. */
KERNEL(pick_floor, pick_args, PICK_THREADS)
{
    SHARED struct cuda_cand probes[PICK_THREADS];
    const uint32_t row = block_x();
    const struct cuda_request request = a.requests[row];
    struct cuda_screen *screen = a.screens + row;
    const bool draw = is_draw(&request), nothing = !draw && request.k == 0;
    const bool all = request.k > PICK_THREADS || (!a.is_exact && !screen->screened);
    if (nothing || all) {
        if (thread_x() == 0) /* no row, or every row, reaches the floor */
            screen->floor = nothing ? (double)INFINITY : -(double)INFINITY;
        return;
    }
    uint32_t n_probes_min = draw                         ? DRAW_PROBES
                            : 2 * request.k > MIN_PROBES ? 2 * request.k
                                                         : MIN_PROBES;
    n_probes_min = n_probes_min < PICK_THREADS ? n_probes_min : PICK_THREADS;
    const uint32_t n = find_probes(
        &a.dot.out, a.dot.out.bests + (uint64_t)row * a.dot.out.best_stride, n_probes_min, probes);
    if (!a.is_exact && n > 0)
        multiply_probes(&a.dot, row, n, probes);
    const struct cuda_cand mine = probes[thread_x() < n ? thread_x() : 0];
    double floor = -(double)INFINITY;
    if (draw) {
        const uint64_t key = noise_key(request.seed, request.position);
        if (thread_x() < n && mine.logit - mine.logit == 0.0f) /* finite */
            floor = noisy_logit(&request, key, mine.logit, mine.id);
        floor = block_max_f64(floor);
    } else {
        const float z = thread_x() < n ? mine.logit : -INFINITY;
        const float worst = block_kth(z, request.k), gap_floor = block_max(z) - request.gap;
        floor = (double)(request.gap > 0.0f && gap_floor < worst ? gap_floor : worst);
    }
    if (thread_x() == 0)
        screen->floor = floor;
}

/* True if a row with this logit or bound reaches the floor. */
DEV bool reaches(const struct cuda_request *request, uint64_t key, double floor, float z,
                 uint32_t id)
{
    if (!is_draw(request))
        return (double)z >= floor;
    return (double)z * request->beta + NOISE_GUMBEL_MAX >=
               floor && /* first a cheap test with the largest noise */
           noisy_logit(request, key, z, (int32_t)id) >= floor;
}

DEV void store_candidate(const struct pick_args *a, uint32_t row, uint32_t id, float z)
{
    struct cuda_found *found = a->dot.found + row;
    const uint32_t at = atomic_add(&found->n, 1);
    struct cuda_cand c = {(int32_t)id, z};
    a->cands[(uint64_t)row * a->dot.out.z_stride + at] = c;
    if (at < PICK_FIRST)
        found->first[at] = c;
}

/* Index of set bit number n; the lowest is number 0. If there are fewer set bits, the highest
 * one. */
DEV uint32_t nth_bit(uint32_t mask, uint32_t n)
{
    for (; n > 0 && (mask & (mask - 1)) != 0; n--)
        mask &= mask - 1;
    return lowest_bit(mask);
}

/* Grid: groups of COLLECT_IDS table rows, requested rows. A warp tests 32 logits or bounds. After
 * bounds it multiplies the rows that reach the floor, four at a time. */
KERNEL(pick_collect, pick_args, COLLECT_IDS)
{
    const uint32_t row = block_y(), id = block_x() * n_threads_x() + thread_x();
    const uint32_t lane = thread_x() % 32, slot = lane / 8;
    const struct cuda_request request = a.requests[row];
    const double floor = a.screens[row].floor;
    const uint64_t key = noise_key(request.seed, request.position);
    const float *x = a.dot.x + (uint64_t)row * a.dot.x_stride;
    const bool exists = id < a.dot.out.n_vocab;
    const float z = exists ? a.dot.out.z[(uint64_t)row * a.dot.out.z_stride + id] : 0.0f;
    const bool reached = exists && reaches(&request, key, floor, z, id);
    if (a.is_exact) {
        if (reached)
            store_candidate(&a, row, id, z);
        return;
    }
    uint32_t mask = warp_ballot(reached);
    if (lane == 0 && mask != 0)
        (void)atomic_add(&a.dot.found[row].n_read, n_bits(mask));
    while (mask != 0) {
        const uint32_t n_left = n_bits(mask);
        const uint32_t row_id = id - lane + nth_bit(mask, slot);
        const float exact = row_dot(&a.dot, row_id, x);
        if (lane % 8 == 0 && slot < n_left) {
            if (exact - exact != 0.0f) /* infinite or NaN */
                a.dot.found[row].not_finite = 1;
            else if (reaches(&request, key, floor, exact, row_id))
                store_candidate(&a, row, row_id, exact);
        }
        for (uint32_t i = 0; i < 4; i++)
            mask &= mask - 1; /* 0 stays 0 */
    }
}

#endif
