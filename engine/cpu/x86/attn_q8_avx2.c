/*
 * attn_block_q8 and attn_tile_q8 for AVX2: the loops of engine/cpu/ref/attn_q8.h.
 *
 * Each lane has four bytes: four elements of a key, or four positions of a value. They are widened
 * to 16 bits and multiplied with the 16-bit fixed-point numbers. VPMADDWD adds the products of
 * neighbours in pairs, so each lane has two 32-bit sums, which are added at the end.
 */
#include "engine/cpu/ref/attn_q8.h"
#include "engine/cpu/ref/attn_tokens.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"
#include "engine/cpu/x86/prefetch_ahead.h"

#include <immintrin.h>
#include <string.h>

#define LANES 8 /* lanes at a time: with four heads, eight independent chains */

BN_FORCE_INLINE float to_fixed_avx2(const float *x, size_t n, struct attn_fixed *out)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 max = _mm256_setzero_ps();
    /* VMAXPS returns its second operand if either is a NaN, so a NaN in x is ignored. */
    for (size_t i = 0; i < n; i += 8)
        max = _mm256_max_ps(_mm256_andnot_ps(sign, load_ps8(x, i, n)), max);
    const float found = max8_avx2(max), most = found > FIXED_MIN ? found : FIXED_MIN;
    const __m256 scale = _mm256_set1_ps(FIXED_MAX / most);
    for (size_t i = 0; i < n; i += 8) {
        const __m256 y = _mm256_mul_ps(load_ps8(x, i, n), scale);
        const __m256i is_number = _mm256_castps_si256(_mm256_cmp_ps(y, y, _CMP_ORD_Q));
        const __m256i v = _mm256_and_si256(_mm256_cvtps_epi32(y), is_number);
        const __m128i packed =
            _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
        _mm_storeu_si128((__m128i *)(void *)(out->x + i), packed);
    }
    return most / FIXED_MAX;
}

/* Four fixed-point numbers, repeated in the whole register. */
BN_FORCE_INLINE __m256i quad_of(const int16_t *x)
{
    int64_t quad;
    memcpy(&quad, x, sizeof quad);
    return _mm256_set1_epi64x(quad);
}

BN_FORCE_INLINE void sums_avx2(const struct attn_quads *w, int n_heads, size_t lane0, size_t n,
                               int32_t out[Q8_HEADS][KV_BLOCK])
{
    for (size_t lane = 0; lane < n; lane += LANES) {
        const int8_t *bytes = w->bytes + (lane0 + lane) * ATTN_QUAD;
        __m256i sum[Q8_HEADS][2];
#pragma GCC unroll 4
        for (int h = 0; h < n_heads; h++)
            sum[h][0] = sum[h][1] = _mm256_setzero_si256();
        for (size_t i = 0; i < w->n_quads; i++, bytes += w->n_lanes * ATTN_QUAD) {
            __m256i wide[2];
            /* With a period of 4 the calls for one product with a full block cover ahead_bytes
             * once: two lines in every fourth of its head_dim * 2 steps. (If head_dim is not a
             * multiple of 32, there are a few steps more.) */
            prefetch_ahead(w->ahead, w->ahead_bytes, (lane0 + lane) / LANES * w->n_quads + i, 4);
#pragma GCC unroll 2
            for (int v = 0; v < 2; v++)
                wide[v] = _mm256_cvtepi8_epi16(
                    _mm_load_si128((const __m128i *)(const void *)(bytes + 16 * v)));
#pragma GCC unroll 4
            for (int h = 0; h < n_heads; h++) {
                const __m256i x = quad_of(w->x[h].x + ATTN_QUAD * i);
#pragma GCC unroll 2
                for (int v = 0; v < 2; v++)
                    sum[h][v] = _mm256_add_epi32(sum[h][v], _mm256_madd_epi16(wide[v], x));
            }
        }
#pragma GCC unroll 4
        for (int h = 0; h < n_heads; h++) {
            /* hadd adds the two sums of each lane, but within 128-bit halves: the permutation
             * brings the lanes into their order. */
            const __m256i pairs = _mm256_hadd_epi32(sum[h][0], sum[h][1]);
            _mm256_store_si256((__m256i *)(void *)(out[h] + lane),
                               _mm256_permute4x64_epi64(pairs, 0xd8));
        }
    }
}

void attn_block_q8_avx2(const struct attn_block *b)
{
    attn_q8_block(b, (struct attn_q8_loops){to_fixed_avx2, sums_avx2, softmax_block_avx2});
}

void attn_tile_q8_avx2(const struct attn_tile *a)
{
    attn_tile_by_token(a, attn_block_q8_avx2, attn_merge_avx2);
}
