/*
 * How threads divide the work of a pass and wait for each other. The mapping from rows to threads
 * affects only which thread does the work, never the result.
 */
#ifndef ENGINE_CPU_CPU_WORK_H
#define ENGINE_CPU_CPU_WORK_H

#include "engine/cpu/cpu_state.h"

/* The part of n rows that belongs to thread `index`, in multiples of `unit` rows; only the last one
 * may end with fewer. Ranges are contiguous and ascending; some are empty if n is small. */
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

/* Whether the pass has a single token. Then every thread quantises this token itself, which is
 * cheaper than a barrier. */
static inline bool thread_has_one_token(const struct cpu_thread *th)
{
    return th->pass->strategy.linear == LINEAR_MATVEC;
}

/* A barrier for all threads. Afterwards each thread sees the writes of the others, and
 * thread_take_work can divide another set of rows. Also clears this thread's count of the phase
 * that has ended, because all threads use the other count now. */
static inline void thread_sync(struct cpu_thread *th)
{
    cpu_barrier_wait(&th->pass->barrier, th->n_threads);
    atomic_store_explicit(&th->n_taken[th->phase++ % 2], 0, memory_order_relaxed);
}

/* Rows begin .. end - 1, and the range of the thread that they belong to. */
struct work_item {
    size_t begin, end;
    struct work_range range;
    size_t n_ranges_done; /* ranges without further items for this thread */
};
/* Reset the division of work. Call it before a pass, while no other thread runs. */
void threads_begin(struct cpu_thread *threads, size_t n);
/* Take the next item of n rows, at most max_rows rows: first from this thread's range in order,
 * then from ranges of other threads that still have items. Ranges are multiples of `unit` rows. A
 * range of a single item is left to the thread that it belongs to. False if no rows are left for
 * this thread. *p must be all zero at the first call. All threads pass the same n, unit and
 * max_rows, and can divide only one set of rows in this way between two calls of thread_sync. */
bool thread_take_work(const struct cpu_thread *th, size_t n, size_t unit, size_t max_rows,
                      struct work_item *p);

#endif
