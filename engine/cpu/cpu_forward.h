/*
 * One pass of the transformer, from token ids to candidates.
 */
#ifndef ENGINE_CPU_CPU_FORWARD_H
#define ENGINE_CPU_CPU_FORWARD_H

#include "engine/cpu/cpu_state.h"

/* Evaluate pass->items on up to b->n_threads threads. Does not change the length of a sequence.
 * BN_ECANCELLED. BN_EDEVICE: a logit is not a finite number. BN_EARG: a row has too little room for
 * its candidates. */
bool forward_run(struct pass *pass, struct bn_error *err);

#endif
