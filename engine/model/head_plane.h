/*
 * The shape of the coarse plane that screens the output head (docs/kernels.md, "The head,
 * screened"): which heads have one and how large it is, the same on every backend.
 */
#ifndef ENGINE_MODEL_HEAD_PLANE_H
#define ENGINE_MODEL_HEAD_PLANE_H

#include "engine/model/model.h"

#define HEAD_PLANE_COLS 128 /* columns of a block; its line has half as many bytes */

/* Blocks of a row, 0: this head is not screened, nor one that is to be read in another way than the
 * exact one. */
size_t head_plane_blocks(const struct model *m, bool is_exact);
/* Steps from a row to the next: n_blocks rounded up to 8. */
size_t head_plane_stride(size_t n_blocks);
/* Lines and steps of all rows; false on overflow. */
bool head_plane_bytes(const struct model *m, size_t n_blocks, size_t *n_bytes);

#endif
