/*
 * Measures the time of each step of a pass. Thread 0 reads the clock after each step, so waiting
 * for other threads is included. When profiling is off, each step costs one test of a flag.
 */
#ifndef ENGINE_CPU_CPU_PROFILE_H
#define ENGINE_CPU_CPU_PROFILE_H

#include "engine/cpu/cpu_state.h"

/* The profile operation of the backend: report the steps since the last call, and reset them.
 * Returns their number, 0 if profiling is off. Steps past `cap` are lost. */
size_t cpu_profile(struct backend *b, struct bn_profile_step *out, size_t cap);

void profile_begin(struct pass *pass); /* before the threads start */
void profile_end(struct pass *pass);   /* after the threads have finished, also after an error */
void profile_mark(struct pass *pass, enum profile_step step); /* for thread_end_step */

/* The end of a step. All threads call it. */
static inline void thread_end_step(const struct cpu_thread *th, enum profile_step step)
{
    if (th->pass->b->cfg.profile && th->index == 0)
        profile_mark(th->pass, step);
}

#endif
