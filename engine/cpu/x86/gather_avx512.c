/*
 * gather_tokens and coarse_gather for AVX-512: interleave up to 16 vectors of bytes. Each 64 bytes
 * of the result have four consecutive bytes of each vector. Kernels whose lanes are tokens or
 * hidden states need this layout.
 */
#include "engine/cpu/x86/kernels_x86.h"
#include "engine/cpu/x86/transpose_avx512.h"

/* Interleave 64 bytes of each of n vectors, from byte `at` on; zeros for vectors past n. out gets
 * 16 times 64 bytes. */
BN_FORCE_INLINE void gather_square(const int8_t *const *x, size_t n, size_t at, int8_t *out)
{
    __m512i v[SIDE];
#pragma GCC unroll 16
    for (size_t i = 0; i < SIDE; i++)
        v[i] = i < n ? _mm512_load_si512(x[i] + at) : _mm512_setzero_si512();
    transpose(v);
#pragma GCC unroll 16
    for (size_t i = 0; i < SIDE; i++)
        _mm512_store_si512(out + i * 64, v[i]);
}

const int8_t *gather_tokens_avx512(const int8_t *packed, size_t n_lines, size_t n_tokens,
                                   int8_t *own)
{
    const int8_t *x[SIDE];
    for (size_t t = 0; t < n_tokens; t++)
        x[t] = packed + t * n_lines * LINE_COLS;
    for (size_t at = 0; at < n_lines * LINE_COLS; at += 64)
        gather_square(x, n_tokens, at, own + SIDE * at);
    return own;
}

void coarse_gather_avx512(const int8_t *const *x, size_t n, size_t n_blocks, int8_t *out)
{
    for (size_t at = 0; at < n_blocks * 2 * COARSE_COLS; at += 64) /* two planes of bytes */
        gather_square(x, n, at, out + SIDE * at);
}
