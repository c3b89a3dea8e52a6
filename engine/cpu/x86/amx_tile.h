/*
 * Definitions for the AMX kernels: the shape and the configuration of the tile registers. Every
 * kernel that uses tiles configures them at its start and releases them at its end. So no thread
 * waits or returns with live tiles, which the operating system would have to save (8 kB).
 */
#ifndef ENGINE_CPU_X86_AMX_TILE_H
#define ENGINE_CPU_X86_AMX_TILE_H

#include "engine/cpu/x86/transpose_avx512.h"

#include <immintrin.h>
#include <stdint.h>

#define TILE_BYTES 1024 /* an AMX tile: SIDE rows of 64 bytes */
/* A step is a product over the 64 columns of an AMX tile. A line of R1-256 has LINE_COLS / 64. */
#define STEPS_PER_LINE 4

/* Operand of LDTILECFG: Intel SDM volume 1, chapter 18. */
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t n_rows[16];
};

/* gcc's _tile_loadd does not declare that it reads memory. Without this barrier the compiler could
 * move stores behind a tile load. (After _tile_stored, which declares its access, the barrier is
 * only a precaution.) The barrier costs no instruction. */
BN_FORCE_INLINE void compiler_barrier(void)
{
    __asm__ volatile("" : : : "memory");
}

/* Give all eight AMX tiles their full size. */
BN_FORCE_INLINE void configure_tiles(void)
{
    struct tile_config c = {.palette = 1};
    for (size_t i = 0; i < 8; i++) {
        c.row_bytes[i] = 64;
        c.n_rows[i] = SIDE;
    }
    /* gcc's intrinsic declares only 8 bytes of c as read; the compiler would drop the other
     * stores. */
    __asm__ volatile("" : : "m"(c));
    _tile_loadconfig(&c);
}

#endif
