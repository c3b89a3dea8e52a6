/*
 * attn_block_q8 and attn_tile_q8 for NEON: the loops of engine/cpu/ref/attn_q8.h.
 *
 * As in attn_q8.h, a lane is a position for keys and an element of the head for values. Each lane
 * has four bytes: four elements of a key, or four positions of a value. They are widened to 16 bits
 * and multiplied with the 16-bit fixed-point numbers. The four products of a lane are added to four
 * 32-bit sums, one register, and these are added pairwise at the end. Nothing is prefetched.
 */
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"
#include "engine/cpu/ref/attn_q8.h"
#include "engine/cpu/ref/attn_tokens.h"

#define LANES 4 /* lanes at a time: with four heads 16 independent chains */

static float to_fixed_neon(const float *x, size_t n, struct attn_fixed *out)
{
    float32x4_t max = vdupq_n_f32(FIXED_MIN);
    for (size_t i = 0; i < n; i += 4)
        max = max_or_second(vabsq_f32(load4(x, i, n)), max);
    const float most = vmaxvq_f32(max), scale = FIXED_MAX / most;
    for (size_t i = 0; i < n; i += 4) /* the conversion turns a NaN into 0 */
        vst1_s16(out->x + i, vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(load4(x, i, n), scale))));
    return most / FIXED_MAX;
}

BN_FORCE_INLINE void sums_neon(const struct attn_quads *w, int n_heads, size_t lane0, size_t n,
                               int32_t out[Q8_HEADS][KV_BLOCK])
{
    for (size_t lane = 0; lane < n; lane += LANES) {
        const int8_t *bytes = w->bytes + (lane0 + lane) * ATTN_QUAD;
        int32x4_t sum[Q8_HEADS][LANES];
#pragma GCC unroll 4
        for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 4
            for (int i = 0; i < LANES; i++)
                sum[h][i] = vdupq_n_s32(0);
        for (size_t i = 0; i < w->n_quads; i++, bytes += w->n_lanes * ATTN_QUAD) {
            const int8x16_t all = vld1q_s8(bytes);
            const int16x8_t low = vmovl_s8(vget_low_s8(all)), high = vmovl_s8(vget_high_s8(all));
#pragma GCC unroll 4
            for (int h = 0; h < n_heads; h++) {
                const int16x4_t x = vld1_s16(w->x[h].x + ATTN_QUAD * i);
                sum[h][0] = vmlal_s16(sum[h][0], vget_low_s16(low), x);
                sum[h][1] = vmlal_s16(sum[h][1], vget_high_s16(low), x);
                sum[h][2] = vmlal_s16(sum[h][2], vget_low_s16(high), x);
                sum[h][3] = vmlal_s16(sum[h][3], vget_high_s16(high), x);
            }
        }
#pragma GCC unroll 4
        for (int h = 0; h < n_heads; h++)
            vst1q_s32(out[h] + lane, vpaddq_s32(vpaddq_s32(sum[h][0], sum[h][1]),
                                                vpaddq_s32(sum[h][2], sum[h][3])));
    }
}

void attn_block_q8_neon(const struct attn_block *b)
{
    attn_q8_block(b, (struct attn_q8_loops){to_fixed_neon, sums_neon, softmax_block_neon});
}

void attn_tile_q8_neon(const struct attn_tile *a)
{
    attn_tile_by_token(a, attn_block_q8_neon, attn_merge_neon);
}
