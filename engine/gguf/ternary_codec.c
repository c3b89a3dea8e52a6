/*
 * The table of the ternary layouts of docs/formats.md, and the layouts that do not consist of
 * blocks with a scale each: I2_S and floats.
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

/* ---- scales ---- */

static float float_at(enum tensor_type type, const uint8_t *bytes, size_t i)
{
    if (type == TENSOR_F16)
        return f16_to_f32(le_u16(bytes + 2 * i));
    if (type == TENSOR_BF16)
        return bf16_to_f32(le_u16(bytes + 2 * i));
    return f32_from_bits(le_u32(bytes + 4 * i));
}

/* Bits of the magnitude. Equal bits mean equal magnitudes; 0 is zero of either sign. */
static uint32_t magnitude_bits(const struct ternary_source *src, size_t i)
{
    if (src->type == TENSOR_F32)
        return le_u32(src->bytes + 4 * i) & 0x7fffffff;
    return le_u16(src->bytes + 2 * i) & 0x7fff;
}

/* Are the n elements from i on all zero or of this magnitude? Has no branch per element, so that
 * the compiler can vectorise it: for float models it reads all weights. */
static bool all_of_magnitude(const struct ternary_source *src, size_t i, size_t n, uint32_t bits)
{
    unsigned other = 0;
    if (src->type == TENSOR_F32) {
        for (size_t k = 0; k < n; k++) {
            const uint32_t m = le_u32(src->bytes + 4 * (i + k)) & 0x7fffffff;
            other |= (unsigned)(m != 0) & (unsigned)(m != bits);
        }
    } else {
        for (size_t k = 0; k < n; k++) {
            const unsigned m = le_u16(src->bytes + 2 * (i + k)) & 0x7fff;
            other |= (unsigned)(m != 0) & (unsigned)(m != bits);
        }
    }
    return other == 0;
}

/* Accept element i, whose magnitude must be 0 or the one of the tensor. The first nonzero
 * magnitude becomes that of the tensor. */
static bool check_element(const struct ternary_source *src, size_t i, uint32_t *found, float *scale,
                          struct bn_error *err)
{
    const uint32_t bits = magnitude_bits(src, i);
    if (bits == 0 || bits == *found)
        return true;
    const float v = float_at(src->type, src->bytes, i);
    if (!isfinite(v))
        return bn_fail(err, BN_EFORMAT, "tensor '%s': element %zu (row %zu) is not finite",
                       src->name, i, i / src->n_cols);
    if (*found != 0)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "tensor '%s' (%s) is dense, not ternary: "
                       "element %zu (row %zu) is %g, earlier ones are 0 or %g in magnitude",
                       src->name, tensor_geometries[src->type].name, i, i / src->n_cols, (double)v,
                       (double)*scale);
    *found = bits;
    *scale = fabsf(v);
    return true;
}

static bool float_scan(const struct ternary_source *src, struct ternary_scales *out,
                       struct bn_error *err)
{
    const size_t n = src->n_cols * src->n_rows, chunk = 1024;
    uint32_t found = 0;
    float scale = 0.0f;
    for (size_t i = 0; i < n; i += chunk) {
        const size_t n_here = size_min(chunk, n - i);
        if (all_of_magnitude(src, i, n_here, found))
            continue;
        for (size_t k = i; k < i + n_here; k++) {
            if (!check_element(src, k, &found, &scale, err))
                return false;
        }
    }
    *out = (struct ternary_scales){.scaling = SCALE_TENSOR, .tensor_scale = scale};
    return true;
}

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

/* ---- decoding ---- */

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

/* Layouts A and B: blocks of 128 (64) elements in 32 (16) bytes that cross row ends, with the first
 * quarter of a block in the highest bits. */
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

/* Code of a float; +0 and -0 have code 1. Has no branch, so that the compiler can vectorise it. */
static uint8_t float_code(unsigned is_nonzero, unsigned is_negative)
{
    return (uint8_t)(1 + is_nonzero - 2 * (is_nonzero & is_negative));
}

static bool float_decode(const struct ternary_source *src, size_t row0, size_t row1, uint8_t *codes,
                         struct bn_error *err)
{
    (void)err; /* every float has a code */
    const size_t unit = src->type == TENSOR_F32 ? 4 : 2, n = (row1 - row0) * src->n_cols;
    const uint8_t *bytes = src->bytes + row0 * src->n_cols * unit;
    if (unit == 4) {
        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = le_u32(bytes + 4 * i);
            codes[i] = float_code((bits & 0x7fffffff) != 0, bits >> 31);
        }
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        const unsigned bits = le_u16(bytes + 2 * i);
        codes[i] = float_code((bits & 0x7fff) != 0, bits >> 15);
    }
    return true;
}

/* ---- the table ---- */

const struct ternary_layout ternary_layouts[TENSOR_N_TYPES] = {
    [TENSOR_F32] = {float_scan, float_decode, NULL, 0},
    [TENSOR_F16] = {float_scan, float_decode, NULL, 0},
    [TENSOR_BF16] = {float_scan, float_decode, NULL, 0},
    [TENSOR_I2_S] = {i2s_scan, i2s_decode, NULL, 0},
    [TENSOR_TQ1_0] = {blocks_scan, blocks_decode, tq1_block_decode, 52},
    [TENSOR_TQ2_0] = {blocks_scan, blocks_decode, tq2_block_decode, 64},
    [TENSOR_Q2_0] = {blocks_scan, blocks_decode, q2_64_block_decode, 0},
    [TENSOR_Q2_0_G128] = {blocks_scan, blocks_decode, q2_128_block_decode, 0},
    [TENSOR_PQ2_0] = {blocks_scan, blocks_decode, q2_128_block_decode, 0},
    [TENSOR_PTQ1_0] = {blocks_scan, blocks_decode, ptq1_block_decode, 26},
};

bool ternary_scan(const struct ternary_source *src, struct ternary_scales *out,
                  struct bn_error *err)
{
    return ternary_check(src, err) && ternary_layouts[src->type].scan(src, out, err);
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
