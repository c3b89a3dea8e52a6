/*
 * Encoders of the ternary layouts of docs/formats.md.
 */
#include "tests/support/ternary_encode.h"

#include "engine/base/fp16.h"
#include "tests/support/le_put.h"

#include <string.h>

static void i2s_encode(enum bn_i2s_layout layout, const uint8_t *codes, size_t n_cols, size_t n,
                       uint8_t *out)
{
    /* Layout C has the order of the others with a "block" of four rows. */
    const size_t quarter = layout == BN_I2S_C ? n_cols : layout == BN_I2S_A ? 32 : 16;
    for (size_t e = 0; e < n; e += 4 * quarter) {
        for (size_t j = 0; j < quarter; j++) {
            const uint8_t *c = codes + e + j;
            *out++ = (uint8_t)(c[0] << 6 | c[quarter] << 4 | c[2 * quarter] << 2 | c[3 * quarter]);
        }
    }
}

static void tq2_block_encode(const uint8_t *codes, uint8_t *block)
{
    for (size_t b = 0; b < 64; b++) {
        const uint8_t *c = codes + b / 32 * 128 + b % 32;
        block[b] = (uint8_t)(c[0] | c[32] << 2 | c[64] << 4 | c[96] << 6);
    }
}

/* Pack `n_trits` codes at distance `stride` as ceil(256 * V / 243), where the first code is the
 * most significant digit of V and missing digits are 0. */
static uint8_t pack_trits(const uint8_t *codes, size_t stride, size_t n_trits)
{
    unsigned v = 0;
    for (size_t k = 0; k < 5; k++)
        v = v * 3 + (k < n_trits ? codes[k * stride] : 0);
    return (uint8_t)((v * 256 + 242) / 243);
}

static void tq1_block_encode(const uint8_t *codes, uint8_t *block)
{
    for (size_t m = 0; m < 32; m++)
        block[m] = pack_trits(codes + m, 32, 5);
    for (size_t m = 0; m < 16; m++)
        block[32 + m] = pack_trits(codes + 160 + m, 16, 5);
    for (size_t m = 0; m < 4; m++)
        block[48 + m] = pack_trits(codes + 240 + m, 4, 4);
}

static void ptq1_block_encode(const uint8_t *codes, uint8_t *block)
{
    for (size_t m = 0; m < 16; m++)
        block[m] = pack_trits(codes + m, 16, 5);
    for (size_t m = 0; m < 8; m++)
        block[16 + m] = pack_trits(codes + 80 + m, 8, 5);
    for (size_t m = 0; m < 2; m++)
        block[24 + m] = pack_trits(codes + 120 + m, 2, 4);
}

static void q2_encode(const uint8_t *codes, size_t n_bytes, uint8_t *block)
{
    for (size_t b = 0; b < n_bytes; b++, codes += 4)
        block[2 + b] = (uint8_t)(codes[0] | codes[1] << 2 | codes[2] << 4 | codes[3] << 6);
}

static void q2_64_block_encode(const uint8_t *codes, uint8_t *block)
{
    q2_encode(codes, 16, block);
}

static void q2_128_block_encode(const uint8_t *codes, uint8_t *block)
{
    q2_encode(codes, 32, block);
}

static void q1_block_encode(const uint8_t *codes, uint8_t *block)
{
    memset(block + 2, 0, 16);
    for (size_t e = 0; e < 128; e++)
        block[2 + e / 8] |= (uint8_t)(codes[e] / 2 << e % 8);
}

/* Types of blocks with an F16 scale. */
static const struct block_encoder {
    void (*encode)(const uint8_t *codes, uint8_t *block);
    size_t scale_at;
} block_encoders[TENSOR_N_TYPES] = {
    [TENSOR_TQ1_0] = {tq1_block_encode, 52},   [TENSOR_TQ2_0] = {tq2_block_encode, 64},
    [TENSOR_Q2_0] = {q2_64_block_encode, 0},   [TENSOR_Q2_0_G128] = {q2_128_block_encode, 0},
    [TENSOR_PQ2_0] = {q2_128_block_encode, 0}, [TENSOR_PTQ1_0] = {ptq1_block_encode, 26},
    [TENSOR_Q1_0] = {q1_block_encode, 0},
};

/* Types with a scale per row: encode row k of a unit, whose codes begin at `unit`. */
static void iq1_bn_encode(const uint8_t *codes, size_t n_cols, size_t k, uint8_t *unit)
{
    static const unsigned pow3[5] = {1, 3, 9, 27, 81};
    (void)k;
    for (size_t at = 0; at < n_cols; at += 64, codes += 64, unit += 13) {
        unsigned v[13] = {0};
        for (size_t e = 0; e < 64; e++) {
            const size_t group = e / 16, m = e % 16;
            if (m == 15)
                v[12] += pow3[group] * codes[e];
            else
                v[3 * group + m / 5] += pow3[m % 5] * codes[e];
        }
        for (size_t b = 0; b < 13; b++)
            unit[b] = (uint8_t)((v[b] * 256 + 242) / 243);
    }
}

static void iq2_bn_encode(const uint8_t *codes, size_t n_cols, size_t k, uint8_t *unit)
{
    (void)k;
    for (size_t at = 0; at < n_cols; at += 64, codes += 64) {
        for (size_t j = 0; j < 16; j++)
            *unit++ =
                (uint8_t)(codes[j] | codes[j + 16] << 2 | codes[j + 32] << 4 | codes[j + 48] << 6);
    }
}

static void iq2_bn_r4_encode(const uint8_t *codes, size_t n_cols, size_t k, uint8_t *unit)
{
    for (size_t at = 0; at < n_cols; at += 16, codes += 16, unit += 16) {
        for (size_t i = 0; i < 4; i++)
            unit[4 * k + i] =
                (uint8_t)(codes[i] | codes[i + 4] << 2 | codes[i + 8] << 4 | codes[i + 12] << 6);
    }
}

static void (*const row_encoders[TENSOR_N_TYPES])(const uint8_t *codes, size_t n_cols, size_t k,
                                                  uint8_t *unit) = {
    [TENSOR_IQ1_BN] = iq1_bn_encode,
    [TENSOR_IQ2_BN] = iq2_bn_encode,
    [TENSOR_IQ2_BN_R4] = iq2_bn_r4_encode,
};

static size_t rows_of_unit(enum tensor_type type)
{
    return type == TENSOR_IQ2_BN_R4 ? 4 : 1;
}

/* The unit of rows that holds a row. */
static uint8_t *unit_at(enum tensor_type type, uint8_t *bytes, size_t n_cols, size_t row)
{
    const size_t n_rows = rows_of_unit(type);
    const size_t row_bytes = type == TENSOR_IQ1_BN ? 2 + 13 * n_cols / 64 : 4 + n_cols / 4;
    return bytes + row / n_rows * n_rows * row_bytes;
}

void ternary_put_row_scale(enum tensor_type type, uint8_t *bytes, size_t n_cols, size_t row,
                           float scale)
{
    uint8_t *unit = unit_at(type, bytes, n_cols, row);
    if (type == TENSOR_IQ1_BN)
        le_put_u16(unit, f32_to_f16(scale));
    else
        le_put_u32(unit + row % rows_of_unit(type) * 4, f32_bits(scale));
}

static void rows_encode(enum tensor_type type, const uint8_t *codes, size_t n_cols, size_t n_rows,
                        float scale, uint8_t *out)
{
    const size_t scale_bytes = type == TENSOR_IQ1_BN ? 2 : 4, n = rows_of_unit(type);
    for (size_t row = 0; row < n_rows; row++, codes += n_cols) {
        ternary_put_row_scale(type, out, n_cols, row, scale);
        row_encoders[type](codes, n_cols, row % n,
                           unit_at(type, out, n_cols, row) + n * scale_bytes);
    }
}

void ternary_put_scale(enum tensor_type type, uint8_t *bytes, size_t block, uint16_t scale)
{
    le_put_u16(bytes + block * tensor_geometries[type].block_bytes + block_encoders[type].scale_at,
               scale);
}

bool ternary_encode(enum tensor_type type, enum bn_i2s_layout layout, const uint8_t *codes,
                    size_t n_cols, size_t n_rows, float scale, uint8_t *out, struct bn_error *err)
{
    const struct tensor_geometry *g = &tensor_geometries[type];
    const struct ternary_source shape = {.name = "",
                                         .type = type,
                                         .layout = layout,
                                         .n_bytes = SIZE_MAX,
                                         .n_cols = n_cols,
                                         .n_rows = n_rows};
    const struct block_encoder *block = &block_encoders[type];
    const bool has_encoder = type == TENSOR_I2_S || block->encode || row_encoders[type];
    if (!has_encoder || !ternary_check(&shape, err))
        return bn_fail(err, BN_EARG, "%zu x %zu elements do not fit %s", n_cols, n_rows, g->name);
    const size_t n = n_cols * n_rows;
    if (type == TENSOR_Q1_0 && memchr(codes, 1, n))
        return bn_fail(err, BN_EARG, "Q1_0 has no code 1");
    if (row_encoders[type]) {
        rows_encode(type, codes, n_cols, n_rows, scale, out);
        return true;
    }
    if (type == TENSOR_I2_S) {
        i2s_encode(layout, codes, n_cols, n, out);
        memset(out + n / 4, 0, g->tail_bytes);
        le_put_u32(out + n / 4, f32_bits(scale));
        return true;
    }
    for (size_t i = 0; i < n / g->block_cols; i++) {
        block->encode(codes + i * g->block_cols, out + i * g->block_bytes);
        ternary_put_scale(type, out, i, f32_to_f16(scale));
    }
    return true;
}
