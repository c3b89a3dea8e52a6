/*
 * Dynamic division of work. Threads differ in speed if another program uses a core or its second
 * hardware thread. Each range has two counts of the items that any thread has taken, one for even
 * and one for odd phases. A phase ends at a barrier (thread_sync). Its count is cleared after the
 * barrier, when all threads use the other count.
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

bool thread_take_work(const struct cpu_thread *th, size_t n, size_t unit, size_t max_rows,
                      struct work_item *p)
{
    struct cpu_thread *const threads = th->pass->b->scratch.threads;
    for (; p->n_ranges_done < th->n_threads; p->n_ranges_done++) {
        const size_t owner = (th->index + p->n_ranges_done) % th->n_threads;
        atomic_size_t *const n_taken = &threads[owner].n_taken[th->phase % 2];
        p->range = work_range_of(n, unit, owner, th->n_threads);
        /* The only item of a small range is processed by its owner. */
        if (p->n_ranges_done > 0 && p->range.end - p->range.begin <= max_rows)
            continue;
        p->begin =
            p->range.begin + max_rows * atomic_fetch_add_explicit(n_taken, 1, memory_order_relaxed);
        p->end = size_min(p->begin + max_rows, p->range.end);
        if (p->begin < p->range.end)
            return true;
    }
    return false;
}
