/*
 * Packing by column: packs 256 rows, then transposes their lines.
 *
 * Columns are for passes of one token, which read only the columns with a nonzero input. Passes of
 * several tokens need rows. They read the bytes of the file, which saves a second copy in memory:
 * an I2_S line in layout A is an R1-256 line with its columns in another order, so
 * linear_acts_to_file_order brings the activations into that order.
 */
#include "engine/cpu/cpu_pack_columns.h"

#include "engine/base/size.h"

#include <string.h>

/* Byte r of the lines of columns 64 i + b, b < 64, to out[r][b]. It holds the codes of rows r,
 * r + 64, r + 128 and r + 192, which are bits 2i and 2i + 1 of byte b of these rows. */
static void gather_field(const uint8_t *rows, size_t row_bytes, size_t i,
                         uint8_t out[FIELD_COLS][FIELD_COLS])
{
    for (size_t r = 0; r < FIELD_COLS; r++) {
        const uint8_t *const row[4] = {rows + r * row_bytes, rows + (r + 64) * row_bytes,
                                       rows + (r + 128) * row_bytes, rows + (r + 192) * row_bytes};
        for (size_t b = 0; b < FIELD_COLS; b++)
            out[r][b] = (uint8_t)((row[0][b] >> 2 * i & 3) | (row[1][b] >> 2 * i & 3) << 2 |
                                  (row[2][b] >> 2 * i & 3) << 4 | (row[3][b] >> 2 * i & 3) << 6);
    }
}

/* Transpose one line of each of 256 rows into one line of each of their 256 columns. */
static void transpose_lines(const uint8_t *rows, size_t row_bytes, uint8_t *line, size_t col_bytes)
{
    uint8_t field[FIELD_COLS][FIELD_COLS];
    for (size_t i = 0; i < 4; i++) {
        gather_field(rows, row_bytes, i, field);
        for (size_t c = 0; c < FIELD_COLS; c++, line += col_bytes)
            for (size_t r = 0; r < FIELD_COLS; r++)
                line[r] = field[r][c];
    }
}

bool pack_columns(const struct ternary_source *src, size_t line0, size_t line1, size_t n_lines,
                  uint8_t *lines, uint8_t *rows, uint8_t *codes, struct bn_error *err)
{
    const size_t row_lines = src->n_cols / LINE_COLS, row_bytes = row_lines * LINE_BYTES;
    const size_t col_bytes = n_lines * LINE_BYTES;
    for (size_t l = line0; l < line1; l++) {
        const size_t row0 = l * LINE_COLS, row1 = size_min(row0 + LINE_COLS, src->n_rows);
        if (!r1_pack_rows(src, row0, row1, rows, row_bytes, codes, err))
            return false;
        /* Rows past the last one have weight zero: 0x55 holds four codes 1. */
        memset(rows + (row1 - row0) * row_bytes, 0x55, (LINE_COLS - (row1 - row0)) * row_bytes);
        for (size_t c = 0; c < row_lines; c++)
            transpose_lines(rows + c * LINE_BYTES, row_bytes,
                            lines + c * LINE_COLS * col_bytes + l * LINE_BYTES, col_bytes);
    }
    return true;
}
