/*
 * The threads of the CPU backend: OpenMP's, entered here and nowhere else.
 *
 * A job is a function that every lane runs with its own index. Lanes wait for each other with
 * cpu_barrier. Between jobs the runtime's threads sleep after a while, so nothing spins while
 * nobody asks for anything.
 */
#ifndef ENGINE_CPU_CPU_TEAM_H
#define ENGINE_CPU_CPU_TEAM_H

#include "engine/base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* How many threads the runtime really gives: a thread limit may be below what was asked. */
size_t team_size(size_t n_threads);

/* job(ud, i, n) for i < n, at the same time; returns when all have. n is n_active, or fewer if the
 * runtime gives fewer. The calling thread is lane 0, and the only one when n_active is 1. Lane i is
 * the same thread in every job of a team of n_threads, whatever its n_active. */
typedef void (*team_job_fn)(void *ud, size_t index, size_t n_active);
void team_run(size_t n_threads, size_t n_active, team_job_fn job, void *ud);

/* Keep each of the calling thread's n_threads on a CPU of its own, different cores first, until
 * they are let go by the same thread: then each has the mask it had before. Meanwhile the calling
 * thread shall run no team of another size, since threads started anew would have its mask.
 * BN_EARG: fewer CPUs than threads; BN_EDEVICE: the system refuses; BN_ENOMEM. */
struct team_pins;
bool team_pin(size_t n_threads, struct team_pins **out, struct bn_error *err);
void team_unpin(struct team_pins *pins); /* NULL is fine */

#endif
