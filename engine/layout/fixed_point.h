/*
 * Constants of quantised numbers that all devices share (docs/kernels.md). Kernels include this
 * file, so it includes nothing.
 */
#ifndef ENGINE_LAYOUT_FIXED_POINT_H
#define ENGINE_LAYOUT_FIXED_POINT_H

#define F16_MAX 65504.0f /* the largest finite F16 number, the limit of stored keys and values */

/* The largest magnitude of v = 128 high + low, where high is -127 to 127 and low is -64 to 63:
 * 127 * 128. With v + 64 the shift by 7 bits rounds, so a larger v would give a high of 128. */
#define FIXED_POINT_MAX 16256
#define MAX_PLANES 2 /* most bytes of an activation: high and low */

#define MIN_BLOCK_COLS 32 /* columns of the smallest activation block, that of ACT_BLOCK32 */
/* An activation block with a smaller maximum becomes zero. 127 / BLOCK_MIN_ABS is finite. */
#define BLOCK_MIN_ABS 1e-30f

#endif
