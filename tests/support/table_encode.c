/*
 * An encoder and a decoder for each table type, written from the formulas of docs/formats.md. They
 * share only the half-float conversion with the engine.
 */
#include "tests/support/table_encode.h"

#include "engine/base/fp16.h"
#include "engine/gguf/gguf_le.h"
#include "tests/support/le_put.h"

#include <math.h>

static float max_abs(const float *x, size_t n)
{
    float m = 0.0f;
    for (size_t i = 0; i < n; i++)
        m = fmaxf(m, fabsf(x[i]));
    return m;
}

static int clamp_round(float v, int lo, int hi)
{
    const int q = (int)lrintf(v);
    return q < lo ? lo : q > hi ? hi : q;
}

/* Store d as F16. Returns the reciprocal of the stored value, or 0. */
static float put_scale(uint8_t *at, float d)
{
    const uint16_t h = f32_to_f16(d);
    le_put_u16(at, h);
    const float stored = f16_to_f32(h);
    return stored == 0.0f ? 0.0f : 1.0f / stored;
}

static void q8_0_encode(const float *x, uint8_t *out)
{
    const float inverse = put_scale(out, max_abs(x, 32) / 127.0f);
    for (size_t i = 0; i < 32; i++)
        out[2 + i] = (uint8_t)clamp_round(x[i] * inverse, -127, 127);
}

static void q4_0_encode(const float *x, uint8_t *out)
{
    const float inverse = put_scale(out, max_abs(x, 32) / 7.0f);
    for (size_t i = 0; i < 16; i++) {
        const int lo = clamp_round(x[i] * inverse, -8, 7) + 8;
        const int hi = clamp_round(x[i + 16] * inverse, -8, 7) + 8;
        out[2 + i] = (uint8_t)(lo | hi << 4);
    }
}

/* Eight sub-blocks of 32: value = d * sc * q - dmin * m with 6-bit sc and m. */
static void q4_k_encode(const float *x, uint8_t *out)
{
    float step[8], low[8], d = 0.0f, dmin = 0.0f;
    uint8_t sc[8], m[8];
    for (size_t j = 0; j < 8; j++) {
        float lo = 0.0f, hi = 0.0f;
        for (size_t i = 0; i < 32; i++) {
            lo = fminf(lo, x[32 * j + i]);
            hi = fmaxf(hi, x[32 * j + i]);
        }
        step[j] = (hi - lo) / 15.0f;
        low[j] = -lo;
        d = fmaxf(d, step[j] / 63.0f);
        dmin = fmaxf(dmin, low[j] / 63.0f);
    }
    const float inv_d = put_scale(out, d), inv_dmin = put_scale(out + 2, dmin);
    const float real_d = f16_to_f32(le_u16(out)), real_dmin = f16_to_f32(le_u16(out + 2));
    for (size_t j = 0; j < 8; j++) {
        sc[j] = (uint8_t)clamp_round(step[j] * inv_d, 0, 63);
        m[j] = (uint8_t)clamp_round(low[j] * inv_dmin, 0, 63);
    }
    for (size_t j = 0; j < 4; j++) {
        out[4 + j] = (uint8_t)(sc[j] | sc[j + 4] >> 4 << 6);
        out[8 + j] = (uint8_t)(m[j] | m[j + 4] >> 4 << 6);
        out[12 + j] = (uint8_t)((sc[j + 4] & 15) | (m[j + 4] & 15) << 4);
    }
    for (size_t b = 0; b < 128; b++) {
        int q[2];
        for (size_t half = 0; half < 2; half++) {
            const size_t j = b / 32 * 2 + half;
            const float unit = real_d * sc[j];
            const float v = x[32 * j + b % 32] + real_dmin * m[j];
            q[half] = unit == 0.0f ? 0 : clamp_round(v / unit, 0, 15);
        }
        out[16 + b] = (uint8_t)(q[0] | q[1] << 4);
    }
}

/* Sixteen sub-blocks of 16: value = d * sc * (q - 32) with 8-bit sc. */
static void q6_k_encode(const float *x, uint8_t *out)
{
    uint8_t *ql = out, *qh = out + 128, *scales = out + 192;
    const float inverse = put_scale(out + 208, max_abs(x, 256) / 31.0f / 127.0f);
    const float d = f16_to_f32(le_u16(out + 208));
    for (size_t i = 0; i < 192; i++)
        out[i] = 0;
    for (size_t j = 0; j < 16; j++)
        scales[j] = (uint8_t)clamp_round(max_abs(x + 16 * j, 16) / 31.0f * inverse, 0, 127);
    for (size_t e = 0; e < 256; e++) {
        const size_t h = e / 128, w = e % 128, g = w / 32, l = w % 32;
        const float unit = d * scales[e / 16];
        const unsigned q = (unsigned)(unit == 0.0f ? 32 : clamp_round(x[e] / unit, -32, 31) + 32);
        ql[64 * h + l + 32 * (g & 1)] |= (uint8_t)((q & 15) << (g < 2 ? 0 : 4));
        qh[32 * h + l] |= (uint8_t)(q >> 4 << 2 * g);
    }
}

void table_encode(enum tensor_type type, const float *x, size_t n, uint8_t *out)
{
    const struct tensor_geometry *g = &tensor_geometries[type];
    for (size_t i = 0; i < n; i += g->block_cols, out += g->block_bytes) {
        if (type == TENSOR_F32)
            le_put_u32(out, f32_bits(x[i]));
        else if (type == TENSOR_F16)
            le_put_u16(out, f32_to_f16(x[i]));
        else if (type == TENSOR_BF16)
            le_put_u16(out, (uint16_t)(f32_bits(x[i]) >> 16)); /* rounded towards zero */
        else if (type == TENSOR_Q8_0)
            q8_0_encode(x + i, out);
        else if (type == TENSOR_Q4_0)
            q4_0_encode(x + i, out);
        else if (type == TENSOR_Q4_K)
            q4_k_encode(x + i, out);
        else
            q6_k_encode(x + i, out);
    }
}

static double half_at(const uint8_t *p)
{
    return (double)f16_to_f32(le_u16(p));
}

static double q4_k_element(const uint8_t *b, size_t e)
{
    const uint8_t *s = b + 4;
    const size_t j = e / 32;
    const unsigned sc = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
    const unsigned m = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
    const uint8_t byte = b[16 + e / 64 * 32 + e % 32];
    const unsigned q = e % 64 < 32 ? byte & 15 : byte >> 4;
    return half_at(b) * sc * q - half_at(b + 2) * m;
}

static double q6_k_element(const uint8_t *b, size_t e)
{
    const size_t h = e / 128, w = e % 128, g = w / 32, l = w % 32;
    const uint8_t low = b[64 * h + l + 32 * (g & 1)];
    const int q = (g < 2 ? low & 15 : low >> 4) | (b[128 + 32 * h + l] >> 2 * g & 3) << 4;
    const int8_t sc = (int8_t)b[192 + 8 * h + l / 16 + 2 * g];
    return half_at(b + 208) * sc * (q - 32);
}

static double block_element(enum tensor_type type, const uint8_t *b, size_t e)
{
    switch (type) {
    case TENSOR_F32:
        return (double)f32_from_bits(le_u32(b));
    case TENSOR_F16:
        return half_at(b);
    case TENSOR_BF16:
        return (double)bf16_to_f32(le_u16(b));
    case TENSOR_Q8_0:
        return half_at(b) * (int8_t)b[2 + e];
    case TENSOR_Q4_0:
        return half_at(b) * ((e < 16 ? b[2 + e] & 15 : b[2 + e - 16] >> 4) - 8);
    case TENSOR_Q4_K:
        return q4_k_element(b, e);
    case TENSOR_Q6_K:
        return q6_k_element(b, e);
    default:
        return (double)NAN;
    }
}

void table_decode(enum tensor_type type, const uint8_t *row, size_t n, double *out)
{
    const struct tensor_geometry *g = &tensor_geometries[type];
    for (size_t i = 0; i < n; i++)
        out[i] = block_element(type, row + i / g->block_cols * g->block_bytes, i % g->block_cols);
}
