/*
 * Where the time of a pass goes: lane 0 looks at the clock after each step, waiting for the others
 * included. Off, which is the rule, it is one test of a flag a step.
 */
#ifndef ENGINE_CPU_CPU_PROFILE_H
#define ENGINE_CPU_CPU_PROFILE_H

#include "engine/cpu/cpu_state.h"

/* The backend op: steps since the last call, which it forgets. */
size_t cpu_profile(struct backend *b, struct bn_profile_step *out, size_t cap);

void profile_begin(struct pass *pass); /* before lanes enter */
void profile_end(struct pass *pass);   /* after they left: counts bytes and multiply-adds */
void profile_mark(struct pass *pass, enum profile_step step);

/* A step is done; every lane calls. */
static inline void thread_end_step(const struct cpu_thread *th, enum profile_step step)
{
    if (th->pass->b->cfg.profile && th->index == 0)
        profile_mark(th->pass, step);
}

#endif
