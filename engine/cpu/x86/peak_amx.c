/*
 * Measures the arithmetic peak of AMX (mac_peak_fn in kernels.h): products of AMX tiles that stay
 * in registers. Four independent sums hide the latency of the instruction (52 cycles; one can start
 * every 16 cycles).
 */
#include "engine/cpu/x86/amx_tile.h"
#include "engine/cpu/x86/kernels_x86.h"

#define TILES 4 /* tiles of sums */

size_t mac_peak_amx(size_t n_rounds)
{
    int8_t operand[TILE_BYTES];
    for (size_t i = 0; i < TILE_BYTES; i++)
        operand[i] = (int8_t)(i % 251); /* with zeros the clock could be higher than in real work */
    configure_tiles();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    compiler_barrier();
    _tile_loadd(4, operand, 64);
    _tile_loadd(5, operand, 64);
    _tile_loadd(6, operand, 64);
    _tile_loadd(7, operand, 64);
    for (size_t r = 0; r < n_rounds; r++) {
        _tile_dpbsud(0, 4, 6);
        _tile_dpbsud(1, 4, 7);
        _tile_dpbsud(2, 5, 6);
        _tile_dpbsud(3, 5, 7);
    }
    _tile_release();
    return n_rounds * TILES * SIDE * SIDE * 64; /* 64 products per sum */
}
