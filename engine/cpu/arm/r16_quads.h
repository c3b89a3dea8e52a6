/*
 * r16_matvec and r16_matmul for NEON, shared by the variants without and with dot products.
 * A register holds a quarter of a line of R16, four bytes of each of four rows. Field i (bits 2i
 * and 2i + 1 of each byte) has four columns of each row. r16_matmul reads the lines directly
 * and needs no panel, so the kernel table keeps r16_unpack_ref, which does nothing.
 *
 * The file that includes this header defines first:
 *     struct quad_sums                    sums of four rows
 *     quad_sums_add(sums, codes, q)       sums + products; q holds the same four columns four times
 *     quad_sums_total(sums)               the sums as int32x4_t
 *     TILE_TOKENS                         tokens that share the loads of codes
 */
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"

#define QUARTERS 4          /* registers of a line */
#define PREFETCH_BYTES 1024 /* 16 cache lines, in place of r16_mat.ahead */

/* The scales of four rows as F32. */
BN_FORCE_INLINE float32x4_t scales_of(const uint16_t *scales)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(scales)));
}

/* Four bytes of q, four times. */
BN_FORCE_INLINE int8x16_t quad_of(const int8_t *q)
{
    int32_t v;
    memcpy(&v, q, sizeof v);
    return vreinterpretq_s8_s32(vdupq_n_s32(v));
}

/* Add the product of one row group and n_tokens tokens (1 or TILE_TOKENS) of the batch, from token
 * t0 on, to y. y[0] belongs to token t0 and the first row of the group. */
BN_FORCE_INLINE void group_by_tokens(const struct r16_mat *w, size_t group, int n_tokens,
                                     const struct r16_batch *batch, size_t t0, float *y)
{
    const uint8_t *line = w->lines + group * w->n_lines * LINE_BYTES;
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    const size_t span_blocks = w->span_cols / batch->block_cols;
    const size_t block_lines = batch->block_cols / R16_LINE_COLS;
    const int8_t *q = batch->q + t0 * batch->q_stride;
    const float *unit = batch->units + t0 * batch->block_stride;
    const int32_t *q_sum = batch->q_sums + t0 * batch->block_stride;
    for (size_t span = 0; span < n_spans; span++) {
        float32x4_t g[TILE_TOKENS][QUARTERS];
#pragma GCC unroll 4
        for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 4
            for (int i = 0; i < QUARTERS; i++)
                g[t][i] = vdupq_n_f32(0.0f);
        for (size_t b = 0; b < span_blocks; b++, unit++, q_sum++) {
            struct quad_sums sums[TILE_TOKENS][QUARTERS];
            memset(sums, 0, sizeof sums);
            for (size_t l = 0; l < block_lines; l++, line += LINE_BYTES, q += R16_LINE_COLS) {
                uint8x16_t bytes[QUARTERS];
                __builtin_prefetch((const void *)((uintptr_t)line + PREFETCH_BYTES));
#pragma GCC unroll 4
                for (int i = 0; i < QUARTERS; i++)
                    bytes[i] = vld1q_u8(line + 16 * i);
#pragma GCC unroll 4
                for (int field = 0; field < 4; field++) {
                    const int8x16_t shift = vdupq_n_s8((int8_t)(-2 * field));
                    int8x16_t codes[QUARTERS];
#pragma GCC unroll 4
                    for (int i = 0; i < QUARTERS; i++)
                        codes[i] = field_codes(bytes[i], shift);
#pragma GCC unroll 4
                    for (int t = 0; t < n_tokens; t++) {
                        const int8x16_t qt = quad_of(q + (size_t)t * batch->q_stride + 4 * field);
#pragma GCC unroll 4
                        for (int i = 0; i < QUARTERS; i++)
                            sums[t][i] = quad_sums_add(sums[t][i], codes[i], qt);
                    }
                }
            }
#pragma GCC unroll 4
            for (int t = 0; t < n_tokens; t++) {
                const float32x4_t u = vdupq_n_f32(unit[(size_t)t * batch->block_stride]);
                const int32x4_t fix = vdupq_n_s32(q_sum[(size_t)t * batch->block_stride]);
#pragma GCC unroll 4
                for (int i = 0; i < QUARTERS; i++) {
                    const int32x4_t total = vsubq_s32(quad_sums_total(sums[t][i]), fix);
                    g[t][i] = vfmaq_f32(g[t][i], vcvtq_f32_s32(total), u);
                }
            }
        }
        const uint16_t *scales = w->scales + (group * n_spans + span) * w->scale_step;
#pragma GCC unroll 4
        for (int t = 0; t < n_tokens; t++)
#pragma GCC unroll 4
            for (int i = 0; i < QUARTERS; i++) {
                float *out = y + (size_t)t * batch->y_stride + 4 * i;
                vst1q_f32(out, vfmaq_f32(vld1q_f32(out), g[t][i], scales_of(scales + 4 * i)));
            }
    }
}

BN_FORCE_INLINE void r16_matmul_quads(const struct r16_mat *w, size_t group0, size_t group1,
                                      const struct r16_batch *batch)
{
    for (size_t g = group0; g < group1; g++) {
        float *y = batch->y + (g - group0) * R16_ROWS;
        size_t t = 0;
        for (; batch->n_tokens - t >= TILE_TOKENS; t += TILE_TOKENS)
            group_by_tokens(w, g, TILE_TOKENS, batch, t, y + t * batch->y_stride);
        for (; t < batch->n_tokens; t++)
            group_by_tokens(w, g, 1, batch, t, y + t * batch->y_stride);
    }
}

BN_FORCE_INLINE void r16_matvec_quads(const struct r16_mat *w, size_t group0, size_t group1,
                                      const struct block_acts *x, float *y)
{
    const struct r16_batch one = {.q = x->q,
                                  .units = x->units,
                                  .q_sums = x->q_sums,
                                  .block_cols = x->block_cols,
                                  .n_tokens = 1,
                                  .y = y};
    for (size_t g = group0; g < group1; g++, y += R16_ROWS)
        group_by_tokens(w, g, 1, &one, 0, y);
}
