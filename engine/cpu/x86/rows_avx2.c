/*
 * row_decode and rows_dot for AVX2. docs/formats.md describes the blocks of quantised types.
 *
 * The 64 lanes of dot64 (docs/kernels.md) are eight registers, so only one row at a time fits; its
 * eight independent chains hide the latency of fma.
 */
#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"
#include "engine/cpu/x86/row_kernels.h"
#include "engine/cpu/x86/rows_unpack_avx2.h"

#include <immintrin.h>

/* Columns of a row that are multiplied before those of the next row: a multiple of the 64 lanes.
 * More columns save loads and stores of the sums, but then the kernel changes less often between
 * its four streams, so reading becomes slower (row_kernels.h). */
#define TURN_COLS 256

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

/* As load8, for the end of a row of n elements: elements from n on are 0 and are not read. */
BN_FORCE_INLINE __m256 load8_tail(enum tensor_type type, const uint8_t *row, size_t i, size_t n)
{
    uint8_t bytes[32] = {0};
    const size_t element_bytes = type == TENSOR_F32 ? 4 : 2;
    if (i < n)
        memcpy(bytes, row + element_bytes * i, element_bytes * (n - i < 8 ? n - i : 8));
    return load8(type, bytes, 0);
}

/* Add the products of columns i .. end - 1 to the lanes; i is a multiple of 64. */
BN_FORCE_INLINE void add_plain(enum tensor_type type, const uint8_t *row, uintptr_t ahead,
                               const float *h, size_t i, size_t end, __m256 lanes[8])
{
    const size_t element_bytes = type == TENSOR_F32 ? 4 : 2;
    __m256 sum[8];
#pragma GCC unroll 8
    for (int v = 0; v < 8; v++)
        sum[v] = lanes[v];
    for (; i + 64 <= end; i += 64) {
#pragma GCC unroll 4
        for (size_t line = 0; line < element_bytes; line++) /* 64 elements: element_bytes lines */
            _mm_prefetch((const char *)(ahead + i * element_bytes + 64 * line), _MM_HINT_T0);
#pragma GCC unroll 8
        for (size_t v = 0; v < 8; v++)
            sum[v] = _mm256_fmadd_ps(load8(type, row, i + 8 * v), _mm256_loadu_ps(h + i + 8 * v),
                                     sum[v]);
    }
    /* Lanes from `end` on must not change. A negative product that underflows turns a sum of +0
     * into -0, and adding +0 would turn the sum back. */
    if (i < end) {
#pragma GCC unroll 8
        for (size_t v = 0; v < 8; v++) {
            const __m256i mask = lanes_below(i + 8 * v, end);
            const __m256 hv = _mm256_maskload_ps(h + i + 8 * v, mask);
            const __m256 new_sum =
                _mm256_fmadd_ps(load8_tail(type, row, i + 8 * v, end), hv, sum[v]);
            sum[v] = _mm256_blendv_ps(sum[v], new_sum, _mm256_castsi256_ps(mask));
        }
    }
#pragma GCC unroll 8
    for (int v = 0; v < 8; v++)
        lanes[v] = sum[v];
}

/* n_rows (1 or ROW_STREAMS) rows, TURN_COLS columns of each in turn. Registers have room for the
 * sums of one row only, so those of the other rows are in memory. */
BN_FORCE_INLINE void dot_plain(enum tensor_type type, int n_rows, struct row_streams s,
                               const float *h, size_t n, float out[ROW_STREAMS])
{
    __m256 lanes[ROW_STREAMS][8];
    for (int r = 0; r < n_rows; r++)
        for (int v = 0; v < 8; v++)
            lanes[r][v] = _mm256_setzero_ps();
    for (size_t i = 0; i < n; i += TURN_COLS)
        for (int r = 0; r < n_rows; r++)
            add_plain(type, s.row[r], s.ahead[r], h, i, size_min(i + TURN_COLS, n), lanes[r]);
    for (int r = 0; r < n_rows; r++)
        out[r] = tree64_avx2(lanes[r]);
}

BN_FORCE_INLINE void decode_plain(enum tensor_type type, const uint8_t *row, size_t n, float *out)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, load8(type, row, i));
    if (i < n)
        _mm256_maskstore_ps(out + i, lanes_below(i, n), load8_tail(type, row, i, n));
}

/* 32 values. Each scale is for 16 columns; offset is NULL if the type has none. */
BN_FORCE_INLINE void scale_codes(__m256i codes, const float scale[2], const float *offset,
                                 __m256 v[4])
{
    _Alignas(32) uint8_t bytes[REGISTER_COLS];
    _mm256_store_si256((__m256i *)(void *)bytes, codes);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m256 code = load_signed8(bytes + 8 * i), s = _mm256_set1_ps(scale[i / 2]);
        /* The product is exact, so one fma rounds like the separate subtraction. */
        v[i] = offset ? _mm256_fmsub_ps(s, code, _mm256_set1_ps(*offset)) : _mm256_mul_ps(s, code);
    }
}

/* Values of columns 32 g .. 32 g + 31 of a block of 256. g is a constant after unrolling. */
BN_FORCE_INLINE void block_values(enum tensor_type type, const uint8_t *block, int g,
                                  const struct block_scales *s, __m256 v[4])
{
    if (type == TENSOR_Q6_K)
        scale_codes(codes_q6_k(block, g), s->scale + 2 * g, NULL, v);
    else
        scale_codes(codes_q4_k(block, g), (const float[2]){s->scale[g], s->scale[g]}, s->offset + g,
                    v);
}

/* Block number `index` of a row of Q8_0 or Q4_0, whose blocks have 32 columns and one scale. */
BN_FORCE_INLINE void small_values(enum tensor_type type, const uint8_t *row, size_t index,
                                  __m256 v[4])
{
    const uint8_t *block = row + index * (type == TENSOR_Q8_0 ? Q8_0_BYTES : Q4_0_BYTES);
    const __m256 d = _mm256_broadcastss_ps(load_halves4(block));
    _Alignas(32) uint8_t bytes[REGISTER_COLS];
    if (type == TENSOR_Q4_0)
        _mm256_store_si256((__m256i *)(void *)bytes, codes_q4_0(block + 2));
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        v[i] = _mm256_mul_ps(d, load_signed8((type == TENSOR_Q4_0 ? bytes : block + 2) + 8 * i));
}

/* lanes += values * h, 32 columns */
BN_FORCE_INLINE void add_products(const __m256 v[4], const float *h, __m256 lanes[4])
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        lanes[i] = _mm256_fmadd_ps(v[i], _mm256_loadu_ps(h + 8 * i), lanes[i]);
}

/* Blocks of 256 columns: Q6_K or Q4_K. Prefetches four lines for each block, from `ahead` bytes
 * after its start on. */
BN_FORCE_INLINE float dot_blocks(enum tensor_type type, const uint8_t *row, size_t ahead,
                                 const float *h, size_t n)
{
    const size_t block_bytes = type == TENSOR_Q6_K ? Q6_K_BYTES : Q4_K_BYTES;
    __m256 lanes[8], v[4];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        lanes[i] = _mm256_setzero_ps();
    for (const uint8_t *block = row; n > 0; n -= 256, h += 256, block += block_bytes) {
        struct block_scales s;
        block_scales_of(type, block, &s);
#pragma GCC unroll 8
        for (int g = 0; g < 8; g++) {
            if (g % 2 == 0)
                _mm_prefetch((const char *)((uintptr_t)block + ahead + 32 * (size_t)g),
                             _MM_HINT_T0);
            block_values(type, block, g, &s, v);
            add_products(v, h + REGISTER_COLS * g, lanes + 4 * (g % 2));
        }
    }
    return tree64_avx2(lanes);
}

/* Blocks of 32 columns: Q8_0 or Q4_0. Two blocks are the 64 lanes of dot64. One line is prefetched
 * for them, `ahead` bytes further. Two blocks of Q8_0 have 68 bytes, more than a line of 64, so one
 * line in 17 is not prefetched. */
BN_FORCE_INLINE float dot_small(enum tensor_type type, const uint8_t *row, size_t ahead,
                                const float *h, size_t n)
{
    const size_t pair_bytes = 2 * (type == TENSOR_Q8_0 ? Q8_0_BYTES : Q4_0_BYTES);
    const size_t n_blocks = n / REGISTER_COLS;
    __m256 lanes[8], v[4];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        lanes[i] = _mm256_setzero_ps();
    size_t g = 0;
    for (; g + 2 <= n_blocks; g += 2) {
        _mm_prefetch((const char *)((uintptr_t)row + ahead + g / 2 * pair_bytes), _MM_HINT_T0);
        small_values(type, row, g, v);
        add_products(v, h + REGISTER_COLS * g, lanes);
        small_values(type, row, g + 1, v);
        add_products(v, h + REGISTER_COLS * (g + 1), lanes + 4);
    }
    if (g < n_blocks) {
        small_values(type, row, g, v);
        add_products(v, h + REGISTER_COLS * g, lanes);
    }
    return tree64_avx2(lanes);
}

BN_FORCE_INLINE void store_values(const __m256 v[4], float *out)
{
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        _mm256_storeu_ps(out + 8 * i, v[i]);
}

BN_FORCE_INLINE void decode_blocks(enum tensor_type type, const uint8_t *row, size_t n, float *out)
{
    const size_t block_bytes = type == TENSOR_Q6_K ? Q6_K_BYTES : Q4_K_BYTES;
    for (size_t i = 0; i < n; i += 256, row += block_bytes) {
        struct block_scales s;
        __m256 v[4];
        block_scales_of(type, row, &s);
#pragma GCC unroll 8
        for (int g = 0; g < 8; g++) {
            block_values(type, row, g, &s, v);
            store_values(v, out + i + REGISTER_COLS * (size_t)g);
        }
    }
}

BN_FORCE_INLINE void decode_small(enum tensor_type type, const uint8_t *row, size_t n, float *out)
{
    for (size_t g = 0; g < n / REGISTER_COLS; g++) {
        __m256 v[4];
        small_values(type, row, g, v);
        store_values(v, out + REGISTER_COLS * g);
    }
}

ROW_KERNELS(avx2)
