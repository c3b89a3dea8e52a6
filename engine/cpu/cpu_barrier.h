/*
 * Where the threads of one parallel region wait for each other.
 *
 * Cheaper than the runtime's barrier (a fraction of a microsecond on two cores) and kind to a busy
 * machine: spinning is bounded, then the thread sleeps until the last one comes, so that a core
 * that was taken away costs its share and the one that waits does not burn its own.
 */
#ifndef ENGINE_CPU_CPU_BARRIER_H
#define ENGINE_CPU_CPU_BARRIER_H

#include <stdatomic.h>
#include <stddef.h>

/* Arrivals and release on cache lines of their own: those who wait do not disturb those who come.
 * All zero is ready for use. */
struct cpu_barrier {
    _Alignas(64) atomic_size_t n_arrived;
    _Alignas(64) atomic_uint generation; /* 32 bits: threads sleep on it */
    atomic_uint n_asleep;
    atomic_uint spin_cut; /* how often the time to spin was halved, since waits ended in sleep */
};

/* Returns when n_threads threads are here. What each wrote before is seen by all after. */
void cpu_barrier_wait(struct cpu_barrier *b, size_t n_threads);

#endif
