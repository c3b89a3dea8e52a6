/*
 * The first and the last step of a pass: from token ids to embedding rows, and from hidden states
 * to candidates. All threads call head_embed and head_apply.
 */
#ifndef ENGINE_CPU_CPU_HEAD_H
#define ENGINE_CPU_CPU_HEAD_H

#include "engine/cpu/cpu_state.h"

/* Type of the rows that are multiplied: the type in the file, or Q8_0 for BN_HEAD_Q8. */
enum tensor_type head_type(const struct model *m, enum bn_head_mode head);
/* Bytes of the copy of the output head at eight bits, 0 if it is not used; false on overflow. */
bool head_copy_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes);
/* If the copy is used, make it and set b->head to it. BN_ENOMEM, BN_ECANCELLED, BN_EUNSUPPORTED. */
bool head_copy_open(struct backend *b, const struct backend_control *control, struct bn_error *err);

/* Write the embedding rows of all tokens to scratch.h, and their RoPE angles to rope_c and
 * rope_s. */
void head_embed(struct cpu_thread *th);

/* Find the candidates of every requested row and set its n_found, but not head_row.n. On failure
 * set pass->not_finite or pass->min_cap. */
void head_apply(struct cpu_thread *th);

#endif
