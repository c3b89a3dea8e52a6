/*
 * From the file's ternary containers to R1-256 lines and F32 norms: once, when the backend opens.
 *
 * Every container goes through ternary_decode, the plain definition; I2_S in layout A with whole
 * lines, which is what published files are, is rearranged directly and tested against it.
 */
#ifndef ENGINE_CPU_CPU_PACK_H
#define ENGINE_CPU_CPU_PACK_H

#include "engine/cpu/cpu_state.h"

/* Bytes of all lines, norms and biases; false on overflow. */
bool pack_bytes(const struct model *m, const struct backend_config *cfg, size_t *n_bytes);

/* Is the down projection kept column by column? Its rows are then those of the file. */
bool pack_in_columns(const struct model *m, const struct backend_config *cfg,
                     const struct linear *down);
/* Fill b->lines, b->floats, b->layers and b->coarse on b->n_threads threads, each the rows it will
 * read. On failure what was made stays in b for the backend's close. BN_EFORMAT, BN_ENOMEM,
 * BN_ECANCELLED.
 */
bool pack_model(struct backend *b, const struct backend_control *control, struct bn_error *err);

#endif
