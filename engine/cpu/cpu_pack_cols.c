/*
 * The down projection column by column, so that a token reads only the columns whose input is not
 * zero. Made when the backend opens, 256 rows at a time by way of R1-256 lines.
 *
 * Passes of several tokens need the rows. There is no second copy of them in memory: a line of I2_S
 * in layout A is a line of R1-256 with its columns in another order, so the file's own bytes are
 * multiplied with activations in that order.
 */
#include "engine/cpu/cpu_pack.h"

#include "engine/base/size.h"

#include <string.h>

#define FIELD_COLS 64 /* of a line: byte b, bits 2i: number 64 i + b */

bool pack_in_columns(const struct model *m, const struct backend_config *cfg,
                     const struct linear *down)
{
    const struct ternary_source *src = &down->source;
    return cfg->skip == BN_SKIP_ON && m->hp.act == FFN_RELU2 && src->type == TENSOR_I2_S &&
           src->layout == BN_I2S_A && src->n_cols % LINE_COLS == 0 && src->n_cols <= MOST_SUMMED &&
           (uintptr_t)src->bytes % 32 == 0;
}

/* Byte b' of the lines of columns 64 i + b, b < 64, has the codes of rows 64 i' + b': fields i of
 * the rows' bytes b. out (FIELD_COLS, FIELD_COLS): byte b' outside. */
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

/* Line `line` of the columns that lines l of the 256 rows hold. */
static void turn_lines(const uint8_t *rows, size_t row_bytes, uint8_t *line, size_t col_bytes)
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
        if (!pack_rows(src, row0, row1, rows, codes, err))
            return false;
        /* Rows past the last weigh zero. */
        memset(rows + (row1 - row0) * row_bytes, 0x55, (LINE_COLS - (row1 - row0)) * row_bytes);
        for (size_t c = 0; c < row_lines; c++)
            turn_lines(rows + c * LINE_BYTES, row_bytes,
                       lines + c * LINE_COLS * col_bytes + l * LINE_BYTES, col_bytes);
    }
    return true;
}

void pack_file_order(int8_t *q, size_t n_lines)
{
    int8_t line[LINE_COLS];
    for (size_t l = 0; l < n_lines; l++, q += LINE_COLS) {
        memcpy(line, q, sizeof line);
        for (size_t i = 0; i < 4; i++)
            for (size_t half = 0; half < 2; half++)
                memcpy(q + 64 * i + 32 * half, line + 128 * half + 32 * (3 - i), 32);
    }
}
