/*
 * Ternary products of at most 16 tokens with AMX: a whole tile of tokens for the price of one read
 * of the weights, as batched decoding and verification want it.
 *
 * Here codes are the first operand: a field of a line of R1-256 is 64 columns of a row as they
 * stand, so that unpacking is a shift and a mask and nothing is transposed. Activations are the
 * second operand, four columns of each of 16 tokens in a line, which each thread makes for itself
 * once a layer input: a few microseconds, where threads that packed tokens into the same lines
 * would wait for each other. The sums come out row-major and are transposed, once for all columns.
 *
 * One line of 32 rows is unpacked while the one before it is multiplied; both lie in the
 * first-level cache. Tiles are configured and released within one call.
 */
#include "engine/cpu/x86/amx_tile.h"
#include "engine/cpu/x86/kernels_x86.h"

#define BLOCK_ROWS (2 * SIDE)
#define FIELD_BYTES (2 * TILE_BYTES) /* one field of a line of BLOCK_ROWS rows: two tiles */
#define GROUP_ROWS 8                 /* rows unpacked between two products */

/* The four fields of one line of rows r0 .. r0 + GROUP_ROWS - 1 of a block to its tiles. Rows from
 * n_rows on are zeros. ahead: of the next block as many lines as are unpacked, one after the other,
 * which is a stream to the hardware where lines a row apart are none. To the second level: it is
 * long until they are wanted. */
BN_FORCE_INLINE void unpack_group(const uint8_t *line, size_t row_bytes, size_t r0, size_t n_rows,
                                  uintptr_t ahead, uint8_t *out)
{
    const __m512i mask = _mm512_set1_epi8(3);
    const uint8_t *from = line + r0 * row_bytes;
#pragma GCC unroll 8
    for (size_t r = r0; r < r0 + GROUP_ROWS; r++, from += row_bytes) {
        const __m512i v = r < n_rows ? _mm512_loadu_si512(from) : _mm512_setzero_si512();
        uint8_t *to = out + r * 64;
        _mm512_store_si512(to, _mm512_and_si512(v, mask));
        _mm512_store_si512(to + FIELD_BYTES, _mm512_and_si512(_mm512_srli_epi32(v, 2), mask));
        _mm512_store_si512(to + 2 * FIELD_BYTES, _mm512_and_si512(_mm512_srli_epi32(v, 4), mask));
        _mm512_store_si512(to + 3 * FIELD_BYTES, _mm512_and_si512(_mm512_srli_epi32(v, 6), mask));
        _mm_prefetch((const char *)(ahead + r * LINE_BYTES), _MM_HINT_T1);
    }
}

/* A field of an unpacked line times its tile of activations, for both tiles of rows. */
BN_FORCE_INLINE void multiply_first(const uint8_t *codes, const int8_t *q)
{
    order_memory();
    _tile_loadd(4, q, 64);
    _tile_loadd(5, codes, 64);
    _tile_dpbusd(0, 5, 4);
}

BN_FORCE_INLINE void multiply_second(const uint8_t *codes)
{
    _tile_loadd(6, codes + TILE_BYTES, 64);
    _tile_dpbusd(1, 6, 4);
}

/* Sums of n_rows rows (the whole block where the caller says BLOCK_ROWS) and 16 tokens. */
BN_FORCE_INLINE void multiply_block(const uint8_t *row, size_t n_lines, size_t n_rows,
                                    const int8_t *q, int32_t sums[BLOCK_ROWS][SIDE])
{
    _Alignas(64) uint8_t codes[2][STEPS_A_LINE * FIELD_BYTES];
    const size_t row_bytes = n_lines * LINE_BYTES;
    uintptr_t ahead = (uintptr_t)row + BLOCK_ROWS * row_bytes;
    _tile_zero(0);
    _tile_zero(1);
    for (size_t g = 0; g < BLOCK_ROWS; g += GROUP_ROWS)
        unpack_group(row, row_bytes, g, n_rows, ahead, codes[0]);
    for (size_t l = 1; l < n_lines; l++, q += STEPS_A_LINE * TILE_BYTES) {
        const uint8_t *now = codes[(l - 1) & 1];
        ahead += BLOCK_ROWS * LINE_BYTES;
#pragma GCC unroll 4
        for (size_t f = 0; f < STEPS_A_LINE; f++) {
            multiply_first(now + f * FIELD_BYTES, q + f * TILE_BYTES);
            unpack_group(row + l * LINE_BYTES, row_bytes, f * GROUP_ROWS, n_rows, ahead,
                         codes[l & 1]);
            multiply_second(now + f * FIELD_BYTES);
        }
    }
#pragma GCC unroll 4
    for (size_t f = 0; f < STEPS_A_LINE; f++) {
        multiply_first(codes[(n_lines - 1) & 1] + f * FIELD_BYTES, q + f * TILE_BYTES);
        multiply_second(codes[(n_lines - 1) & 1] + f * FIELD_BYTES);
    }
    _tile_stored(0, sums[0], sizeof sums[0]);
    _tile_stored(1, sums[SIDE], sizeof sums[0]);
    order_memory();
}
_Static_assert(STEPS_A_LINE *GROUP_ROWS == BLOCK_ROWS, "a group between the products of a field");

/* Rows of one tile, less q_sum, to acc, token-major. */
BN_FORCE_INLINE void store_tile(int32_t sums[SIDE][SIDE], size_t n_rows,
                                const struct ternary_batch *batch, int32_t *acc)
{
    const __mmask16 wanted = n_rows < SIDE ? (__mmask16)((1u << n_rows) - 1) : (__mmask16)~0u;
    __m512i v[SIDE];
#pragma GCC unroll 16
    for (size_t r = 0; r < SIDE; r++)
        v[r] = _mm512_load_si512(sums[r]);
    transpose(v);
#pragma GCC unroll 16
    for (size_t t = 0; t < SIDE; t++)
        if (t < batch->n_tokens)
            _mm512_mask_storeu_epi32(acc + t * batch->acc_stride, wanted,
                                     _mm512_sub_epi32(v[t], _mm512_set1_epi32(batch->q_sums[t])));
}

void ternary_matmul_amx_few(const struct ternary_mat *w, size_t row0, size_t row1,
                            const struct ternary_batch *batch)
{
    _Alignas(64) int32_t sums[BLOCK_ROWS][SIDE];
    configure();
    for (size_t r = row0; r < row1; r += BLOCK_ROWS) {
        const uint8_t *row = w->lines + r * w->n_lines * LINE_BYTES;
        int32_t *acc = batch->acc + (r - row0);
        if (row1 - r >= BLOCK_ROWS)
            multiply_block(row, w->n_lines, BLOCK_ROWS, batch->q, sums);
        else
            multiply_block(row, w->n_lines, row1 - r, batch->q, sums);
        store_tile(sums, row1 - r, batch, acc);
        if (row1 - r > SIDE)
            store_tile(sums + SIDE, row1 - r - SIDE, batch, acc + SIDE);
    }
    _tile_release();
}
