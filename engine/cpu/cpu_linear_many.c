/*
 * Linear layers of several tokens. Loop order: a panel of rows outside, tiles of tokens inside, so
 * that each line of weights comes from memory, and is unpacked, once per pass and stays in a core's
 * own cache for all tokens. The integer sums of a tile are still in the cache when they are scaled
 * and stored, added or gated, in one step.
 */
#include "engine/cpu/cpu_linear_many.h"

#include "engine/base/size.h"
#include "engine/cpu/cpu_share.h"

/* Rows of a matrix that are multiplied with a tile of tokens after the other. */
struct panel {
    const struct weights *w;
    size_t row0, row1;
    const uint8_t *unpacked;
    const uint8_t *ahead; /* the lines of the panel that is read after it */
};

/* Consecutive tokens of the pass. */
struct tokens {
    size_t begin, n;
};

/* next: the first row of the panel after it. */
static struct panel open_panel(const struct lane *l, const struct weights *w, struct share rows,
                               size_t next, uint8_t *to)
{
    l->pass->gemm->unpack(&w->mat, rows.begin, rows.end, to);
    return (struct panel){.w = w,
                          .row0 = rows.begin,
                          .row1 = rows.end,
                          .unpacked = to,
                          .ahead = w->mat.lines + next * w->mat.n_lines * LINE_BYTES};
}

static size_t count_tiles(const struct lane *l)
{
    const size_t n = l->pass->gemm->tile_tokens;
    return (l->pass->n_tokens + n - 1) / n;
}

/* Tile i of n. Panels take them forth and back in turn, so that a panel begins with those that the
 * one before it left in the core's own cache. */
static struct tokens take_tokens(const struct lane *l, size_t i, size_t n, bool is_back)
{
    const size_t begin = (is_back ? n - 1 - i : i) * l->pass->gemm->tile_tokens;
    return (struct tokens){begin, size_min(l->pass->gemm->tile_tokens, l->pass->n_tokens - begin)};
}

/* acc (t.n, the way's panel_rows) = the panel's rows times the tokens. out: where what follows from
 * the sums will be stored, nowhere: NULL. */
static void multiply(const struct lane *l, const struct panel *p, struct tokens t, int32_t *acc,
                     struct rows out)
{
    const struct ternary_batch batch = {
        .q = l->q + t.begin * p->w->mat.n_lines * LINE_COLS,
        .q_sums = l->pass->b->scratch.q8_sum + t.begin,
        .panel = p->unpacked,
        .n_tokens = t.n,
        .acc = acc,
        .acc_stride = l->pass->gemm->panel_rows,
        .ahead = p->ahead,
        .out = out.at,
        .out_stride = out.stride,
    };
    l->pass->gemm->matmul(&p->w->mat, p->row0, p->row1, &batch);
}

/* The part of a panel's sums that belongs to a section; without rows if they do not meet. d (t.n)
 * is filled for it. */
static struct acc_tile section_tile(const struct lane *l, const struct panel *p,
                                    const struct section *s, struct tokens t, const int32_t *acc,
                                    float *d)
{
    const size_t begin = size_max(p->row0, s->row0);
    const size_t end = size_min(p->row1, s->row0 + s->n_rows);
    if (begin >= end)
        return (struct acc_tile){0};
    for (size_t i = 0; i < t.n; i++)
        d[i] = s->scale / l->pass->b->scratch.q8_s[t.begin + i];
    return (struct acc_tile){
        .acc = acc + (begin - p->row0),
        .acc_stride = l->pass->gemm->panel_rows,
        .n_tokens = t.n,
        .n_rows = end - begin,
        .d = d,
        .extra = s->extra,
        .bias = s->bias ? s->bias + (begin - s->row0) : NULL,
    };
}

void linear_many(struct lane *l, const struct weights *w, acc_out_fn out, struct rows y)
{
    const size_t n_tiles = count_tiles(l);
    bool is_back = false;
    float d[TILE_TOKENS];
    for (struct piece rows = {0};
         lane_take(l, w->mat.n_rows, ROW_UNIT, l->pass->gemm->panel_rows, &rows);
         is_back = !is_back) {
        const size_t r = rows.begin, end = rows.end;
        const struct panel p =
            open_panel(l, w, (struct share){r, end}, end < rows.of.end ? end : r, l->panel);
        for (size_t i = 0; i < n_tiles; i++) {
            const struct tokens t = take_tokens(l, i, n_tiles, is_back);
            float *const at = y.at + t.begin * y.stride;
            multiply(l, &p, t, l->acc, (struct rows){at + r, y.stride});
            for (size_t j = 0; j < w->n_sections; j++) {
                const struct section *s = &w->sections[j];
                const struct acc_tile a = section_tile(l, &p, s, t, l->acc, d);
                if (a.n_rows > 0)
                    out(&a, at + size_max(p.row0, s->row0), y.stride);
            }
        }
    }
}

void linear_many_gate(struct lane *l, const struct weights *w, acc_gate_fn act, struct rows y)
{
    const size_t n_ff = w->mat.n_rows / 2, half = l->pass->gemm->panel_rows / 2;
    int32_t *const up_acc = l->acc + half;
    uint8_t *const up_panel = l->panel + half * w->mat.n_lines * LINE_COLS;
    const size_t n_tiles = count_tiles(l);
    bool is_back = false;
    float d[2][TILE_TOKENS];
    for (struct piece rows = {0}; lane_take(l, n_ff, ROW_UNIT, half, &rows); is_back = !is_back) {
        const size_t r = rows.begin, end = rows.end;
        const struct panel gate = open_panel(l, w, (struct share){r, end}, n_ff + r, l->panel);
        const struct panel up = open_panel(l, w, (struct share){n_ff + r, n_ff + end},
                                           end < rows.of.end ? end : r, up_panel);
        for (size_t i = 0; i < n_tiles; i++) {
            const struct tokens t = take_tokens(l, i, n_tiles, is_back);
            float *const at = y.at + t.begin * y.stride + r;
            multiply(l, &gate, t, l->acc, (struct rows){at, y.stride});
            multiply(l, &up, t, up_acc, (struct rows){NULL, 0});
            const struct acc_tile g = section_tile(l, &gate, &w->sections[0], t, l->acc, d[0]);
            const struct acc_tile u = section_tile(l, &up, &w->sections[1], t, up_acc, d[1]);
            act(&g, &u, at, y.stride);
        }
    }
}
