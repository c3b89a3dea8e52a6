/*
 * What the files with AMX tiles share: the shape of a tile, its configuration, and the
 * transposition of 16 x 16 dwords, with which a tile of one operand's form becomes one of the
 * other's.
 */
#ifndef ENGINE_CPU_X86_AMX_TILE_H
#define ENGINE_CPU_X86_AMX_TILE_H

#include "engine/cpu/x86/transpose_avx512.h"

#include <immintrin.h>
#include <stdint.h>

#define TILE_BYTES 1024 /* SIDE lines of 64 bytes */
#define STEPS_A_LINE 4  /* tiles along the columns: LINE_COLS / 64 */

/* LDTILECFG: Intel SDM volume 1, chapter 18. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t n_rows[16];
};

/* gcc's intrinsics do not say that they read and write memory: what was stored must be there
 * before tiles are loaded, what tiles store must not be read from before. Costs no instruction. */
BN_FORCE_INLINE void order_memory(void)
{
    __asm__ volatile("" : : : "memory");
}

/* All eight tiles are whole. */
BN_FORCE_INLINE void configure(void)
{
    struct tile_config c = {.palette = 1};
    for (size_t i = 0; i < 8; i++) {
        c.row_bytes[i] = 64;
        c.n_rows[i] = SIDE;
    }
    /* gcc's intrinsic says that it reads a pointer's worth of it; the rest would not be stored. */
    __asm__ volatile("" : : "m"(c));
    _tile_loadconfig(&c);
}

#endif
