/*
 * Table rows with AVX2: a row's 64 lanes of dot64 are eight registers, so one row at a time; its
 * eight chains cover the latency of fma. The next row is prefetched: rows are read one after
 * another.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"
#include "engine/cpu/x86/rows_unpack_avx2.h"

#include <immintrin.h>

#define PREFETCH_BYTES 2048

/* Elements i .. i + 7 of a row of F32, F16 or BF16. */
BN_FORCE_INLINE __m256 load8(enum tensor_type type, const uint8_t *row, size_t i)
{
    if (type == TENSOR_F32)
        return _mm256_loadu_ps((const float *)(const void *)(row + 4 * i));
    const __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)(row + 2 * i));
    if (type == TENSOR_F16)
        return _mm256_cvtph_ps(halves);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

/* The same of those below n; the others are 0 and not read. */
BN_FORCE_INLINE __m256 load_some(enum tensor_type type, const uint8_t *row, size_t i, size_t n)
{
    uint8_t bytes[32] = {0};
    const size_t unit_bytes = type == TENSOR_F32 ? 4 : 2;
    if (i < n)
        memcpy(bytes, row + unit_bytes * i, unit_bytes * (n - i < 8 ? n - i : 8));
    return load8(type, bytes, 0);
}

BN_FORCE_INLINE float dot_plain(enum tensor_type type, const uint8_t *row, const float *h, size_t n)
{
    const size_t unit_bytes = type == TENSOR_F32 ? 4 : 2;
    __m256 lanes[8];
#pragma GCC unroll 8
    for (int v = 0; v < 8; v++)
        lanes[v] = _mm256_setzero_ps();

    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
#pragma GCC unroll 4
        for (size_t line = 0; line < unit_bytes; line++)
            _mm_prefetch(
                (const char *)((uintptr_t)row + i * unit_bytes + 64 * line + PREFETCH_BYTES),
                _MM_HINT_T0);
#pragma GCC unroll 8
        for (size_t v = 0; v < 8; v++)
            lanes[v] = _mm256_fmadd_ps(load8(type, row, i + 8 * v), _mm256_loadu_ps(h + i + 8 * v),
                                       lanes[v]);
    }
    if (i < n) {
#pragma GCC unroll 8
        for (size_t v = 0; v < 8; v++) {
            const __m256i mask = lanes_below(i + 8 * v, n);
            const __m256 hv = _mm256_maskload_ps(h + i + 8 * v, mask);
            const __m256 sum = _mm256_fmadd_ps(load_some(type, row, i + 8 * v, n), hv, lanes[v]);
            lanes[v] = _mm256_blendv_ps(lanes[v], sum, _mm256_castsi256_ps(mask));
        }
    }
    return tree64_avx2(lanes);
}

BN_FORCE_INLINE void decode_plain(enum tensor_type type, const uint8_t *row, size_t n, float *out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, load8(type, row, i));
    if (i < n)
        _mm256_maskstore_ps(out + i, lanes_below(i, n), load_some(type, row, i, n));
}

/* A group's 32 values. */
BN_FORCE_INLINE void group_values(enum tensor_type type, const uint8_t *row, size_t group,
                                  __m256 v[4])
{
    const struct row_group g = unpack_group(type, row, group);
    _Alignas(32) int8_t codes[GROUP_COLS];
    /* Through memory: widening loads cost less than shuffling bytes across the register's halves.
     */
    _mm256_store_si256((__m256i *)(void *)codes, g.codes);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(codes + 8 * i));
        const __m256 code = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
        const __m256 scale = _mm256_set1_ps(g.scale[i / 2]);
        /* The product is exact, so one fma rounds as the subtraction would. */
        v[i] = type == TENSOR_Q4_K ? _mm256_fmsub_ps(scale, code, _mm256_set1_ps(g.offset))
                                   : _mm256_mul_ps(scale, code);
    }
}

BN_FORCE_INLINE float dot_quantised(enum tensor_type type, const uint8_t *row, const float *h,
                                    size_t n)
{
    __m256 lanes[8], v[4];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        lanes[i] = _mm256_setzero_ps();
    for (size_t group = 0; group < n / GROUP_COLS; group += 2) {
        const float *hg = h + group * GROUP_COLS;
        group_values(type, row, group, v);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            lanes[i] = _mm256_fmadd_ps(v[i], _mm256_loadu_ps(hg + 8 * i), lanes[i]);
        if (group + 1 == n / GROUP_COLS)
            break;
        group_values(type, row, group + 1, v);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            lanes[4 + i] = _mm256_fmadd_ps(v[i], _mm256_loadu_ps(hg + 32 + 8 * i), lanes[4 + i]);
    }
    return tree64_avx2(lanes);
}

BN_FORCE_INLINE void decode_quantised(enum tensor_type type, const uint8_t *row, size_t n,
                                      float *out)
{
    for (size_t group = 0; group < n / GROUP_COLS; group++) {
        __m256 v[4];
        group_values(type, row, group, v);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            _mm256_storeu_ps(out + group * GROUP_COLS + 8 * i, v[i]);
    }
}

#define PLAIN_KERNELS(name, type)                                                                  \
    static void row_decode_##name##_avx2(const uint8_t *row, size_t n, float *out)                 \
    {                                                                                              \
        decode_plain(type, row, n, out);                                                           \
    }                                                                                              \
    static void rows_dot_##name##_avx2(const uint8_t *rows, size_t row_bytes, size_t n_rows,       \
                                       const float *h, size_t n, float *z, float *scratch)         \
    {                                                                                              \
        size_t r = 0;                                                                              \
        (void)scratch; /* rows are widened in registers */                                         \
        for (; r < n_rows; r++)                                                                    \
            z[r] = dot_plain(type, rows + r * row_bytes, h, n);                                    \
    }

#define QUANTISED_KERNELS(name, type)                                                              \
    static void row_decode_##name##_avx2(const uint8_t *row, size_t n, float *out)                 \
    {                                                                                              \
        decode_quantised(type, row, n, out);                                                       \
    }                                                                                              \
    static void rows_dot_##name##_avx2(const uint8_t *rows, size_t row_bytes, size_t n_rows,       \
                                       const float *h, size_t n, float *z, float *scratch)         \
    {                                                                                              \
        (void)scratch; /* rows are widened in registers */                                         \
        for (size_t r = 0; r < n_rows; r++)                                                        \
            z[r] = dot_quantised(type, rows + r * row_bytes, h, n);                                \
    }

PLAIN_KERNELS(f32, TENSOR_F32)
PLAIN_KERNELS(f16, TENSOR_F16)
PLAIN_KERNELS(bf16, TENSOR_BF16)
QUANTISED_KERNELS(q8_0, TENSOR_Q8_0)
QUANTISED_KERNELS(q4_0, TENSOR_Q4_0)
QUANTISED_KERNELS(q4_k, TENSOR_Q4_K)
QUANTISED_KERNELS(q6_k, TENSOR_Q6_K)

void row_kernels_avx2(row_decode_fn decode[TENSOR_N_TYPES], rows_dot_fn dot[TENSOR_N_TYPES])
{
    decode[TENSOR_F32] = row_decode_f32_avx2;
    decode[TENSOR_F16] = row_decode_f16_avx2;
    decode[TENSOR_BF16] = row_decode_bf16_avx2;
    decode[TENSOR_Q8_0] = row_decode_q8_0_avx2;
    decode[TENSOR_Q4_0] = row_decode_q4_0_avx2;
    decode[TENSOR_Q4_K] = row_decode_q4_k_avx2;
    decode[TENSOR_Q6_K] = row_decode_q6_k_avx2;
    dot[TENSOR_F32] = rows_dot_f32_avx2;
    dot[TENSOR_F16] = rows_dot_f16_avx2;
    dot[TENSOR_BF16] = rows_dot_bf16_avx2;
    dot[TENSOR_Q8_0] = rows_dot_q8_0_avx2;
    dot[TENSOR_Q4_0] = rows_dot_q4_0_avx2;
    dot[TENSOR_Q4_K] = rows_dot_q4_k_avx2;
    dot[TENSOR_Q6_K] = rows_dot_q6_k_avx2;
}
