/*
 * Constants of the coarse plane of an output head (docs/kernels.md, "The head, screened"). All
 * devices use them, so that all planes have the same bytes. Kernels include this file, so it
 * includes nothing.
 */
#ifndef ENGINE_LAYOUT_COARSE_CODE_H
#define ENGINE_LAYOUT_COARSE_CODE_H

#define COARSE_COLS 128 /* columns of a block, which is a line: four bits for each column */

#define COARSE_KEY 0x636f61727365u /* key of the hash that rounds weights: "coarse" in ASCII */
#define COARSE_MAX 1e15f           /* largest |weight|; above it, or for a NaN, there is no plane */
#define COARSE_MIN_STEP 0x0d80u    /* least step of a block: 2^-100 as BF16; 1 / step is finite */

/* Added under the root of the error bound of a logit: the products under the root can underflow. */
#define COARSE_UNDERFLOW 1e-36f

/* Only hidden states whose largest magnitude is from COARSE_X_MIN to COARSE_X_MAX are screened; for
 * the others the plane is not used. */
#define COARSE_X_MIN 1e-15f /* smaller values could underflow */
#define COARSE_X_MAX 1e15f  /* its product with COARSE_MAX and MODEL_MAX_WIDTH (2^20) is finite */

#endif
