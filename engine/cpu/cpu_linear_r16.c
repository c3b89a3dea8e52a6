/*
 * Linear layers in R16, for one token and for several.
 *
 * A product never crosses the border of two sections, because each section has its own matrix and
 * its rows are padded to whole row groups. The sums of a product take at most 16 kB of th->y, so
 * they are still in a cache of the core when they are scaled, and copied, added or gated.
 */
#include "engine/cpu/cpu_linear_r16.h"

#include "engine/base/size.h"
#include "engine/cpu/cpu_work.h"

#include <string.h>

#define MATVEC_GROUPS 256 /* row groups that a thread multiplies at a time with one token */
/* The same for several tokens in turn. The lines are 0.7 MB at 2,560 columns, so that they can stay
 * in a second-level cache. */
#define FEW_GROUPS 64
#define PANEL_FLOATS (R16_TOKENS * R16_PANEL * R16_ROWS)
_Static_assert(MATVEC_GROUPS *R16_ROWS <= MATMUL_TOKENS * PANEL_ROWS,
               "cpu_thread.y holds a product");
_Static_assert(FEW_GROUPS <= MATVEC_GROUPS && PANEL_FLOATS <= MATMUL_TOKENS * PANEL_ROWS,
               "cpu_thread.y holds a product");
_Static_assert(2 * R16_PANEL * R16_ROWS <= PANEL_ROWS, "th->panel holds two panels");

/* ---- input ---- */

/* Set the units and sums of the blocks of a token that has one scale. n_cols includes padding, a
 * multiple of R16_PAD_COLS. */
static void set_equal_units(const struct weights *to, size_t n_cols, struct act_scale scale,
                            struct block_plane p)
{
    for (size_t b = 0; b * to->block_cols < n_cols; b++) {
        p.units[b] = 1.0f / scale.s;
        p.q_sums[b] = 0;
        for (size_t i = b * to->block_cols; i < (b + 1) * to->block_cols; i++)
            p.q_sums[b] += p.q[i];
    }
}

void linear_r16_quantise_to(const struct cpu_thread *th, const struct weights *layer,
                            const float *x, const struct block_input *in, size_t token)
{
    const struct backend *b = th->pass->b;
    const struct cpu_shape *shape = &b->shape;
    struct block_plane at[MAX_PLANES];
    for (size_t p = 0; p < shape->widths.n_planes; p++)
        at[p] = (struct block_plane){in->planes[p].q + token * shape->q8_stride,
                                     in->planes[p].units + token * shape->block_stride,
                                     in->planes[p].q_sums + token * shape->block_stride};
    struct act_scale scale;
    switch (b->model->act_scheme) {
    case ACT_FLOAT:
        memcpy(in->x + token * shape->x_stride, x, layer->n_cols * sizeof *x);
        break;
    case ACT_16:
        b->k.quantise_planes(x, layer->n_cols, layer->block_cols, at);
        break;
    case ACT_TOKEN:
        b->k.quantise(&(struct act_in){.x = x, .n = layer->n_cols}, at[0].q, &scale);
        set_equal_units(layer, size_round_up(layer->n_cols, R16_PAD_COLS), scale, at[0]);
        break;
    case ACT_BLOCK32:
    case ACT_BLOCK128:
        b->k.quantise_blocks(x, layer->n_cols, layer->block_cols, at[0].q, at[0].units,
                             at[0].q_sums);
        break;
    }
}

void linear_r16_quantise(struct cpu_thread *th, const struct weights *layer, const float *x,
                         size_t token)
{
    linear_r16_quantise_to(th, layer, x, &th->pass->b->scratch.blocks, token);
}

void linear_r16_input(struct cpu_thread *th, const struct weights *to, struct rows x,
                      const float *w)
{
    if (thread_has_one_token(th)) {
        linear_r16_quantise_to(th, to, linear_prepare(th, to, x.at, w), &th->blocks, 0);
        return;
    }
    for (struct work_item p = {0}; thread_take_work(th, th->pass->n_tokens, 1, INPUT_TOKENS, &p);)
        for (size_t t = p.begin; t < p.end; t++)
            linear_r16_quantise_to(th, to, linear_prepare(th, to, x.at + t * x.stride, w),
                                   &th->pass->b->scratch.blocks, t);
    thread_sync(th);
}

/* ---- products ---- */

/* Row groups `begin` to `end` - 1, counted over all sections, as far as they are in the section of
 * the first one. */
static struct group_range range_at(const struct weights *w, size_t begin, size_t end)
{
    const struct section *s = w->sections;
    while (begin >= s->group0 + s->groups.n_groups)
        s++;
    return (struct group_range){s, begin - s->group0,
                                size_min(end - s->group0, s->groups.n_groups)};
}

/* Apply the factors and the bias of these rows to the sums y of one token. */
static void finish_rows(const struct cpu_thread *th, const struct group_range *r, float *y)
{
    const struct section *s = r->s;
    const size_t row0 = linear_r16_first_row(r), n = linear_r16_count_rows(r);
    for (size_t i = 0; s->row_scales && i < n; i++)
        y[i] = y[i] * s->row_scales[row0 + i];
    for (size_t i = 0; s->scale != 1.0f && i < n; i++)
        y[i] = y[i] * s->scale;
    for (size_t i = 0; s->extra != 1.0f && i < n; i++)
        y[i] = y[i] * s->extra;
    if (s->bias)
        th->pass->b->k.add(y, s->bias + row0, n);
}

void linear_r16_multiply_one(const struct cpu_thread *th, const struct weights *w,
                             const struct group_range *r, const struct block_input *in,
                             size_t token, float *y)
{
    const struct backend *b = th->pass->b;
    const struct cpu_shape *shape = &b->shape;
    memset(y, 0, (r->end - r->begin) * R16_ROWS * sizeof *y);
    if (shape->x_stride)
        b->k.r16_float(&r->s->groups, r->begin, r->end, in->x + token * shape->x_stride, w->n_cols,
                       y);
    for (size_t p = 0; p < shape->widths.n_planes; p++)
        b->k.r16_matvec(
            &r->s->groups, r->begin, r->end,
            &(struct block_acts){.q = in->planes[p].q + token * shape->q8_stride,
                                 .units = in->planes[p].units + token * shape->block_stride,
                                 .q_sums = in->planes[p].q_sums + token * shape->block_stride,
                                 .block_cols = w->block_cols},
            y);
    finish_rows(th, r, y);
}

void linear_r16_multiply_panel(const struct cpu_thread *th, const struct weights *w,
                               const struct panel_range *r, const struct block_input *in,
                               size_t token0, size_t n, float *y)
{
    const struct backend *b = th->pass->b;
    const struct cpu_shape *shape = &b->shape;
    const size_t y_stride = R16_PANEL * R16_ROWS;
    memset(y, 0, n * y_stride * sizeof *y);
    for (size_t p = 0; p < shape->widths.n_planes; p++) {
        const struct block_plane *plane = &in->planes[p];
        b->k.r16.matmul(&r->rows.s->groups, r->rows.begin, r->rows.end,
                        &(struct r16_batch){
                            .q = plane->q + token0 * shape->q8_stride,
                            .units = plane->units + token0 * shape->block_stride,
                            .q_sums = plane->q_sums + token0 * shape->block_stride,
                            .q_stride = shape->q8_stride,
                            .block_stride = shape->block_stride,
                            .block_cols = w->block_cols,
                            .n_tokens = n,
                            .panel = r->unpacked,
                            .y = y,
                            .y_stride = y_stride,
                        });
    }
    for (size_t t = 0; t < n; t++)
        finish_rows(th, &r->rows, y + t * y_stride);
}

struct panel_range linear_r16_unpack(const struct cpu_thread *th, const struct group_range *r,
                                     uint8_t *to)
{
    th->pass->b->k.r16.unpack(&r->s->groups, r->begin, r->end, to);
    return (struct panel_range){*r, to};
}

uint8_t *linear_r16_second_panel(const struct cpu_thread *th)
{
    return th->panel + R16_PANEL * R16_ROWS * th->pass->b->shape.q8_stride;
}

bool linear_r16_take_singly(const struct cpu_thread *th, size_t n_tokens)
{
    return n_tokens <= R16_FEW || th->pass->b->shape.x_stride > 0;
}

/* ---- layers ---- */

enum output { STORE, ADD };

static void put_rows(const struct cpu_thread *th, const struct group_range *r, enum output how,
                     const float *from, float *y)
{
    float *to = y + r->s->row0 + linear_r16_first_row(r);
    if (how == STORE)
        memcpy(to, from, linear_r16_count_rows(r) * sizeof *to);
    else
        th->pass->b->k.add(to, from, linear_r16_count_rows(r));
}

static void run_one(struct cpu_thread *th, const struct weights *w, enum output how, float *y)
{
    const struct work_range all = thread_range(th, w->n_groups, 1);
    for (size_t g = all.begin; g < all.end;) {
        const struct group_range r = range_at(w, g, size_min(g + MATVEC_GROUPS, all.end));
        linear_r16_multiply_one(th, w, &r, &th->blocks, 0, th->y[0]);
        put_rows(th, &r, how, th->y[0], y);
        g = r.s->group0 + r.end;
    }
}

/* Row groups of one section times all tokens, one token after the other. */
static void run_singly(struct cpu_thread *th, const struct weights *w, const struct group_range *r,
                       enum output how, struct rows y)
{
    for (size_t t = 0; t < th->pass->n_tokens; t++) {
        linear_r16_multiply_one(th, w, r, &th->pass->b->scratch.blocks, t, th->y[0]);
        put_rows(th, r, how, th->y[0], y.at + t * y.stride);
    }
}

/* At most R16_PANEL row groups of one section times all tokens. */
static void run_panel(struct cpu_thread *th, const struct weights *w, const struct group_range *r,
                      enum output how, struct rows y)
{
    const struct panel_range panel = linear_r16_unpack(th, r, th->panel);
    for (size_t t = 0; t < th->pass->n_tokens; t += R16_TOKENS) {
        const size_t n = size_min(R16_TOKENS, th->pass->n_tokens - t);
        linear_r16_multiply_panel(th, w, &panel, &th->pass->b->scratch.blocks, t, n, th->y[0]);
        for (size_t i = 0; i < n; i++)
            put_rows(th, r, how, th->y[0] + i * R16_PANEL * R16_ROWS, y.at + (t + i) * y.stride);
    }
}

static void run_layer(struct cpu_thread *th, const struct weights *w, enum output how,
                      struct rows y)
{
    if (thread_has_one_token(th)) {
        run_one(th, w, how, y.at);
        return;
    }
    const bool is_single = linear_r16_take_singly(th, th->pass->n_tokens);
    const size_t item_groups = is_single ? FEW_GROUPS : R16_PANEL;
    for (struct work_item p = {0}; thread_take_work(th, w->n_groups, R16_PANEL, item_groups, &p);)
        for (size_t g = p.begin; g < p.end;) {
            const struct group_range r = range_at(w, g, p.end);
            if (is_single)
                run_singly(th, w, &r, how, y);
            else
                run_panel(th, w, &r, how, y);
            g = r.s->group0 + r.end;
        }
}

void linear_r16_store(struct cpu_thread *th, const struct weights *w, struct rows y)
{
    run_layer(th, w, STORE, y);
}

void linear_r16_add(struct cpu_thread *th, const struct weights *w, struct rows y)
{
    run_layer(th, w, ADD, y);
}

/* The same row groups of gate and up. */
struct gate_range {
    struct group_range gate, up;
};

static struct gate_range gate_range_at(const struct weights *w, size_t begin, size_t end)
{
    return (struct gate_range){{&w->sections[0], begin, end}, {&w->sections[1], begin, end}};
}

/* One token of `in`. */
static void gate_one(struct cpu_thread *th, const struct weights *w, const struct gate_range *r,
                     gate_fn act, const struct block_input *in, size_t token, float *y)
{
    linear_r16_multiply_one(th, w, &r->gate, in, token, th->y[0]);
    linear_r16_multiply_one(th, w, &r->up, in, token, th->y[1]);
    act(th->y[0], th->y[1], linear_r16_count_rows(&r->gate), y + linear_r16_first_row(&r->gate));
}

static void gate_panel(struct cpu_thread *th, const struct weights *w, const struct gate_range *r,
                       gate_fn act, struct rows y)
{
    const struct block_input *in = &th->pass->b->scratch.blocks;
    const struct panel_range gate = linear_r16_unpack(th, &r->gate, th->panel);
    const struct panel_range up = linear_r16_unpack(th, &r->up, linear_r16_second_panel(th));
    for (size_t t = 0; t < th->pass->n_tokens; t += R16_TOKENS) {
        const size_t n = size_min(R16_TOKENS, th->pass->n_tokens - t);
        linear_r16_multiply_panel(th, w, &gate, in, t, n, th->y[0]);
        linear_r16_multiply_panel(th, w, &up, in, t, n, th->y[1]);
        for (size_t i = 0; i < n; i++) {
            const size_t at = i * R16_PANEL * R16_ROWS;
            act(th->y[0] + at, th->y[1] + at, linear_r16_count_rows(&r->gate),
                y.at + (t + i) * y.stride + linear_r16_first_row(&r->gate));
        }
    }
}

void linear_r16_gate(struct cpu_thread *th, const struct weights *w, enum ffn_act act,
                     struct rows y)
{
    const struct cpu_kernels *k = &th->pass->b->k;
    const gate_fn gate = act == FFN_RELU2 ? k->relu2_gate : k->silu_gate;
    const size_t n_groups = w->sections[0].groups.n_groups;
    if (thread_has_one_token(th)) {
        const struct work_range all = thread_range(th, n_groups, 1);
        for (size_t g = all.begin; g < all.end; g += MATVEC_GROUPS) {
            const struct gate_range r = gate_range_at(w, g, size_min(g + MATVEC_GROUPS, all.end));
            gate_one(th, w, &r, gate, &th->blocks, 0, y.at);
        }
        return;
    }
    const bool is_single = linear_r16_take_singly(th, th->pass->n_tokens);
    const size_t item_groups = is_single ? FEW_GROUPS : R16_PANEL;
    for (struct work_item p = {0}; thread_take_work(th, n_groups, R16_PANEL, item_groups, &p);) {
        const struct gate_range r = gate_range_at(w, p.begin, p.end);
        if (!is_single)
            gate_panel(th, w, &r, gate, y);
        for (size_t t = 0; is_single && t < th->pass->n_tokens; t++)
            gate_one(th, w, &r, gate, &th->pass->b->scratch.blocks, t, y.at + t * y.stride);
    }
}

void linear_r16_prefetch(const struct cpu_thread *th, const struct weights *w, size_t n_products)
{
    const struct work_range all = thread_range(th, w->n_groups / n_products, 1);
    if (all.begin == all.end)
        return;
    const struct group_range r =
        range_at(w, all.begin, size_min(all.begin + MATVEC_GROUPS, all.end));
    const size_t group_bytes = r.s->groups.n_lines * LINE_BYTES;
    prefetch_stream_starts(r.s->groups.lines + r.begin * group_bytes, r.end - r.begin, group_bytes);
}

/* ---- output head ---- */

void linear_r16_multiply(struct cpu_thread *th, const struct weights *w, size_t row0, size_t row1,
                         size_t n_tokens, struct rows y)
{
    const bool is_single = linear_r16_take_singly(th, n_tokens);
    const size_t n_at_once = n_tokens == 1 ? MATVEC_GROUPS : is_single ? FEW_GROUPS : R16_PANEL;
    const size_t group0 = row0 / R16_ROWS, group1 = (row1 + R16_ROWS - 1) / R16_ROWS;
    for (size_t g = group0; g < group1; g += n_at_once) {
        const struct group_range r = {&w->sections[0], g, size_min(g + n_at_once, group1)};
        float *to = y.at + (linear_r16_first_row(&r) - row0);
        if (!is_single) {
            const struct panel_range panel = linear_r16_unpack(th, &r, th->panel);
            linear_r16_multiply_panel(th, w, &panel, &th->pass->b->scratch.blocks, 0, n_tokens,
                                      th->y[0]);
        }
        for (size_t t = 0; t < n_tokens; t++) {
            const float *from = th->y[0] + (is_single ? 0 : t * R16_PANEL * R16_ROWS);
            if (is_single)
                linear_r16_multiply_one(th, w, &r, &th->pass->b->scratch.blocks, t, th->y[0]);
            memcpy(to + t * y.stride, from, linear_r16_count_rows(&r) * sizeof *to);
        }
    }
}
