/*
 * Makes the weights of a backend when it opens: ternary matrices as lines of R1-256 or R16, copies
 * of the small tensors (norms, biases, scales of rows, routers, matrices of delta nets), and the
 * coarse plane or the copy of the output head.
 */
#ifndef ENGINE_CPU_CPU_PACK_H
#define ENGINE_CPU_CPU_PACK_H

#include "engine/cpu/cpu_state.h"
#include "engine/layout/pass_matrix.h"

/* Bytes of b->lines and b->floats; false on overflow. */
bool pack_bytes(const struct model *m, const struct backend_config *cfg, size_t *n_bytes);

/* Set b->lines, b->floats, b->layers, b->output_norm, b->ternary_head, b->coarse and the members
 * that describe them, and b->head if head_copy_open makes a copy. Needs b->k, b->shape and
 * b->n_threads. `control` is not NULL. On failure the caller closes b, which frees them.
 * BN_EFORMAT: a code is 3 or a scale is not finite. BN_ENOMEM. BN_ECANCELLED. BN_EUNSUPPORTED: see
 * head_copy_open. */
bool pack_model(struct backend *b, const struct backend_control *control, struct bn_error *err);

#endif
