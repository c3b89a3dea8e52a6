/*
 * A register tile of ternary_product.c with AVX2: ROWS rows of activations and
 * OUTPUTS outputs.
 */
#ifndef DEMO_TERNARY_TILE_AVX2_H
#define DEMO_TERNARY_TILE_AVX2_H

#include <immintrin.h>
#include <stdint.h>

enum {
    ROWS = 6, /* 6 x 2 sums, 2 vectors of weights and 1 of activations use 15 of 16 registers */
    OUTPUTS = 16,
    FLUSH = 64 * 4 /* columns after which the int16 sums are added to int32: 64 additions of at most
                      2 x 255 do not overflow them */
};

/* result (rows, OUTPUTS) = a (rows, cols) times the packed weights w (cols / 4, OUTPUTS, 4).
 * `rows` is at most ROWS. */
static inline __attribute__((always_inline)) void
tile(const uint8_t *a, const int8_t *w, int64_t cols, int rows, int32_t result[ROWS][OUTPUTS])
{
    const __m256i ones = _mm256_set1_epi16(1);
    for (int64_t begin = 0; begin < cols; begin += FLUSH) {
        const int64_t end = begin + FLUSH < cols ? begin + FLUSH : cols;
        __m256i sum[ROWS][2];
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++)
            sum[r][0] = sum[r][1] = _mm256_setzero_si256();
        for (int64_t i = begin; i < end; i += 4) {
            const __m256i w0 = _mm256_loadu_si256((const __m256i *)(w + i * OUTPUTS));
            const __m256i w1 = _mm256_loadu_si256((const __m256i *)(w + i * OUTPUTS + 32));
#pragma GCC unroll 8
            for (int r = 0; r < rows; r++) {
                int32_t four;
                __builtin_memcpy(&four, a + r * cols + i, sizeof four);
                const __m256i x = _mm256_set1_epi32(four);
                sum[r][0] = _mm256_add_epi16(sum[r][0], _mm256_maddubs_epi16(x, w0));
                sum[r][1] = _mm256_add_epi16(sum[r][1], _mm256_maddubs_epi16(x, w1));
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
#pragma GCC unroll 8
            for (int half = 0; half < 2; half++) {
                __m256i *to = (__m256i *)&result[r][8 * half];
                const __m256i wide = _mm256_madd_epi16(sum[r][half], ones);
                const __m256i before = begin == 0 ? _mm256_setzero_si256() : _mm256_loadu_si256(to);
                _mm256_storeu_si256(to, _mm256_add_epi32(before, wide));
            }
        }
    }
}

#endif
