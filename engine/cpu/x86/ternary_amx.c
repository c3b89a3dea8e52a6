/*
 * pack_token, unpack_rows and ternary_matmul for AMX, for passes of more than 16 tokens: AMX tiles
 * of 16 tokens x 64 columns of signed activations times AMX tiles of 64 columns x 16 rows of
 * unsigned codes.
 *
 * Codes are the second operand, so that an AMX tile of sums is token-major like acc. The second
 * operand needs four columns of each of 16 rows in a 64-byte line. The dwords of 16 lines of R1-256
 * (see ternary_ref.c) are transposed before the fields are separated: one transposition serves four
 * AMX tiles. A panel of rows is unpacked once for all tokens and stays in the second-level cache.
 * Two tiles of tokens times two tiles of rows are four products for four loads.
 */
#include "engine/base/size.h"
#include "engine/cpu/x86/amx_tile.h"
#include "engine/cpu/x86/kernels_x86.h"

/* AMX tile s of a pack of 16 tokens has columns 64 s .. 64 s + 63; a token is one of its rows. */
void pack_token_amx(const int8_t *q, size_t n_lines, size_t t, int8_t *packed)
{
    int8_t *at = packed + t / SIDE * SIDE * n_lines * LINE_COLS + t % SIDE * 64;
    for (size_t s = 0; s < n_lines * STEPS_PER_LINE; s++)
        _mm512_store_si512(at + s * TILE_BYTES, _mm512_load_si512(q + s * 64));
}

/* Unpack one line of n_rows (1 .. SIDE) rows to four AMX tiles. Rows past n_rows are zeros. */
BN_FORCE_INLINE void unpack_line(const uint8_t *line, size_t row_bytes, size_t n_rows, uint8_t *out)
{
    const __m512i mask = _mm512_set1_epi8(3);
    __m512i v[SIDE];
#pragma GCC unroll 16
    for (size_t r = 0; r < SIDE; r++) {
        const uint8_t *at = line + r * row_bytes;
        v[r] = r < n_rows ? _mm512_loadu_si512(at) : _mm512_setzero_si512();
        /* Prefetch the same line of the next 16 rows while these are unpacked. */
        _mm_prefetch((const char *)((uintptr_t)at + SIDE * row_bytes), _MM_HINT_T0);
    }
    transpose(v);
#pragma GCC unroll 16
    for (size_t d = 0; d < SIDE; d++) {
        uint8_t *at = out + d * 64;
        _mm512_store_si512(at, _mm512_and_si512(v[d], mask));
        _mm512_store_si512(at + TILE_BYTES, _mm512_and_si512(_mm512_srli_epi32(v[d], 2), mask));
        _mm512_store_si512(at + 2 * TILE_BYTES, _mm512_and_si512(_mm512_srli_epi32(v[d], 4), mask));
        _mm512_store_si512(at + 3 * TILE_BYTES, _mm512_and_si512(_mm512_srli_epi32(v[d], 6), mask));
    }
}

void unpack_rows_amx(const struct ternary_mat *w, size_t row0, size_t row1, uint8_t *panel)
{
    const size_t row_bytes = w->n_lines * LINE_BYTES;
    for (size_t r = row0; r < row1; r += SIDE) {
        const uint8_t *row = w->lines + r * row_bytes;
        for (size_t l = 0; l < w->n_lines; l++, panel += STEPS_PER_LINE * TILE_BYTES)
            if (row1 - r >= SIDE)
                unpack_line(row + l * LINE_BYTES, row_bytes, SIDE, panel);
            else
                unpack_line(row + l * LINE_BYTES, row_bytes, row1 - r, panel);
    }
}

/* The memory that will receive the results. It is prefetched, one token (32 rows: two cache lines)
 * per step, since stores that miss the cache would delay the tile loads that follow. */
struct out_lines {
    uintptr_t at; /* 0: no address */
    size_t token_bytes, n_tokens;
};

BN_FORCE_INLINE void prefetch_out(struct out_lines out, size_t t)
{
    const uintptr_t at = out.at + t * out.token_bytes;
    __builtin_prefetch((const void *)at, 1);
    __builtin_prefetch((const void *)(at + 64), 1);
}

/* A step: add the products of 64 columns to the sums in AMX tiles 0 .. 3. The arguments are those
 * of multiply_tiles; stride is the distance to the next 16 tokens or rows. */
BN_FORCE_INLINE void multiply_step(const int8_t *a, const uint8_t *b, size_t stride, int n_a,
                                   int n_b)
{
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbsud(0, 4, 6);
    if (n_b > 1) {
        _tile_loadd(7, b + stride, 64);
        _tile_dpbsud(1, 4, 7);
    }
    if (n_a > 1) {
        _tile_loadd(5, a + stride, 64);
        _tile_dpbsud(2, 5, 6);
    }
    if (n_a > 1 && n_b > 1)
        _tile_dpbsud(3, 5, 7);
}

/* Sums of 16 n_a tokens and 16 n_b rows (n_a and n_b are 1 or 2). a and b point to AMX tiles of
 * tokens and of rows. The next tile in memory has the next 64 columns; the tile n_steps further has
 * the next 16 tokens or rows. */
BN_FORCE_INLINE void multiply_tiles(const int8_t *a, const uint8_t *b, size_t n_steps, int n_a,
                                    int n_b, int32_t sums[2 * SIDE][2 * SIDE], struct out_lines out)
{
    const size_t n_fetch = out.at == 0 ? 0 : n_steps < out.n_tokens ? n_steps : out.n_tokens;
    const size_t stride = n_steps * TILE_BYTES;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    size_t s = 0;
    for (; s < n_fetch; s++, a += TILE_BYTES, b += TILE_BYTES) {
        prefetch_out(out, s);
        multiply_step(a, b, stride, n_a, n_b);
    }
    for (; s < n_steps; s++, a += TILE_BYTES, b += TILE_BYTES)
        multiply_step(a, b, stride, n_a, n_b);
    _tile_stored(0, sums[0], sizeof sums[0]);
    if (n_b > 1)
        _tile_stored(1, sums[0] + SIDE, sizeof sums[0]);
    if (n_a > 1)
        _tile_stored(2, sums[SIDE], sizeof sums[0]);
    if (n_a > 1 && n_b > 1)
        _tile_stored(3, sums[SIDE] + SIDE, sizeof sums[0]);
    compiler_barrier();
}

/* Store sums [token][row], minus the sums of q, to acc. */
BN_FORCE_INLINE void store_sums(int32_t sums[2 * SIDE][2 * SIDE], size_t n_rows, size_t n_tokens,
                                const int32_t *q_sums, int32_t *acc, size_t acc_stride)
{
    const uint32_t valid = n_rows < 2 * SIDE ? (1u << n_rows) - 1 : ~0u;
    for (size_t t = 0; t < n_tokens; t++, acc += acc_stride) {
        const __m512i q_sum = _mm512_set1_epi32(q_sums[t]);
        const __m512i lo = _mm512_sub_epi32(_mm512_load_si512(sums[t]), q_sum);
        const __m512i hi = _mm512_sub_epi32(_mm512_load_si512(sums[t] + SIDE), q_sum);
        _mm512_mask_storeu_epi32(acc, (__mmask16)valid, lo);
        _mm512_mask_storeu_epi32(acc + SIDE, (__mmask16)(valid >> SIDE), hi);
    }
}

void ternary_matmul_amx(const struct ternary_mat *w, size_t row0, size_t row1,
                        const struct ternary_batch *batch)
{
    const size_t n_steps = w->n_lines * STEPS_PER_LINE;
    /* 0: store_sums also loads sums that are not computed, and does not store them. */
    _Alignas(64) int32_t sums[2 * SIDE][2 * SIDE] = {0};
    configure_tiles();
    for (size_t t = 0; t < batch->n_tokens; t += 2 * SIDE) {
        const size_t n_tokens = size_min(batch->n_tokens - t, 2 * SIDE);
        const int8_t *a = batch->q + t * w->n_lines * LINE_COLS;
        for (size_t r = 0; r < row1 - row0; r += 2 * SIDE) {
            const size_t n_rows = size_min(row1 - row0 - r, 2 * SIDE);
            const struct out_lines out = {
                batch->out ? (uintptr_t)(batch->out + t * batch->out_stride + r) : 0,
                batch->out_stride * sizeof *batch->out, n_tokens};
            const uint8_t *b = batch->panel + r * w->n_lines * LINE_COLS;
            if (n_tokens > SIDE && n_rows > SIDE)
                multiply_tiles(a, b, n_steps, 2, 2, sums, out);
            else if (n_tokens > SIDE)
                multiply_tiles(a, b, n_steps, 2, 1, sums, out);
            else if (n_rows > SIDE)
                multiply_tiles(a, b, n_steps, 1, 2, sums, out);
            else
                multiply_tiles(a, b, n_steps, 1, 1, sums, out);
            store_sums(sums, n_rows, n_tokens, batch->q_sums + t,
                       batch->acc + t * batch->acc_stride + r, batch->acc_stride);
        }
    }
    _tile_release();
}
