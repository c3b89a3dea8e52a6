/*
 * A barrier for the threads of one parallel region.
 *
 * It is faster than the barrier of the OpenMP runtime (a fraction of a microsecond on two cores).
 * On a busy machine it wastes little time: spinning is bounded, and then the thread sleeps until
 * the last one arrives.
 */
#ifndef ENGINE_CPU_CPU_BARRIER_H
#define ENGINE_CPU_CPU_BARRIER_H

#include <stdatomic.h>
#include <stddef.h>

/* The counters have cache lines of their own, so that waiting threads do not slow down arriving
 * ones. All zero is a valid initial state. */
struct cpu_barrier {
    _Alignas(64) atomic_size_t n_arrived;
    _Alignas(64) atomic_uint generation; /* 32 bits, because threads sleep on it with a futex */
    atomic_uint n_asleep;
    atomic_uint spin_cut; /* how often the spin time was halved */
};

/* Returns when n_threads threads have called it. Each then sees everything the others wrote
 * before. */
void cpu_barrier_wait(struct cpu_barrier *b, size_t n_threads);

#endif
