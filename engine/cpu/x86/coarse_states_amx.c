/*
 * coarse_bound_states for AMX; coarse_ref.c is the specification.
 *
 * The codes of 16 rows are the first operand of a tile product: the low nibbles of a line are 64
 * columns and fill one row of an AMX tile, and so do the high nibbles. The hidden states are the
 * second operand, in two planes of high and low bytes. Four tile products per block yield two AMX
 * tiles of exact integer sums, which are combined, multiplied with the step of the block
 * (coarse_mat.steps) and summed as floats.
 *
 * A panel is four AMX tiles of rows. They share the four AMX tiles of hidden states of a block,
 * which therefore pass through the first-level cache once per panel. An item of the computation is
 * one AMX tile of rows times one block of columns. Between the four products of an item, the code
 * unpacks the item after the next and adds the sums of the previous item, a quarter at a time. So
 * stores reach the cache before a tile load needs them, and the tile unit does not wait.
 */
#include "engine/cpu/x86/amx_tile.h"
#include "engine/cpu/x86/coarse_states_avx512.h"
#include "engine/cpu/x86/kernels_x86.h"

#define PANEL_TILES 4
#define ROWS (PANEL_TILES * SIDE)
#define QUARTER (SIDE / 4) /* rows of a tile between two products of an item */
#define ITEMS_AHEAD 2
#define RING 4 /* unpacked items in the workspace: a power of two above ITEMS_AHEAD */
_Static_assert(QUARTER == PANEL_TILES, "a quarter prefetches one line of each of the streams");

struct workspace {
    _Alignas(64) uint8_t codes[RING][2 * TILE_BYTES]; /* low nibbles, then high ones */
    _Alignas(64) int32_t sums[2][2][SIDE][SIDE];      /* of two items: high plane, low plane */
    _Alignas(64) float steps[ROWS][STEP_BLOCKS];      /* of STEP_BLOCKS blocks */
    __m512 product[ROWS];                             /* lanes are hidden states */
};

/* A panel of n_rows rows in n_tiles AMX tiles. The next panel, at `ahead`, is prefetched in
 * PANEL_TILES streams, each of SIDE rows. */
struct panel {
    const uint8_t *lines;
    size_t row_bytes, n_rows, n_tiles;
    uintptr_t ahead;
};

/* Unpack a quarter of the rows of an item. Rows past n_rows are zeros. Also prefetch one line of
 * each stream. */
BN_FORCE_INLINE void unpack_quarter(const struct panel *p, size_t item, size_t quarter,
                                    uint8_t *out)
{
    const __m512i nibble = _mm512_set1_epi8(15);
    const size_t row0 = item % p->n_tiles * SIDE;
    const uint8_t *line = p->lines + row0 * p->row_bytes + item / p->n_tiles * LINE_BYTES;
    const uintptr_t ahead = p->ahead + (4 * item + quarter) * LINE_BYTES;
#pragma GCC unroll 4
    for (size_t i = 0; i < QUARTER; i++) {
        const size_t r = quarter * QUARTER + i;
        const bool exists = p->n_rows == ROWS || row0 + r < p->n_rows;
        const __m512i v =
            exists ? _mm512_load_si512(line + r * p->row_bytes) : _mm512_setzero_si512();
        _mm512_store_si512(out + r * 64, _mm512_and_si512(v, nibble));
        _mm512_store_si512(out + TILE_BYTES + r * 64,
                           _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble));
        _mm_prefetch((const char *)(ahead + i * SIDE * p->row_bytes), _MM_HINT_T1);
    }
}

/* Multiply a quarter of the sums of an item with their steps and add them to the products. `fixes`
 * is coarse_states.fix, the part of the sums that is the same for all rows. */
BN_FORCE_INLINE void add_quarter(struct workspace *s, size_t n_tiles, const int32_t *fixes,
                                 size_t item, size_t quarter)
{
    const size_t block = item / n_tiles, row0 = item % n_tiles * SIDE;
    const __m512i fix = _mm512_load_si512(fixes + block * COARSE_STATES);
#pragma GCC unroll 4
    for (size_t i = 0; i < QUARTER; i++) {
        const size_t r = quarter * QUARTER + i;
        s->product[row0 + r] =
            add_block(s->product[row0 + r], _mm512_load_si512(s->sums[item & 1][0][r]),
                      _mm512_load_si512(s->sums[item & 1][1][r]), fix,
                      s->steps[row0 + r][block % STEP_BLOCKS]);
    }
}

/* One quarter of the work between the tile products of an item. */
BN_FORCE_INLINE void unpack_and_add(const struct panel *p, struct workspace *s,
                                    const int32_t *fixes, size_t item, size_t n_items,
                                    size_t quarter)
{
    const size_t next = item + ITEMS_AHEAD;
    if (next < n_items)
        unpack_quarter(p, next, quarter, s->codes[next % RING]);
    if (item > 0)
        add_quarter(s, p->n_tiles, fixes, item - 1, quarter);
    compiler_barrier();
}

/* Multiply one item and store its sums. AMX tiles 4 and 5 must hold the high bytes of the hidden
 * states of the block (columns 0 .. 63 and 64 .. 127), tiles 6 and 7 twice the low bytes. */
BN_FORCE_INLINE void multiply_item(const struct panel *p, struct workspace *s, const int32_t *fixes,
                                   size_t item, size_t n_items)
{
    const uint8_t *codes = s->codes[item % RING];
    compiler_barrier();
    _tile_zero(0);
    _tile_zero(1);
    _tile_loadd(2, codes, 64);
    _tile_dpbusd(0, 2, 4);
    unpack_and_add(p, s, fixes, item, n_items, 0);
    _tile_dpbusd(1, 2, 6);
    unpack_and_add(p, s, fixes, item, n_items, 1);
    _tile_loadd(3, codes + TILE_BYTES, 64);
    _tile_dpbusd(0, 3, 5);
    unpack_and_add(p, s, fixes, item, n_items, 2);
    _tile_dpbusd(1, 3, 7);
    unpack_and_add(p, s, fixes, item, n_items, 3);
    _tile_stored(0, s->sums[item & 1][0], sizeof s->sums[0][0][0]);
    _tile_stored(1, s->sums[item & 1][1], sizeof s->sums[0][0][0]);
    compiler_barrier();
}

/* Call this before the sums of `item` are added. If it is the first item of STEP_BLOCKS blocks,
 * their steps are converted to F32. Rows past n_rows get those of the first row. */
BN_FORCE_INLINE void widen_for_item(const struct coarse_mat *m, size_t row, const struct panel *p,
                                    size_t item, struct workspace *s)
{
    if (item % (p->n_tiles * STEP_BLOCKS) != 0)
        return;
    for (size_t r = 0; r < ROWS; r++)
        widen_steps(m->steps + (row + (r < p->n_rows ? r : 0)) * m->step_stride, item / p->n_tiles,
                    m->n_blocks, s->steps[r]);
}

/* Set s->product of n_rows (at most ROWS) rows from `row` on. */
BN_FORCE_INLINE void multiply_panel(const struct coarse_mat *m, size_t row, size_t n_rows,
                                    const struct coarse_states *g, struct workspace *s)
{
    const size_t row_bytes = m->n_blocks * LINE_BYTES;
    const size_t n_tiles = (n_rows + SIDE - 1) / SIDE, n_items = m->n_blocks * n_tiles;
    const uint8_t *lines = m->lines + row * row_bytes;
    const struct panel p = {lines, row_bytes, n_rows, n_tiles, (uintptr_t)lines + ROWS * row_bytes};
    for (size_t r = 0; r < ROWS; r++)
        s->product[r] = _mm512_setzero_ps();
    for (size_t i = 0; i < ITEMS_AHEAD && i < n_items; i++)
        for (size_t quarter = 0; quarter < 4; quarter++)
            unpack_quarter(&p, i, quarter, s->codes[i]);
    for (size_t b = 0, item = 0; b < m->n_blocks; b++) {
        const int8_t *x = g->x + b * 4 * TILE_BYTES; /* four AMX tiles of hidden states per block */
        _tile_loadd(4, x, 64);
        _tile_loadd(5, x + TILE_BYTES, 64);
        _tile_loadd(6, x + 2 * TILE_BYTES, 64);
        _tile_loadd(7, x + 3 * TILE_BYTES, 64);
        for (size_t t = 0; t < n_tiles; t++, item++) {
            if (item > 0)
                widen_for_item(m, row, &p, item - 1, s);
            multiply_item(&p, s, g->fix, item, n_items);
        }
    }
    widen_for_item(m, row, &p, n_items - 1, s);
    for (size_t quarter = 0; quarter < 4; quarter++)
        add_quarter(s, n_tiles, g->fix, n_items - 1, quarter);
}

void coarse_bound_states_amx(const struct coarse_mat *m, size_t row0, size_t row1,
                             const struct coarse_states *g, float *const *bounds)
{
    struct workspace s;
    configure_tiles();
    for (size_t r = row0; r < row1; r += ROWS) {
        const size_t n = row1 - r < ROWS ? row1 - r : ROWS;
        if (n == ROWS) /* a constant: the inlined code has no tests for missing rows */
            multiply_panel(m, r, ROWS, g, &s);
        else
            multiply_panel(m, r, n, g, &s);
        for (size_t t = 0; t < n; t += SIDE)
            finish_rows(m, r + t, n - t < SIDE ? n - t : SIDE, g, s.product + t, bounds,
                        r + t - row0);
    }
    _tile_release();
}
