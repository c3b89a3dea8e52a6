/*
 * Reference for rows of a table (token embedding or output head): decoding to F32, and dot products
 * of rows with a vector. docs/formats.md describes the blocks. Integers are little-endian.
 */
#include "engine/base/fp16.h"
#include "engine/cpu/ref/kernels_ref.h"

static uint16_t load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static float load_f16(const uint8_t *p)
{
    return f16_to_f32(load_u16(p));
}

static void row_decode_f32_ref(const uint8_t *row, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++, row += 4)
        out[i] = f32_from_bits(load_u16(row) | (uint32_t)load_u16(row + 2) << 16);
}

static void row_decode_f16_ref(const uint8_t *row, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = load_f16(row + 2 * i);
}

static void row_decode_bf16_ref(const uint8_t *row, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = bf16_to_f32(load_u16(row + 2 * i));
}

/* Block of 32 elements: scale d, q[32] */
static void row_decode_q8_0_ref(const uint8_t *row, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 32, row += Q8_0_BYTES) {
        const float d = load_f16(row);
        for (size_t j = 0; j < 32; j++)
            out[i + j] = d * (float)(int8_t)row[2 + j];
    }
}

/* Block of 32 elements: scale d, nibbles[16]. The low nibbles are elements 0 .. 15. */
static void row_decode_q4_0_ref(const uint8_t *row, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 32, row += Q4_0_BYTES) {
        const float d = load_f16(row);
        for (size_t j = 0; j < 16; j++) {
            out[i + j] = d * (float)((row[2 + j] & 15) - 8);
            out[i + j + 16] = d * (float)((row[2 + j] >> 4) - 8);
        }
    }
}

/* Block of 256 elements: d, dmin, 12 bytes of 6-bit scales and minima, nibbles[128]. Sub-block j
 * has 32 elements, a scale sc and a minimum m. For j >= 4 the upper two bits of sc and m are in the
 * bytes of sub-block j - 4. Sub-blocks 2i and 2i + 1 are the low and high nibbles of 32 bytes. */
static void row_decode_q4_k_ref(const uint8_t *row, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 256, row += Q4_K_BYTES) {
        const float d = load_f16(row), d_min = load_f16(row + 2);
        const uint8_t *s = row + 4, *nibbles = row + 16;
        for (size_t j = 0; j < 8; j++) {
            const int sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
            const int m = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | (s[j] >> 6) << 4;
            const float scale = d * (float)sc, offset = d_min * (float)m;
            for (size_t l = 0; l < 32; l++) {
                const int q = nibbles[32 * (j / 2) + l] >> (4 * (j % 2)) & 15;
                out[i + 32 * j + l] = scale * (float)q - offset;
            }
        }
    }
}

/* Block of 256 elements: low nibbles[128], high bit pairs[64], 8-bit scales[16], d. Element e is
 * element l of quarter g of half h. A scale belongs to 16 elements. */
static void row_decode_q6_k_ref(const uint8_t *row, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 256, row += Q6_K_BYTES) {
        const float d = load_f16(row + 208);
        for (size_t e = 0; e < 256; e++) {
            const size_t h = e / 128, g = e % 128 / 32, l = e % 32;
            const int low = row[64 * h + l + 32 * (g & 1)] >> (g < 2 ? 0 : 4) & 15;
            const int high = row[128 + 32 * h + l] >> (2 * g) & 3;
            const int8_t sc = (int8_t)row[192 + 8 * h + l / 16 + 2 * g];
            out[i + e] = (d * (float)sc) * (float)((low | high << 4) - 32);
        }
    }
}

static void decode_and_dot(row_decode_fn decode, const struct table_rows *rows, const float *h,
                           size_t n, float *z, float *scratch)
{
    for (size_t r = 0; r < rows->n_rows; r++) {
        decode(table_row(rows, r), n, scratch);
        z[r] = dot64_ref(scratch, h, n);
    }
}

#define ROWS_DOT_REF(type)                                                                         \
    static void rows_dot_##type##_ref(const struct table_rows *rows, const float *h, size_t n,     \
                                      float *z, float *scratch)                                    \
    {                                                                                              \
        decode_and_dot(row_decode_##type##_ref, rows, h, n, z, scratch);                           \
    }

ROWS_DOT_REF(f32)
ROWS_DOT_REF(f16)
ROWS_DOT_REF(bf16)
ROWS_DOT_REF(q8_0)
ROWS_DOT_REF(q4_0)
ROWS_DOT_REF(q4_k)
ROWS_DOT_REF(q6_k)

void row_kernels_ref(row_decode_fn decode[TENSOR_N_TYPES], rows_dot_fn dot[TENSOR_N_TYPES])
{
    decode[TENSOR_F32] = row_decode_f32_ref;
    decode[TENSOR_F16] = row_decode_f16_ref;
    decode[TENSOR_BF16] = row_decode_bf16_ref;
    decode[TENSOR_Q8_0] = row_decode_q8_0_ref;
    decode[TENSOR_Q4_0] = row_decode_q4_0_ref;
    decode[TENSOR_Q4_K] = row_decode_q4_k_ref;
    decode[TENSOR_Q6_K] = row_decode_q6_k_ref;
    dot[TENSOR_F32] = rows_dot_f32_ref;
    dot[TENSOR_F16] = rows_dot_f16_ref;
    dot[TENSOR_BF16] = rows_dot_bf16_ref;
    dot[TENSOR_Q8_0] = rows_dot_q8_0_ref;
    dot[TENSOR_Q4_0] = rows_dot_q4_0_ref;
    dot[TENSOR_Q4_K] = rows_dot_q4_k_ref;
    dot[TENSOR_Q6_K] = rows_dot_q6_k_ref;
}
