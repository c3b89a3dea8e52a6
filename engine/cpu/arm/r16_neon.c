/*
 * quantise_blocks, r16_matvec and r16_matmul for NEON without dot products.
 *
 * Products of bytes are added to int16 sums. A product is at most 2 * 127 = 254 in magnitude, and a
 * block adds at most 32 products to a lane (8,128 of 32,767), so no sum overflows before the block
 * ends.
 */
#include "engine/base/size.h"

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

/* The sums of four rows for r16_quads.h. Lanes: four columns of rows 0 and 1, and of rows 2 and
 * 3. */
struct quad_sums {
    int16x8_t low, high;
};

static inline struct quad_sums quad_sums_add(struct quad_sums s, int8x16_t codes, int8x16_t q)
{
    return (struct quad_sums){vmlal_s8(s.low, vget_low_s8(codes), vget_low_s8(q)),
                              vmlal_high_s8(s.high, codes, q)};
}

static inline int32x4_t quad_sums_total(struct quad_sums s)
{
    return vpaddq_s32(vpaddlq_s16(s.low), vpaddlq_s16(s.high));
}

#define TILE_TOKENS 2 /* times four quarters of two registers: 16 of 32 registers hold the sums */

#include "engine/cpu/arm/r16_quads.h"

/* Quantise one block x (n), n <= block_cols; q (block_cols) gets zeros from n on. */
static void quantise_block(const float *x, size_t n, size_t block_cols, int8_t *q, float *unit,
                           int32_t *q_sum)
{
    float32x4_t max = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < n; i += 4)
        max = max_or_second(vabsq_f32(load4(x, i, n)), max);
    const float m = vmaxvq_f32(max);
    memset(q, 0, block_cols);
    *unit = 0.0f;
    *q_sum = 0;
    if (m < BLOCK_MIN_ABS)
        return;
    const float s = 127.0f / m;
    int32x4_t sum = vdupq_n_s32(0);
    for (size_t i = 0; i < n; i += 4) {
        /* 0 for a NaN; |v| <= 127, so 8 bits hold it. */
        const int32x4_t v = vcvtnq_s32_f32(vmulq_n_f32(load4(x, i, n), s));
        const int8x8_t bytes = vmovn_s16(vcombine_s16(vmovn_s32(v), vdup_n_s16(0)));
        const int32_t four = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
        memcpy(q + i, &four, sizeof four);
        sum = vaddq_s32(sum, v);
    }
    *unit = m / 127.0f;
    *q_sum = vaddvq_s32(sum);
}

void quantise_blocks_neon(const float *x, size_t n, size_t block_cols, int8_t *q, float *units,
                          int32_t *q_sums)
{
    const size_t n_blocks = size_round_up(n, R16_PAD_COLS) / block_cols;
    for (size_t b = 0; b < n_blocks; b++) {
        const size_t begin = size_min(b * block_cols, n);
        quantise_block(x + begin, size_min(block_cols, n - begin), block_cols, q + b * block_cols,
                       &units[b], &q_sums[b]);
    }
}

void r16_matvec_neon(const struct r16_mat *w, size_t group0, size_t group1,
                     const struct block_acts *x, float *y)
{
    r16_matvec_quads(w, group0, group1, x, y);
}

void r16_matmul_neon(const struct r16_mat *w, size_t group0, size_t group1,
                     const struct r16_batch *batch)
{
    r16_matmul_quads(w, group0, group1, batch);
}
