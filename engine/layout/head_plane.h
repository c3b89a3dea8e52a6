/*
 * The shape of the coarse plane of a screened output head (docs/kernels.md, "The head, screened").
 * It is the same for every backend.
 */
#ifndef ENGINE_LAYOUT_HEAD_PLANE_H
#define ENGINE_LAYOUT_HEAD_PLANE_H

#include "engine/layout/coarse_code.h"
#include "engine/model/model.h"

/* Number of blocks in a row. 0 if the output head is not screened: `is_exact` is false (the mode is
 * not BN_HEAD_EXACT), its weights are ternary (head_linear), or the plane would be larger than half
 * of a float matrix, or larger than a matrix of another type. A backend may still make no plane:
 * if a weight is above COARSE_MAX in magnitude or not a number, or (CUDA) for a rotated head. */
size_t head_plane_blocks(const struct model *m, bool is_exact);
/* Number of steps that a row occupies: one per block, rounded up to a multiple of 8. Code c of a
 * block stands for the weight (2 c - 15) * step; steps are BF16. */
size_t head_plane_stride(size_t n_blocks);
/* Size of codes and steps of all rows in bytes. False on overflow; then *n_bytes does not
 * change. */
bool head_plane_bytes(const struct model *m, size_t n_blocks, size_t *n_bytes);

#endif
