/*
 * One pass of the transformer, from token ids to candidates.
 */
#ifndef ENGINE_CPU_CPU_FORWARD_H
#define ENGINE_CPU_CPU_FORWARD_H

#include "engine/cpu/cpu_state.h"

/* Evaluate a pass that begin_pass (cpu_backend.c) has prepared, on pass->strategy.n_active threads
 * or as many as the runtime provides. Writes the candidates to the rows of the items and their
 * numbers to requested_row.n_found. Does not change the lengths of the sequences: after success the
 * caller adds the number of new ids to each. BN_ECANCELLED. BN_EDEVICE: a logit is not finite.
 * BN_EARG: a row of candidates is too small. */
bool forward_run(struct pass *pass, struct bn_error *err);

#endif
