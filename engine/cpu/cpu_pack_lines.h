/*
 * Ternary rows of a file to R1-256 lines, the layout that the kernels read (kernels_ternary.h).
 *
 * All functions are pure and may run on several threads with disjoint outputs. The source must have
 * passed the checks of the model loader.
 */
#ifndef ENGINE_CPU_CPU_PACK_LINES_H
#define ENGINE_CPU_CPU_PACK_LINES_H

#include "engine/base/error.h"
#include "engine/cpu/kernels_ternary.h"
#include "engine/gguf/ternary_codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_ROWS 4 /* rows that are decoded together */

/* Rows row0 .. row1 - 1 of a tensor to lines (row1 - row0, n_lines, LINE_BYTES). codes is scratch
 * of (PACK_ROWS, n_cols). BN_EFORMAT: a code is 3; the message names tensor and byte offset. */
bool pack_rows(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *lines,
               uint8_t *codes, struct bn_error *err);

/* Lines line0 .. line1 - 1 of every column, to lines (n_cols, n_lines, LINE_BYTES). Scratch: rows
 * (LINE_COLS, n_cols / 4), and codes as for pack_rows. n_cols must be a multiple of LINE_COLS.
 * BN_EFORMAT: as pack_rows. */
bool pack_columns(const struct ternary_source *src, size_t line0, size_t line1, size_t n_lines,
                  uint8_t *lines, uint8_t *rows, uint8_t *codes, struct bn_error *err);

/* Reorder q (n_lines * LINE_COLS) of a token in place: from ascending columns to the order in which
 * I2_S lines of layout A hold columns. */
void pack_file_order(int8_t *q, size_t n_lines);

#endif
