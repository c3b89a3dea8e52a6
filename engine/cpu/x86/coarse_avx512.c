/*
 * coarse_pack and coarse_bound for AVX-512 VNNI; coarse_ref.c is the specification.
 *
 * A block of 128 codes is one register, and costs four dot products of bytes, one conversion and
 * one fma. Four rows at a time share the loads of x. They are a quarter of the range apart, since a
 * core reads faster from several streams than from one.
 */
#include "engine/cpu/ref/coarse_pack.h"
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/lanes_avx512.h"

#include <immintrin.h>

#define ROWS 4

float coarse_pack_avx512(const float *w, size_t n_blocks, size_t row, uint8_t *lines,
                         uint16_t *steps)
{
    return coarse_pack_row(w, n_blocks, row, lines, steps);
}

/* The error term of a row: sqrt(sum of (step * spread)^2 + COARSE_UNDERFLOW). */
BN_FORCE_INLINE float error_bound(const uint16_t *steps, size_t n, const float *spread)
{
    __m256 squares = _mm256_setzero_ps();
    for (size_t b = 0; b < n; b += 8) {
        const __m256i step = _mm256_slli_epi32(
            _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(steps + b))), 16);
        const __m256 t = _mm256_mul_ps(_mm256_castsi256_ps(step), _mm256_loadu_ps(spread + b));
        squares = _mm256_fmadd_ps(t, t, squares);
    }
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(tree8_avx2(squares) + COARSE_UNDERFLOW)));
}

/* Bounds of n_rows (1 or ROWS) rows: r, r + apart, ... */
BN_FORCE_INLINE void bound_rows(const struct coarse_mat *m, int n_rows, size_t r, size_t apart,
                                const struct coarse_query *q, float out[ROWS])
{
    const size_t apart_bytes = apart * m->n_blocks * LINE_BYTES;
    const uint8_t *line = m->lines + r * m->n_blocks * LINE_BYTES;
    const uint16_t *steps = m->steps + r * m->step_stride;
    const __m512i nibble = _mm512_set1_epi8(15);
    __m512 lanes[ROWS];
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++)
        lanes[i] = _mm512_setzero_ps();
    for (size_t b = 0; b < m->n_blocks; b++, line += LINE_BYTES) {
        const int8_t *x = q->x + 2 * COARSE_COLS * b;
        /* x0, x1: the high bytes of columns 0 .. 63 and 64 .. 127; y0, y1: twice the low ones */
        const __m512i x0 = _mm512_load_si512(x), x1 = _mm512_load_si512(x + 64);
        const __m512i y0 = _mm512_load_si512(x + 128), y1 = _mm512_load_si512(x + 192);
        const __m512i fix = _mm512_load_si512(q->fix + 16 * b);
#pragma GCC unroll 4
        for (int i = 0; i < n_rows; i++) {
            const uint8_t *at = line + (size_t)i * apart_bytes;
            const uint16_t step = steps[(size_t)i * apart * m->step_stride + b];
            _mm_prefetch((const char *)((uintptr_t)at + m->ahead), _MM_HINT_T0);
            const __m512i codes = _mm512_load_si512(at);
            const __m512i low = _mm512_and_si512(codes, nibble);
            const __m512i high = _mm512_and_si512(_mm512_srli_epi16(codes, 4), nibble);
            const __m512i a =
                _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(_mm512_setzero_si512(), low, x0), high, x1);
            const __m512i c = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(fix, low, y0), high, y1);
            const __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(a, 8), c);
            /* The mask selects the upper half of each dword: the BF16 step becomes F32. */
            const __m512i wide = _mm512_maskz_set1_epi16(0xaaaaaaaau, (short)step);
            lanes[i] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_castsi512_ps(wide), lanes[i]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < n_rows; i++) {
        out[i] = q->unit * tree16_avx512(lanes[i]) +
                 error_bound(steps + (size_t)i * apart * m->step_stride, m->step_stride, q->spread);
    }
}

void coarse_bound_avx512(const struct coarse_mat *m, size_t row0, size_t row1,
                         const struct coarse_query *q, float *bound)
{
    const size_t n = row1 - row0, apart = n / ROWS;
    for (size_t r = 0; r < apart; r++) {
        float out[ROWS];
        bound_rows(m, ROWS, row0 + r, apart, q, out);
        for (size_t i = 0; i < ROWS; i++)
            bound[r + i * apart] = out[i];
    }
    for (size_t r = ROWS * apart; r < n; r++)
        bound_rows(m, 1, row0 + r, 0, q, bound + r);
}
