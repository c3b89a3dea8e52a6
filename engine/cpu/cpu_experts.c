/*
 * The feed-forward part of a layer with a mixture of experts (docs/kernels.md, "Experts"), for a
 * pass of one token and for a pass of several.
 *
 * A layer has two products: gate and up, then down. In the first product of a pass of one token,
 * the rows of all chosen experts form one range, which the threads share evenly, because a single
 * expert has few rows. In a pass of several tokens, a work item is a part of one expert. In the
 * second product the threads divide the output rows. Each thread adds the experts in ascending
 * order, because each element of h is a sum over experts in that order.
 */
#include "engine/cpu/cpu_experts.h"

#include "engine/base/size.h"
#include "engine/cpu/cpu_linear_r16.h"
#include "engine/cpu/cpu_work.h"
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>
#include <string.h>

#define ROUTER_ROWS 32 /* router rows that stay in the second-level cache for 16 tokens */
#define ROUTER_QUAD 4  /* tokens that are multiplied together */
#define GATE_GROUPS 8  /* row groups of an expert in a work item of gate and up, several tokens */
#define MAX_GROUPS 32  /* most row groups per product with one token, and per work item of down */
#define ITEM_PAIRS 16  /* pairs in a work item that copies or quantises */
_Static_assert(MAX_GROUPS *R16_ROWS <= MATMUL_TOKENS * PANEL_ROWS, "cpu_thread.y holds a product");
_Static_assert(GATE_GROUPS % R16_PANEL == 0 && MAX_GROUPS % R16_PANEL == 0,
               "whole panels per work item");
_Static_assert(ROUTER_TOKENS % ROUTER_QUAD == 0, "a batch of tokens is whole quads");
_Static_assert(EXPERT_ROW_UNIT % R16_ROWS == 0, "no row group belongs to two experts");

/* ---- choice ---- */

static float nan_to_lowest(float z)
{
    return isnan(z) ? -INFINITY : z;
}

void experts_pick(const float *z, size_t n, size_t n_used, struct expert_choice *out)
{
    /* The best so far, sorted by z, largest first. Until the softmax, weight holds z. */
    struct expert_choice best[MODEL_MAX_USED_EXPERTS];
    size_t n_best = 0;
    for (size_t e = 0; e < n; e++) {
        const float ze = nan_to_lowest(z[e]);
        if (n_best == n_used && !(ze > best[n_best - 1].weight))
            continue;
        size_t at = n_best < n_used ? n_best++ : n_used - 1;
        for (; at > 0 && ze > best[at - 1].weight; at--)
            best[at] = best[at - 1];
        best[at] = (struct expert_choice){(uint32_t)e, ze};
    }
    const float top = best[0].weight; /* if this is -infinity, all weights become NaN */
    float sum = 0.0f;
    for (size_t i = 0; i < n_used; i++) {
        best[i].weight = exp0_ref(best[i].weight - top);
        sum = sum + best[i].weight;
    }
    for (size_t i = 0; i < n_used; i++) {
        struct expert_choice c = {best[i].expert, best[i].weight / sum};
        size_t at = i;
        for (; at > 0 && out[at - 1].expert > c.expert; at--)
            out[at] = out[at - 1];
        out[at] = c;
    }
}

/* ---- router ---- */

/* Every thread prepares the input and makes the choice itself. The threads share the router's rows,
 * whose logits are complete after a barrier. */
static void choose_for_one(struct cpu_thread *th, size_t layer, struct rows h)
{
    const struct backend *b = th->pass->b;
    const struct hparams *hp = &b->model->hp;
    const struct cpu_layer *l = &b->layers[layer];
    linear_r16_input(th, &l->gate_up, h, l->ffn_norm);
    /* Now th->norm is the normed h: inputs of experts are not rotated. */
    const struct work_range mine = thread_range(th, hp->n_experts, ROW_UNIT);
    const struct table_rows rows = {.table = (const uint8_t *)(l->router + mine.begin * hp->n_embd),
                                    .row_bytes = hp->n_embd * sizeof(float),
                                    .n_rows = mine.end - mine.begin};
    if (rows.n_rows > 0)
        b->k.rows_dot[TENSOR_F32](&rows, th->norm, hp->n_embd, b->scratch.router_z + mine.begin,
                                  th->row);
    thread_sync(th);
    experts_pick(b->scratch.router_z, hp->n_experts, hp->n_used_experts, th->chosen);
    /* th->chosen[i] of the only token is pair i. Every thread has made the same list. */
    if (th->index > 0)
        return;
    for (size_t i = 0; i < hp->n_used_experts; i++)
        b->scratch.n_chosen[layer * hp->n_experts + th->chosen[i].expert]++;
    th->pass->n_experts_read += hp->n_used_experts;
}

/* The logits and choices of at most ROUTER_TOKENS tokens, whose normed rows are in th->router_x.
 * rows_dot multiplies table rows with a vector. Here the tokens are the table and a router row is
 * the vector, which does not change a dot product. */
static void route_tokens(struct cpu_thread *th, size_t layer, size_t token0, size_t n)
{
    const struct backend *b = th->pass->b;
    const struct hparams *hp = &b->model->hp;
    const float *const router = b->layers[layer].router;
    for (size_t e0 = 0; e0 < hp->n_experts; e0 += ROUTER_ROWS)
        for (size_t t = 0; t < n; t += ROUTER_QUAD) {
            const struct table_rows rows = {
                .table = (const uint8_t *)(th->router_x + t * b->shape.widths.h_stride),
                .row_bytes = b->shape.widths.h_stride * sizeof(float),
                .n_rows = size_min(ROUTER_QUAD, n - t)};
            for (size_t e = e0; e < size_min(e0 + ROUTER_ROWS, hp->n_experts); e++) {
                float z[ROUTER_QUAD];
                b->k.rows_dot[TENSOR_F32](&rows, router + e * hp->n_embd, hp->n_embd, z, th->row);
                for (size_t i = 0; i < rows.n_rows; i++)
                    th->router_z[(t + i) * hp->n_experts + e] = z[i];
            }
        }
    for (size_t t = 0; t < n; t++)
        experts_pick(th->router_z + t * hp->n_experts, hp->n_experts, hp->n_used_experts,
                     b->scratch.chosen + (token0 + t) * hp->n_used_experts);
}

/* Set scratch.pairs (the choices of all tokens, sorted by expert, then by token) and pair_start.
 * Count the pairs in scratch.n_chosen, and the experts with a pair in n_experts_read. */
static void set_pairs(struct pass *pass, size_t layer)
{
    const struct hparams *hp = &pass->b->model->hp;
    const struct scratch *s = &pass->b->scratch;
    const size_t n_pairs = pass->n_tokens * hp->n_used_experts;
    uint32_t *const start = s->pair_start;
    memset(start, 0, (hp->n_experts + 1) * sizeof *start);
    for (size_t i = 0; i < n_pairs; i++)
        start[s->chosen[i].expert + 1]++;
    for (size_t e = 0; e < hp->n_experts; e++) {
        pass->n_experts_read += start[e + 1] > 0;
        s->n_chosen[layer * hp->n_experts + e] += start[e + 1];
        start[e + 1] += start[e];
    }
    /* Placing the pairs moves start[e] to the end of expert e, which is the start of expert e + 1.
     * So all entries move up by one place afterwards. */
    for (size_t i = 0; i < n_pairs; i++)
        s->pairs[start[s->chosen[i].expert]++] =
            (struct expert_pair){(uint32_t)(i / hp->n_used_experts), s->chosen[i].weight};
    for (size_t e = hp->n_experts; e > 0; e--)
        start[e] = start[e - 1];
    start[0] = 0;
}

static void copy_token(const struct cpu_shape *s, const struct block_input *from, size_t token,
                       const struct block_input *to, size_t pair)
{
    for (size_t p = 0; p < s->widths.n_planes; p++) {
        const struct block_plane *a = &from->planes[p], *b = &to->planes[p];
        const size_t n = s->block_stride;
        memcpy(b->q + pair * s->q8_stride, a->q + token * s->q8_stride, s->q8_stride);
        memcpy(b->units + pair * n, a->units + token * n, n * sizeof *a->units);
        memcpy(b->q_sums + pair * n, a->q_sums + token * n, n * sizeof *a->q_sums);
    }
    if (s->x_stride)
        memcpy(to->x + pair * s->x_stride, from->x + token * s->x_stride,
               s->x_stride * sizeof *to->x);
}

static void choose_for_many(struct cpu_thread *th, size_t layer, struct rows h)
{
    const struct backend *b = th->pass->b;
    const struct hparams *hp = &b->model->hp;
    const struct cpu_layer *l = &b->layers[layer];
    const struct scratch *s = &b->scratch;
    const size_t n_tokens = th->pass->n_tokens;
    for (struct work_item p = {0}; thread_take_work(th, n_tokens, 1, ROUTER_TOKENS, &p);) {
        for (size_t t = p.begin; t < p.end; t++) {
            float *const x = th->router_x + (t - p.begin) * b->shape.widths.h_stride;
            b->k.rms_norm(h.at + t * h.stride, l->ffn_norm, hp->n_embd, hp->rms_eps, x);
            linear_r16_quantise_to(th, &l->gate_up, x, &s->blocks, t);
        }
        route_tokens(th, layer, p.begin, p.end - p.begin);
    }
    thread_sync(th);
    if (th->index == 0)
        set_pairs(th->pass, layer);
    thread_sync(th);
    const size_t n_pairs = n_tokens * hp->n_used_experts;
    for (struct work_item p = {0}; thread_take_work(th, n_pairs, 1, ITEM_PAIRS, &p);)
        for (size_t i = p.begin; i < p.end; i++)
            copy_token(&b->shape, &s->blocks, s->pairs[i].token, &s->pair_input, i);
    thread_sync(th);
}

void experts_choose(struct cpu_thread *th, size_t layer, struct rows h)
{
    if (thread_has_one_token(th))
        choose_for_one(th, layer, h);
    else
        choose_for_many(th, layer, h);
}

/* ---- gate and up ---- */

/* Limit the values of gate from above, and those of up at both ends. A NaN stays. */
static void clamp_gate_up(float limit, size_t n, float *gate, float *up)
{
    for (size_t i = 0; i < n; i++)
        gate[i] = gate[i] > limit ? limit : gate[i];
    for (size_t i = 0; i < n; i++)
        up[i] = up[i] > limit ? limit : up[i];
    for (size_t i = 0; i < n; i++)
        up[i] = up[i] < -limit ? -limit : up[i];
}

/* Row groups begin .. end - 1 of a matrix of one expert, counted from the expert's first one. */
struct expert_range {
    size_t layer, first_group; /* number of the expert's first row group in the section */
    size_t begin, end;
};

static struct group_range section_range(const struct weights *w, size_t section,
                                        const struct expert_range *r)
{
    return (struct group_range){&w->sections[section], r->first_group + r->begin,
                                r->first_group + r->end};
}

/* One token of `in`; y is the row of the pair. */
static void gate_one(struct cpu_thread *th, const struct expert_range *r,
                     const struct block_input *in, size_t token, float *y)
{
    const struct backend *b = th->pass->b;
    const struct weights *w = &b->layers[r->layer].gate_up;
    const struct group_range gate = section_range(w, 0, r), up = section_range(w, 1, r);
    const size_t n = (r->end - r->begin) * R16_ROWS;
    linear_r16_multiply_one(th, w, &gate, in, token, th->y[0]);
    linear_r16_multiply_one(th, w, &up, in, token, th->y[1]);
    clamp_gate_up(b->model->layers[r->layer].traits.clamp, n, th->y[0], th->y[1]);
    b->k.silu_gate(th->y[0], th->y[1], n, y + r->begin * R16_ROWS);
}

/* At most R16_PANEL row groups times pairs pair0 .. pair1 - 1. */
static void gate_panel(struct cpu_thread *th, const struct expert_range *r, size_t pair0,
                       size_t pair1, struct rows y)
{
    const struct backend *b = th->pass->b;
    const struct block_input *in = &b->scratch.pair_input;
    const struct weights *w = &b->layers[r->layer].gate_up;
    const struct group_range gate_rows = section_range(w, 0, r), up_rows = section_range(w, 1, r);
    const struct panel_range gate = linear_r16_unpack(th, &gate_rows, th->panel);
    const struct panel_range up = linear_r16_unpack(th, &up_rows, linear_r16_second_panel(th));
    for (size_t i = pair0; i < pair1; i += R16_TOKENS) {
        const size_t n = size_min(R16_TOKENS, pair1 - i);
        linear_r16_multiply_panel(th, w, &gate, in, i, n, th->y[0]);
        linear_r16_multiply_panel(th, w, &up, in, i, n, th->y[1]);
        /* A result has R16_PANEL row groups, also if the range has fewer; the others are unused. */
        clamp_gate_up(b->model->layers[r->layer].traits.clamp, n * R16_PANEL * R16_ROWS, th->y[0],
                      th->y[1]);
        for (size_t k = 0; k < n; k++) {
            const size_t at = k * R16_PANEL * R16_ROWS;
            b->k.silu_gate(th->y[0] + at, th->y[1] + at, (r->end - r->begin) * R16_ROWS,
                           y.at + (i + k) * y.stride + r->begin * R16_ROWS);
        }
    }
}

static size_t expert_groups(const struct hparams *hp)
{
    return hp->n_ff / R16_ROWS;
}

static void gate_for_one(struct cpu_thread *th, size_t layer, struct rows y)
{
    const struct hparams *hp = &th->pass->b->model->hp;
    const size_t n_groups = expert_groups(hp);
    const struct work_range all = thread_range(th, hp->n_used_experts * n_groups, 1);
    for (size_t g = all.begin; g < all.end;) {
        const size_t pair = g / n_groups, begin = g % n_groups;
        const size_t end = size_min(size_min(n_groups, begin + all.end - g), begin + MAX_GROUPS);
        const struct expert_range r = {layer, th->chosen[pair].expert * n_groups, begin, end};
        gate_one(th, &r, &th->blocks, 0, y.at + pair * y.stride);
        g += end - begin;
    }
}

void experts_gate(struct cpu_thread *th, size_t layer, struct rows y)
{
    const struct hparams *hp = &th->pass->b->model->hp;
    const struct scratch *s = &th->pass->b->scratch;
    if (thread_has_one_token(th)) {
        gate_for_one(th, layer, y);
        return;
    }
    const size_t n_groups = expert_groups(hp);
    const size_t n_parts = (n_groups + GATE_GROUPS - 1) / GATE_GROUPS;
    for (struct work_item p = {0}; thread_take_work(th, hp->n_experts * n_parts, 1, 1, &p);) {
        const size_t e = p.begin / n_parts, part = p.begin % n_parts * GATE_GROUPS;
        const size_t pair0 = s->pair_start[e], pair1 = s->pair_start[e + 1];
        const size_t end = size_min(part + GATE_GROUPS, n_groups);
        struct expert_range r = {layer, e * n_groups, part, end};
        if (linear_r16_take_singly(th, pair1 - pair0)) {
            for (size_t i = pair0; i < pair1; i++)
                gate_one(th, &r, &s->pair_input, i, y.at + i * y.stride);
            continue;
        }
        for (; r.begin < end; r.begin += R16_PANEL) {
            r.end = size_min(r.begin + R16_PANEL, end);
            gate_panel(th, &r, pair0, pair1, y);
        }
    }
}

/* ---- down ---- */

static void quantise_pairs(struct cpu_thread *th, size_t layer, struct rows y)
{
    const struct backend *b = th->pass->b;
    const size_t n_pairs = th->pass->n_tokens * b->model->hp.n_used_experts;
    const size_t item_pairs = thread_has_one_token(th) ? 1 : ITEM_PAIRS;
    for (struct work_item p = {0}; thread_take_work(th, n_pairs, 1, item_pairs, &p);)
        for (size_t i = p.begin; i < p.end; i++)
            linear_r16_quantise_to(th, &b->layers[layer].down, y.at + i * y.stride,
                                   &b->scratch.pair_input, i);
    thread_sync(th);
}

/* h = h + y * weight; changes y */
static void add_weighted(const struct cpu_thread *th, float *h, float *y, float weight, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] * weight;
    th->pass->b->k.add(h, y, n);
}

/* The rows of `r` for one pair, with the pair's weight; h is the row of its token. */
static void add_one(struct cpu_thread *th, const struct weights *w, struct expert_range r,
                    size_t pair, float weight, float *h)
{
    const struct group_range rows = section_range(w, 0, &r);
    linear_r16_multiply_one(th, w, &rows, &th->pass->b->scratch.pair_input, pair, th->y[0]);
    add_weighted(th, h + r.begin * R16_ROWS, th->y[0], weight, (r.end - r.begin) * R16_ROWS);
}

static void add_panel(struct cpu_thread *th, const struct weights *w, struct expert_range r,
                      struct work_range pairs, struct rows h)
{
    const struct scratch *s = &th->pass->b->scratch;
    const struct group_range rows = section_range(w, 0, &r);
    const struct panel_range panel = linear_r16_unpack(th, &rows, th->panel);
    for (size_t i = pairs.begin; i < pairs.end; i += R16_TOKENS) {
        const size_t n = size_min(R16_TOKENS, pairs.end - i);
        linear_r16_multiply_panel(th, w, &panel, &s->pair_input, i, n, th->y[0]);
        for (size_t k = 0; k < n; k++)
            add_weighted(th, h.at + s->pairs[i + k].token * h.stride + r.begin * R16_ROWS,
                         th->y[0] + k * R16_PANEL * R16_ROWS, s->pairs[i + k].weight,
                         (r.end - r.begin) * R16_ROWS);
    }
}

/* One expert's part of the sums of all its tokens. */
static void add_expert(struct cpu_thread *th, const struct weights *w, struct expert_range r,
                       struct work_range pairs, struct rows h)
{
    const struct scratch *s = &th->pass->b->scratch;
    if (linear_r16_take_singly(th, pairs.end - pairs.begin)) {
        for (size_t i = pairs.begin; i < pairs.end; i++)
            add_one(th, w, r, i, s->pairs[i].weight, h.at + s->pairs[i].token * h.stride);
        return;
    }
    const size_t end = r.end;
    for (; r.begin < end; r.begin += R16_PANEL) {
        r.end = size_min(r.begin + R16_PANEL, end);
        add_panel(th, w, r, pairs, h);
    }
}

void experts_add(struct cpu_thread *th, size_t layer, struct rows y, struct rows h)
{
    const struct hparams *hp = &th->pass->b->model->hp;
    const struct scratch *s = &th->pass->b->scratch;
    const struct weights *w = &th->pass->b->layers[layer].down;
    const size_t n_groups = hp->n_embd / R16_ROWS; /* of one expert */
    quantise_pairs(th, layer, y);
    if (thread_has_one_token(th)) {
        const struct work_range mine = thread_range(th, n_groups, 1);
        for (size_t g = mine.begin; g < mine.end; g += MAX_GROUPS)
            for (size_t i = 0; i < hp->n_used_experts; i++) {
                const struct expert_range r = {layer, th->chosen[i].expert * n_groups, g,
                                               size_min(g + MAX_GROUPS, mine.end)};
                add_one(th, w, r, i, th->chosen[i].weight, h.at);
            }
        return;
    }
    /* Several items per thread, if there are enough row groups, so that a slow thread delays the
     * others little. */
    const size_t share = size_round_up(n_groups / (4 * th->n_threads), R16_PANEL);
    const size_t item_groups = size_min(size_max(share, R16_PANEL), MAX_GROUPS);
    for (struct work_item p = {0}; thread_take_work(th, n_groups, R16_PANEL, item_groups, &p);)
        for (size_t e = 0; e < hp->n_experts; e++)
            add_expert(th, w, (struct expert_range){layer, e * n_groups, p.begin, p.end},
                       (struct work_range){s->pair_start[e], s->pair_start[e + 1]}, h);
}

/* The experts of a layer have the same size, so an average over all layers is exact enough. */
uint64_t experts_pass_bytes(const struct pass *pass)
{
    const struct hparams *hp = &pass->b->model->hp;
    const size_t n_all = hp->n_layers * hp->n_experts;
    return n_all == 0 ? 0 : pass->b->expert_bytes / n_all * pass->n_experts_read;
}
