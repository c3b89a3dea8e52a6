/*
 * From a row of logits to the candidates somebody asked for. One thread a row; pure but for `seen`.
 * Ties go to the lower id.
 */
#ifndef ENGINE_CPU_CPU_PICK_H
#define ENGINE_CPU_CPU_PICK_H

#include "engine/head.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* HEAD_ALL. False: cap is too small; *n_found is what it takes. */
bool pick_all(const float *z, size_t n_vocab, struct head_row *row, size_t *n_found);

/* The k best of z (n_vocab), k at most n_vocab, in no order the caller may rely on. */
void pick_best(const float *z, size_t n_vocab, size_t k, struct head_cand *best);

/* HEAD_TOP. best is the largest of z. seen (n_vocab) bits, all zero before and after. False: as
 * above, a lower bound of what it takes. */
bool pick_top(const float *z, size_t n_vocab, float best, const struct head_request *head,
              struct head_row *row, uint64_t *seen, size_t *n_found);

/* HEAD_GUMBEL over ids id0 .. id0 + n - 1, z (n): raise *best and *best_id where an id beats it.
 * Start with *best -INFINITY. Ranges go in ascending order. */
void pick_gumbel(const float *z, size_t id0, size_t n, const struct head_request *head,
                 uint64_t position, double *best, int32_t *best_id);

#endif
