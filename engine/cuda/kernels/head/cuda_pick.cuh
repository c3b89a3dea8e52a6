/*
 * Selects candidates from logits or bounds, so that only few ids and logits are copied to the host.
 * The result contains at least the k best and those within the gap, or every id that can win a
 * Gumbel draw. The host sorts it and removes the surplus.
 *
 * pick_floor computes a lower limit, the floor, from the exact logits of probes: table rows with
 * the largest of the recorded logits or bounds (the best of each BEST_ROWS rows is recorded). The
 * floor is the k-th best logit of the probes, or the best minus the gap if that is lower; for a
 * draw it is the best logit with noise. The same number computed from all rows would be at least as
 * large, so no row of the result is below the floor. The floor is -infinity if the bounds are not
 * valid or k is above PICK_THREADS. pick_collect then collects every row whose logit or bound
 * reaches the floor; if it was a bound, the exact logit must reach the floor, too.
 */
#ifndef CUDA_PICK_CUH
#define CUDA_PICK_CUH

#include "engine/base/noise.h"
#include "engine/cuda/kernels/head/cuda_wide.cuh"

/* The next two numbers affect only the speed: more probes give a higher floor. */
#define DRAW_PROBES 128 /* probes for the floor of a draw */
#define MIN_PROBES 24   /* fewest probes for the floor of the k best; otherwise 2 k */

DEV bool is_draw(const struct cuda_request *request)
{
    return request->beta != 0.0;
}

/* The value that a draw compares. The host and the CPU backend compute it in the same way. */
DEV double noisy_logit(const struct cuda_request *request, uint64_t key, float z, int32_t id)
{
    return (double)z * request->beta + noise_gumbel(key, (uint64_t)id);
}

#define PROBE_BATCH 16 /* recorded rows that a thread loads before it uses them */

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

/* Replaces the bounds of the probes by exact logits. 16 threads compute a logit. */
DEV void multiply_probes(const struct dot_args *d, const float *x, uint32_t n,
                         struct cuda_cand *probes)
{
    for (uint32_t first = 0; first < n; first += n_threads_x() / 16) {
        const uint32_t i = first + thread_x() / 16;
        const float z = wide_dot(d, (uint32_t)probes[i < n ? i : n - 1].id, x);
        if (i < n && thread_x() % 16 == 0)
            probes[i].logit = z;
    }
    block_sync();
}

/* The k-th best of the threads' logits. A NaN does not count. */
DEV float kth_logit(float z, uint32_t k)
{
    return k == 1 ? block_max(z == z ? z : -INFINITY) : block_kth(z, k);
}

/* Grid: requested rows. */
KERNEL_EARLY(pick_floor, pick_args, PICK_THREADS)
{
    SHARED struct cuda_cand probes[PICK_THREADS];
    const uint32_t row = block_x();
    const struct cuda_request request = a.requests[row];
    const float *x = a.dot.x + (uint64_t)row * a.dot.x_stride;
    if (!a.is_exact)
        x = copy_wide(&a.dot, x);
    wait_for_grid();
    copy_async_wait(); /* find_probes has barriers */
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
        multiply_probes(&a.dot, x, n, probes);
    const struct cuda_cand mine = probes[thread_x() < n ? thread_x() : 0];
    double floor = -(double)INFINITY;
    if (draw) {
        const uint64_t key = noise_key(request.seed, request.position);
        if (thread_x() < n && mine.logit - mine.logit == 0.0f) /* finite */
            floor = noisy_logit(&request, key, mine.logit, mine.id);
        floor = block_max_f64(floor);
    } else {
        const float z = thread_x() < n ? mine.logit : -INFINITY;
        const float worst = kth_logit(z, request.k), gap_floor = block_max(z) - request.gap;
        floor = (double)(request.gap > 0.0f && gap_floor < worst ? gap_floor : worst);
    }
    if (thread_x() == 0)
        screen->floor = floor;
}

/* True if a row with this logit or bound reaches the floor. */
DEV bool reaches_floor(const struct cuda_request *request, uint64_t key, double floor, float z,
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

/* Multiplies the n listed rows, 16 threads each, and stores those that reach the floor. */
DEV void collect_listed(const struct pick_args *a, uint32_t row, double floor, const float *x,
                        const uint32_t *ids, uint32_t n)
{
    const struct cuda_request request = a->requests[row];
    const uint64_t key = noise_key(request.seed, request.position);
    for (uint32_t first = 0; first < n; first += n_threads_x() / 16) {
        const uint32_t i = first + thread_x() / 16, id = ids[i < n ? i : n - 1];
        const float z = wide_dot(&a->dot, id, x);
        if (i >= n || thread_x() % 16 != 0)
            continue;
        if (z - z != 0.0f) /* infinite or NaN */
            a->dot.found[row].not_finite = 1;
        else if (reaches_floor(&request, key, floor, z, id))
            store_candidate(a, row, id, z);
    }
}

/* Grid: sets of COLLECT_IDS table rows, requested rows. After bounds, the thread block lists its
 * rows that reach the floor and multiplies them. The logits or bounds and x are older than the
 * floor, which is the only result of the previous kernel. */
KERNEL_EARLY(pick_collect, pick_args, COLLECT_THREADS)
{
    SHARED uint32_t n_listed;
    SHARED uint32_t listed[COLLECT_IDS];
    const uint32_t row = block_y(), first = block_x() * COLLECT_IDS + thread_x();
    const struct cuda_request request = a.requests[row];
    const uint64_t key = noise_key(request.seed, request.position);
    const float *zs = a.dot.out.z + (uint64_t)row * a.dot.out.z_stride;
    const float *x = a.dot.x + (uint64_t)row * a.dot.x_stride;
    float z[COLLECT_IDS / COLLECT_THREADS];
    if (!a.is_exact)
        x = copy_wide(&a.dot, x);
    if (thread_x() == 0)
        n_listed = 0;
#pragma unroll
    for (uint32_t u = 0; u < COLLECT_IDS / COLLECT_THREADS; u++) {
        const uint32_t id = first + u * COLLECT_THREADS;
        z[u] = id < a.dot.out.n_vocab ? load_written(zs + id) : NAN; /* NaN reaches no floor */
    }
    block_sync();
    wait_for_grid();
    const double floor = a.screens[row].floor;
#pragma unroll
    for (uint32_t u = 0; u < COLLECT_IDS / COLLECT_THREADS; u++) {
        const uint32_t id = first + u * COLLECT_THREADS;
        if (!reaches_floor(&request, key, floor, z[u], id))
            continue;
        if (a.is_exact)
            store_candidate(&a, row, id, z[u]);
        else
            listed[atomic_add(&n_listed, 1)] = id;
    }
    copy_async_wait();
    block_sync();
    if (n_listed == 0)
        return;
    if (thread_x() == 0)
        (void)atomic_add(&a.dot.found[row].n_read, n_listed);
    collect_listed(&a, row, floor, x, listed, n_listed);
}

#endif
