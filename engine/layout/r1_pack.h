/*
 * Packs ternary rows of a file to lines of R1-256, the usual layout of ternary layers that are not
 * in R16 (r16_pack.h). A line holds 256 columns: bits 2i and 2i + 1 of byte b hold the code of
 * column 64 i + b. Columns past the end of a row have code 1, which is the weight 0.
 */
#ifndef ENGINE_LAYOUT_R1_PACK_H
#define ENGINE_LAYOUT_R1_PACK_H

#include "engine/base/error.h"
#include "engine/gguf/ternary_codec.h"
#include "engine/layout/layout_units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define R1_PACK_ROWS 4 /* most rows that are decoded together, a bound for the scratch memory */

/* Lines of a row; for weights by column, lines of a column of n rows. */
static inline size_t r1_lines(size_t n_cols)
{
    return n_cols / LINE_COLS + (n_cols % LINE_COLS != 0);
}

/* Pack rows row0 .. row1 - 1. Row row0 begins at `lines`, and each further row `stride` bytes after
 * the one before it; bytes between the lines of two rows are not written. `codes` (R1_PACK_ROWS,
 * n_cols) is scratch memory. The source must have passed the checks of the model loader.
 * BN_EFORMAT: a code is 3; the message names tensor and byte offset, and some rows may have been
 * written. */
bool r1_pack_rows(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *lines,
                  size_t stride, uint8_t *codes, struct bn_error *err);

#endif
