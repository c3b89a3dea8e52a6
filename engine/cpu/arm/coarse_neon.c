/*
 * coarse_pack and coarse_bound for NEON; coarse_ref.c is the specification.
 *
 * Products of bytes are 16 bits wide. Adding them pairwise twice yields sums of four columns. A
 * lane of docs/kernels.md is the sum for four columns and for the four that are 64 columns further.
 * A line is processed in four quarters p of 16 bytes, which hold lanes 4 p .. 4 p + 3.
 */
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"
#include "engine/cpu/ref/coarse_pack.h"

#include <math.h>

#define PREFETCH_BYTES 1024 /* distance of prefetches in each row; coarse_mat.ahead is not used */

float coarse_pack_neon(const float *w, size_t n_blocks, size_t row, uint8_t *lines, uint16_t *steps)
{
    return coarse_pack_row(w, n_blocks, row, lines, steps);
}

/* codes * x of 16 columns, summed over groups of four */
BN_FORCE_INLINE int32x4_t quads(int8x16_t codes, int8x16_t x)
{
    const int32x4_t a = vpaddlq_s16(vmull_s8(vget_low_s8(codes), vget_low_s8(x)));
    const int32x4_t b = vpaddlq_s16(vmull_high_s8(codes, x));
    return vpaddq_s32(a, b);
}

/* The bound of row r. x1 is in the plane of high bytes, x2 in that of twice the low bytes. Since
 * 2 code * (128 high + low) = 256 code * high + code * (2 low), the sum of x1 is shifted by 8.
 * `fix` is the part with the -15 of the weights (2 code - 15) * step. */
BN_FORCE_INLINE float bound_row(const struct coarse_mat *m, size_t r, const struct coarse_query *q)
{
    const uint8_t *line = m->lines + r * m->n_blocks * LINE_BYTES;
    const uint16_t *steps = m->steps + r * m->step_stride;
    float32x4_t lanes[4], squares[2] = {vdupq_n_f32(0.0f), vdupq_n_f32(0.0f)};
#pragma GCC unroll 4
    for (int p = 0; p < 4; p++)
        lanes[p] = vdupq_n_f32(0.0f);
    for (size_t b = 0; b < m->n_blocks; b++, line += LINE_BYTES) {
        const int8_t *x = q->x + 2 * COARSE_COLS * b;
        const float step = f32_from_bits((uint32_t)steps[b] << 16);
        __builtin_prefetch((const void *)((uintptr_t)line + PREFETCH_BYTES));
#pragma GCC unroll 4
        for (int p = 0; p < 4; p++) {
            const uint8x16_t codes = vld1q_u8(line + 16 * p);
            const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(codes, vdupq_n_u8(15)));
            const int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(codes, 4));
            const int8_t *x1 = x + 16 * p, *x2 = x1 + COARSE_COLS;
            const int32x4_t a = vaddq_s32(quads(low, vld1q_s8(x1)), quads(high, vld1q_s8(x1 + 64)));
            const int32x4_t c = vaddq_s32(quads(low, vld1q_s8(x2)), quads(high, vld1q_s8(x2 + 64)));
            const int32x4_t fix = vld1q_s32(q->fix + 16 * b + 4 * p);
            const int32x4_t sum = vaddq_s32(vshlq_n_s32(a, 8), vaddq_s32(c, fix));
            lanes[p] = vfmaq_n_f32(lanes[p], vcvtq_f32_s32(sum), step);
        }
    }
    for (size_t b = 0; b < m->step_stride; b += 4) {
        const float32x4_t step = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(steps + b), 16));
        const float32x4_t t = vmulq_f32(step, vld1q_f32(q->spread + b));
        squares[b / 4 % 2] = vfmaq_f32(squares[b / 4 % 2], t, t);
    }
    const float error = sqrtf(tree4_neon(vaddq_f32(squares[0], squares[1])) + COARSE_UNDERFLOW);
    const float32x4_t four =
        vaddq_f32(vaddq_f32(lanes[0], lanes[2]), vaddq_f32(lanes[1], lanes[3]));
    return q->unit * tree4_neon(four) + error;
}

void coarse_bound_neon(const struct coarse_mat *m, size_t row0, size_t row1,
                       const struct coarse_query *q, float *bound)
{
    for (size_t r = row0; r < row1; r++)
        bound[r - row0] = bound_row(m, r, q);
}
