/*
 * Who computes what, where lanes turn out not to be equally fast: another program holds a core, or
 * the other half of one. A lane counts the pieces of its share that were taken, by whomever; the
 * count of a phase is cleared in the next one, when nobody looks at it.
 */
#include "engine/cpu/cpu_share.h"

#include "engine/base/size.h"

void lanes_begin(struct lane *lanes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lanes[i].phase = 0;
        atomic_store_explicit(&lanes[i].n_taken[0], 0, memory_order_relaxed);
        atomic_store_explicit(&lanes[i].n_taken[1], 0, memory_order_relaxed);
    }
}

bool lane_take(const struct lane *l, size_t n, size_t unit, size_t size, struct piece *p)
{
    struct lane *const lanes = l->pass->b->scratch.lanes;
    for (; p->n_done < l->n_lanes; p->n_done++) {
        const size_t whose = (l->index + p->n_done) % l->n_lanes;
        atomic_size_t *const n_taken = &lanes[whose].n_taken[l->phase % 2];
        p->of = share_of(n, unit, whose, l->n_lanes);
        /* Nobody looks for what another will have taken at once. */
        if (p->n_done > 0 && p->of.end - p->of.begin <= size)
            continue;
        p->begin = p->of.begin + size * atomic_fetch_add_explicit(n_taken, 1, memory_order_relaxed);
        p->end = size_min(p->begin + size, p->of.end);
        if (p->begin < p->of.end)
            return true;
    }
    return false;
}
