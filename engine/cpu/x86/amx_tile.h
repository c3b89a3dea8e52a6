/*
 * Definitions for the AMX kernels: the shape of an AMX tile, and the configuration of the eight
 * tile registers. Includes the transposition of 16 x 16 dwords, which converts between the layouts
 * of the first and the second operand of a tile product.
 *
 * Each kernel configures the tiles at its start and releases them at its end, so that no thread
 * waits, or returns, with live tiles.
 */
#ifndef ENGINE_CPU_X86_AMX_TILE_H
#define ENGINE_CPU_X86_AMX_TILE_H

#include "engine/cpu/x86/transpose_avx512.h"

#include <immintrin.h>
#include <stdint.h>

#define TILE_BYTES 1024 /* an AMX tile: SIDE rows of 64 bytes */
#define STEPS_A_LINE 4  /* AMX tiles that the columns of a line of R1-256 fill: LINE_COLS / 64 */

/* Operand of LDTILECFG: Intel SDM volume 1, chapter 18. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t n_rows[16];
};

/* A compiler barrier. gcc's tile intrinsics do not declare that they read and write memory, so the
 * compiler could move stores behind a tile load, or loads before a tile store. Costs no
 * instruction. */
BN_FORCE_INLINE void order_memory(void)
{
    __asm__ volatile("" : : : "memory");
}

/* Give all eight AMX tiles their full size. */
BN_FORCE_INLINE void configure(void)
{
    struct tile_config c = {.palette = 1};
    for (size_t i = 0; i < 8; i++) {
        c.row_bytes[i] = 64;
        c.n_rows[i] = SIDE;
    }
    /* gcc's intrinsic declares that it reads only 8 bytes of c; the compiler would drop the stores
     * to the rest. */
    __asm__ volatile("" : : "m"(c));
    _tile_loadconfig(&c);
}

#endif
