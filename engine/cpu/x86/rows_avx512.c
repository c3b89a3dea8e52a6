/*
 * row_decode and rows_dot for AVX-512. docs/formats.md describes the blocks of quantised types.
 *
 * The 64 lanes of dot64 (docs/kernels.md) are four registers. F32, F16 and BF16 tables are bound by
 * memory: four rows at a time, a quarter of the range apart, share the loads of h and are four
 * streams for the memory. Quantised rows are unpacked to bytes and widened, one row at a time. The
 * four chains of fma of a row have time to finish during the unpacking.
 */
#include "engine/base/force_inline.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"
#include "engine/cpu/x86/row_kernels.h"
#include "engine/cpu/x86/rows_unpack_avx2.h"

#include <immintrin.h>

/* 16-bit shift counts: `low` for the low half of a register, `high` for the high half */
BN_FORCE_INLINE __m512i half_counts(short low, short high)
{
    return _mm512_inserti64x4(_mm512_set1_epi16(low), _mm256_set1_epi16(high), 1);
}

/* The 32 bytes at p in both halves of a register. */
BN_FORCE_INLINE __m512i both_halves(const uint8_t *p)
{
    return _mm512_broadcast_i64x4(load_bytes32(p));
}

/* Codes of columns 64 g .. 64 g + 63 of a block of 256; g is a constant after unrolling. Both
 * halves of `pairs` hold the same bytes and are shifted by different counts. */
BN_FORCE_INLINE __m512i codes64_q6_k(const uint8_t *block, int g)
{
    const __m512i nibbles = _mm512_loadu_si512(block + 64 * (g / 2));
    const __m512i pairs = both_halves(block + 128 + 32 * (g / 2));
    const __m512i low = g % 2 ? _mm512_srli_epi16(nibbles, 4) : nibbles;
    const __m512i high = g % 2 ? _mm512_srlv_epi16(pairs, half_counts(0, 2))
                               : _mm512_sllv_epi16(pairs, half_counts(4, 2));
    const __m512i code = _mm512_or_si512(_mm512_and_si512(low, _mm512_set1_epi8(0x0f)),
                                         _mm512_and_si512(high, _mm512_set1_epi8(0x30)));
    return _mm512_sub_epi8(code, _mm512_set1_epi8(32));
}

/* As codes64_q6_k, but both halves of `nibbles` hold the same bytes. */
BN_FORCE_INLINE __m512i codes64_q4_k(const uint8_t *block, int g)
{
    const __m512i nibbles = both_halves(block + 16 + 32 * g);
    return _mm512_and_si512(_mm512_srlv_epi16(nibbles, half_counts(0, 4)), _mm512_set1_epi8(15));
}

/* Codes of the 32 columns of a block of Q4_0, from its nibbles[16]. */
BN_FORCE_INLINE __m256i codes32_q4_0(const uint8_t *nibbles)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)nibbles);
    const __m256i counts = _mm256_set_m128i(_mm_set1_epi16(4), _mm_setzero_si128());
    const __m256i both = _mm256_srlv_epi16(_mm256_broadcastsi128_si256(bytes), counts);
    return _mm256_sub_epi8(_mm256_and_si256(both, _mm256_set1_epi8(15)), _mm256_set1_epi8(8));
}

/* Elements i .. i + 15 of a row of F32, F16 or BF16. */
BN_FORCE_INLINE __m512 load16(enum tensor_type type, const uint8_t *row, size_t i)
{
    if (type == TENSOR_F32)
        return _mm512_loadu_ps(row + 4 * i);
    const __m256i halves = load_bytes32(row + 2 * i);
    if (type == TENSOR_F16)
        return _mm512_cvtph_ps(halves);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* As load16, but elements that are not in `mask` are 0 and are not read. */
BN_FORCE_INLINE __m512 load16_masked(enum tensor_type type, const uint8_t *row, size_t i,
                                     __mmask16 mask)
{
    if (type == TENSOR_F32)
        return _mm512_maskz_loadu_ps(mask, row + 4 * i);
    const __m256i halves = _mm256_maskz_loadu_epi16(mask, row + 2 * i);
    if (type == TENSOR_F16)
        return _mm512_cvtph_ps(halves);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* n_rows (1 or ROW_STREAMS) rows of F32, F16 or BF16. */
BN_FORCE_INLINE void dot_plain(enum tensor_type type, int n_rows, struct row_streams s,
                               const float *h, size_t n, float out[ROW_STREAMS])
{
    const size_t element_bytes = type == TENSOR_F32 ? 4 : 2;
    __m512 lanes[ROW_STREAMS][4];
#pragma GCC unroll 4
    for (int r = 0; r < ROW_STREAMS; r++)
#pragma GCC unroll 4
        for (int v = 0; v < 4; v++)
            lanes[r][v] = _mm512_setzero_ps();

    size_t i = 0;
    for (; i + 64 <= n; i += 64) {
#pragma GCC unroll 4
        for (int r = 0; r < n_rows; r++) {
#pragma GCC unroll 4
            for (size_t line = 0; line < element_bytes; line++) /* 64 elements have as many lines */
                _mm_prefetch((const char *)(s.ahead[r] + i * element_bytes + 64 * line),
                             _MM_HINT_T0);
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < 4; v++) {
            const __m512 hv = _mm512_loadu_ps(h + i + 16 * v);
#pragma GCC unroll 4
            for (int r = 0; r < n_rows; r++)
                lanes[r][v] = _mm512_fmadd_ps(load16(type, s.row[r], i + 16 * v), hv, lanes[r][v]);
        }
    }
    if (i < n) { /* lanes from n on do not change, as in rows_avx2.c */
#pragma GCC unroll 4
        for (size_t v = 0; v < 4; v++) {
            const __mmask16 mask = mask_below(i + 16 * v, n);
            const __m512 hv = _mm512_maskz_loadu_ps(mask, h + i + 16 * v);
#pragma GCC unroll 4
            for (int r = 0; r < n_rows; r++)
                lanes[r][v] = _mm512_mask3_fmadd_ps(load16_masked(type, s.row[r], i + 16 * v, mask),
                                                    hv, lanes[r][v], mask);
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < n_rows; r++)
        out[r] = tree64_avx512(lanes[r]);
}

BN_FORCE_INLINE void decode_plain(enum tensor_type type, const uint8_t *row, size_t n, float *out)
{
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 mask = mask_below(i, n);
        _mm512_mask_storeu_ps(out + i, mask, load16_masked(type, row, i, mask));
    }
}

/* 16 signed bytes as F32. */
BN_FORCE_INLINE __m512 load_codes(const uint8_t *codes)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)codes);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}

/* Values of columns 64 g .. 64 g + 63 of a block of 256; g is a constant after unrolling. */
BN_FORCE_INLINE void block_values(enum tensor_type type, const uint8_t *block, int g,
                                  const struct block_scales *s, __m512 v[4])
{
    _Alignas(64) uint8_t codes[64];
    _mm512_store_si512(codes,
                       type == TENSOR_Q6_K ? codes64_q6_k(block, g) : codes64_q4_k(block, g));
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512 code = load_codes(codes + 16 * i);
        if (type == TENSOR_Q6_K) {
            v[i] = _mm512_mul_ps(_mm512_set1_ps(s->scale[4 * g + i]), code);
        } else { /* the product is exact, so one fma rounds like the separate subtraction */
            const int j = 2 * g + i / 2;
            v[i] = _mm512_fmsub_ps(_mm512_set1_ps(s->scale[j]), code, _mm512_set1_ps(s->offset[j]));
        }
    }
}

/* Block number `index` of a row of Q8_0 or Q4_0, whose blocks have 32 columns and one scale. */
BN_FORCE_INLINE void small_values(enum tensor_type type, const uint8_t *row, size_t index,
                                  __m512 v[2])
{
    const uint8_t *block = row + index * (type == TENSOR_Q8_0 ? Q8_0_BYTES : Q4_0_BYTES);
    const __m512 d = _mm512_broadcastss_ps(load_halves4(block));
    _Alignas(32) uint8_t codes[REGISTER_COLS];
    if (type == TENSOR_Q4_0)
        _mm256_store_si256((__m256i *)(void *)codes, codes32_q4_0(block + 2));
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        v[i] = _mm512_mul_ps(d, load_codes((type == TENSOR_Q4_0 ? codes : block + 2) + 16 * i));
}

/* lanes += values * h, 32 columns */
BN_FORCE_INLINE void add_products(const __m512 v[2], const float *h, __m512 lanes[2])
{
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        lanes[i] = _mm512_fmadd_ps(v[i], _mm512_loadu_ps(h + 16 * i), lanes[i]);
}

/* Blocks of 256 columns: Q6_K or Q4_K. Prefetches four lines for each block, from `ahead` bytes
 * after its start on. */
BN_FORCE_INLINE float dot_blocks(enum tensor_type type, const uint8_t *row, size_t ahead,
                                 const float *h, size_t n)
{
    const size_t block_bytes = type == TENSOR_Q6_K ? Q6_K_BYTES : Q4_K_BYTES;
    __m512 lanes[4], v[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        lanes[i] = _mm512_setzero_ps();
    for (const uint8_t *block = row; n > 0; n -= 256, h += 256, block += block_bytes) {
        struct block_scales s;
        block_scales_of(type, block, &s);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            _mm_prefetch((const char *)((uintptr_t)block + ahead + 64 * (size_t)g), _MM_HINT_T0);
            block_values(type, block, g, &s, v);
            add_products(v, h + 64 * g, lanes);
            add_products(v + 2, h + 64 * g + 32, lanes + 2);
        }
    }
    return tree64_avx512(lanes);
}

/* Blocks of 32 columns: Q8_0 or Q4_0. Two blocks are the 64 lanes of dot64. One line is prefetched
 * for them, `ahead` bytes further. Two blocks of Q8_0 have 68 bytes, more than a line of 64, so one
 * line in 17 is not prefetched. */
BN_FORCE_INLINE float dot_small(enum tensor_type type, const uint8_t *row, size_t ahead,
                                const float *h, size_t n)
{
    const size_t pair_bytes = 2 * (type == TENSOR_Q8_0 ? Q8_0_BYTES : Q4_0_BYTES);
    const size_t n_blocks = n / REGISTER_COLS;
    __m512 lanes[4], v[2];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        lanes[i] = _mm512_setzero_ps();
    size_t g = 0;
    for (; g + 2 <= n_blocks; g += 2) {
        _mm_prefetch((const char *)((uintptr_t)row + ahead + g / 2 * pair_bytes), _MM_HINT_T0);
        small_values(type, row, g, v);
        add_products(v, h + REGISTER_COLS * g, lanes);
        small_values(type, row, g + 1, v);
        add_products(v, h + REGISTER_COLS * (g + 1), lanes + 2);
    }
    if (g < n_blocks) {
        small_values(type, row, g, v);
        add_products(v, h + REGISTER_COLS * g, lanes);
    }
    return tree64_avx512(lanes);
}

BN_FORCE_INLINE void store_values(const __m512 v[2], float *out)
{
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++)
        _mm512_storeu_ps(out + 16 * i, v[i]);
}

BN_FORCE_INLINE void decode_blocks(enum tensor_type type, const uint8_t *row, size_t n, float *out)
{
    const size_t block_bytes = type == TENSOR_Q6_K ? Q6_K_BYTES : Q4_K_BYTES;
    for (size_t i = 0; i < n; i += 256, row += block_bytes) {
        struct block_scales s;
        __m512 v[4];
        block_scales_of(type, row, &s);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            block_values(type, row, g, &s, v);
            store_values(v, out + i + 64 * (size_t)g);
            store_values(v + 2, out + i + 64 * (size_t)g + 32);
        }
    }
}

BN_FORCE_INLINE void decode_small(enum tensor_type type, const uint8_t *row, size_t n, float *out)
{
    for (size_t g = 0; g < n / REGISTER_COLS; g++) {
        __m512 v[2];
        small_values(type, row, g, v);
        store_values(v, out + REGISTER_COLS * g);
    }
}

ROW_KERNELS(avx512)
