/*
 * The input of a linear layer, and the layers of one token, whose rows are read once and waited
 * for; with several tokens cpu_linear_many.c takes over.
 */
#include "engine/cpu/cpu_linear.h"

#include "engine/base/relax.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_linear_many.h"
#include "engine/cpu/cpu_pack.h"
#include "engine/cpu/cpu_share.h"

#include <string.h>

/* Rows at a time for one token: many, since the product reads four streams a quarter apart. */
#define MATVEC_ROWS 4096
#define MATVEC_STREAMS 4
#define FETCH_BYTES 2560 /* of each stream: as far as the product itself fetches ahead */
#define COLS_UNIT 4      /* columns that are summed together */
#define INPUT_TOKENS 8   /* of several, quantised by the lane that takes them */
_Static_assert(MATVEC_ROWS <= TILE_TOKENS * PANEL_ROWS, "acc and y hold them");

/* One token is quantised by every lane for itself, which is cheaper than waiting for another;
 * several are shared out. */
static bool is_alone(const struct lane *l)
{
    return l->pass->plan.linear == LINEAR_MATVEC;
}

/* One token, normed with w unless that is NULL, to l->q8; `next` (NULL: none) is quantised after
 * it. */
static struct act_scale quantise_token(const struct lane *l, const struct weights *to,
                                       const float *x, const float *w, const float *next)
{
    const struct backend *b = l->pass->b;
    struct act_scale scale;
    b->k.quantise(
        &(struct act_in){
            .x = x, .w = w, .n = to->n_cols, .eps = b->model->hp.rms_eps, .ahead = next},
        l->q8, &scale);
    return scale;
}

static void quantise_many(struct lane *l, const struct weights *to, struct rows x, const float *w)
{
    const struct scratch *s = &l->pass->b->scratch;
    const size_t n_lines = to->mat.n_lines;
    for (struct piece p = {0}; lane_take(l, l->pass->n_tokens, 1, INPUT_TOKENS, &p);)
        for (size_t t = p.begin; t < p.end; t++) {
            const float *row = x.at + t * x.stride;
            const struct act_scale scale =
                quantise_token(l, to, row, w, t + 1 < p.of.end ? row + x.stride : NULL);
            if (to->cols.n_cols)
                pack_file_order(l->q8, n_lines);
            l->pass->gemm->pack(l->q8, n_lines, t, s->q8);
            s->q8_s[t] = scale.s;
            s->q8_sum[t] = scale.q_sum;
        }
    lane_sync(l);
    l->q = l->pass->gemm->gather(s->q8, n_lines, l->pass->n_tokens, (int8_t *)l->panel);
}

void linear_input(struct lane *l, const struct weights *to, struct rows x, const float *w)
{
    if (!is_alone(l)) {
        quantise_many(l, to, x, w);
        return;
    }
    const struct act_scale scale = quantise_token(l, to, x.at, w, NULL);
    l->q8_s = scale.s;
    l->q8_sum = scale.q_sum;
}

/* The sums of rows row0 .. row1 - 1 of one token in l->acc, to F32 in y: scale, extra scale and
 * bias of the section that each row belongs to. */
static void scale_rows(const struct lane *l, const struct weights *w, struct share rows, float *y)
{
    const struct backend *b = l->pass->b;
    for (size_t i = 0; i < w->n_sections; i++) {
        const struct section *s = &w->sections[i];
        const size_t begin = size_max(rows.begin, s->row0);
        const size_t end = size_min(rows.end, s->row0 + s->n_rows);
        if (begin >= end)
            continue;
        float *out = y + (begin - rows.begin);
        b->k.scale_acc(l->acc + (begin - rows.begin), end - begin, s->scale / l->q8_s, out);
        for (size_t r = begin; s->extra != 1.0f && r < end; r++)
            out[r - begin] = out[r - begin] * s->extra;
        if (s->bias)
            b->k.add(out, s->bias + (begin - s->row0), end - begin);
    }
}

/* These rows of W times the one token, to y. */
static void multiply_rows(const struct lane *l, const struct weights *w, struct share rows,
                          float *y)
{
    l->pass->b->k.ternary_matvec(&w->mat, rows.begin, rows.end, l->q8, l->q8_sum, l->acc);
    scale_rows(l, w, rows, y);
}

void linear_store(struct lane *l, const struct weights *w, struct rows y)
{
    if (!is_alone(l)) {
        linear_many(l, w, l->pass->b->k.acc_store, y);
        return;
    }
    const struct share all = lane_share(l, w->mat.n_rows, ROW_UNIT);
    for (size_t r = all.begin; r < all.end; r += MATVEC_ROWS)
        multiply_rows(l, w, (struct share){r, size_min(r + MATVEC_ROWS, all.end)}, y.at + r);
}

/* One token: each lane sums its share of the columns whose input is not zero, and then its share of
 * the rows over the lanes. */
static void add_columns(struct lane *l, const struct weights *w, struct rows y)
{
    const struct cpu_kernels *k = &l->pass->b->k;
    const struct lane *lanes = l->pass->b->scratch.lanes;
    const size_t n_live = k->live_inputs(l->q8, w->n_cols, l->live);
    const struct share live = lane_share(l, n_live, COLS_UNIT);
    k->ternary_columns(&w->cols, l->live + live.begin, live.end - live.begin, l->q8, l->sums);
    if (l->index == 0)
        l->down_skipped += (w->n_cols - n_live) * w->mat.n_rows / 4; /* weights a byte */
    lane_sync(l);
    const struct share all = lane_share(l, w->mat.n_rows, ROW_UNIT);
    for (size_t r = all.begin; r < all.end; r += MATVEC_ROWS) {
        const struct share rows = {r, size_min(r + MATVEC_ROWS, all.end)};
        memcpy(l->acc, lanes[0].sums + r, (rows.end - r) * sizeof *l->acc);
        for (size_t j = 1; j < l->n_lanes; j++)
            for (size_t i = r; i < rows.end; i++)
                l->acc[i - r] += lanes[j].sums[i];
        scale_rows(l, w, rows, l->y[0]);
        k->add(y.at + r, l->y[0], rows.end - r);
    }
}

void linear_add(struct lane *l, const struct weights *w, struct rows y)
{
    if (!is_alone(l)) {
        linear_many(l, w, l->pass->b->k.acc_add, y);
        return;
    }
    if (w->cols.n_cols) {
        add_columns(l, w, y);
        return;
    }
    const struct share all = lane_share(l, w->mat.n_rows, ROW_UNIT);
    for (size_t r = all.begin; r < all.end; r += MATVEC_ROWS) {
        const struct share rows = {r, size_min(r + MATVEC_ROWS, all.end)};
        multiply_rows(l, w, rows, l->y[0]);
        l->pass->b->k.add(y.at + r, l->y[0], rows.end - r);
    }
}

/* The up rows whose gates are open; the sums of the others are whatever was there, and their gate
 * makes them zero. */
static void multiply_open(struct lane *l, const struct weights *w, struct share rows,
                          const float *gate, float *y)
{
    const struct cpu_kernels *k = &l->pass->b->k;
    const size_t n = rows.end - rows.begin, row_bytes = w->mat.n_lines * LINE_BYTES;
    const struct ternary_mat part = {w->mat.lines + rows.begin * row_bytes, n, w->mat.n_lines};
    const size_t n_live = k->live_gates(gate, n, l->live);
    k->ternary_some(&part, l->live, n_live, l->q8, l->q8_sum, l->acc);
    l->up_skipped += (n - n_live) * row_bytes;
    scale_rows(l, w, rows, y);
}

void linear_gate(struct lane *l, const struct weights *w, enum ffn_act act, struct rows y)
{
    const struct cpu_kernels *k = &l->pass->b->k;
    if (!is_alone(l)) {
        linear_many_gate(l, w, act == FFN_RELU2 ? k->acc_relu2 : k->acc_silu, y);
        return;
    }
    const bool skip = act == FFN_RELU2 && l->pass->b->cfg.skip == BN_SKIP_ON;
    const gate_fn gate = act == FFN_RELU2 ? k->relu2_gate : k->silu_gate;
    const size_t n_ff = w->mat.n_rows / 2;
    const struct share all = lane_share(l, n_ff, ROW_UNIT);
    for (size_t r = all.begin; r < all.end; r += MATVEC_ROWS) {
        const size_t end = size_min(r + MATVEC_ROWS, all.end);
        const struct share up = {n_ff + r, n_ff + end};
        multiply_rows(l, w, (struct share){r, end}, l->y[0]);
        if (skip)
            multiply_open(l, w, up, l->y[0], l->y[1]);
        else
            multiply_rows(l, w, up, l->y[1]);
        gate(l->y[0], l->y[1], end - r, y.at + r);
    }
}

void linear_fetch(const struct lane *l, const struct weights *w, size_t n_rows)
{
    const struct share all = lane_share(l, n_rows, ROW_UNIT);
    const size_t row_bytes = w->mat.n_lines * LINE_BYTES;
    const size_t apart = (all.end - all.begin) / MATVEC_STREAMS * row_bytes;
    const uint8_t *at = w->mat.lines + all.begin * row_bytes;
    if (!is_alone(l) || apart < FETCH_BYTES)
        return;
    for (size_t i = 0; i < FETCH_BYTES; i += LINE_BYTES)
        for (size_t k = 0; k < MATVEC_STREAMS; k++)
            cpu_prefetch(at + k * apart + i);
}
