/*
 * Both ends of a pass: token ids to embedding rows, hidden states to candidates. The table rows are
 * read straight from the file's bytes. Entered by all lanes.
 */
#ifndef ENGINE_CPU_CPU_HEAD_H
#define ENGINE_CPU_CPU_HEAD_H

#include "engine/cpu/cpu_state.h"

/* scratch.h = embedding rows of the pass's tokens; their RoPE angles beside. */
void head_embed(struct lane *l);

/* Candidates of every wanted row. Sets pass->not_finite or pass->room_wanted on trouble; counts are
 * in wants[].n_found, head_row.n stays as it is. */
void head_apply(struct lane *l);

#endif
