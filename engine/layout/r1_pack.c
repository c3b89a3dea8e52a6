/*
 * Packing of ternary rows.
 *
 * All tensor types are decoded by ternary_decode, the plain definition, except I2_S in layout A
 * with rows of whole lines. The published I2_S files have that layout, so for speed its bytes are
 * rearranged directly. A test compares both ways.
 */
#include "engine/layout/r1_pack.h"

#include "engine/base/size.h"

#include <string.h>

/* Pack n_codes codes, one per byte, into a line: bits 2i and 2i + 1 of byte b hold column 64 i + b.
 * Columns past the end get code 1. */
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
    return (bad & 0x5555555555555555u) != 0; /* both bits of a code are set */
}

bool r1_pack_rows(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *lines,
                  size_t stride, uint8_t *codes, struct bn_error *err)
{
    const bool is_direct =
        src->type == TENSOR_I2_S && src->layout == BN_I2S_A && src->n_cols % LINE_COLS == 0;
    for (size_t r = row0; r < row1; r += R1_PACK_ROWS, lines += R1_PACK_ROWS * stride) {
        const size_t n = size_min(R1_PACK_ROWS, row1 - r), n_cols = src->n_cols;
        bool is_bad = false;
        for (size_t i = 0; is_direct && i < n; i++)
            for (size_t c = 0; c < n_cols; c += LINE_COLS)
                is_bad |= pack_line_i2s(src->bytes + ((r + i) * n_cols + c) / 4,
                                        lines + i * stride + c / 4);
        if (is_direct && !is_bad)
            continue;
        if (!ternary_decode(src, r, r + n, codes, err)) /* writes the message about a code 3 */
            return false;
        for (size_t i = 0; i < n; i++)
            for (size_t c = 0; c < n_cols; c += LINE_COLS)
                pack_line(codes + i * n_cols + c, size_min(n_cols - c, LINE_COLS),
                          lines + i * stride + c / 4);
    }
    return true;
}
