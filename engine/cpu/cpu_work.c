/*
 * Who computes what, where lanes turn out not to be equally fast: another program holds a core, or
 * the other half of one. A lane counts the pieces of its share that were taken, by whomever; the
 * count of a phase is cleared in the next one, when nobody looks at it.
 */
#include "engine/cpu/cpu_work.h"

#include "engine/base/size.h"

void threads_begin(struct cpu_thread *threads, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        threads[i].phase = 0;
        atomic_store_explicit(&threads[i].n_taken[0], 0, memory_order_relaxed);
        atomic_store_explicit(&threads[i].n_taken[1], 0, memory_order_relaxed);
    }
}

bool thread_take_work(const struct cpu_thread *th, size_t n, size_t unit, size_t size,
                      struct work_item *p)
{
    struct cpu_thread *const threads = th->pass->b->scratch.threads;
    for (; p->n_done < th->n_threads; p->n_done++) {
        const size_t whose = (th->index + p->n_done) % th->n_threads;
        atomic_size_t *const n_taken = &threads[whose].n_taken[th->phase % 2];
        p->of = work_range_of(n, unit, whose, th->n_threads);
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
