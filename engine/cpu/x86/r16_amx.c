/*
 * r16_matmul for AMX: AMX tiles of 16 tokens x 64 columns of signed activations times AMX tiles
 * of 64 columns x 16 rows of unsigned codes.
 *
 * Unpacked lines of R16 already have the layout of the second operand: each 64 bytes hold four
 * columns of 16 rows. A block of 32 columns fills half of the columns of a tile, a block of 128
 * columns takes two products. Each block of a span has its own tile of sums, so that the products
 * of a block do not wait until the sums of the previous block are stored.
 */
#include "engine/base/size.h"
#include "engine/cpu/x86/amx_tile.h"
#include "engine/cpu/x86/kernels_x86.h"

#include <string.h>

#define SPAN_BLOCKS 4   /* most blocks of a span: 128 / 32 */
#define A_TILE 4        /* activations */
#define B_TILE 5        /* codes */
#define COLUMN_BYTES 16 /* unpacked bytes of a column of a row group */

/* Tiles 0 .. 3: sums. A_TILE and B_TILE: k_cols columns. */
BN_FORCE_INLINE void configure_for(size_t k_cols)
{
    struct tile_config c = {.palette = 1};
    for (size_t i = 0; i < 6; i++) {
        c.row_bytes[i] = 64;
        c.n_rows[i] = SIDE;
    }
    c.row_bytes[A_TILE] = (uint16_t)k_cols;
    c.n_rows[B_TILE] = (uint8_t)(k_cols / 4);
    /* gcc's intrinsic declares only 8 bytes of c as read; the compiler would drop the other
     * stores. */
    __asm__ volatile("" : : "m"(c));
    _tile_loadconfig(&c);
}

/* Compute the sums of one block in a tile, store them to `sums`, and advance q and codes to the
 * next block: these are variables of multiply_span. A macro, because the intrinsics need a constant
 * tile number. */
#define MULTIPLY_BLOCK(tile)                                                                       \
    do {                                                                                           \
        _tile_zero(tile);                                                                          \
        for (size_t k = 0; k < block_cols; k += k_cols) {                                          \
            _tile_loadd(A_TILE, q + k, q_stride);                                                  \
            _tile_loadd(B_TILE, codes + k * COLUMN_BYTES, 64);                                     \
            _tile_dpbsud(tile, A_TILE, B_TILE);                                                    \
        }                                                                                          \
        _tile_stored(tile, sums[tile], sizeof sums[tile][0]);                                      \
        q += block_cols;                                                                           \
        codes += block_cols * COLUMN_BYTES;                                                        \
    } while (0)

/* The sums of the blocks of one span, [block][token][row]. span_blocks is 1, 2 or 4. */
BN_FORCE_INLINE void multiply_span(const int8_t *q, size_t q_stride, const uint8_t *codes,
                                   size_t block_cols, size_t span_blocks,
                                   int32_t sums[SPAN_BLOCKS][SIDE][SIDE])
{
    const size_t k_cols = size_min(block_cols, 64);
    MULTIPLY_BLOCK(0);
    if (span_blocks > 1)
        MULTIPLY_BLOCK(1);
    if (span_blocks > 2) {
        MULTIPLY_BLOCK(2);
        MULTIPLY_BLOCK(3);
    }
    compiler_barrier();
}

/* One row group times up to 16 tokens, from token t0 on. The row group has the number `group` in w
 * and panel_group in the panel and in y. */
BN_FORCE_INLINE void multiply_tokens(const struct r16_mat *w, size_t group, size_t panel_group,
                                     const struct r16_batch *batch, size_t t0)
{
    _Alignas(64) int32_t sums[SPAN_BLOCKS][SIDE][SIDE];
    const size_t n_spans = w->n_lines * R16_LINE_COLS / w->span_cols;
    const size_t span_blocks = w->span_cols / batch->block_cols;
    const size_t n_tokens = size_min(batch->n_tokens - t0, SIDE);
    const int8_t *q = batch->q + t0 * batch->q_stride;
    const uint8_t *codes = batch->panel + panel_group * w->n_lines * R16_LINE_COLS * COLUMN_BYTES;
    float *y = batch->y + t0 * batch->y_stride + panel_group * R16_ROWS;
    for (size_t span = 0; span < n_spans; span++) {
        const size_t col = span * w->span_cols, block0 = span * span_blocks;
        const uint16_t *scales = w->scales + (group * n_spans + span) * w->scale_step;
        const __m512 d = _mm512_cvtph_ps(_mm256_load_si256((const __m256i *)(const void *)scales));
        multiply_span(q + col, batch->q_stride, codes + col * COLUMN_BYTES, batch->block_cols,
                      span_blocks, sums);
        for (size_t t = 0; t < n_tokens; t++) {
            const float *units = batch->units + (t0 + t) * batch->block_stride + block0;
            const int32_t *q_sums = batch->q_sums + (t0 + t) * batch->block_stride + block0;
            __m512 g = _mm512_setzero_ps();
            for (size_t b = 0; b < span_blocks; b++) {
                const __m512i sum =
                    _mm512_sub_epi32(_mm512_load_si512(sums[b][t]), _mm512_set1_epi32(q_sums[b]));
                g = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(units[b]), g);
            }
            float *out = y + t * batch->y_stride;
            _mm512_storeu_ps(out, _mm512_fmadd_ps(g, d, _mm512_loadu_ps(out)));
        }
    }
}

void r16_matmul_amx(const struct r16_mat *w, size_t group0, size_t group1,
                    const struct r16_batch *batch)
{
    configure_for(size_min(batch->block_cols, 64));
    for (size_t g = group0; g < group1; g++)
        for (size_t t = 0; t < batch->n_tokens; t += SIDE)
            multiply_tokens(w, g, g - group0, batch, t);
    _tile_release();
}
