/*
 * Loop order: a panel of rows outside, tiles of tokens inside, so that each line of weights comes
 * from memory once per pass and stays in the first-level cache for all tokens.
 */
#include "engine/cpu/cpu_linear.h"

#include "engine/base/size.h"

#define MATVEC_ROWS (TILE_TOKENS * PANEL_ROWS) /* what acc holds for one token */

/* One token is quantised by every lane for itself, which is cheaper than waiting for another;
 * several are shared out. */
static bool is_alone(const struct lane *l)
{
    return l->pass->n_tokens == 1;
}

void linear_input(struct lane *l, struct rows x, size_t n_cols, const float *w)
{
    const struct backend *b = l->pass->b;
    const struct scratch *s = &b->scratch;
    const size_t stride = size_round_up(n_cols, LINE_COLS);
    const struct share tokens =
        is_alone(l) ? (struct share){0, 1} : lane_share(l, l->pass->n_tokens, 1);
    for (size_t t = tokens.begin; t < tokens.end; t++) {
        const float *in = x.at + t * x.stride;
        struct act_scale scale;
        if (w) {
            b->k.rms_norm(in, w, n_cols, b->model->hp.rms_eps, l->x);
            in = l->x;
        }
        b->k.quantise(in, n_cols, is_alone(l) ? l->q8 : s->q8 + t * stride, &scale);
        if (is_alone(l)) {
            l->q8_s = scale.s;
            l->q8_sum = scale.q_sum;
            return;
        }
        s->q8_s[t] = scale.s;
        s->q8_sum[t] = scale.q_sum;
    }
    lane_sync(l);
}

/* acc of rows row0 .. row1 - 1, tokens t0 .. t0 + n_t - 1, to F32 in y (n_t, y_stride): scale,
 * extra scale and bias of the section that each row belongs to. */
struct panel {
    size_t row0, row1;
    size_t t0, n_t;
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
        .q = s->q8 + p.t0 * w->mat.n_lines * LINE_COLS,
        .q_sums = s->q8_sum + p.t0,
        .n_tokens = p.n_t,
        .acc = l->acc,
        .acc_stride = PANEL_ROWS,
    };
    b->k.ternary_matmul(&w->mat, p.row0, p.row1, &batch);
    scale_panel(l, w, p, PANEL_ROWS, y);
}

static size_t panel_rows(const struct lane *l)
{
    return is_alone(l) ? MATVEC_ROWS : PANEL_ROWS;
}

/* The next panel of this lane's rows and the tokens it takes at a time. */
static struct panel next_tokens(const struct lane *l, struct share rows, size_t row0, size_t t0)
{
    return (struct panel){row0, size_min(row0 + panel_rows(l), rows.end), t0,
                          size_min(TILE_TOKENS, l->pass->n_tokens - t0)};
}

void linear_store(struct lane *l, const struct weights *w, struct rows y)
{
    const struct share rows = lane_share(l, w->mat.n_rows, ROW_UNIT);
    for (size_t r = rows.begin; r < rows.end; r += panel_rows(l))
        for (size_t t = 0; t < l->pass->n_tokens; t += TILE_TOKENS)
            multiply_panel(l, w, next_tokens(l, rows, r, t),
                           (struct rows){y.at + t * y.stride + r, y.stride});
}

void linear_add(struct lane *l, const struct weights *w, struct rows y)
{
    const struct share rows = lane_share(l, w->mat.n_rows, ROW_UNIT);
    const struct rows out = {l->y[0], panel_rows(l)};
    for (size_t r = rows.begin; r < rows.end; r += panel_rows(l))
        for (size_t t = 0; t < l->pass->n_tokens; t += TILE_TOKENS) {
            const struct panel p = next_tokens(l, rows, r, t);
            multiply_panel(l, w, p, out);
            for (size_t i = 0; i < p.n_t; i++)
                l->pass->b->k.add(y.at + (t + i) * y.stride + r, out.at + i * out.stride,
                                  p.row1 - r);
        }
}

void linear_gate(struct lane *l, const struct weights *w, gate_fn act, struct rows y)
{
    const size_t n_ff = w->mat.n_rows / 2;
    const struct share rows = lane_share(l, n_ff, ROW_UNIT);
    const struct rows gate = {l->y[0], panel_rows(l)}, up = {l->y[1], panel_rows(l)};
    for (size_t r = rows.begin; r < rows.end; r += panel_rows(l))
        for (size_t t = 0; t < l->pass->n_tokens; t += TILE_TOKENS) {
            struct panel p = next_tokens(l, rows, r, t);
            const size_t n = p.row1 - p.row0;
            multiply_panel(l, w, p, gate);
            p.row0 += n_ff;
            p.row1 += n_ff;
            multiply_panel(l, w, p, up);
            for (size_t i = 0; i < p.n_t; i++)
                act(gate.at + i * gate.stride, up.at + i * up.stride, n,
                    y.at + (t + i) * y.stride + r);
        }
}
