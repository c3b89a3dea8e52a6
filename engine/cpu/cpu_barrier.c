/*
 * A central barrier with a generation count. Unlike the flag of a sense-reversing barrier, the
 * count needs no variable per thread.
 *
 * No wake-up is lost: a waiting thread increments n_asleep before it reads the generation, and the
 * last thread to arrive stores the generation before it reads n_asleep. With sequentially
 * consistent order at least one of them sees the other's write. The futex call compares the
 * generation once more before the thread sleeps.
 */
#define _GNU_SOURCE /* syscall */
#include "engine/cpu/cpu_barrier.h"

#include "engine/base/relax.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Pauses before a thread sleeps. The maximum takes about 50 microseconds at 100 cycles per pause
 * and 2 GHz. On a quiet machine the threads of a forward pass arrive at a barrier within this time.
 * A thread that has to sleep halves the number for later waits, because a spinning thread delays
 * the other threads of its core. Every RETRY-th barrier tries the maximum, in case the machine has
 * become quiet: if a thread then need not sleep, later barriers use the maximum again, else the
 * number stays as it was. */
#define SPINS_MAX 1000
#define SPIN_CUTS 7 /* most halvings: down to 7 pauses */
#define RETRY 64

/* May return while the word still has this value; the caller must check again. */
static void sleep_on(atomic_uint *word, unsigned value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake_all(atomic_uint *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* True if the generation changed within n_spins pauses. */
static bool spin_for(struct cpu_barrier *b, unsigned generation, unsigned n_spins)
{
    for (unsigned spin = 0; spin < n_spins; spin++) {
        if (atomic_load_explicit(&b->generation, memory_order_acquire) != generation)
            return true;
        cpu_relax();
    }
    return false;
}

static void wait_for(struct cpu_barrier *b, unsigned generation)
{
    const unsigned cut = atomic_load_explicit(&b->n_spin_halvings, memory_order_relaxed);
    const bool is_retry = cut > 0 && generation % RETRY == 0;
    if (spin_for(b, generation, is_retry ? SPINS_MAX : SPINS_MAX >> cut)) {
        if (is_retry)
            atomic_store_explicit(&b->n_spin_halvings, 0, memory_order_relaxed);
        return;
    }
    if (cut < SPIN_CUTS && !is_retry)
        atomic_store_explicit(&b->n_spin_halvings, cut + 1, memory_order_relaxed);
    atomic_fetch_add(&b->n_asleep, 1);
    while (atomic_load(&b->generation) == generation)
        sleep_on(&b->generation, generation);
    atomic_fetch_sub(&b->n_asleep, 1);
}

void cpu_barrier_wait(struct cpu_barrier *b, size_t n_threads)
{
    if (n_threads < 2)
        return;
    /* The generation cannot change before this thread arrives. */
    const unsigned generation = atomic_load_explicit(&b->generation, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&b->n_arrived, 1, memory_order_acq_rel) + 1 < n_threads) {
        wait_for(b, generation);
        return;
    }
    /* Before the generation, since the new generation lets threads arrive at the next barrier. */
    atomic_store_explicit(&b->n_arrived, 0, memory_order_relaxed);
    atomic_store(&b->generation, generation + 1);
    if (atomic_load(&b->n_asleep) > 0)
        wake_all(&b->generation);
}
