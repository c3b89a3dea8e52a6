/*
 * row_decode and rows_dot for NEON.
 *
 * The 64 lanes of dot64 (docs/kernels.md) are in 16 registers. Plain rows (F32, F16 and BF16) are
 * converted to F32 in registers. Quantised rows are decoded by the reference kernels. A dot product
 * decodes such a row to the scratch buffer first.
 */
#include "engine/base/relax.h"
#include "engine/cpu/arm/kernels_arm.h"
#include "engine/cpu/arm/lanes_neon.h"
#include "engine/cpu/ref/kernels_ref.h"

#define PREFETCH_BYTES 1024 /* distance of prefetches in each row */

/* Elements i .. i + 3 of a row of F32, F16 or BF16, as F32. */
BN_FORCE_INLINE float32x4_t row4(enum tensor_type type, const uint8_t *row, size_t i)
{
    if (type == TENSOR_F32)
        return vreinterpretq_f32_u8(vld1q_u8(row + 4 * i));
    const uint16x4_t halves = vreinterpret_u16_u8(vld1_u8(row + 2 * i));
    if (type == TENSOR_F16)
        return vcvt_f32_f16(vreinterpret_f16_u16(halves));
    return vreinterpretq_f32_u32(vshll_n_u16(halves, 16));
}

/* As row4, for the end of a row of n elements: elements from n on are 0 and are not read. */
BN_FORCE_INLINE float32x4_t row4_tail(enum tensor_type type, const uint8_t *row, size_t i, size_t n)
{
    uint8_t bytes[16] = {0};
    const size_t element_bytes = type == TENSOR_F32 ? 4 : 2;
    if (i < n)
        memcpy(bytes, row + element_bytes * i, element_bytes * (n - i < 4 ? n - i : 4));
    return row4(type, bytes, 0);
}

BN_FORCE_INLINE float dot_plain(enum tensor_type type, const uint8_t *row, const float *h, size_t n)
{
    const size_t element_bytes = type == TENSOR_F32 ? 4 : 2;
    float32x4_t lanes[16];
#pragma GCC unroll 16
    for (int v = 0; v < 16; v++)
        lanes[v] = vdupq_n_f32(0.0f);
    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
#pragma GCC unroll 4
        for (size_t line = 0; line < element_bytes; line++) /* cache lines of 64 elements */
            cpu_prefetch(
                (const void *)((uintptr_t)row + i * element_bytes + PREFETCH_BYTES + 64 * line));
#pragma GCC unroll 16
        for (size_t v = 0; v < 16; v++)
            lanes[v] = vfmaq_f32(lanes[v], row4(type, row, i + 4 * v), vld1q_f32(h + i + 4 * v));
    }
    /* Lanes without another element must not change: adding +0 would turn -0, to which a
     * tiny negative product may be rounded, into +0. */
    for (size_t v = 0; i + 4 * v < n; v++) {
        float sum[4], new_sum[4];
        vst1q_f32(sum, lanes[v]);
        vst1q_f32(new_sum,
                  vfmaq_f32(lanes[v], row4_tail(type, row, i + 4 * v, n), load4(h, i + 4 * v, n)));
        memcpy(sum, new_sum, (n - i - 4 * v < 4 ? n - i - 4 * v : 4) * sizeof *sum);
        lanes[v] = vld1q_f32(sum);
    }
    return tree64_neon(lanes);
}

BN_FORCE_INLINE void decode_plain(enum tensor_type type, const uint8_t *row, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 4)
        store4(out, i, n, i + 4 <= n ? row4(type, row, i) : row4_tail(type, row, i, n));
}

#define PLAIN_KERNELS(name, type)                                                                  \
    static void row_decode_##name##_neon(const uint8_t *row, size_t n, float *out)                 \
    {                                                                                              \
        decode_plain(type, row, n, out);                                                           \
    }                                                                                              \
    static void rows_dot_##name##_neon(const struct table_rows *rows, const float *h, size_t n,    \
                                       float *z, float *scratch)                                   \
    {                                                                                              \
        (void)scratch; /* row4 converts in registers */                                            \
        for (size_t r = 0; r < rows->n_rows; r++)                                                  \
            z[r] = dot_plain(type, table_row(rows, r), h, n);                                      \
    }

PLAIN_KERNELS(f32, TENSOR_F32)
PLAIN_KERNELS(f16, TENSOR_F16)
PLAIN_KERNELS(bf16, TENSOR_BF16)

/* The reference decoders are static functions, so row_kernels_ref provides their addresses. */
static void dot_decoded(enum tensor_type type, const struct table_rows *rows, const float *h,
                        size_t n, float *z, float *scratch)
{
    row_decode_fn decode[TENSOR_N_TYPES] = {NULL};
    rows_dot_fn dot[TENSOR_N_TYPES] = {NULL};
    row_kernels_ref(decode, dot);
    for (size_t r = 0; r < rows->n_rows; r++) {
        decode[type](table_row(rows, r), n, scratch);
        z[r] = dot_plain(TENSOR_F32, (const uint8_t *)scratch, h, n);
    }
}

#define DECODED_KERNEL(name, type)                                                                 \
    static void rows_dot_##name##_neon(const struct table_rows *rows, const float *h, size_t n,    \
                                       float *z, float *scratch)                                   \
    {                                                                                              \
        dot_decoded(type, rows, h, n, z, scratch);                                                 \
    }

DECODED_KERNEL(q8_0, TENSOR_Q8_0)
DECODED_KERNEL(q4_0, TENSOR_Q4_0)
DECODED_KERNEL(q4_k, TENSOR_Q4_K)
DECODED_KERNEL(q6_k, TENSOR_Q6_K)

/* Entries of `decode` for quantised types are left as they are: those of the reference. */
void row_kernels_neon(row_decode_fn decode[TENSOR_N_TYPES], rows_dot_fn dot[TENSOR_N_TYPES])
{
    decode[TENSOR_F32] = row_decode_f32_neon;
    decode[TENSOR_F16] = row_decode_f16_neon;
    decode[TENSOR_BF16] = row_decode_bf16_neon;
    dot[TENSOR_F32] = rows_dot_f32_neon;
    dot[TENSOR_F16] = rows_dot_f16_neon;
    dot[TENSOR_BF16] = rows_dot_bf16_neon;
    dot[TENSOR_Q8_0] = rows_dot_q8_0_neon;
    dot[TENSOR_Q4_0] = rows_dot_q4_0_neon;
    dot[TENSOR_Q4_K] = rows_dot_q4_k_neon;
    dot[TENSOR_Q6_K] = rows_dot_q6_k_neon;
}
