/*
 * attn_block_q8 and attn_tile_q8 for AVX-512 VNNI: the loops of engine/cpu/ref/attn_q8.h.
 *
 * Each lane has four bytes: four elements of a key, or four positions of a value. VPDPBUSD adds
 * their products to a 32-bit sum. It needs one unsigned factor, so 128 is added to the bytes of the
 * cache, and 128 times the sum of x is subtracted from the result. The fixed-point number x is used
 * as two bytes, x = 128 high + low. Sums may wrap; the result after the subtraction fits 32 bits.
 */
#include "engine/cpu/ref/attn_q8.h"
#include "engine/cpu/ref/attn_tokens.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"
#include "engine/cpu/x86/prefetch_ahead.h"

#include <immintrin.h>
#include <string.h>

#define VECS 2 /* registers of 16 lanes at a time: with four heads, 16 independent chains */

BN_FORCE_INLINE float to_fixed_avx512(const float *x, size_t n, struct attn_fixed *out)
{
    __m512 max = _mm512_setzero_ps();
    /* VMAXPS returns its second operand if either is a NaN, so a NaN in x is ignored. */
    for (size_t i = 0; i < n; i += 16)
        max = _mm512_max_ps(_mm512_abs_ps(_mm512_maskz_loadu_ps(mask_below(i, n), x + i)), max);
    const float found = max16_avx512(max), most = found > FIXED_MIN ? found : FIXED_MIN;
    const __m512 scale = _mm512_set1_ps(FIXED_MAX / most);
    __m512i sum = _mm512_setzero_si512();
    for (size_t i = 0; i < n; i += 16) {
        const __m512 y = _mm512_mul_ps(_mm512_maskz_loadu_ps(mask_below(i, n), x + i), scale);
        const __mmask16 is_number = _mm512_cmp_ps_mask(y, y, _CMP_ORD_Q);
        const __m512i v = _mm512_maskz_cvtps_epi32(is_number, y);
        const __m128i high = _mm512_cvtepi32_epi8(_mm512_srai_epi32(v, 7));
        const __m128i low = _mm512_cvtepi32_epi8(_mm512_and_si512(v, _mm512_set1_epi32(127)));
        _mm_storeu_si128((__m128i *)(void *)(out->planes[0] + i), high);
        _mm_storeu_si128((__m128i *)(void *)(out->planes[1] + i), low);
        sum = _mm512_add_epi32(sum, v);
    }
    out->sum = _mm512_reduce_add_epi32(sum);
    return most / FIXED_MAX;
}

/* Four bytes, repeated in the whole register. */
BN_FORCE_INLINE __m512i quad_of(const int8_t *bytes)
{
    int32_t quad;
    memcpy(&quad, bytes, sizeof quad);
    return _mm512_set1_epi32(quad);
}

BN_FORCE_INLINE void sums_avx512(const struct attn_quads *w, int n_heads, size_t lane0, size_t n,
                                 int32_t out[Q8_HEADS][KV_BLOCK])
{
    for (size_t lane = 0; lane < n; lane += 16 * VECS) {
        const int8_t *bytes = w->bytes + (lane0 + lane) * ATTN_QUAD;
        __m512i high[Q8_HEADS][VECS], low[Q8_HEADS][VECS];
#pragma GCC unroll 4
        for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 2
            for (int v = 0; v < VECS; v++)
                high[h][v] = low[h][v] = _mm512_setzero_si512();
        for (size_t i = 0; i < w->n_quads; i++, bytes += w->n_lanes * ATTN_QUAD) {
            __m512i code[VECS]; /* bytes of the cache + 128 */
            prefetch_ahead(w->ahead, w->ahead_bytes, (lane0 + lane) / (16 * VECS) * w->n_quads + i,
                           1);
#pragma GCC unroll 2
            for (int v = 0; v < VECS; v++)
                code[v] = _mm512_xor_si512(_mm512_load_si512(bytes + 64 * v),
                                           _mm512_set1_epi8((char)0x80));
#pragma GCC unroll 4
            for (int h = 0; h < n_heads; h++) {
                const __m512i x0 = quad_of(w->x[h].planes[0] + ATTN_QUAD * i);
                const __m512i x1 = quad_of(w->x[h].planes[1] + ATTN_QUAD * i);
#pragma GCC unroll 2
                for (int v = 0; v < VECS; v++) {
                    high[h][v] = _mm512_dpbusd_epi32(high[h][v], code[v], x0);
                    low[h][v] = _mm512_dpbusd_epi32(low[h][v], code[v], x1);
                }
            }
        }
#pragma GCC unroll 4
        for (int h = 0; h < n_heads; h++)
#pragma GCC unroll 2
            for (int v = 0; v < VECS; v++) {
                const __m512i both = _mm512_add_epi32(_mm512_slli_epi32(high[h][v], 7), low[h][v]);
                /* uint32_t, because C does not define the shift of a negative sum */
                _mm512_store_si512(
                    out[h] + lane + 16 * (size_t)v,
                    _mm512_sub_epi32(both,
                                     _mm512_set1_epi32((int32_t)((uint32_t)w->x[h].sum << 7))));
            }
    }
}

void attn_block_q8_avx512(const struct attn_block *b)
{
    attn_q8_block(b, (struct attn_q8_loops){to_fixed_avx512, sums_avx512, softmax_block_avx512});
}

/* Processes each token alone: products of bytes share little work between tokens. */
void attn_tile_q8_avx512(const struct attn_tile *a)
{
    attn_tile_by_token(a, attn_block_q8_avx512, attn_merge_avx2);
}
