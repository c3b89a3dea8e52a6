/*
 * The threads of the CPU backend. They belong to OpenMP. In the engine, only this module starts
 * parallel regions. Threads wait for each other with cpu_barrier. Between jobs the OpenMP runtime
 * by default lets them sleep after some milliseconds.
 */
#ifndef ENGINE_CPU_CPU_TEAM_H
#define ENGINE_CPU_CPU_TEAM_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Start n_threads threads, 1 to MAX_THREADS. Returns how many the runtime provides, because a limit
 * of OpenMP may be lower. */
size_t team_start(size_t n_threads);

/* Run job(ud, i, n) for all i < n at the same time; return when all have finished. n is n_active,
 * or less if the runtime provides fewer threads; n_active is at most n_threads. The calling thread
 * has index 0. If n_active is 0 or 1, it runs job(ud, 0, 1) and no other thread is woken. Index i
 * is the same thread in every job with the same n_threads. */
typedef void (*team_job_fn)(void *ud, size_t index, size_t n_active);
void team_run(size_t n_threads, size_t n_active, team_job_fn job, void *ud);

/* Pin each of the n_threads threads of the calling thread's team to one CPU. CPUs are distinct, and
 * on different cores as far as possible. team_unpin restores the previous masks; the same thread
 * must call it. In between, the calling thread must not run a team of another size, because new
 * threads would inherit its mask. BN_EARG: fewer CPUs than threads. BN_EDEVICE: the system refuses,
 * or the runtime provides fewer threads. BN_ENOMEM. After an error no thread is pinned. */
struct team_pins;
bool team_pin(size_t n_threads, struct team_pins **out, struct bn_error *err);
void team_unpin(struct team_pins *pins); /* NULL is allowed */

#endif
