/*
 * The head, up to HEAD_GROUP rows at a time so that the table is read once for them: lanes share
 * the vocabulary for the products, then the rows for the selection.
 */
#include "engine/cpu/cpu_head.h"

#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_kv.h"
#include "engine/cpu/cpu_pick.h"
#include "engine/cpu/cpu_screen.h"
#include "engine/cpu/cpu_share.h"
#include "engine/model/rope.h"

#include <math.h>
#include <string.h>

#define TABLE_ROWS 64 /* table rows at a time: 320 kB of F16 at width 2560, second-level cache */

static int32_t token_id(const struct pass *pass, size_t token)
{
    const struct eval_item *item = pass->items;
    while (token >= item->n_ids)
        token -= (item++)->n_ids;
    return item->ids[token];
}

static void embed_token(struct lane *l, size_t token, size_t pos)
{
    const struct backend *b = l->pass->b;
    const struct model *m = b->model;
    const size_t n_pairs = m->hp.n_rot / 2;
    const uint8_t *row = m->embd.bytes + (size_t)token_id(l->pass, token) * b->shape.row_bytes;
    b->k.row_decode[m->embd.type](row, m->hp.n_embd, b->scratch.h + token * b->shape.h_stride);
    rope_angles(b->rope_freq, n_pairs, pos, b->scratch.rope_c + token * n_pairs,
                b->scratch.rope_s + token * n_pairs);
}

void head_embed(struct lane *l)
{
    const struct pass *pass = l->pass;
    const struct share tiles = lane_share(l, pass->n_tiles, 1);
    for (size_t i = tiles.begin; i < tiles.end; i++) {
        const struct tile *tile = &pass->b->scratch.tiles[i];
        for (size_t t = 0; t < tile->n_tokens; t++)
            embed_token(l, tile->token0 + t, tile->pos0 + t);
    }
    lane_sync(l);
}

/* The largest of z; true if one of them is infinite or NaN. */
static bool scan_row(const float *z, size_t n, float *best)
{
    uint32_t worst = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = f32_bits(z[i]) & 0x7fffffffu;
        worst = magnitude > worst ? magnitude : worst;
        *best = z[i] > *best ? z[i] : *best;
    }
    return worst >= 0x7f800000u;
}

/* This lane's part of the vocabulary for those of the group's rows that are not screened. */
static void multiply_table(struct lane *l, const struct want *wants, size_t n_wants)
{
    const struct backend *b = l->pass->b;
    const struct model *m = b->model;
    const struct cpu_shape *shape = &b->shape;
    const rows_dot_fn dot = b->k.rows_dot[b->head.type];
    const struct share ids = lane_share(l, m->hp.n_vocab, ROW_UNIT);
    bool bad = false, any = false;
    for (size_t i = 0; i < n_wants; i++) {
        l->best[i] = l->best_noisy[i] = -INFINITY;
        l->best_noisy_id[i] = -1;
        any |= !wants[i].screened;
    }
    if (!any)
        return;
    atomic_fetch_add_explicit(&l->pass->head_bytes, (ids.end - ids.begin) * shape->head_row_bytes,
                              memory_order_relaxed);
    for (size_t id = ids.begin; id < ids.end; id += TABLE_ROWS) {
        const size_t n = size_min(TABLE_ROWS, ids.end - id);
        for (size_t i = 0; i < n_wants; i++) {
            float *z = b->scratch.z + i * shape->vocab_stride + id;
            if (wants[i].screened)
                continue;
            const struct table_rows rows = {b->head.bytes + id * shape->head_row_bytes,
                                            shape->head_row_bytes, n, NULL};
            dot(&rows, b->scratch.head_x + i * shape->h_stride, m->hp.n_embd, z, l->row);
            bad |= scan_row(z, n, &l->best[i]);
            if (wants[i].head->kind == HEAD_GUMBEL)
                pick_gumbel(z, id, n, wants[i].head, wants[i].position, &l->best_noisy[i],
                            &l->best_noisy_id[i]);
        }
    }
    if (bad)
        atomic_store_explicit(&l->pass->not_finite, true, memory_order_relaxed);
}

/* The lanes' ranges ascend, so the first of equals has the lower id. */
static void finish_gumbel(const struct lane *l, size_t i, struct want *want)
{
    const struct lane *lanes = l->pass->b->scratch.lanes, *top = &lanes[0];
    for (size_t j = 1; j < l->n_lanes; j++)
        if (lanes[j].best_noisy[i] > top->best_noisy[i])
            top = &lanes[j];
    const int32_t id = top->best_noisy_id[i];
    const float *z = l->pass->b->scratch.z + i * l->pass->b->shape.vocab_stride;
    want->row->cands[0] = (struct head_cand){id, z[id]};
    want->n_found = 1;
}

static void finish_row(struct lane *l, size_t i, struct want *want)
{
    const struct backend *b = l->pass->b;
    const size_t n_vocab = b->model->hp.n_vocab;
    const float *z = b->scratch.z + i * b->shape.vocab_stride;
    bool has_room = true;
    if (want->head->kind == HEAD_GUMBEL) {
        finish_gumbel(l, i, want);
    } else if (want->head->kind == HEAD_ALL) {
        has_room = pick_all(z, n_vocab, want->row, &want->n_found);
    } else {
        float best = -INFINITY;
        for (size_t j = 0; j < l->n_lanes; j++)
            best = fmaxf(best, b->scratch.lanes[j].best[i]);
        has_room = pick_top(z, n_vocab, best, want->head, want->row, l->seen, &want->n_found);
    }
    if (!has_room)
        atomic_store_explicit(&l->pass->room_wanted, want->n_found, memory_order_relaxed);
}

/* From bounds to logits for those rows that are screened and no draw; the last of them are still
 * in the cache. */
static void screen_group(struct lane *l, const struct want *wants, size_t n_wants)
{
    bool any = false;
    for (size_t i = n_wants; i-- > 0;)
        if (wants[i].screened && wants[i].head->kind == HEAD_TOP) {
            screen_rescore(l, i, &wants[i]);
            any = true;
        }
    if (any)
        lane_sync(l);
}

static void apply_group(struct lane *l, struct want *wants, size_t n_wants)
{
    const struct backend *b = l->pass->b;
    const struct hparams *hp = &b->model->hp;
    const struct share rows = lane_share(l, n_wants, 1);
    for (size_t i = rows.begin; i < rows.end; i++) {
        b->k.rms_norm(b->scratch.h + wants[i].token * b->shape.h_stride, b->output_norm, hp->n_embd,
                      hp->rms_eps, b->scratch.head_x + i * b->shape.h_stride);
        screen_query(b, i, &wants[i]);
    }
    lane_sync(l);
    multiply_table(l, wants, n_wants);
    screen_bounds(l, wants, n_wants);
    lane_sync(l);
    screen_group(l, wants, n_wants);
    /* Everyone sees the same flag: it was last written before the barrier, and is again only after
     * the one below. */
    if (!atomic_load_explicit(&l->pass->not_finite, memory_order_relaxed))
        for (size_t i = rows.begin; i < rows.end; i++)
            finish_row(l, i, &wants[i]);
    lane_sync(l);
}

void head_apply(struct lane *l)
{
    const struct pass *pass = l->pass;
    for (size_t i = 0; i < pass->n_wants; i += HEAD_GROUP)
        apply_group(l, pass->b->scratch.wants + i, size_min(HEAD_GROUP, pass->n_wants - i));
}
