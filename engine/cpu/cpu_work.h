/*
 * How lanes divide the work of a pass, and wait for each other. Whose things are whose decides
 * nothing but who computes them.
 */
#ifndef ENGINE_CPU_CPU_WORK_H
#define ENGINE_CPU_CPU_WORK_H

#include "engine/cpu/cpu_state.h"

/* A thread's share of n things in units: contiguous, in order, empty for some when n is small. */
struct work_range {
    size_t begin, end;
};
static inline struct work_range work_range_of(size_t n, size_t unit, size_t index, size_t n_threads)
{
    const size_t n_units = (n + unit - 1) / unit;
    const size_t begin = n_units * index / n_threads * unit;
    const size_t end = n_units * (index + 1) / n_threads * unit;
    return (struct work_range){begin < n ? begin : n, end < n ? end : n};
}
static inline struct work_range thread_range(const struct cpu_thread *th, size_t n, size_t unit)
{
    return work_range_of(n, unit, th->index, th->n_threads);
}

/* All lanes are here; what each wrote is seen by all, and thread_take_work begins anew. */
static inline void thread_sync(struct cpu_thread *th)
{
    cpu_barrier_wait(&th->pass->barrier, th->n_threads);
    atomic_store_explicit(&th->n_taken[th->phase++ % 2], 0, memory_order_relaxed);
}

/* Things begin .. end - 1, and the share they are of. */
struct work_item {
    size_t begin, end;
    struct work_range of;
    size_t n_done; /* shares of which nothing was left */
};
/* Before a pass, while no lane runs. */
void threads_begin(struct cpu_thread *threads, size_t n);
/* The next piece of n things, at most `size` of them: of this lane's own share, in order, then of
 * what other lanes, being slower, have left of theirs; a share of one piece is its lane's alone.
 * False: nothing is left. p begins as zero.
 * Lanes share at most one list of things like this between two barriers. */
bool thread_take_work(const struct cpu_thread *th, size_t n, size_t unit, size_t size,
                      struct work_item *p);

#endif
