/*
 * Packing to R16. All tensor types are decoded by ternary_decode, the plain definition, to one byte
 * per code. The 16 codes of a row in a line are then four dwords, which are merged with three
 * shifts.
 */
#include "engine/layout/r16_pack.h"

#include "engine/base/size.h"

#include <string.h>

#define CODES_ALL_ONE 0x55555555u /* a dword of 16 codes 1 */

bool group_shape_of(const struct ternary_source *src, const struct ternary_scales *scales,
                    struct group_shape *out)
{
    const size_t n_cols = size_round_up(src->n_cols, R16_PAD_COLS);
    *out = (struct group_shape){
        .n_groups = src->n_rows / R16_ROWS + (src->n_rows % R16_ROWS != 0),
        .n_lines = n_cols / R16_LINE_COLS,
        .span_cols = scales->scaling == SCALE_BLOCK && scales->block_cols == 64 ? 64 : 128,
        .has_scales = scales->scaling == SCALE_BLOCK,
    };
    out->n_spans = n_cols / out->span_cols;
    size_t scale_bytes = 0;
    return size_mul3(&out->line_bytes, out->n_groups, out->n_lines, LINE_BYTES) &&
           (!out->has_scales ||
            size_mul3(&scale_bytes, out->n_groups, out->n_spans, R16_ROWS * sizeof(uint16_t))) &&
           size_add(&out->n_bytes, out->line_bytes, size_round_up(scale_bytes, LINE_BYTES));
}

size_t r16_pack_scratch(size_t n_cols)
{
    /* The padded codes of one row, and behind them the F16 scales of 16 rows in blocks of at least
     * 64 columns. */
    const size_t n_padded = size_round_up(n_cols, R16_PAD_COLS);
    return n_padded + R16_ROWS * n_padded / 64 * sizeof(uint16_t);
}

/* Pack the codes (16 n_lines) of one row to dword `row` of each line of the group. */
static void pack_row(const uint8_t *codes, size_t n_lines, size_t row, uint8_t *lines)
{
    for (size_t l = 0; l < n_lines; l++, codes += R16_LINE_COLS) {
        uint32_t field[4];
        memcpy(field, codes, sizeof field);
        const uint32_t dword = field[0] | field[1] << 2 | field[2] << 4 | field[3] << 6;
        memcpy(lines + l * LINE_BYTES + 4 * row, &dword, sizeof dword);
    }
}

/* Fill dword `row`, which is past the last row of the matrix, with code 1. */
static void pack_no_row(size_t n_lines, size_t row, uint8_t *lines)
{
    const uint32_t dword = CODES_ALL_ONE;
    for (size_t l = 0; l < n_lines; l++)
        memcpy(lines + l * LINE_BYTES + 4 * row, &dword, sizeof dword);
}

/* Write the scales of a row group to `to` (n_spans, R16_ROWS), 0 past the last row and column.
 * scratch (R16_ROWS, ternary_row_blocks) is overwritten. */
static bool pack_scales(const struct ternary_source *src, const struct ternary_scales *scales,
                        const struct group_shape *shape, size_t group, uint16_t *to,
                        uint16_t *scratch, struct bn_error *err)
{
    const size_t row0 = group * R16_ROWS, n_rows = size_min(src->n_rows - row0, R16_ROWS);
    const size_t n_blocks = ternary_row_blocks(src, scales);
    if (!ternary_block_scales(src, scales, row0, row0 + n_rows, scratch, err))
        return false;
    for (size_t span = 0; span < shape->n_spans; span++)
        for (size_t r = 0; r < R16_ROWS; r++) {
            const size_t block = span * shape->span_cols / scales->block_cols;
            to[span * R16_ROWS + r] =
                r < n_rows && block < n_blocks ? scratch[r * n_blocks + block] : 0;
        }
    return true;
}

bool r16_pack(const struct ternary_source *src, const struct ternary_scales *scales,
              const struct group_shape *shape, size_t group0, size_t group1, uint8_t *to,
              void *scratch, struct bn_error *err)
{
    const size_t n_cols = src->n_cols, n_padded = shape->n_lines * R16_LINE_COLS;
    uint8_t *codes = scratch;
    /* Both addresses are even: n_padded and line_bytes are multiples of 64. */
    uint16_t *row_scales = (uint16_t *)(void *)(codes + n_padded);
    uint16_t *all_scales = (uint16_t *)(void *)(to + shape->line_bytes);
    for (size_t g = group0; g < group1; g++) {
        uint8_t *lines = to + g * shape->n_lines * LINE_BYTES;
        for (size_t r = 0; r < R16_ROWS; r++) {
            const size_t row = g * R16_ROWS + r;
            if (row >= src->n_rows) {
                pack_no_row(shape->n_lines, r, lines);
                continue;
            }
            if (!ternary_decode(src, row, row + 1, codes, err))
                return false;
            memset(codes + n_cols, 1, n_padded - n_cols);
            pack_row(codes, shape->n_lines, r, lines);
        }
        if (shape->has_scales &&
            !pack_scales(src, scales, shape, g, all_scales + g * shape->n_spans * R16_ROWS,
                         row_scales, err))
            return false;
    }
    return true;
}
