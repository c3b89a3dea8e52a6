/*
 * The AMX instructions as plain C, so that check_kernels can compare the AMX kernels on processors
 * that have AVX-512 but no AMX. This header is included before the source of a kernel. It replaces
 * the intrinsics and renames the kernel, so that both versions can be linked. The semantics are
 * those of the Intel SDM, volume 2: TILELOADD, TILESTORED, TDPBSUD, TDPBUSD.
 */
#ifndef TESTS_ENGINE_AMX_EMULATED_H
#define TESTS_ENGINE_AMX_EMULATED_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define r16_matmul_amx r16_matmul_amx_emulated
#define ternary_matmul_amx ternary_matmul_amx_emulated
#define ternary_matmul_amx_medium ternary_matmul_amx_medium_emulated
#define coarse_bound_states_amx coarse_bound_states_amx_emulated
#define pack_token_amx pack_token_amx_emulated
#define unpack_rows_amx unpack_rows_amx_emulated

/* Some compilers define the intrinsics as macros, some as functions. */
#undef _tile_loadconfig
#define _tile_loadconfig emulated_loadconfig
#undef _tile_loadd
#define _tile_loadd emulated_loadd
#undef _tile_stored
#define _tile_stored emulated_stored
#undef _tile_zero
#define _tile_zero emulated_zero
#undef _tile_dpbsud
#define _tile_dpbsud emulated_dpbsud
#undef _tile_dpbusd
#define _tile_dpbusd emulated_dpbusd
#undef _tile_release
#define _tile_release emulated_release

#define EMULATED_TILES 8
#define EMULATED_ROWS 16
#define EMULATED_BYTES 64 /* of a row */

/* The tile registers of this file's only thread, and their configuration. */
static struct {
    uint16_t row_bytes[EMULATED_TILES];
    uint8_t n_rows[EMULATED_TILES];
    uint8_t rows[EMULATED_TILES][EMULATED_ROWS][EMULATED_BYTES];
} emulated;

/* The 64-byte operand of LDTILECFG: row bytes from byte 16 on, row counts from byte 48 on. */
static inline void emulated_loadconfig(const void *config)
{
    const uint8_t *c = config;
    memset(&emulated, 0, sizeof emulated);
    memcpy(emulated.row_bytes, c + 16, sizeof emulated.row_bytes);
    memcpy(emulated.n_rows, c + 48, sizeof emulated.n_rows);
}

static inline void emulated_release(void)
{
    memset(&emulated, 0, sizeof emulated);
}

static inline void emulated_zero(int tile)
{
    memset(emulated.rows[tile], 0, sizeof emulated.rows[tile]);
}

static inline void emulated_loadd(int tile, const void *from, size_t stride)
{
    emulated_zero(tile);
    for (size_t r = 0; r < emulated.n_rows[tile]; r++)
        memcpy(emulated.rows[tile][r], (const uint8_t *)from + r * stride,
               emulated.row_bytes[tile]);
}

static inline void emulated_stored(int tile, void *to, size_t stride)
{
    for (size_t r = 0; r < emulated.n_rows[tile]; r++)
        memcpy((uint8_t *)to + r * stride, emulated.rows[tile][r], emulated.row_bytes[tile]);
}

/* Dword n of row m of `to` += the products of the four bytes in dword k of row m of `a` and in
 * dword n of row k of `b`, for all k. */
static inline void emulated_multiply(int to, int a, int b, int a_is_signed)
{
    const size_t n_k = emulated.row_bytes[a] / 4u;
    if (n_k != emulated.n_rows[b] || emulated.n_rows[to] != emulated.n_rows[a] ||
        emulated.row_bytes[to] != emulated.row_bytes[b])
        abort(); /* the instruction would fault */
    for (size_t m = 0; m < emulated.n_rows[to]; m++)
        for (size_t n = 0; n < emulated.row_bytes[to] / 4u; n++) {
            int32_t sum;
            memcpy(&sum, &emulated.rows[to][m][4 * n], sizeof sum);
            for (size_t i = 0; i < 4 * n_k; i++) {
                const uint8_t x = emulated.rows[a][m][i];
                const uint8_t y = emulated.rows[b][i / 4][4 * n + i % 4];
                sum += a_is_signed ? (int8_t)x * y : x * (int8_t)y;
            }
            memcpy(&emulated.rows[to][m][4 * n], &sum, sizeof sum);
        }
}

static inline void emulated_dpbsud(int to, int a, int b)
{
    emulated_multiply(to, a, b, 1);
}

static inline void emulated_dpbusd(int to, int a, int b)
{
    emulated_multiply(to, a, b, 0);
}

#endif
