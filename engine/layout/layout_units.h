/*
 * Sizes that all devices share: units of the layouts of weights, activations and the KV cache.
 * Kernels of every device include this file, so it includes nothing.
 */
#ifndef ENGINE_LAYOUT_LAYOUT_UNITS_H
#define ENGINE_LAYOUT_LAYOUT_UNITS_H

#define LINE_BYTES 64 /* a line of codes: one cache line, one AVX-512 register */

#define LINE_COLS 256 /* R1-256 (r1_pack.h): columns of a line, all of one row */
#define FIELD_COLS 64 /* columns of a field: bits 2i and 2i + 1 of byte b hold column 64 i + b */

#define R16_ROWS 16      /* R16 (r16_pack.h): rows of a row group */
#define R16_LINE_COLS 16 /* columns of a line of a row group */
#define R16_PAD_COLS 128 /* the number of columns is padded to a multiple of this */

#define ROW_UNIT 16 /* floats in a cache line; the rows of most activations are a multiple */

#define KV_BLOCK 64 /* positions in a position block of the KV cache */
#define V_UNIT 32   /* a value has head_dim elements in memory, rounded up to this unit */

/* Most rows of logits for which the output head is read once. */
#define HEAD_PASS_ROWS 16

#endif
