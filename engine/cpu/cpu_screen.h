/*
 * The screened head: an upper bound of every logit from a plane of four bits a weight, then the
 * table's own rows for those that may matter. Design and proof: docs/kernels.md, "The head,
 * screened". Same candidates as the whole table gives.
 *
 * In a pass, for a group of wanted rows: screen_query by one lane a row; then by all lanes
 * screen_bounds; barrier; screen_floor by one lane a row; barrier; screen_rescore by all lanes.
 * Rows of HEAD_GUMBEL are done after screen_bounds.
 */
#ifndef ENGINE_CPU_CPU_SCREEN_H
#define ENGINE_CPU_CPU_SCREEN_H

#include "engine/cpu/cpu_state.h"

/* Make the plane on b->n_threads threads, each the rows it will read. Progress goes on from n_done
 * to n_total. A table with a weight above COARSE_MAX, or a NaN, leaves b without a plane: that is
 * no error. BN_ENOMEM, BN_ECANCELLED. */
bool screen_open(struct backend *b, const struct backend_control *control, size_t n_done,
                 size_t n_total, struct bn_error *err);
void screen_close(struct backend *b);

/* Decide whether row i of the group is screened, and prepare scratch.head_x row i for it. */
void screen_query(const struct backend *b, size_t i, struct requested_row *req);

/* This lane's part of the vocabulary, for all screened rows of the group. */
void screen_bounds(struct cpu_thread *th, const struct requested_row *reqs, size_t n_reqs);
/* HEAD_TOP, when all lanes have their bounds: z of this lane's part is exact where it may be
 * wanted, -infinity elsewhere. */
void screen_rescore(struct cpu_thread *th, size_t i, const struct requested_row *req);

#endif
