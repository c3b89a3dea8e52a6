/*
 * coarse_bound_states for AVX-512 VNNI; coarse_ref.c is the specification.
 *
 * Lanes are hidden states. Four codes of a row are broadcast and multiplied with four columns of
 * all hidden states. Four rows at a time share the loads of the hidden states.
 */
#include "engine/cpu/x86/coarse_states_avx512.h"
#include "engine/cpu/x86/kernels_x86.h"

#define ROWS 4

/* Integer sums of one block of each of ROWS rows, for the high bytes and for twice the low bytes of
 * the hidden states. A row of codes has the low nibbles first, then the high nibbles. */
BN_FORCE_INLINE void multiply_block(uint8_t codes[ROWS][COARSE_COLS], const int8_t *x,
                                    __m512i high[ROWS], __m512i low[ROWS])
{
    const size_t plane = COARSE_COLS * COARSE_STATES;
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++)
        high[r] = low[r] = _mm512_setzero_si512();
    for (size_t j = 0; j < COARSE_COLS; j += 4, x += 4 * COARSE_STATES) {
        const __m512i hi = _mm512_load_si512(x), lo = _mm512_load_si512(x + plane);
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++) {
            const __m512i c = _mm512_broadcastd_epi32(_mm_loadu_si32((const void *)(codes[r] + j)));
            high[r] = _mm512_dpbusd_epi32(high[r], c, hi);
            low[r] = _mm512_dpbusd_epi32(low[r], c, lo);
        }
    }
}

/* Products of ROWS rows from `row` on. If only n_rows < ROWS rows are left, the others repeat the
 * last one. */
BN_FORCE_INLINE void multiply_rows(const struct coarse_mat *m, size_t row, size_t n_rows,
                                   const struct coarse_states *g, __m512 product[ROWS])
{
    const __m512i nibble = _mm512_set1_epi8(15);
    const size_t row_bytes = m->n_blocks * LINE_BYTES;
    _Alignas(64) uint8_t codes[ROWS][COARSE_COLS];
    _Alignas(64) float steps[ROWS][STEP_BLOCKS];
#pragma GCC unroll 4
    for (int r = 0; r < ROWS; r++)
        product[r] = _mm512_setzero_ps();
    for (size_t b = 0; b < m->n_blocks; b++) {
        __m512i high[ROWS], low[ROWS];
#pragma GCC unroll 4
        for (size_t r = 0; r < ROWS; r++) {
            const size_t at = row + (r < n_rows ? r : n_rows - 1);
            const uint8_t *line = m->lines + at * row_bytes + b * LINE_BYTES;
            const __m512i v = _mm512_load_si512(line);
            _mm512_store_si512(codes[r], _mm512_and_si512(v, nibble));
            _mm512_store_si512(codes[r] + 64, _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble));
            /* The row ROWS further: the next call reads it. */
            _mm_prefetch((const char *)((uintptr_t)line + ROWS * row_bytes), _MM_HINT_T0);
            if (b % STEP_BLOCKS == 0)
                widen_steps(m->steps + at * m->step_stride, b, m->n_blocks, steps[r]);
        }
        multiply_block(codes, g->x + b * 2 * COARSE_COLS * COARSE_STATES, high, low);
        const __m512i fix = _mm512_load_si512(g->fix + b * COARSE_STATES);
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++)
            product[r] = add_block(product[r], high[r], low[r], fix, steps[r][b % STEP_BLOCKS]);
    }
}

void coarse_bound_states_avx512(const struct coarse_mat *m, size_t row0, size_t row1,
                                const struct coarse_states *g, float *const *bounds)
{
    for (size_t r = row0; r < row1; r += SIDE) {
        const size_t n = row1 - r < SIDE ? row1 - r : SIDE;
        __m512 product[SIDE];
        for (size_t i = 0; i < SIDE; i += ROWS)
            if (i < n)
                multiply_rows(m, r + i, n - i, g, product + i);
            else
                for (size_t j = i; j < i + ROWS; j++)
                    product[j] = _mm512_setzero_ps();
        finish_rows(m, r, n, g, product, bounds, r - row0);
    }
}
