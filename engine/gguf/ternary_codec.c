/*
 * The table of the ternary layouts of docs/formats.md, the layouts of I2_S, and the functions of
 * the codec for all types, which look up the type in the table.
 *
 * I2_S stores runs of neighbouring elements at the same shift of neighbouring bytes. The decoders
 * process one run at a time, so that the compiler can vectorise the inner loop.
 */
#include "engine/gguf/ternary_layout.h"

#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"

#include <math.h>

/* ---- shapes ---- */

/* Number of elements in a block of I2_S layouts A and B. */
static size_t i2s_unit(enum bn_i2s_layout layout)
{
    return layout == BN_I2S_A ? 128 : 64;
}

static bool i2s_holds(enum bn_i2s_layout layout, size_t n_cols, size_t n_rows)
{
    if (layout == BN_I2S_C)
        return n_rows % 4 == 0;
    size_t n;
    return size_mul(&n, n_cols, n_rows) && n % i2s_unit(layout) == 0;
}

bool ternary_check(const struct ternary_source *src, struct bn_error *err)
{
    const struct tensor_geometry *g = &tensor_geometries[src->type];
    if (!ternary_layouts[src->type].decode)
        return bn_fail(err, BN_EUNSUPPORTED, "tensor '%s' is %s, which holds no ternary weights",
                       src->name, g->name);
    if (src->type == TENSOR_I2_S && !i2s_holds(src->layout, src->n_cols, src->n_rows))
        return bn_fail(err, BN_EFORMAT, "tensor '%s': %zu x %zu elements do not fit I2_S layout %c",
                       src->name, src->n_cols, src->n_rows, 'A' + (int)src->layout);
    size_t need;
    if (!tensor_bytes(src->type, src->n_cols, src->n_rows, &need) || src->n_bytes < need)
        return bn_fail(err, BN_EFORMAT,
                       "tensor '%s': %zu bytes do not hold %zu x %zu elements of %s", src->name,
                       src->n_bytes, src->n_cols, src->n_rows, g->name);
    return true;
}

/* ---- I2_S ---- */

static bool i2s_scan(const struct ternary_source *src, struct ternary_scales *out,
                     struct bn_error *err)
{
    const size_t at = src->n_cols * src->n_rows / 4;
    const float scale = f32_from_bits(le_u32(src->bytes + at));
    if (!isfinite(scale))
        return bn_fail(err, BN_EFORMAT, "tensor '%s': its scale, at byte %zu, is not finite",
                       src->name, src->file_offset + at);
    *out = (struct ternary_scales){.scaling = SCALE_TENSOR, .tensor_scale = scale};
    return true;
}

bool ternary_decode_run(const uint8_t *bytes, size_t n, unsigned shift, uint8_t *codes)
{
    uint8_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t code = (uint8_t)(bytes[i] >> shift & 3);
        codes[i] = code;
        bad |= (uint8_t)(code & code >> 1);
    }
    return bad != 0;
}

/* Report the first code 3 of a run of n bytes. */
static bool bad_code(const struct ternary_source *src, const uint8_t *bytes, size_t n,
                     const uint8_t *codes, struct bn_error *err)
{
    size_t i = 0;
    while (i + 1 < n && codes[i] != 3)
        i++;
    const size_t offset = src->file_offset + (size_t)(bytes - src->bytes) + i;
    return bn_fail(err, BN_EFORMAT,
                   "tensor '%s': the byte at %zu holds code 3, which no ternary weight has",
                   src->name, offset);
}

/* Layouts A and B: blocks of 128 (B: 64) elements in 32 (B: 16) bytes, with the first quarter of a
 * block in the highest bits. A block may cross the end of a row. */
static bool i2s_flat_decode(const struct ternary_source *src, size_t row0, size_t row1,
                            uint8_t *codes, struct bn_error *err)
{
    const size_t unit = i2s_unit(src->layout), quarter = unit / 4;
    const size_t end = row1 * src->n_cols;
    for (size_t e = row0 * src->n_cols; e < end;) {
        const size_t in_quarter = e % quarter;
        const size_t n = size_min(quarter - in_quarter, end - e);
        const uint8_t *bytes = src->bytes + e / unit * quarter + in_quarter;
        const unsigned shift = 6 - 2 * (unsigned)(e % unit / quarter);
        if (ternary_decode_run(bytes, n, shift, codes))
            return bad_code(src, bytes, n, codes, err);
        codes += n;
        e += n;
    }
    return true;
}

/* Layout C: four rows share a byte, with the first row in the highest bits. */
static bool i2s_rows_decode(const struct ternary_source *src, size_t row0, size_t row1,
                            uint8_t *codes, struct bn_error *err)
{
    for (size_t r = row0; r < row1; r++, codes += src->n_cols) {
        const uint8_t *bytes = src->bytes + r / 4 * src->n_cols;
        if (ternary_decode_run(bytes, src->n_cols, 6 - 2 * (unsigned)(r % 4), codes))
            return bad_code(src, bytes, src->n_cols, codes, err);
    }
    return true;
}

static bool i2s_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                       struct bn_error *err)
{
    return src->layout == BN_I2S_C ? i2s_rows_decode(src, row0, row1, codes, err)
                                   : i2s_flat_decode(src, row0, row1, codes, err);
}

/* ---- the table ---- */

/* Rows of the table, in the order of the members of struct ternary_layout. */
#define FLOATS                                                                                     \
    {                                                                                              \
        floats_scan, floats_decode, floats_block_scales, floats_row_scale, NULL, false, 0, 0       \
    }
#define BLOCKS(decode, has_2_bits, scale_at)                                                       \
    {                                                                                              \
        blocks_scan, blocks_decode, blocks_block_scales, blocks_row_scale, decode, has_2_bits,     \
            scale_at, 0                                                                            \
    }
#define ROWS(decode, has_2_bits, run_bytes)                                                        \
    {                                                                                              \
        rows_scan, rows_decode, NULL, rows_row_scale, decode, has_2_bits, 0, run_bytes             \
    }

const struct ternary_layout ternary_layouts[TENSOR_N_TYPES] = {
    [TENSOR_F32] = FLOATS,
    [TENSOR_F16] = FLOATS,
    [TENSOR_BF16] = FLOATS,
    [TENSOR_I2_S] = {i2s_scan, i2s_decode, NULL, NULL, NULL, true, 0, 0},
    [TENSOR_TQ1_0] = BLOCKS(tq1_block_decode, false, 52),
    [TENSOR_TQ2_0] = BLOCKS(tq2_block_decode, true, 64),
    [TENSOR_Q2_0] = BLOCKS(q2_64_block_decode, true, 0),
    [TENSOR_Q2_0_G128] = BLOCKS(q2_128_block_decode, true, 0),
    [TENSOR_PQ2_0] = BLOCKS(q2_128_block_decode, true, 0),
    [TENSOR_PTQ1_0] = BLOCKS(ptq1_block_decode, false, 26),
    [TENSOR_Q1_0] = BLOCKS(q1_block_decode, false, 0),
    [TENSOR_IQ1_BN] = ROWS(iq1_bn_block_decode, false, 13),
    [TENSOR_IQ2_BN] = ROWS(iq2_bn_block_decode, true, 16),
    [TENSOR_IQ2_BN_R4] = ROWS(iq2_bn_r4_block_decode, true, 4),
};

/* ---- all types ---- */

bool ternary_scan(const struct ternary_source *src, struct ternary_scales *out,
                  struct bn_error *err)
{
    return ternary_check(src, err) && ternary_layouts[src->type].scan(src, out, err);
}

size_t ternary_row_blocks(const struct ternary_source *src, const struct ternary_scales *s)
{
    return src->n_cols / s->block_cols + (src->n_cols % s->block_cols != 0);
}

bool ternary_block_scales(const struct ternary_source *src, const struct ternary_scales *s,
                          size_t row0, size_t row1, uint16_t *out, struct bn_error *err)
{
    const size_t row_blocks = ternary_row_blocks(src, s);
    for (size_t row = row0; row < row1; row++, out += row_blocks) {
        if (!ternary_layouts[src->type].block_scales(src, s->block_cols, row, out, err))
            return false;
    }
    return true;
}

void ternary_row_scales(const struct ternary_source *src, size_t row0, size_t row1, float *out)
{
    for (size_t row = row0; row < row1; row++)
        *out++ = ternary_layouts[src->type].row_scale(src, row);
}

bool ternary_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                    struct bn_error *err)
{
    if (!ternary_check(src, err))
        return false;
    if (row0 > row1 || row1 > src->n_rows)
        return bn_fail(err, BN_EARG, "tensor '%s' has %zu rows, not rows %zu to %zu", src->name,
                       src->n_rows, row0, row1);
    return ternary_layouts[src->type].decode(src, row0, row1, codes, err);
}
