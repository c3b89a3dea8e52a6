/*
 * Converts half precision (f16) to single precision and back, and bfloat16 to single precision.
 *
 * f32_to_f16 rounds to nearest even. Its results can be subnormal, values that round beyond 65504
 * become infinity, and a NaN remains a (quiet) NaN. Conversions to single precision are exact.
 */
#ifndef ENGINE_BASE_FP16_H
#define ENGINE_BASE_FP16_H

#include <stdint.h>

float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);
float bf16_to_f32(uint16_t h);

static inline uint32_t f32_bits(float f)
{
    union {
        float f;
        uint32_t u;
    } v = {f};
    return v.u;
}

static inline float f32_from_bits(uint32_t u)
{
    union {
        uint32_t u;
        float f;
    } v = {u};
    return v.f;
}

#endif
