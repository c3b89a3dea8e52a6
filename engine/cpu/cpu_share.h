/*
 * How lanes divide the work of a pass, and wait for each other. Whose things are whose decides
 * nothing but who computes them.
 */
#ifndef ENGINE_CPU_CPU_SHARE_H
#define ENGINE_CPU_CPU_SHARE_H

#include "engine/cpu/cpu_state.h"

/* A thread's share of n things in units: contiguous, in order, empty for some when n is small. */
struct share {
    size_t begin, end;
};
static inline struct share share_of(size_t n, size_t unit, size_t index, size_t n_lanes)
{
    const size_t n_units = (n + unit - 1) / unit;
    const size_t begin = n_units * index / n_lanes * unit;
    const size_t end = n_units * (index + 1) / n_lanes * unit;
    return (struct share){begin < n ? begin : n, end < n ? end : n};
}
static inline struct share lane_share(const struct lane *l, size_t n, size_t unit)
{
    return share_of(n, unit, l->index, l->n_lanes);
}

/* All lanes are here; what each wrote is seen by all, and lane_take begins anew. */
static inline void lane_sync(struct lane *l)
{
    cpu_barrier_wait(&l->pass->barrier, l->n_lanes);
    atomic_store_explicit(&l->n_taken[l->phase++ % 2], 0, memory_order_relaxed);
}

/* Things begin .. end - 1, and the share they are of. */
struct piece {
    size_t begin, end;
    struct share of;
    size_t n_done; /* shares of which nothing was left */
};
/* Before a pass, while no lane runs. */
void lanes_begin(struct lane *lanes, size_t n);
/* The next piece of n things, at most `size` of them: of this lane's own share, in order, then of
 * what other lanes, being slower, have left of theirs; a share of one piece is its lane's alone.
 * False: nothing is left. p begins as zero.
 * Lanes share at most one list of things like this between two barriers. */
bool lane_take(const struct lane *l, size_t n, size_t unit, size_t size, struct piece *p);

#endif
