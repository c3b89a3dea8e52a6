/*
 * Functions that coarse_bound_states for AVX-512 and for AMX share: from the integer products of
 * rows and hidden states to the upper bounds of the logits. Lanes are hidden states.
 */
#ifndef ENGINE_CPU_X86_COARSE_STATES_AVX512_H
#define ENGINE_CPU_X86_COARSE_STATES_AVX512_H

#include "engine/cpu/kernels.h"
#include "engine/cpu/x86/transpose_avx512.h"
#include "engine/layout/coarse_code.h"

/* Blocks whose steps are widened together: as many BF16 as fit in a register. */
#define STEP_BLOCKS 32

/* Convert steps begin .. begin + STEP_BLOCKS - 1 of a row to F32; steps past n_blocks become 0.
 * begin is below n_blocks, and `out` is 64-byte aligned. */
BN_FORCE_INLINE void widen_steps(const uint16_t *steps, size_t begin, size_t n_blocks,
                                 float out[STEP_BLOCKS])
{
    const size_t n = n_blocks - begin;
    const __mmask32 valid = n < STEP_BLOCKS ? (__mmask32)((1u << n) - 1) : (__mmask32)~0u;
    const __m512i halves = _mm512_maskz_loadu_epi16(valid, steps + begin);
    const __m512i lo = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(halves));
    const __m512i hi = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(halves, 1));
    _mm512_store_si512(out, _mm512_slli_epi32(lo, 16));
    _mm512_store_si512(out + 16, _mm512_slli_epi32(hi, 16));
}

/* product + (float) sum * step, as one fma. The sum combines the high plane, the low plane and
 * `fix` (see coarse_query in kernels_coarse.h). */
BN_FORCE_INLINE __m512 add_block(__m512 product, __m512i high, __m512i low, __m512i fix, float step)
{
    const __m512i sum = _mm512_add_epi32(_mm512_slli_epi32(high, 8), _mm512_add_epi32(low, fix));
    return _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(step), product);
}

/* Replace each step by max(step^2, COARSE_MIN). `steps` is 64-byte aligned. */
BN_FORCE_INLINE void square_steps(float steps[STEP_BLOCKS])
{
    const __m512 least = _mm512_set1_ps(COARSE_MIN);
#pragma GCC unroll 2
    for (size_t i = 0; i < STEP_BLOCKS; i += 16) {
        const __m512 step = _mm512_load_ps(steps + i);
        _mm512_store_ps(steps + i, _mm512_max_ps(_mm512_mul_ps(step, step), least));
    }
}

/* For each of ERROR_ROWS rows: the sum over its blocks of the squared step, see square_steps, times
 * spread2. Rows past n_rows repeat the first row. Four independent sums hide the latency of fma. */
#define ERROR_ROWS 4
BN_FORCE_INLINE void sum_squares(const struct coarse_mat *m, size_t row, size_t n_rows,
                                 const struct coarse_states *g, __m512 squares[ERROR_ROWS])
{
    _Alignas(64) float steps[ERROR_ROWS][STEP_BLOCKS];
#pragma GCC unroll 4
    for (size_t r = 0; r < ERROR_ROWS; r++)
        squares[r] = _mm512_setzero_ps();
    for (size_t b0 = 0; b0 < m->n_blocks; b0 += STEP_BLOCKS) {
#pragma GCC unroll 4
        for (size_t r = 0; r < ERROR_ROWS; r++)
            widen_steps(m->steps + (row + (r < n_rows ? r : 0)) * m->step_stride, b0, m->n_blocks,
                        steps[r]);
#pragma GCC unroll 4
        for (size_t r = 0; r < ERROR_ROWS; r++)
            square_steps(steps[r]);
        for (size_t b = b0; b < m->n_blocks && b < b0 + STEP_BLOCKS; b++) {
            const __m512 spread2 = _mm512_load_ps(g->spread2 + b * COARSE_STATES);
#pragma GCC unroll 4
            for (size_t r = 0; r < ERROR_ROWS; r++)
                squares[r] = _mm512_fmadd_ps(_mm512_set1_ps(steps[r][b - b0]), spread2, squares[r]);
        }
    }
}

/* Turn the products v of the first n_rows of SIDE rows into bounds, and store these at
 * bounds[hidden state] + at. */
BN_FORCE_INLINE void finish_rows(const struct coarse_mat *m, size_t row, size_t n_rows,
                                 const struct coarse_states *g, __m512 v[SIDE],
                                 float *const *bounds, size_t at)
{
    const __mmask16 valid = n_rows < SIDE ? (__mmask16)((1u << n_rows) - 1) : (__mmask16)~0u;
#pragma GCC unroll 4
    for (size_t r0 = 0; r0 < SIDE; r0 += ERROR_ROWS) {
        __m512 squares[ERROR_ROWS];
        if (r0 >= n_rows)
            break;
        sum_squares(m, row + r0, n_rows - r0, g, squares);
#pragma GCC unroll 4
        for (size_t r = 0; r < ERROR_ROWS; r++) {
            const __m512 error =
                _mm512_sqrt_ps(_mm512_add_ps(squares[r], _mm512_set1_ps(COARSE_UNDERFLOW)));
            v[r0 + r] = _mm512_add_ps(_mm512_mul_ps(_mm512_load_ps(g->unit), v[r0 + r]), error);
        }
    }
    __m512i bits[SIDE];
#pragma GCC unroll 16
    for (size_t r = 0; r < SIDE; r++)
        bits[r] = _mm512_castps_si512(v[r]);
    transpose(bits); /* from hidden states as lanes to rows as lanes */
#pragma GCC unroll 16
    for (size_t i = 0; i < SIDE; i++)
        if (i < g->n)
            _mm512_mask_storeu_epi32(bounds[i] + at, valid, bits[i]);
}

#endif
