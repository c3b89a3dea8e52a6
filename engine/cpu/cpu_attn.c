/*
 * Two ways to share the work, the same kernels and the same bits. With many tokens a lane takes a
 * tile of tokens and a KV head through all blocks, so that each block is read once for the tile;
 * first those whose keys it wrote itself, which its own cache holds.
 * With few, positions are split too: partial results go to slots and are merged after a barrier.
 */
#include "engine/cpu/cpu_attn.h"

#include "engine/base/relax.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_kv.h"
#include "engine/cpu/cpu_share.h"

#include <math.h>
#include <string.h>

/* A part of the next token: it was written by all lanes. */
static void fetch_head(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += ROW_UNIT)
        cpu_prefetch(x + i);
}

static void append_token(struct lane *l, const struct tile *tile, size_t kv_head, size_t t)
{
    const struct backend *b = l->pass->b;
    const struct hparams *hp = &b->model->hp;
    const rope_fn rope = b->model->arch->rope == ROPE_NEOX ? b->k.rope_neox : b->k.rope_norm;
    const size_t token = tile->token0 + t, n_pairs = hp->n_rot / 2;
    const float *c = b->scratch.rope_c + token * n_pairs, *s = b->scratch.rope_s + token * n_pairs;
    const float q_scale = (float)(1.0 / sqrt((double)hp->head_dim));
    float *row = b->scratch.qkv + token * b->shape.qkv_stride;
    float *q = row + kv_head * b->shape.group * hp->head_dim;
    const size_t n_fetch = t + 1 < tile->n_tokens ? hp->head_dim : 0;
    for (size_t i = 0; i < b->shape.group; i++) {
        rope(q + i * hp->head_dim, c, s, hp->n_rot);
        fetch_head(q + b->shape.qkv_stride + i * hp->head_dim, n_fetch);
    }
    for (size_t i = 0; i < b->shape.group * hp->head_dim; i++)
        q[i] = q[i] * q_scale;
    float *k = row + b->shape.q_width + kv_head * hp->head_dim;
    rope(k, c, s, hp->n_rot);
    fetch_head(k + b->shape.qkv_stride, n_fetch);
    fetch_head(k + b->shape.qkv_stride + b->shape.kv_width, n_fetch);
}

void attn_append(struct lane *l, size_t layer)
{
    const struct backend *b = l->pass->b;
    const struct cpu_shape *shape = &b->shape;
    const struct hparams *hp = &b->model->hp;
    const size_t n_items = l->pass->n_tiles * hp->n_kv_heads;
    for (struct piece p = {0}; lane_take(l, n_items, 1, 1, &p);) {
        const size_t i = p.begin;
        const struct tile *tile = &b->scratch.tiles[i / hp->n_kv_heads];
        const size_t kv_head = i % hp->n_kv_heads;
        if (p.end < p.of.end)
            kv_fetch(&b->scratch.tiles[(i + 1) / hp->n_kv_heads], layer, (i + 1) % hp->n_kv_heads);
        for (size_t t = 0; t < tile->n_tokens; t++)
            append_token(l, tile, kv_head, t);
        const float *k = b->scratch.qkv + tile->token0 * shape->qkv_stride + shape->q_width +
                         kv_head * hp->head_dim;
        kv_append(l, tile, layer, kv_head, k, k + shape->kv_width, shape->qkv_stride);
    }
}

/* One block and KV head of a tile of one token. */
struct part {
    const struct tile *tile;
    size_t kv_head, block;
};

/* Its results: m, l (group), o (group, head_dim). */
struct partial {
    float *m, *l, *o;
};

static void run_block(const struct backend *b, const struct part *part, size_t layer,
                      struct part next, struct partial out)
{
    const struct hparams *hp = &b->model->hp;
    const struct tile *tile = part->tile;
    const size_t pos = tile->pos0, kv_head = part->kv_head, block = part->block;
    const struct kv_block kv = kv_block_at(tile->seq, layer, kv_head, block);
    const struct attn_block args = {
        .q = b->scratch.qkv + tile->token0 * b->shape.qkv_stride +
             kv_head * b->shape.group * hp->head_dim,
        .k = kv.k,
        .v = kv.v,
        .scales = kv.scales,
        .ahead = kv_block_at(next.tile->seq, layer, next.kv_head, next.block).k,
        .n_q = b->shape.group,
        .head_dim = hp->head_dim,
        .v_stride = b->shape.v_stride,
        .n_seen = size_min(pos + 1 - block * ATTN_BLOCK, ATTN_BLOCK),
        .m = out.m,
        .l = out.l,
        .o = out.o,
    };
    (b->cfg.kv == BN_KV_Q8 ? b->k.attn_block_q8 : b->k.attn_block)(&args);
}

static void merge_heads(const struct backend *b, struct partial run, struct partial one,
                        size_t first, size_t end)
{
    const size_t head_dim = b->model->hp.head_dim;
    for (size_t i = first; i < end; i++)
        b->k.attn_merge(&run.m[i], &run.l[i], run.o + i * head_dim, &one.m[i], &one.l[i],
                        one.o + i * head_dim, head_dim);
}

static float *attn_out(const struct backend *b, size_t token, size_t kv_head)
{
    return b->scratch.attn + token * b->shape.attn_stride +
           kv_head * b->shape.group * b->model->hp.head_dim;
}

/* A tile of tokens and one KV head through all their blocks; then the item `next` may follow. */
static void run_item(struct lane *l, size_t item, size_t next, size_t layer)
{
    const struct backend *b = l->pass->b;
    const size_t n_kv_heads = b->model->hp.n_kv_heads, kv_head = item % n_kv_heads;
    const struct tile *tile = &b->scratch.tiles[item / n_kv_heads];
    const struct seq *next_seq = b->scratch.tiles[next / n_kv_heads].seq;
    const size_t group = b->shape.group, head_dim = b->model->hp.head_dim;
    const size_t last = tile->pos0 / ATTN_BLOCK; /* a tile lies within one block */
    const attn_tile_fn run = b->cfg.kv == BN_KV_Q8 ? b->k.attn_tile_q8 : b->k.attn_tile;
    for (size_t block = 0; block <= last; block++) {
        const struct kv_block kv = kv_block_at(tile->seq, layer, kv_head, block);
        const struct kv_block ahead = block < last
                                          ? kv_block_at(tile->seq, layer, kv_head, block + 1)
                                          : kv_block_at(next_seq, layer, next % n_kv_heads, 0);
        run(&(struct attn_tile){
            .q = b->scratch.qkv + tile->token0 * b->shape.qkv_stride + kv_head * group * head_dim,
            .q_stride = b->shape.qkv_stride,
            .k = kv.k,
            .v = kv.v,
            .scales = kv.scales,
            .ahead = ahead.k,
            .n_tokens = tile->n_tokens,
            .n_q = group,
            .head_dim = head_dim,
            .v_stride = b->shape.v_stride,
            .n_seen = size_min(tile->pos0 + 1 - block * ATTN_BLOCK, ATTN_BLOCK),
            .is_first = block == 0,
            .m = l->attn_m,
            .l = l->attn_l,
            .o = l->attn_o,
            .scratch = l->attn_scratch,
            .out = block == last ? attn_out(b, tile->token0, kv_head) : NULL,
            .out_stride = b->shape.attn_stride,
        });
    }
    for (size_t t = 0; t < tile->n_tokens; t++)
        for (size_t i = 0; i < group; i++)
            b->k.attn_finish(l->attn_o + (t * group + i) * head_dim, l->attn_l[t * group + i],
                             head_dim, attn_out(b, tile->token0 + t, kv_head) + i * head_dim);
}

/* Shares are taken in descending order of token, so that those with most blocks are not last. */
static void apply_tiles(struct lane *l, size_t layer)
{
    const size_t n_items = l->pass->n_tiles * l->pass->b->model->hp.n_kv_heads;
    for (struct piece p = {0}; lane_take(l, n_items, 1, 1, &p);) {
        const size_t item = p.of.end - 1 - (p.begin - p.of.begin);
        run_item(l, item, item > p.of.begin ? item - 1 : item, layer);
    }
    lane_sync(l);
}

static struct partial slot_at(const struct backend *b, size_t slot)
{
    const size_t group = b->shape.group, head_dim = b->model->hp.head_dim;
    float *at = b->scratch.part + slot * group * (head_dim + 2);
    return (struct partial){at + group * head_dim, at + group * head_dim + group, at};
}

/* Tiles have one token each here. Fold this round's slots of (tile, query head) into its result. */
static void merge_round(struct lane *l, size_t block0, size_t n_round)
{
    const struct backend *b = l->pass->b;
    const struct hparams *hp = &b->model->hp;
    const size_t group = b->shape.group, head_dim = hp->head_dim;
    const struct share heads = lane_share(l, l->pass->n_tiles * hp->n_heads, 1);
    for (size_t j = heads.begin; j < heads.end; j++) {
        const size_t tile = j / hp->n_heads, head = j % hp->n_heads;
        const size_t n_blocks = b->scratch.tiles[tile].pos0 / ATTN_BLOCK + 1;
        const size_t item = tile * hp->n_kv_heads + head / group, i = head % group;
        const size_t end = size_min(n_blocks, block0 + n_round);
        if (block0 >= end)
            continue;
        /* An item's slot 0 is its result so far; the blocks of this round follow. */
        const struct partial run = slot_at(b, item * (n_round + 1));
        for (size_t block = block0; block < end; block++) {
            const struct partial one = slot_at(b, item * (n_round + 1) + 1 + block - block0);
            if (block == 0) {
                run.m[i] = one.m[i];
                run.l[i] = one.l[i];
                memcpy(run.o + i * head_dim, one.o + i * head_dim, head_dim * sizeof(float));
            } else {
                merge_heads(b, run, one, i, i + 1);
            }
        }
        if (end == n_blocks)
            b->k.attn_finish(run.o + i * head_dim, run.l[i], head_dim,
                             b->scratch.attn + tile * b->shape.attn_stride + head * head_dim);
    }
}

/* The item's block of this number, or its last. */
static struct part part_at(const struct backend *b, size_t item, size_t block)
{
    const size_t n_kv_heads = b->model->hp.n_kv_heads;
    const struct tile *tile = &b->scratch.tiles[item / n_kv_heads];
    return (struct part){tile, item % n_kv_heads, size_min(block, tile->pos0 / ATTN_BLOCK)};
}

static void apply_split(struct lane *l, size_t layer)
{
    const struct pass *pass = l->pass;
    const struct backend *b = pass->b;
    const size_t n_items = pass->n_tiles * b->model->hp.n_kv_heads;
    const size_t n_round = b->shape.n_slots / n_items - 1; /* blocks an item gets in a round */
    size_t n_blocks = 0;
    for (size_t i = 0; i < pass->n_tiles; i++)
        n_blocks = size_max(n_blocks, b->scratch.tiles[i].pos0 / ATTN_BLOCK + 1);
    for (size_t block0 = 0; block0 < n_blocks; block0 += n_round) {
        const size_t n = size_min(n_round, n_blocks - block0);
        const struct share work = lane_share(l, n_items * n, 1);
        for (size_t j = work.begin; j < work.end; j++) {
            const struct part part = part_at(b, j / n, block0 + j % n);
            const size_t next = size_min(j + 1, work.end - 1);
            if (part.block == block0 + j % n)
                run_block(b, &part, layer, part_at(b, next / n, block0 + next % n),
                          slot_at(b, j / n * (n_round + 1) + 1 + j % n));
        }
        lane_sync(l);
        merge_round(l, block0, n_round);
        lane_sync(l);
    }
}

void attn_apply(struct lane *l, size_t layer)
{
    if (l->pass->plan.attn == ATTN_SPLIT)
        apply_split(l, layer);
    else
        apply_tiles(l, layer);
}
