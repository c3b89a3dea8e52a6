/*
 * Both ends of a pass: token ids to embedding rows, hidden states to candidates. The table rows are
 * read straight from the file's bytes, but for a head that is kept at eight bits. Those of a pass
 * are entered by all lanes.
 */
#ifndef ENGINE_CPU_CPU_HEAD_H
#define ENGINE_CPU_CPU_HEAD_H

#include "engine/cpu/cpu_state.h"

/* What the head's rows are multiplied as, for this form of the head: their own type, or Q8_0. */
enum tensor_type head_type(const struct model *m, enum bn_head_mode head);
/* Bytes of the copy at eight bits, 0: there is none; false on overflow. */
bool head_copy_bytes(const struct model *m, enum bn_head_mode head, size_t *n_bytes);
/* Make it, and b->head refer to it. BN_ENOMEM, BN_ECANCELLED, BN_EUNSUPPORTED. */
bool head_copy_open(struct backend *b, const struct backend_control *control, struct bn_error *err);

/* scratch.h = embedding rows of the pass's tokens; their RoPE angles beside. */
void head_embed(struct cpu_thread *th);

/* Candidates of every wanted row. Sets pass->not_finite or pass->room_needed on trouble; counts are
 * in reqs[].n_found, head_row.n stays as it is. */
void head_apply(struct cpu_thread *th);

#endif
