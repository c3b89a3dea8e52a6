/*
 * A register tile of ternary_product.c with AVX-512 VNNI: ROWS rows of activations and
 * OUTPUTS outputs.
 */
#ifndef DEMO_TERNARY_TILE_VNNI_H
#define DEMO_TERNARY_TILE_VNNI_H

#include <immintrin.h>
#include <stdint.h>

enum {
    ROWS = 12, /* 12 x 2 sums, 2 vectors of weights and 1 of activations use 27 of 32 registers */
    OUTPUTS = 32
};

/* result (rows, OUTPUTS) = a (rows, cols) times the packed weights w (cols / 4, OUTPUTS, 4).
 * `rows` is at most ROWS. */
static inline __attribute__((always_inline)) void
tile(const uint8_t *a, const int8_t *w, int64_t cols, int rows, int32_t result[ROWS][OUTPUTS])
{
    __m512i sum[ROWS][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = _mm512_setzero_si512();
    for (int64_t i = 0; i < cols; i += 4) {
        const __m512i w0 = _mm512_loadu_si512(w + i * OUTPUTS);
        const __m512i w1 = _mm512_loadu_si512(w + i * OUTPUTS + 64);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            int32_t four;
            __builtin_memcpy(&four, a + r * cols + i, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
            sum[r][0] = _mm512_dpbusd_epi32(sum[r][0], x, w0);
            sum[r][1] = _mm512_dpbusd_epi32(sum[r][1], x, w1);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
        _mm512_storeu_si512(&result[r][0], sum[r][0]);
        _mm512_storeu_si512(&result[r][16], sum[r][1]);
    }
}

#endif
