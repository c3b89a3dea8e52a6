/*
 * Selects the requested candidates from a row of logits. Among equal logits the lower id comes
 * first. pick_all and pick_top process a whole row on one thread, with its own `seen`. pick_best
 * and pick_gumbel can also process parts of a row on several threads.
 */
#ifndef ENGINE_CPU_CPU_PICK_H
#define ENGINE_CPU_CPU_PICK_H

#include "engine/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For HEAD_ALL: the ids in ascending order. *n_found is the number of candidates in row->cands;
 * row->n does not change. False: row->cap is too small; *n_found is the capacity that the row
 * needs. */
bool pick_all(const float *z, size_t n_vocab, struct head_row *row, size_t *n_found);

/* The k best of z (n_vocab), without NaN, 1 <= k <= n_vocab. The worst of them is best[0]; the
 * others have no particular order. */
void pick_best(const float *z, size_t n_vocab, size_t k, struct head_cand *best);

/* For HEAD_TOP, as pick_all, but sorted, the best candidate first. best is the largest of z, used
 * only with a gap. With k 0 only z of the ids is read. seen has n_vocab bits, all zero before and
 * after. False: *n_found is a lower bound of the number needed. */
bool pick_top(const float *z, size_t n_vocab, float best, const struct head_request *head,
              struct head_row *row, uint64_t *seen, size_t *n_found);

/* For HEAD_GUMBEL, over ids id0 .. id0 + n - 1 with logits z (n). `position` is that of the token
 * to be drawn. Updates *best (logit / temp plus noise) and *best_id if an id is better. Start with
 * *best = -INFINITY and call with ascending ranges. *best_id does not change if no logit is above
 * -infinity. */
void pick_gumbel(const float *z, size_t id0, size_t n, const struct head_request *head,
                 uint64_t position, double *best, int32_t *best_id);

#endif
