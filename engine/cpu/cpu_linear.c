/*
 * Loop order: a panel of rows outside, tiles of tokens inside, so that each line of weights comes
 * from memory, and is unpacked, once per pass and stays in a core's own cache for all tokens.
 */
#include "engine/cpu/cpu_linear.h"

#include "engine/base/size.h"

/* Rows at a time for one token: many, since the product reads four streams a quarter apart. */
#define MATVEC_ROWS 1024
_Static_assert(MATVEC_ROWS <= TILE_TOKENS * PANEL_ROWS, "acc and y hold them");

/* One token is quantised by every lane for itself, which is cheaper than waiting for another;
 * several are shared out. */
static bool is_alone(const struct lane *l)
{
    return l->pass->plan.linear == LINEAR_MATVEC;
}

void linear_input(struct lane *l, struct rows x, size_t n_cols, const float *w)
{
    const struct backend *b = l->pass->b;
    const struct scratch *s = &b->scratch;
    const size_t n_lines = size_round_up(n_cols, LINE_COLS) / LINE_COLS;
    const struct share tokens =
        is_alone(l) ? (struct share){0, 1} : lane_share(l, l->pass->n_tokens, 1);
    for (size_t t = tokens.begin; t < tokens.end; t++) {
        const float *in = x.at + t * x.stride;
        struct act_scale scale;
        if (w) {
            b->k.rms_norm(in, w, n_cols, b->model->hp.rms_eps, l->x);
            in = l->x;
        }
        b->k.quantise(in, n_cols, l->q8, &scale);
        if (is_alone(l)) {
            l->q8_s = scale.s;
            l->q8_sum = scale.q_sum;
            return;
        }
        l->pass->gemm->pack(l->q8, n_lines, t, s->q8);
        s->q8_s[t] = scale.s;
        s->q8_sum[t] = scale.q_sum;
    }
    lane_sync(l);
    l->q = l->pass->gemm->gather(s->q8, n_lines, l->pass->n_tokens, (int8_t *)l->panel);
}

/* acc of rows row0 .. row1 - 1, tokens t0 .. t0 + n_t - 1, to F32 in y (n_t, y_stride): scale,
 * extra scale and bias of the section that each row belongs to. */
struct panel {
    size_t row0, row1;
    size_t t0, n_t;
    const uint8_t *unpacked;
};

static void scale_panel(const struct lane *l, const struct weights *w, struct panel p,
                        size_t acc_stride, struct rows y)
{
    const struct backend *b = l->pass->b;
    for (size_t i = 0; i < w->n_sections; i++) {
        const struct section *s = &w->sections[i];
        const size_t begin = size_max(p.row0, s->row0);
        const size_t end = size_min(p.row1, s->row0 + s->n_rows);
        for (size_t t = 0; begin < end && t < p.n_t; t++) {
            const float q8_s = is_alone(l) ? l->q8_s : b->scratch.q8_s[p.t0 + t];
            float *out = y.at + t * y.stride + (begin - p.row0);
            b->k.scale_acc(l->acc + t * acc_stride + (begin - p.row0), end - begin, s->scale / q8_s,
                           out);
            for (size_t r = begin; s->extra != 1.0f && r < end; r++)
                out[r - begin] = out[r - begin] * s->extra;
            if (s->bias)
                b->k.add(out, s->bias + (begin - s->row0), end - begin);
        }
    }
}

/* Rows row0 .. row1 - 1 of W times the tokens t0 .. t0 + n_t - 1, to y. */
static void multiply_panel(const struct lane *l, const struct weights *w, struct panel p,
                           struct rows y)
{
    const struct backend *b = l->pass->b;
    const struct scratch *s = &b->scratch;
    if (is_alone(l)) {
        b->k.ternary_matvec(&w->mat, p.row0, p.row1, l->q8, l->q8_sum, l->acc);
        scale_panel(l, w, p, MATVEC_ROWS, y);
        return;
    }
    const struct ternary_batch batch = {
        .q = l->q + p.t0 * w->mat.n_lines * LINE_COLS,
        .q_sums = s->q8_sum + p.t0,
        .panel = p.unpacked,
        .n_tokens = p.n_t,
        .acc = l->acc,
        .acc_stride = PANEL_ROWS,
    };
    l->pass->gemm->matmul(&w->mat, p.row0, p.row1, &batch);
    scale_panel(l, w, p, PANEL_ROWS, y);
}

static size_t panel_rows(const struct lane *l)
{
    return is_alone(l) ? MATVEC_ROWS : PANEL_ROWS;
}

/* The panel of rows row0 .. row1 - 1; for several tokens they are unpacked to `to`. */
static struct panel open_panel(const struct lane *l, const struct weights *w, size_t row0,
                               size_t row1, uint8_t *to)
{
    if (!is_alone(l))
        l->pass->gemm->unpack(&w->mat, row0, row1, to);
    return (struct panel){.row0 = row0, .row1 = row1, .unpacked = to};
}

/* The tokens from t0 that a panel takes next. */
static void take_tokens(const struct lane *l, struct panel *p, size_t t0)
{
    p->t0 = t0;
    p->n_t = size_min(l->pass->gemm->tile_tokens, l->pass->n_tokens - t0);
}

void linear_store(struct lane *l, const struct weights *w, struct rows y)
{
    const struct share rows = lane_share(l, w->mat.n_rows, ROW_UNIT);
    for (size_t r = rows.begin; r < rows.end; r += panel_rows(l)) {
        struct panel p = open_panel(l, w, r, size_min(r + panel_rows(l), rows.end), l->panel);
        for (size_t t = 0; t < l->pass->n_tokens; t += p.n_t) {
            take_tokens(l, &p, t);
            multiply_panel(l, w, p, (struct rows){y.at + t * y.stride + r, y.stride});
        }
    }
}

void linear_add(struct lane *l, const struct weights *w, struct rows y)
{
    const struct share rows = lane_share(l, w->mat.n_rows, ROW_UNIT);
    const struct rows out = {l->y[0], panel_rows(l)};
    for (size_t r = rows.begin; r < rows.end; r += panel_rows(l)) {
        struct panel p = open_panel(l, w, r, size_min(r + panel_rows(l), rows.end), l->panel);
        for (size_t t = 0; t < l->pass->n_tokens; t += p.n_t) {
            take_tokens(l, &p, t);
            multiply_panel(l, w, p, out);
            for (size_t i = 0; i < p.n_t; i++)
                l->pass->b->k.add(y.at + (t + i) * y.stride + r, out.at + i * out.stride,
                                  p.row1 - r);
        }
    }
}

void linear_gate(struct lane *l, const struct weights *w, gate_fn act, struct rows y)
{
    const size_t n_ff = w->mat.n_rows / 2, step = is_alone(l) ? MATVEC_ROWS : PANEL_ROWS / 2;
    const struct share rows = lane_share(l, n_ff, ROW_UNIT);
    const struct rows gate = {l->y[0], panel_rows(l)}, up = {l->y[1], panel_rows(l)};
    uint8_t *const half = l->panel + PANEL_ROWS / 2 * w->mat.n_lines * LINE_COLS;
    for (size_t r = rows.begin; r < rows.end; r += step) {
        const size_t end = size_min(r + step, rows.end);
        struct panel p_gate = open_panel(l, w, r, end, l->panel);
        struct panel p_up = open_panel(l, w, n_ff + r, n_ff + end, half);
        for (size_t t = 0; t < l->pass->n_tokens; t += p_gate.n_t) {
            take_tokens(l, &p_gate, t);
            take_tokens(l, &p_up, t);
            multiply_panel(l, w, p_gate, gate);
            multiply_panel(l, w, p_up, up);
            for (size_t i = 0; i < p_gate.n_t; i++)
                act(gate.at + i * gate.stride, up.at + i * up.stride, end - r,
                    y.at + (t + i) * y.stride + r);
        }
    }
}
