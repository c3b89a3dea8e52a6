/*
 * quantise_blocks, r16_matvec, r16_unpack and r16_matmul for AVX2. r16_halves.h has
 * the method.
 *
 * VPMADDUBSW adds pairs of products of bytes to int16. A pair is at most 2 * 2 * 127 = 508 in
 * magnitude for plain codes and 2,032 for fourfold codes (codes in bits 2 and 3 of a byte).
 * r16_matmul uses plain codes, which r16_unpack has written: a block of 128 columns adds 32
 * pairs to each int16, at most 16,256 of 32,767. r16_matvec uses both kinds, because it does
 * not shift all fields: 16 pairs of each kind are at most 8,128 and 32,512, together 16,256 after
 * the division by four. So no sum overflows before the block ends.
 */
#include "engine/base/size.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"
#include "engine/cpu/x86/r16_halves.h"

BN_FORCE_INLINE __m256i add(__m256i sum, __m256i codes, __m256i q)
{
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(codes, q));
}

BN_FORCE_INLINE __m256i finish(__m256i plain, __m256i fourfold)
{
    return _mm256_madd_epi16(_mm256_add_epi16(plain, _mm256_srai_epi16(fourfold, 2)),
                             _mm256_set1_epi16(1));
}

#define PRODUCTS ((struct byte_products){add, finish})

/* Quantise one block x (n), n <= block_cols; q (block_cols) gets zeros from n on. */
BN_FORCE_INLINE void quantise_block(const float *x, size_t n, size_t block_cols, int8_t *q,
                                    float *unit, int32_t *q_sum)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 max = _mm256_setzero_ps();
    for (size_t i = 0; i < n; i += 8) /* VMAXPS returns its second operand if either is a NaN */
        max = _mm256_max_ps(_mm256_andnot_ps(sign, load_ps8(x, i, n)), max);
    const float m = max8_avx2(max);
    *unit = 0.0f;
    *q_sum = 0;
    memset(q, 0, block_cols);
    if (m < BLOCK_MIN_ABS)
        return;
    const __m256 s = _mm256_set1_ps(127.0f / m);
    __m256i sum = _mm256_setzero_si256();
    for (size_t i = 0; i < n; i += 16) {
        __m256i r[2];
#pragma GCC unroll 2
        for (int k = 0; k < 2; k++) {
            const __m256 v = _mm256_mul_ps(load_ps8(x, i + 8 * (size_t)k, n), s);
            const __m256i is_number = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_ORD_Q));
            r[k] = _mm256_and_si256(_mm256_cvtps_epi32(v), is_number);
            sum = _mm256_add_epi32(sum, r[k]);
        }
        /* The instruction packs within 128-bit halves; the permutation restores the order. */
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(r[0], r[1]), 0xd8);
        _mm_store_si128(
            (__m128i *)(void *)(q + i),
            _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
    }
    *unit = m / 127.0f;
    *q_sum = sum_lanes_avx2(sum);
}

void quantise_blocks_avx2(const float *x, size_t n, size_t block_cols, int8_t *q, float *units,
                          int32_t *q_sums)
{
    const size_t n_blocks = size_round_up(n, R16_PAD_COLS) / block_cols;
    for (size_t b = 0; b < n_blocks; b++) {
        const size_t begin = size_min(b * block_cols, n);
        quantise_block(x + begin, size_min(block_cols, n - begin), block_cols, q + b * block_cols,
                       &units[b], &q_sums[b]);
    }
}

void r16_matvec_avx2(const struct r16_mat *w, size_t group0, size_t group1,
                     const struct block_acts *x, float *y)
{
    r16_matvec_halves(PRODUCTS, w, group0, group1, x, y);
}

/* A line of R16 has 16 columns of each of 16 rows. Its field i, bits 2 i and 2 i + 1 of each byte,
 * has four columns of each row and becomes the bytes 64 i .. 64 i + 63. */
void r16_unpack_avx2(const struct r16_mat *w, size_t group0, size_t group1, uint8_t *panel)
{
    const __m256i mask = _mm256_set1_epi8(3);
    const uint8_t *line = w->lines + group0 * w->n_lines * LINE_BYTES;
    for (size_t l = 0; l < (group1 - group0) * w->n_lines; l++, line += LINE_BYTES, panel += 256)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) {
            const __m256i v = _mm256_load_si256((const __m256i *)(const void *)(line + 32 * half));
            __m256i *out = (__m256i *)(void *)(panel + 32 * half);
            _mm256_store_si256(out, _mm256_and_si256(v, mask));
            _mm256_store_si256(out + 2, _mm256_and_si256(_mm256_srli_epi32(v, 2), mask));
            _mm256_store_si256(out + 4, _mm256_and_si256(_mm256_srli_epi32(v, 4), mask));
            _mm256_store_si256(out + 6, _mm256_and_si256(_mm256_srli_epi32(v, 6), mask));
        }
}

void r16_matmul_avx2(const struct r16_mat *w, size_t group0, size_t group1,
                     const struct r16_batch *batch)
{
    r16_matmul_halves(PRODUCTS, w, group0, group1, batch);
}
