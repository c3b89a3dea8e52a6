/*
 * Ternary matrices by column. The function is pure and may run on several threads with disjoint
 * outputs. The source must have passed the checks of the model loader.
 */
#ifndef ENGINE_CPU_CPU_PACK_COLUMNS_H
#define ENGINE_CPU_CPU_PACK_COLUMNS_H

#include "engine/layout/r1_pack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines line0 .. line1 - 1 of every column, to `lines` (n_cols, n_lines, LINE_BYTES), as in struct
 * ternary_cols (kernels_ternary.h). Here a line holds LINE_COLS rows of one column, so n_lines is
 * n_rows / LINE_COLS, rounded up. Scratch memory: `rows`, LINE_COLS packed rows of n_cols / 4
 * bytes, and `codes` as for r1_pack_rows. n_cols must be a multiple of LINE_COLS.
 * BN_EFORMAT: as r1_pack_rows. */
bool pack_columns(const struct ternary_source *src, size_t line0, size_t line1, size_t n_lines,
                  uint8_t *lines, uint8_t *rows, uint8_t *codes, struct bn_error *err);

#endif
