/*
 * Converts the file's ternary matrices to R1-256 lines and copies norms and biases, once, when the
 * backend opens. line_pack.h converts the rows.
 */
#ifndef ENGINE_CPU_CPU_PACK_H
#define ENGINE_CPU_CPU_PACK_H

#include "engine/cpu/cpu_state.h"

/* Bytes of all lines, norms and biases; false on overflow. */
bool pack_bytes(const struct model *m, const struct backend_config *cfg, size_t *n_bytes);

/* Fill b->lines, b->floats, b->layers, b->coarse and b->head on b->n_threads threads. On failure
 * the caller closes b, which frees what was made. BN_EFORMAT, BN_ENOMEM, BN_ECANCELLED. */
bool pack_model(struct backend *b, const struct backend_control *control, struct bn_error *err);

#endif
