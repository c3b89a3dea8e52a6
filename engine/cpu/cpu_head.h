/*
 * The first and the last step of a pass: from token ids to embedding rows, and from hidden states
 * to candidates. All threads call embed_tokens and head_apply, which end with a barrier; without
 * requested rows head_apply does nothing.
 */
#ifndef ENGINE_CPU_CPU_HEAD_H
#define ENGINE_CPU_CPU_HEAD_H

#include "engine/cpu/cpu_state.h"

/* Write the embedding rows of all tokens to `h` of the scratch memory, and the cosines and sines of
 * their RoPE angles to its rope_c and rope_s. */
void embed_tokens(struct cpu_thread *th);

/* Find the candidates of every requested row and set its n_found, but not head_row.n. On failure
 * set pass->not_finite (a logit is infinite or NaN) or pass->min_cap (a row is too small); then
 * some rows have no candidates. */
void head_apply(struct cpu_thread *th);

#endif
