/*
 * Any bytes as a ternary tensor of any type: the codec must be safe, and its functions must agree
 * with each other.
 *
 * Input: type, I2_S layout, width in blocks, rows, then the bytes of the tensor.
 */
#include "engine/base/fp16.h"
#include "engine/gguf/gguf_le.h"
#include "engine/gguf/ternary_codec.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>

#define HEAD_BYTES 4
#define MAX_BLOCKS 12
#define MAX_COLS (MAX_BLOCKS * 256)
#define MAX_ROWS 9
#define MAX_ROW_BLOCKS (MAX_COLS / 64)

static void must(bool is_right)
{
    if (!is_right)
        abort();
}

/* The scale of an element by its class; false if a scale is not finite. */
static bool class_scales(const struct ternary_source *src, const struct ternary_scales *s,
                         float scales[MAX_ROWS][MAX_COLS])
{
    struct bn_error err;
    for (size_t row = 0; row < src->n_rows; row++) {
        uint16_t bits[MAX_ROW_BLOCKS];
        float of_row = s->tensor_scale;
        if (s->scaling == SCALE_ROW)
            ternary_row_scales(src, row, row + 1, &of_row);
        if (s->scaling == SCALE_BLOCK) {
            must(s->block_cols >= 64 && ternary_row_blocks(src, s) <= MAX_ROW_BLOCKS);
            if (!ternary_block_scales(src, s, row, row + 1, bits, &err))
                return false;
        }
        for (size_t c = 0; c < src->n_cols; c++) {
            scales[row][c] =
                s->scaling == SCALE_BLOCK ? f16_to_f32(bits[c / s->block_cols]) : of_row;
            must(isfinite(scales[row][c]));
        }
    }
    return true;
}

/* Element i of a float tensor. */
static float float_at(const struct ternary_source *src, size_t i)
{
    if (src->type == TENSOR_F32)
        return f32_from_bits(le_u32(src->bytes + 4 * i));
    const uint16_t bits = le_u16(src->bytes + 2 * i);
    return src->type == TENSOR_F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

static void check_values(const struct ternary_source *src, const uint8_t *codes,
                         float scales[MAX_ROWS][MAX_COLS])
{
    static float values[MAX_COLS];
    const struct tensor_geometry *g = &tensor_geometries[src->type];
    for (size_t row = 0; row < src->n_rows; row++) {
        if (g->is_ternary && g->is_table)
            ternary_row_decode(src, row, values);
        for (size_t c = 0; c < src->n_cols; c++, codes++) {
            const float value = (float)(*codes - 1) * scales[row][c];
            if (g->is_float)
                must(value == float_at(src, row * src->n_cols + c));
            else if (g->is_table)
                must(value == values[c]);
        }
    }
}

static void check_tensor(const struct ternary_source *src)
{
    static uint8_t codes[MAX_ROWS * MAX_COLS], row_codes[MAX_COLS];
    static float scales[MAX_ROWS][MAX_COLS];
    struct bn_error err;
    struct ternary_scales s;
    const bool scanned = ternary_scan(src, &s, &err);
    const bool decoded = ternary_decode(src, 0, src->n_rows, codes, &err);
    const bool is_finite = scanned && class_scales(src, &s, scales);
    const struct tensor_geometry *g = &tensor_geometries[src->type];
    if (g->is_ternary && g->is_table)
        must(ternary_verify(src, &err) == (is_finite && decoded));
    if (!decoded)
        return;
    for (size_t row = 0; row < src->n_rows; row++) {
        must(ternary_decode(src, row, row + 1, row_codes, &err));
        must(memcmp(row_codes, codes + row * src->n_cols, src->n_cols) == 0);
        for (size_t c = 0; c < src->n_cols; c++)
            must(row_codes[c] <= 2);
    }
    if (is_finite)
        check_values(src, codes, scales);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes < HEAD_BYTES)
        return 0;
    const enum tensor_type type = (enum tensor_type)(bytes[0] % TENSOR_N_TYPES);
    const size_t block_cols = tensor_geometries[type].block_cols;
    /* Widths of floats and I2_S need not be multiples of a block of 64. */
    const size_t n_cols =
        block_cols < 64 ? (size_t)bytes[2] * 3 + 1 : (bytes[2] % MAX_BLOCKS + 1) * block_cols;
    const struct ternary_source src = {.name = "t",
                                       .type = type,
                                       .layout = (enum bn_i2s_layout)(bytes[1] % 3),
                                       .bytes = bytes + HEAD_BYTES,
                                       .n_bytes = n_bytes - HEAD_BYTES,
                                       .n_cols = n_cols,
                                       .n_rows = bytes[3] % MAX_ROWS + 1};
    struct bn_error err;
    const bool fits = ternary_check(&src, &err);
    must(fits || err.text[0] != '\0');
    if (fits)
        check_tensor(&src);
    return 0;
}
