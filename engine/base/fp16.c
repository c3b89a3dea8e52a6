/*
 * Half precision with integer arithmetic only, so that the bits are the same with every compiler
 * and on every machine.
 */
#include "engine/base/fp16.h"

float f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    const uint32_t exponent = (h >> 10) & 31u;
    uint32_t mantissa = h & 0x3ffu;
    if (exponent == 31)
        return f32_from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent != 0)
        return f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13); /* bias 15 -> 127 */
    if (mantissa == 0)
        return f32_from_bits(sign);
    /* Subnormal, mantissa x 2^-24: shift the mantissa until the hidden bit, bit 10, is set. */
    uint32_t e = 113; /* exponent of 2^-14, the value of bit 10 */
    while (!(mantissa & 0x400u)) {
        mantissa <<= 1;
        e--;
    }
    return f32_from_bits(sign | e << 23 | (mantissa & 0x3ffu) << 13);
}

uint16_t f32_to_f16(float f)
{
    const uint32_t u = f32_bits(f);
    const uint16_t sign = (uint16_t)(u >> 16 & 0x8000u);
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return sign | 0x7e00u | (uint16_t)(magnitude >> 13 & 0x3ffu); /* quiet NaN */
    if (magnitude >= 0x47800000u) /* 65536 and above; the carry below does it from 65520 */
        return sign | 0x7c00u;
    uint32_t m = (magnitude & 0x7fffffu) | 0x800000u;
    const int e = (int)(magnitude >> 23) - 112; /* exponent with bias 15 instead of 127 */
    uint32_t shift = 13, base = 0;
    if (e > 0)
        base = (uint32_t)(e - 1) << 10; /* the hidden bit of m adds the last 1 << 10 */
    else if (e < -10)
        return sign; /* below 2^-25, half of the smallest subnormal */
    else
        shift = (uint32_t)(14 - e); /* subnormal: the last bit of the result is 2^-24 */
    const uint32_t half = 1u << (shift - 1), rest = m & ((1u << shift) - 1);
    m >>= shift;
    m += rest > half || (rest == half && (m & 1u));
    return sign | (uint16_t)(base + m); /* a carry runs into the exponent, up to infinity */
}

float bf16_to_f32(uint16_t h)
{
    return f32_from_bits((uint32_t)h << 16);
}
