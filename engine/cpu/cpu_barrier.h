/*
 * A barrier for the threads of one parallel region. It takes a fraction of a microsecond on two
 * cores, less than the barrier of the OpenMP runtime. On a busy machine it wastes little time,
 * because a thread sleeps after a bounded number of spins.
 */
#ifndef ENGINE_CPU_CPU_BARRIER_H
#define ENGINE_CPU_CPU_BARRIER_H

#include <stdatomic.h>
#include <stddef.h>

/* All zero is a valid initial state. n_arrived has a separate cache line, so that waiting threads
 * do not slow down arriving ones. */
struct cpu_barrier {
    _Alignas(64) atomic_size_t n_arrived;
    _Alignas(64) atomic_uint generation; /* 32 bits, because threads sleep on it with a futex */
    atomic_uint n_asleep;
    atomic_uint n_spin_halvings; /* how often the spin time was halved */
};

/* Wait until n_threads threads have called this function, all with the same n_threads. If n_threads
 * is 0 or 1, return at once. Afterwards each thread sees everything that the others wrote before
 * their calls. */
void cpu_barrier_wait(struct cpu_barrier *b, size_t n_threads);

#endif
