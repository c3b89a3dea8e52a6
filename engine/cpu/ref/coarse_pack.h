/*
 * Packs one row of the output head to four bits per weight with stochastic rounding, for the coarse
 * plane (docs/kernels.md, "The head, screened"). Each instruction set with a kernel coarse_pack
 * compiles this plain C with its own flags, so that the compiler vectorises it. The bytes are the
 * same everywhere.
 */
#ifndef ENGINE_CPU_REF_COARSE_PACK_H
#define ENGINE_CPU_REF_COARSE_PACK_H

#include "engine/base/force_inline.h"
#include "engine/base/fp16.h"
#include "engine/base/noise.h"
#include "engine/cpu/kernels.h"
#include "engine/layout/coarse_code.h"

#include <string.h>

#define COARSE_HALF (COARSE_COLS / 2)

/* The step of a block as BF16. Code c (0 to 15) stands for the value (2 c - 15) * step, so adjacent
 * values are two steps apart. The step is rounded up, so that 15 steps are at least the largest
 * magnitude; the last test is for a division by 15 that has rounded down to a BF16. `largest_bits`
 * are the bits of this magnitude as F32. Bits of floats that are not negative sort like their
 * values, with NaN above infinity. */
BN_FORCE_INLINE uint16_t coarse_step(uint32_t largest_bits)
{
    if (largest_bits == 0)
        return 0;
    uint32_t step = (f32_bits(f32_from_bits(largest_bits) / 15.0f) + 0xffffu) >> 16;
    if (step < COARSE_MIN_STEP)
        step = COARSE_MIN_STEP;
    if (15.0f * f32_from_bits(step << 16) < f32_from_bits(largest_bits))
        step++;
    return (uint16_t)step;
}

/* Codes of one block. Rounding is stochastic: a weight that is a fraction f above the lower code
 * gets the upper code with probability f, to a precision of 2^-16. `inverse` is 1 / step, or 0 for
 * a block of zeros. Byte j of `line` holds the code of column j in its low four bits and that of
 * column j + COARSE_HALF in its high four bits. `key` identifies the row and block. */
BN_FORCE_INLINE void coarse_codes(const float *w, float inverse, uint64_t key, uint8_t *line)
{
    const uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    for (uint32_t j = 0; j < COARSE_HALF; j++) {
        /* The finaliser of MurmurHash3 (Appleby). The lower half of `key` is part of its input;
         * the upper half is added after the first multiplication. 0x9e3779b9 is 2^32 divided by
         * the golden ratio. */
        uint32_t x = j * 0x9e3779b9u + key0;
        x = (x ^ x >> 16) * 0x85ebca6bu + key1;
        x = (x ^ x >> 13) * 0xc2b2ae35u;
        x ^= x >> 16;
        /* The noises are uniform in (0, 1), and are added before the conversion to a code drops
         * the fraction. The casts to int32_t are for AVX2, which converts only signed integers.
         * Rounding errors are below 2^-18 and the noise is at least 2^-17 away from 0 and 1, so the
         * sums are in (0, 16). The limit of 15 is a precaution. */
        const float noise0 = ((float)(int32_t)(x & 0xffffu) + 0.5f) * 0x1p-16f;
        const float noise1 = ((float)(int32_t)(x >> 16) + 0.5f) * 0x1p-16f;
        const int32_t c0 = (int32_t)((w[j] * inverse + 15.0f) * 0.5f + noise0);
        const int32_t c1 = (int32_t)((w[j + COARSE_HALF] * inverse + 15.0f) * 0.5f + noise1);
        line[j] = (uint8_t)((c0 < 15 ? c0 : 15) | (c1 < 15 ? c1 : 15) << 4);
    }
}

/* The contract is that of coarse_pack_fn in kernels_coarse.h. Magnitudes are compared as bits. */
BN_FORCE_INLINE float coarse_pack_row(const float *w, size_t n_blocks, size_t row, uint8_t *lines,
                                      uint16_t *steps)
{
    uint32_t row_largest = 0;
    for (size_t b = 0; b < n_blocks; b++, w += COARSE_COLS, lines += LINE_BYTES) {
        uint32_t bits[COARSE_COLS], largest = 0;
        memcpy(bits, w, sizeof bits);
        for (size_t j = 0; j < COARSE_COLS; j++) {
            const uint32_t magnitude = bits[j] & 0x7fffffffu;
            largest = magnitude > largest ? magnitude : largest;
        }
        row_largest = largest > row_largest ? largest : row_largest;
        if (f32_from_bits(largest) <= COARSE_MAX) {
            steps[b] = coarse_step(largest);
            coarse_codes(w, largest ? 1.0f / f32_from_bits((uint32_t)steps[b] << 16) : 0.0f,
                         noise_bits(COARSE_KEY, row * n_blocks + b), lines);
        } else { /* above COARSE_MAX, infinite or NaN: these blocks become 0 (kernels_coarse.h) */
            steps[b] = 0;
            memset(lines, 0, LINE_BYTES);
        }
    }
    return f32_from_bits(row_largest);
}

#endif
