/*
 * Ternary rows of a file to R1-256 lines, by row and by column.
 *
 * Rows are decoded with ternary_decode and then packed. The exception is I2_S in layout A with rows
 * of whole lines, which published files use: its bytes are rearranged directly.
 *
 * Columns are for passes of one token, which read only the columns with a nonzero input. Passes of
 * several tokens need rows. They read the bytes of the file, which saves a second copy in memory:
 * an I2_S line in layout A is an R1-256 line with its columns in another order, so pack_file_order
 * brings the activations into that order.
 */
#include "engine/cpu/cpu_pack_lines.h"

#include "engine/base/size.h"

#include <string.h>

#define FIELD_COLS 64 /* columns of a line: bits 2i of byte b hold column 64 i + b */

/* Pack one code per byte into a line: bits 2i of byte b hold column 64 i + b. Columns past the end
 * get code 1. */
static void pack_line(const uint8_t *codes, size_t n_codes, uint8_t *line)
{
    uint8_t padded[LINE_COLS];
    if (n_codes < LINE_COLS) {
        memset(padded, 1, sizeof padded);
        memcpy(padded, codes, n_codes);
        codes = padded;
    }
    for (size_t b = 0; b < LINE_BYTES; b++)
        line[b] =
            (uint8_t)(codes[b] | codes[b + 64] << 2 | codes[b + 128] << 4 | codes[b + 192] << 6);
}

static uint64_t load_u64(const uint8_t *p)
{
    uint64_t u;
    memcpy(&u, p, sizeof u);
    return u;
}

/* Move a code from bits `shift` to bits `to` in every byte. */
#define FIELD(u, shift, to) ((((u) >> (shift)) & 0x0303030303030303u) << (to))

/* Rearrange two I2_S blocks of layout A (element e of 128 is in byte e % 32, bits 6 - 2 (e / 32))
 * into one line, eight bytes of each at a time. True if a code is 3. */
static bool pack_line_i2s(const uint8_t *blocks, uint8_t *line)
{
    uint64_t bad = 0;
    for (size_t b = 0; b < 32; b += 8) {
        const uint64_t x = load_u64(blocks + b), y = load_u64(blocks + 32 + b);
        const uint64_t low = FIELD(x, 6, 0) | FIELD(x, 2, 2) | FIELD(y, 6, 4) | FIELD(y, 2, 6);
        const uint64_t high = FIELD(x, 4, 0) | FIELD(x, 0, 2) | FIELD(y, 4, 4) | FIELD(y, 0, 6);
        bad |= (x & (x >> 1)) | (y & (y >> 1));
        memcpy(line + b, &low, sizeof low);
        memcpy(line + 32 + b, &high, sizeof high);
    }
    return (bad & 0x5555555555555555u) != 0;
}

static bool pack_rows_i2s(const struct ternary_source *src, size_t row0, size_t row1,
                          uint8_t *lines, uint8_t *codes, struct bn_error *err)
{
    const size_t n_lines = src->n_cols / LINE_COLS;
    for (size_t r = row0; r < row1; r++) {
        const uint8_t *row = src->bytes + r * n_lines * LINE_BYTES;
        bool bad = false;
        for (size_t i = 0; i < n_lines; i++)
            bad |= pack_line_i2s(row + i * LINE_BYTES,
                                 lines + ((r - row0) * n_lines + i) * LINE_BYTES);
        /* ternary_decode writes the message. */
        if (bad && !ternary_decode(src, r, r + 1, codes, err))
            return false;
    }
    return true;
}

bool pack_rows(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *lines,
               uint8_t *codes, struct bn_error *err)
{
    if (src->type == TENSOR_I2_S && src->layout == BN_I2S_A && src->n_cols % LINE_COLS == 0)
        return pack_rows_i2s(src, row0, row1, lines, codes, err);
    for (size_t r = row0; r < row1; r += PACK_ROWS) {
        const size_t end = size_min(r + PACK_ROWS, row1);
        if (!ternary_decode(src, r, end, codes, err))
            return false;
        for (size_t i = r; i < end; i++)
            for (size_t c = 0; c < src->n_cols; c += LINE_COLS, lines += LINE_BYTES)
                pack_line(codes + (i - r) * src->n_cols + c, size_min(src->n_cols - c, LINE_COLS),
                          lines);
    }
    return true;
}

/* Byte r of the lines of columns 64 i + b, b < 64, to out[r][b]. It holds the codes of rows r,
 * r + 64, r + 128 and r + 192, which are bits 2i of byte b of these rows. */
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
        /* Rows past the last one have weight zero. */
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
