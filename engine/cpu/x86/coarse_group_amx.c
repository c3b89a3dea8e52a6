/*
 * The coarse plane of the head against up to 16 hidden states with AMX: the codes of 16 rows are
 * the first operand as they stand, 64 columns a nibble; hidden states are the second, in two planes
 * of bytes. Four products a block give two tiles of integers, exact, which are joined, scaled by
 * the row's step and summed as floats.
 *
 * A panel is four tiles of rows, which share a block's tiles of hidden states: these pass through
 * the first-level cache once a panel. A step is one block of one tile of rows. Between its products
 * the step after the next is unpacked and the sums of the one before are scaled, a quarter each:
 * stores have left for the cache when they are wanted as tiles, and the unit never waits.
 */
#include "engine/cpu/x86/amx_tile.h"
#include "engine/cpu/x86/coarse_group_avx512.h"
#include "engine/cpu/x86/kernels_x86.h"

#define PANEL_TILES 4
#define ROWS (PANEL_TILES * SIDE)
#define QUARTER (SIDE / 4)
#define STEPS_AHEAD 2
#define RING 4 /* steps whose codes have a place */
_Static_assert(QUARTER == PANEL_TILES, "a line of each part is fetched for each of a quarter");

struct workspace {
    _Alignas(64) uint8_t codes[RING][2 * TILE_BYTES]; /* low nibbles, then high ones */
    _Alignas(64) int32_t sums[2][2][SIDE][SIDE];      /* of a step: high plane, low plane */
    _Alignas(64) float steps[ROWS][GROUP_BLOCKS];     /* of the blocks at hand */
    __m512 product[ROWS];
};

/* Where the panel's rows are; of n_tiles tiles n_rows rows. The next panel is fetched from `ahead`
 * on, in as many parts as a quarter has rows. */
struct panel {
    const uint8_t *lines;
    size_t row_bytes, n_rows, n_tiles;
    uintptr_t ahead;
};

/* A quarter of a step's rows; rows that are not there are zeros. */
BN_FORCE_INLINE void unpack_quarter(const struct panel *p, size_t step, size_t quarter,
                                    uint8_t *out)
{
    const __m512i nibble = _mm512_set1_epi8(15);
    const size_t row0 = step % p->n_tiles * SIDE;
    const uint8_t *line = p->lines + row0 * p->row_bytes + step / p->n_tiles * LINE_BYTES;
    const uintptr_t ahead = p->ahead + (4 * step + quarter) * LINE_BYTES;
#pragma GCC unroll 4
    for (size_t i = 0; i < QUARTER; i++) {
        const size_t r = quarter * QUARTER + i;
        const bool is_there = p->n_rows == ROWS || row0 + r < p->n_rows;
        const __m512i v =
            is_there ? _mm512_load_si512(line + r * p->row_bytes) : _mm512_setzero_si512();
        _mm512_store_si512(out + r * 64, _mm512_and_si512(v, nibble));
        _mm512_store_si512(out + TILE_BYTES + r * 64,
                           _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble));
        _mm_prefetch((const char *)(ahead + i * SIDE * p->row_bytes), _MM_HINT_T1);
    }
}

/* A quarter of a step's sums to the products. */
BN_FORCE_INLINE void scale_quarter(struct workspace *s, size_t n_tiles, const int32_t *fixes,
                                   size_t step, size_t quarter)
{
    const size_t block = step / n_tiles, row0 = step % n_tiles * SIDE;
    const __m512i fix = _mm512_load_si512(fixes + block * COARSE_GROUP);
#pragma GCC unroll 4
    for (size_t i = 0; i < QUARTER; i++) {
        const size_t r = quarter * QUARTER + i;
        s->product[row0 + r] =
            add_block(s->product[row0 + r], _mm512_load_si512(s->sums[step & 1][0][r]),
                      _mm512_load_si512(s->sums[step & 1][1][r]), fix,
                      s->steps[row0 + r][block % GROUP_BLOCKS]);
    }
}

/* What is done between two products of a step. */
BN_FORCE_INLINE void between(const struct panel *p, struct workspace *s, const int32_t *fixes,
                             size_t step, size_t n_steps, size_t quarter)
{
    const size_t next = step + STEPS_AHEAD;
    if (next < n_steps)
        unpack_quarter(p, next, quarter, s->codes[next % RING]);
    if (step > 0)
        scale_quarter(s, p->n_tiles, fixes, step - 1, quarter);
    order_memory();
}

/* Tiles 4 .. 7 hold the block's hidden states. */
BN_FORCE_INLINE void multiply_step(const struct panel *p, struct workspace *s, const int32_t *fixes,
                                   size_t step, size_t n_steps)
{
    const uint8_t *codes = s->codes[step % RING];
    order_memory();
    _tile_zero(0);
    _tile_zero(1);
    _tile_loadd(2, codes, 64);
    _tile_dpbusd(0, 2, 4);
    between(p, s, fixes, step, n_steps, 0);
    _tile_dpbusd(1, 2, 6);
    between(p, s, fixes, step, n_steps, 1);
    _tile_loadd(3, codes + TILE_BYTES, 64);
    _tile_dpbusd(0, 3, 5);
    between(p, s, fixes, step, n_steps, 2);
    _tile_dpbusd(1, 3, 7);
    between(p, s, fixes, step, n_steps, 3);
    _tile_stored(0, s->sums[step & 1][0], sizeof s->sums[0][0][0]);
    _tile_stored(1, s->sums[step & 1][1], sizeof s->sums[0][0][0]);
    order_memory();
}

/* Before the sums of this step are scaled: the next GROUP_BLOCKS blocks' steps, where it is the
 * first of those. Rows that are not there have those of the first row. */
BN_FORCE_INLINE void widen_for(const struct coarse_mat *m, size_t row, const struct panel *p,
                               size_t step, struct workspace *s)
{
    if (step % (p->n_tiles * GROUP_BLOCKS) != 0)
        return;
    for (size_t r = 0; r < ROWS; r++)
        widen_steps(m->steps + (row + (r < p->n_rows ? r : 0)) * m->step_stride, step / p->n_tiles,
                    m->n_blocks, s->steps[r]);
}

BN_FORCE_INLINE void multiply_panel(const struct coarse_mat *m, size_t row, size_t n_rows,
                                    const struct coarse_group *g, struct workspace *s)
{
    const size_t row_bytes = m->n_blocks * LINE_BYTES;
    const size_t n_tiles = (n_rows + SIDE - 1) / SIDE, n_steps = m->n_blocks * n_tiles;
    const uint8_t *lines = m->lines + row * row_bytes;
    const struct panel p = {lines, row_bytes, n_rows, n_tiles, (uintptr_t)lines + ROWS * row_bytes};
    for (size_t r = 0; r < ROWS; r++)
        s->product[r] = _mm512_setzero_ps();
    for (size_t i = 0; i < STEPS_AHEAD && i < n_steps; i++)
        for (size_t quarter = 0; quarter < 4; quarter++)
            unpack_quarter(&p, i, quarter, s->codes[i]);
    for (size_t b = 0, step = 0; b < m->n_blocks; b++) {
        const int8_t *x = g->x + b * STEPS_A_LINE * TILE_BYTES;
        _tile_loadd(4, x, 64);
        _tile_loadd(5, x + TILE_BYTES, 64);
        _tile_loadd(6, x + 2 * TILE_BYTES, 64);
        _tile_loadd(7, x + 3 * TILE_BYTES, 64);
        for (size_t t = 0; t < n_tiles; t++, step++) {
            if (step > 0)
                widen_for(m, row, &p, step - 1, s);
            multiply_step(&p, s, g->fix, step, n_steps);
        }
    }
    widen_for(m, row, &p, n_steps - 1, s);
    for (size_t quarter = 0; quarter < 4; quarter++)
        scale_quarter(s, n_tiles, g->fix, n_steps - 1, quarter);
}

void coarse_bounds_amx(const struct coarse_mat *m, size_t row0, size_t row1,
                       const struct coarse_group *g, float *const *up)
{
    struct workspace s;
    configure();
    for (size_t r = row0; r < row1; r += ROWS) {
        const size_t n = row1 - r < ROWS ? row1 - r : ROWS;
        if (n == ROWS)
            multiply_panel(m, r, ROWS, g, &s);
        else
            multiply_panel(m, r, n, g, &s);
        for (size_t t = 0; t < n; t += SIDE)
            finish_rows(m, r + t, n - t < SIDE ? n - t : SIDE, g, s.product + t, up, r + t - row0);
    }
    _tile_release();
}
