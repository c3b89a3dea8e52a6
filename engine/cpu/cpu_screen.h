/*
 * The screened head. A coarse plane of four bits per weight gives an upper bound of every logit, so
 * that only some rows of the table are read. The candidates are the same as from the whole table.
 * Design and proof: docs/kernels.md, "The head, screened".
 *
 * Order of calls for requested rows that are computed together: screen_query on one thread per row;
 * barrier; screen_bounds on all threads; barrier; screen_rescore on all threads for screened
 * HEAD_TOP rows; barrier. Screened rows of HEAD_GUMBEL are complete after the barrier behind
 * screen_bounds.
 */
#ifndef ENGINE_CPU_CPU_SCREEN_H
#define ENGINE_CPU_CPU_SCREEN_H

#include "engine/cpu/cpu_state.h"

/* Set req->screened of requested row i, and if it is true, req->query from row i of
 * scratch.head_x. */
void screen_query(const struct backend *b, size_t i, struct requested_row *req);

/* For this thread's part of the vocabulary and all screened rows: compute the bounds, then find the
 * best id (HEAD_GUMBEL: th->best_noisy, best_noisy_id, and its logit in z) or multiply the rows
 * with the highest bounds (HEAD_TOP: their logits in scratch.lead and z). */
void screen_bounds(struct cpu_thread *th, const struct requested_row *reqs, size_t n_reqs);
/* In this thread's part of z, make the logits of possible candidates exact. Each other element
 * becomes exact or -infinity. Sets th->best[i] to the largest element of this part, -infinity if no
 * logit is exact. */
void screen_rescore(struct cpu_thread *th, size_t i, const struct requested_row *req);

#endif
