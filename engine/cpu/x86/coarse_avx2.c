/*
 * coarse_pack and coarse_bound for AVX2; coarse_ref.c is the specification.
 *
 * VPMADDUBSW multiplies codes with bytes of the hidden state and adds pairs of products. A pair is
 * at most 2 * 15 * 128 in magnitude, so the sum of two pairs fits in 16 bits. Rows come from four
 * distant addresses in turn, since a core reads faster from several streams than from one.
 */
#include "engine/cpu/ref/coarse_pack.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx2.h"

#include <immintrin.h>

#define STREAMS 4
#define PREFETCH_BYTES 2560 /* used in place of coarse_mat.ahead: see docs/kernels.md */

float coarse_pack_avx2(const float *w, size_t n_blocks, size_t row, uint8_t *lines, uint16_t *steps)
{
    return coarse_pack_row(w, n_blocks, row, lines, steps);
}

/* Half of a line (32 bytes, so 64 codes, as low and high nibbles) times one plane of x: lane j is
 * the sum over columns 4 j .. 4 j + 3 and 4 j + 64 .. 4 j + 67, counted from the column at x. */
BN_FORCE_INLINE __m256i dot_half(__m256i low, __m256i high, const int8_t *x)
{
    const __m256i a = _mm256_maddubs_epi16(low, _mm256_load_si256((const void *)x));
    const __m256i b = _mm256_maddubs_epi16(high, _mm256_load_si256((const void *)(x + 64)));
    return _mm256_madd_epi16(_mm256_add_epi16(a, b), _mm256_set1_epi16(1));
}

/* The bound of row r. */
BN_FORCE_INLINE float bound_row(const struct coarse_mat *m, size_t r, const struct coarse_query *q)
{
    const uint8_t *line = m->lines + r * m->n_blocks * LINE_BYTES;
    const uint16_t *steps = m->steps + r * m->step_stride;
    const __m256i nibble = _mm256_set1_epi8(15);
    /* lanes[p] has lanes 8 p .. 8 p + 7 of coarse_bound_ref, from half p of each line. */
    __m256 lanes[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()}, squares = _mm256_setzero_ps();
    for (size_t b = 0; b < m->n_blocks; b++, line += LINE_BYTES) {
        const int8_t *x = q->x + 2 * COARSE_COLS * b;
        const __m256 step = _mm256_set1_ps(f32_from_bits((uint32_t)steps[b] << 16));
        _mm_prefetch((const char *)((uintptr_t)line + PREFETCH_BYTES), _MM_HINT_T0);
#pragma GCC unroll 2
        for (int p = 0; p < 2; p++) {
            const __m256i codes = _mm256_load_si256((const void *)(line + 32 * p));
            const __m256i low = _mm256_and_si256(codes, nibble);
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(codes, 4), nibble);
            const __m256i a = dot_half(low, high, x + 32 * p);
            const __m256i c = dot_half(low, high, x + COARSE_COLS + 32 * p);
            const __m256i fix = _mm256_load_si256((const void *)(q->fix + 16 * b + 8 * p));
            /* a is with the high bytes of x, c with twice the low bytes: 256 high + 2 low. */
            const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(a, 8), _mm256_add_epi32(c, fix));
            lanes[p] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), step, lanes[p]);
        }
    }
    for (size_t b = 0; b < m->step_stride; b += 8) {
        const __m256i step = _mm256_slli_epi32(
            _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(steps + b))), 16);
        const __m256 t = _mm256_mul_ps(_mm256_castsi256_ps(step), _mm256_loadu_ps(q->spread + b));
        squares = _mm256_fmadd_ps(t, t, squares);
    }
    const float error =
        _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(tree8_avx2(squares) + COARSE_UNDERFLOW)));
    return q->unit * tree8_avx2(_mm256_add_ps(lanes[0], lanes[1])) + error;
}

void coarse_bound_avx2(const struct coarse_mat *m, size_t row0, size_t row1,
                       const struct coarse_query *q, float *bound)
{
    const size_t n = row1 - row0, apart = n / STREAMS;
    for (size_t i = 0; i < apart; i++)
        for (size_t r = i; r < STREAMS * apart; r += apart)
            bound[r] = bound_row(m, row0 + r, q);
    for (size_t r = STREAMS * apart; r < n; r++)
        bound[r] = bound_row(m, row0 + r, q);
}
