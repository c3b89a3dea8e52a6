/*
 * The first and the last step of a pass: from token ids to embedding rows, and from hidden states
 * to candidates. All threads call embed_tokens and head_apply, which end with a barrier; without
 * requested rows head_apply does nothing. The first three functions are for the copy of the output
 * head at eight bits, which is made when the model is opened.
 */
#ifndef ENGINE_CPU_CPU_HEAD_H
#define ENGINE_CPU_CPU_HEAD_H

#include "engine/cpu/cpu_state.h"

/* Type of the rows of an output head that is not in R16: Q8_0 with BN_HEAD_Q8 if the file has F32,
 * F16 or BF16, which makes a copy; else the type in the file. */
enum tensor_type head_type(const struct model *m, enum bn_head_mode head);
/* Bytes of this copy, 0 if there is none. False on overflow, or if a row is not whole blocks. */
bool head_copy_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes);
/* Make this copy in b->head_map and set b->head to it, if its size is not 0. `control` is not NULL;
 * no progress is reported. On failure cpu_close frees head_map. BN_ENOMEM. BN_ECANCELLED.
 * BN_EUNSUPPORTED: head_copy_bytes returns false. */
bool head_copy_open(struct backend *b, const struct backend_control *control, struct bn_error *err);

/* Write the embedding rows of all tokens to `h` of the scratch memory, and the cosines and sines of
 * their RoPE angles to its rope_c and rope_s. */
void embed_tokens(struct cpu_thread *th);

/* Find the candidates of every requested row and set its n_found, but not head_row.n. On failure
 * set pass->not_finite (a logit is infinite or NaN) or pass->min_cap (a row is too small); then
 * some rows have no candidates. */
void head_apply(struct cpu_thread *th);

#endif
