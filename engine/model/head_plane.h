/*
 * The shape of the coarse plane that screens the output head (docs/kernels.md, "The head,
 * screened"): which output heads have one, and its size. It is the same on every backend.
 */
#ifndef ENGINE_MODEL_HEAD_PLANE_H
#define ENGINE_MODEL_HEAD_PLANE_H

#include "engine/model/model.h"

#define HEAD_PLANE_COLS 128 /* columns of a block; a block has half as many bytes */

/* Number of blocks in a row. 0 if this output head is not screened or `is_exact` is false, which
 * means that the head is not read in its exact form. */
size_t head_plane_blocks(const struct model *m, bool is_exact);
/* Number of steps from one row to the next: n_blocks rounded up to a multiple of 8. */
size_t head_plane_stride(size_t n_blocks);
/* Size of codes and steps of all rows in bytes; false on overflow. */
bool head_plane_bytes(const struct model *m, size_t n_blocks, size_t *n_bytes);

#endif
