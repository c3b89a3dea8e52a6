/*
 * A central barrier with a generation count instead of a sense flag: the same thing without a
 * variable a thread.
 */
#include "engine/cpu/cpu_barrier.h"

#include "engine/base/relax.h"

#include <sched.h>

/* About 50 microseconds at 100 cycles a pause: longer than any phase differs. */
#define SPINS 1500

void cpu_barrier_wait(struct cpu_barrier *b, size_t n_threads)
{
    if (n_threads < 2)
        return;
    const size_t generation = atomic_load_explicit(&b->generation, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->n_arrived, 1, memory_order_acq_rel) + 1 == n_threads) {
        atomic_store_explicit(&b->n_arrived, 0, memory_order_relaxed);
        atomic_store_explicit(&b->generation, generation + 1, memory_order_release);
        return;
    }
    for (size_t spin = 0; atomic_load_explicit(&b->generation, memory_order_acquire) == generation;
         spin++) {
        if (spin < SPINS)
            cpu_relax();
        else
            (void)sched_yield(); /* cannot fail on Linux */
    }
}
