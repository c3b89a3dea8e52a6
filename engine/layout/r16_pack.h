/*
 * Packs ternary matrices of a file to R16, the layout for scales per row or per block, activations
 * in blocks, experts and a ternary output head. R16 interleaves 16 rows, a row group: line l of a
 * group holds the columns 16 l .. 16 l + 15 of its rows. Dword r of the line is row r, and bits 2i
 * and 2i + 1 of byte k of the dword are the code of column 16 l + 4 i + k. Rows and columns past
 * the end have code 1, which is the weight 0.
 *
 * All functions are pure and may run on several threads with disjoint outputs. The source must have
 * passed the checks of the model loader.
 */
#ifndef ENGINE_LAYOUT_R16_PACK_H
#define ENGINE_LAYOUT_R16_PACK_H

#include "engine/base/error.h"
#include "engine/gguf/ternary_codec.h"
#include "engine/layout/layout_units.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sizes of one matrix in R16. In memory all lines come first, then all scales. */
struct group_shape {
    size_t n_groups;
    size_t n_lines;    /* per row group: a multiple of R16_PAD_COLS / R16_LINE_COLS */
    size_t span_cols;  /* 64 or 128: columns of a span, see docs/kernels.md */
    size_t n_spans;    /* per row */
    bool has_scales;   /* F16 (n_groups, n_spans, R16_ROWS), only for SCALE_BLOCK */
    size_t line_bytes; /* of all lines */
    size_t n_bytes;    /* of lines and scales, a multiple of LINE_BYTES */
};
/* False if a size overflows; then *out is undefined. */
bool group_shape_of(const struct ternary_source *src, const struct ternary_scales *scales,
                    struct group_shape *out);

/* Bytes of scratch memory that r16_pack needs for rows of n_cols columns. The memory must be
 * aligned to 2 bytes. */
size_t r16_pack_scratch(size_t n_cols);

/* Pack row groups group0 .. group1 - 1 and, with has_scales, their scales. `to` (shape->n_bytes) is
 * 64-byte aligned and holds the whole matrix; only the bytes of these groups are written. `scratch`
 * (r16_pack_scratch) belongs to this call alone. BN_EFORMAT: a code is 3 or a scale is not
 * finite; the message names tensor and byte offset, and some groups may have been written. */
bool r16_pack(const struct ternary_source *src, const struct ternary_scales *scales,
              const struct group_shape *shape, size_t group0, size_t group1, uint8_t *to,
              void *scratch, struct bn_error *err);

#endif
