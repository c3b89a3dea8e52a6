/*
 * Transposition of 16 x 16 dwords in registers.
 */
#ifndef ENGINE_CPU_X86_TRANSPOSE_AVX512_H
#define ENGINE_CPU_X86_TRANSPOSE_AVX512_H

#include "engine/base/force_inline.h"

#include <immintrin.h>
#include <stddef.h>

#define SIDE 16 /* side of the square: dwords of a register, and rows of an AMX tile */

/* Dword d of v[r] becomes dword r of v[d]. */
BN_FORCE_INLINE void transpose(__m512i v[SIDE])
{
    __m512i u[SIDE];
#pragma GCC unroll 4
    /* A 128-bit lane is a quarter of a register. Lane m of u[i + k] becomes dword 4 m + k of rows
     * i .. i + 3. */
    for (int i = 0; i < SIDE; i += 4) {
        const __m512i a = _mm512_unpacklo_epi32(v[i], v[i + 1]);
        const __m512i b = _mm512_unpackhi_epi32(v[i], v[i + 1]);
        const __m512i c = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]);
        const __m512i d = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
        u[i] = _mm512_unpacklo_epi64(a, c);
        u[i + 1] = _mm512_unpackhi_epi64(a, c);
        u[i + 2] = _mm512_unpacklo_epi64(b, d);
        u[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* 128-bit lane m of u[4 k + i] becomes lane k of v[4 m + i] */
        const __m512i a = _mm512_shuffle_i32x4(u[i], u[4 + i], 0x88);
        const __m512i b = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0x88);
        const __m512i c = _mm512_shuffle_i32x4(u[i], u[4 + i], 0xdd);
        const __m512i d = _mm512_shuffle_i32x4(u[8 + i], u[12 + i], 0xdd);
        v[i] = _mm512_shuffle_i32x4(a, b, 0x88);
        v[8 + i] = _mm512_shuffle_i32x4(a, b, 0xdd);
        v[4 + i] = _mm512_shuffle_i32x4(c, d, 0x88);
        v[12 + i] = _mm512_shuffle_i32x4(c, d, 0xdd);
    }
}

#endif
