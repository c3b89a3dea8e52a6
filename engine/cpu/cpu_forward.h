/*
 * One pass of the transformer: every lane enters, all leave together.
 */
#ifndef ENGINE_CPU_CPU_FORWARD_H
#define ENGINE_CPU_CPU_FORWARD_H

#include "engine/cpu/cpu_state.h"

/* Evaluate pass->items on b->n_threads threads. BN_ECANCELLED; BN_EDEVICE: a logit is not a finite
 * number; BN_EARG: a row lacks room. Sequences keep their length in any case. */
bool forward_run(struct pass *pass, struct bn_error *err);

#endif
