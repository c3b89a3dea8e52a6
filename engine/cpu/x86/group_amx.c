/*
 * The coarse plane of the head against up to 16 hidden states with AMX: the codes of 16 rows are
 * the first operand as they stand, 64 columns a nibble; hidden states are the second, in two planes
 * of bytes. Four products a block give two tiles of integers, exact, which are joined, scaled by
 * the row's step and summed as floats in registers.
 *
 * A block is unpacked while the one before it is multiplied.
 */
#include "engine/cpu/x86/amx_tile.h"
#include "engine/cpu/x86/group_avx512.h"
#include "engine/cpu/x86/kernels_x86.h"

/* A block of 16 rows: low nibbles, then high ones. Rows from n_rows on are zeros. */
BN_FORCE_INLINE void unpack_block(const uint8_t *line, size_t row_bytes, size_t n_rows,
                                  uint8_t *out)
{
    const __m512i nibble = _mm512_set1_epi8(15);
#pragma GCC unroll 16
    for (size_t r = 0; r < SIDE; r++, line += row_bytes) {
        const __m512i v = r < n_rows ? _mm512_load_si512(line) : _mm512_setzero_si512();
        _mm512_store_si512(out + r * 64, _mm512_and_si512(v, nibble));
        _mm512_store_si512(out + TILE_BYTES + r * 64,
                           _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble));
        _mm_prefetch((const char *)((uintptr_t)line + SIDE * row_bytes), _MM_HINT_T1);
    }
}

BN_FORCE_INLINE void multiply_block(const uint8_t *codes, const int8_t *x,
                                    int32_t sums[2][SIDE][SIDE])
{
    order_memory();
    _tile_zero(0);
    _tile_zero(1);
    _tile_loadd(2, codes, 64);
    _tile_loadd(3, codes + TILE_BYTES, 64);
    _tile_loadd(4, x, 64);
    _tile_loadd(5, x + TILE_BYTES, 64);
    _tile_loadd(6, x + 2 * TILE_BYTES, 64);
    _tile_loadd(7, x + 3 * TILE_BYTES, 64);
    _tile_dpbusd(0, 2, 4);
    _tile_dpbusd(1, 2, 6);
    _tile_dpbusd(0, 3, 5);
    _tile_dpbusd(1, 3, 7);
    _tile_stored(0, sums[0], sizeof sums[0][0]);
    _tile_stored(1, sums[1], sizeof sums[0][0]);
    order_memory();
}

BN_FORCE_INLINE void bound_rows(const struct coarse_mat *m, size_t row, size_t n_rows,
                                const struct coarse_group *g, float *const *up, size_t at)
{
    _Alignas(64) uint8_t codes[2][2 * TILE_BYTES];
    _Alignas(64) int32_t sums[2][2][SIDE][SIDE];
    _Alignas(64) float steps[SIDE][GROUP_BLOCKS];
    const size_t row_bytes = m->n_blocks * LINE_BYTES;
    const uint8_t *line = m->lines + row * row_bytes;
    __m512 product[SIDE];
#pragma GCC unroll 16
    for (size_t r = 0; r < SIDE; r++)
        product[r] = _mm512_setzero_ps();
    unpack_block(line, row_bytes, n_rows, codes[0]);
    for (size_t b = 0; b <= m->n_blocks; b++) {
        if (b < m->n_blocks)
            multiply_block(codes[b & 1], g->x + b * STEPS_A_LINE * TILE_BYTES, sums[b & 1]);
        if (b + 1 < m->n_blocks)
            unpack_block(line + (b + 1) * LINE_BYTES, row_bytes, n_rows, codes[(b + 1) & 1]);
        if (b == 0)
            continue;
        const size_t done = b - 1;
        if (done % GROUP_BLOCKS == 0)
            for (size_t r = 0; r < SIDE; r++)
                widen_steps(m->steps + (row + (r < n_rows ? r : 0)) * m->step_stride, done,
                            m->n_blocks, steps[r]);
        const __m512i fix = _mm512_load_si512(g->fix + done * COARSE_GROUP);
#pragma GCC unroll 16
        for (size_t r = 0; r < SIDE; r++)
            product[r] = add_block(product[r], _mm512_load_si512(sums[done & 1][0][r]),
                                   _mm512_load_si512(sums[done & 1][1][r]), fix,
                                   steps[r][done % GROUP_BLOCKS]);
    }
    finish_rows(m, row, n_rows, g, product, up, at);
}

void coarse_bounds_amx(const struct coarse_mat *m, size_t row0, size_t row1,
                       const struct coarse_group *g, float *const *up)
{
    configure();
    for (size_t r = row0; r < row1; r += SIDE)
        if (row1 - r >= SIDE)
            bound_rows(m, r, SIDE, g, up, r - row0);
        else
            bound_rows(m, r, row1 - r, g, up, r - row0);
    _tile_release();
}
