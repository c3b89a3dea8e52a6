/*
 * Generates row_decode and rows_dot for each type that a table (token embedding or output head) can
 * have, except ternary types, and row_kernels_ISA, which enters them into the kernel table. AVX2
 * and AVX-512 use it.
 *
 * A file defines the inline functions decode_plain, dot_plain, decode_small, dot_small,
 * decode_blocks and dot_blocks and then expands ROW_KERNELS(isa). "plain" is for F32, F16 and BF16,
 * "small" for types with blocks of 32 elements, "blocks" for types with blocks of 256. The type is
 * a constant argument of each, so that the compiler removes the branches.
 *
 * Rows are read from four distant addresses in turn, since a core reads faster from several streams
 * than from one.
 */
#ifndef ENGINE_CPU_X86_ROW_KERNELS_H
#define ENGINE_CPU_X86_ROW_KERNELS_H

#include "engine/base/force_inline.h"
#include "engine/cpu/kernels.h"

#define ROW_STREAMS 4
#define ROW_PREFETCH_BYTES 2560 /* the distance that docs/kernels.md reports for products */

/* Four rows. While byte b of row i is read, the cache line at ahead[i] + b is prefetched. ahead[i]
 * is ROW_PREFETCH_BYTES after the start of the row. If the rows are a list, it is the next row of
 * the stream instead, or the row itself if the row is the last of its stream. */
struct row_streams {
    const uint8_t *row[ROW_STREAMS];
    uintptr_t ahead[ROW_STREAMS];
};

/* The rows r, r + step, ... (entries of ids if the rows are a list) and the memory to prefetch.
 * step is also the number of rows of a stream. With step 0 all four are row r, and the caller uses
 * one. */
BN_FORCE_INLINE struct row_streams row_streams(const struct table_rows *rows, size_t r, size_t step)
{
    struct row_streams s;
#pragma GCC unroll 4
    for (size_t i = 0; i < ROW_STREAMS; i++) {
        const size_t at = r + i * step;
        s.row[i] = table_row(rows, at);
        s.ahead[i] = rows->ids ? (uintptr_t)table_row(rows, r + 1 < step ? at + 1 : at)
                               : (uintptr_t)s.row[i] + ROW_PREFETCH_BYTES;
    }
    return s;
}

#define ROW_DECODE(isa, name, type, decode)                                                        \
    static void row_decode_##name##_##isa(const uint8_t *row, size_t n, float *out)                \
    {                                                                                              \
        decode(type, row, n, out);                                                                 \
    }

/* ROW_STREAMS rows at a time. */
#define PLAIN_KERNELS(isa, name, type)                                                             \
    ROW_DECODE(isa, name, type, decode_plain)                                                      \
    static void rows_dot_##name##_##isa(const struct table_rows *rows, const float *h, size_t n,   \
                                        float *z, float *scratch)                                  \
    {                                                                                              \
        const size_t step = rows->n_rows / ROW_STREAMS;                                            \
        (void)scratch; /* rows are widened in registers */                                         \
        for (size_t r = 0; r < step; r++) {                                                        \
            float out[ROW_STREAMS];                                                                \
            dot_plain(type, ROW_STREAMS, row_streams(rows, r, step), h, n, out);                   \
            for (size_t i = 0; i < ROW_STREAMS; i++)                                               \
                z[r + i * step] = out[i];                                                          \
        }                                                                                          \
        for (size_t r = ROW_STREAMS * step; r < rows->n_rows; r++)                                 \
            dot_plain(type, 1, row_streams(rows, r, 0), h, n, z + r);                              \
    }

/* One row at a time, in turn from ROW_STREAMS distant addresses. While a row is read, the next row
 * in memory is prefetched: row_bytes is the distance to it. (In a list of rows, the row that is
 * read next can be elsewhere.) */
#define PACKED_KERNELS(isa, name, type, decode, dot)                                               \
    ROW_DECODE(isa, name, type, decode)                                                            \
    static void rows_dot_##name##_##isa(const struct table_rows *rows, const float *h, size_t n,   \
                                        float *z, float *scratch)                                  \
    {                                                                                              \
        const size_t step = rows->n_rows / ROW_STREAMS;                                            \
        (void)scratch; /* rows are unpacked part by part in registers and on the stack */          \
        for (size_t i = 0; i < step; i++)                                                          \
            for (size_t r = i; r < ROW_STREAMS * step; r += step)                                  \
                z[r] = dot(type, table_row(rows, r), rows->row_bytes, h, n);                       \
        for (size_t r = ROW_STREAMS * step; r < rows->n_rows; r++)                                 \
            z[r] = dot(type, table_row(rows, r), rows->row_bytes, h, n);                           \
    }

#define ROW_KERNELS(isa)                                                                           \
    PLAIN_KERNELS(isa, f32, TENSOR_F32)                                                            \
    PLAIN_KERNELS(isa, f16, TENSOR_F16)                                                            \
    PLAIN_KERNELS(isa, bf16, TENSOR_BF16)                                                          \
    PACKED_KERNELS(isa, q8_0, TENSOR_Q8_0, decode_small, dot_small)                                \
    PACKED_KERNELS(isa, q4_0, TENSOR_Q4_0, decode_small, dot_small)                                \
    PACKED_KERNELS(isa, q4_k, TENSOR_Q4_K, decode_blocks, dot_blocks)                              \
    PACKED_KERNELS(isa, q6_k, TENSOR_Q6_K, decode_blocks, dot_blocks)                              \
    void row_kernels_##isa(row_decode_fn decode[TENSOR_N_TYPES], rows_dot_fn dot[TENSOR_N_TYPES])  \
    {                                                                                              \
        decode[TENSOR_F32] = row_decode_f32_##isa;                                                 \
        decode[TENSOR_F16] = row_decode_f16_##isa;                                                 \
        decode[TENSOR_BF16] = row_decode_bf16_##isa;                                               \
        decode[TENSOR_Q8_0] = row_decode_q8_0_##isa;                                               \
        decode[TENSOR_Q4_0] = row_decode_q4_0_##isa;                                               \
        decode[TENSOR_Q4_K] = row_decode_q4_k_##isa;                                               \
        decode[TENSOR_Q6_K] = row_decode_q6_k_##isa;                                               \
        dot[TENSOR_F32] = rows_dot_f32_##isa;                                                      \
        dot[TENSOR_F16] = rows_dot_f16_##isa;                                                      \
        dot[TENSOR_BF16] = rows_dot_bf16_##isa;                                                    \
        dot[TENSOR_Q8_0] = rows_dot_q8_0_##isa;                                                    \
        dot[TENSOR_Q4_0] = rows_dot_q4_0_##isa;                                                    \
        dot[TENSOR_Q4_K] = rows_dot_q4_k_##isa;                                                    \
        dot[TENSOR_Q6_K] = rows_dot_q6_k_##isa;                                                    \
    }

#endif
