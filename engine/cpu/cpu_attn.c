/*
 * Two ways to divide attention over threads (enum attn_method). They give the same bits.
 *
 * ATTN_TOKEN_BLOCKS: a work item is a token block and a KV head, and a thread computes it over all
 * position blocks. So each position block is read once per token block. A thread starts with the
 * same range of items as in attn_append: it wrote most keys of their tokens, which are still in its
 * cache.
 *
 * ATTN_SPLIT, for few tokens: each token is a token block, and position blocks are split over the
 * threads too. Partial results go to slots and are merged after a barrier.
 */
#include "engine/cpu/cpu_attn.h"

#include "engine/base/relax.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_kv.h"
#include "engine/cpu/cpu_work.h"

#include <math.h>
#include <string.h>

/* Prefetch a head of the next token. Mostly other threads wrote it, so it is not in this core's
 * cache. */
static void prefetch_floats(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += ROW_UNIT)
        cpu_prefetch(x + i);
}

/* QK norm, if the model has it (w is not NULL), then RoPE, if the layer has it. Prefetches n_fetch
 * floats at the same place of the next row. */
static void norm_and_rope_head(const struct cpu_thread *th, float *x, const float *w, bool has_rope,
                               size_t token, size_t n_fetch)
{
    const struct backend *b = th->pass->b;
    const struct hparams *hp = &b->model->hp;
    const rope_fn rope = b->model->arch->rope == ROPE_NEOX ? b->k.rope_neox : b->k.rope_norm;
    const size_t n_pairs = hp->n_rot / 2;
    if (w)
        b->k.rms_norm(x, w, hp->head_dim, hp->rms_eps, x);
    if (has_rope)
        rope(x, b->scratch.rope_c + token * n_pairs, b->scratch.rope_s + token * n_pairs,
             hp->n_rot);
    prefetch_floats(x + b->shape.widths.qkv_stride, n_fetch);
}

/* Floats of q in a row of qkv that belong to a KV head. */
static size_t q_floats_per_kv(const struct backend *b)
{
    return b->shape.widths.q_floats / b->model->hp.n_kv_heads;
}

/* Bring the query and the gate of each head, which alternate, into the order queries, gates. */
static void split_gates(const struct cpu_thread *th, float *q)
{
    const struct backend *b = th->pass->b;
    const size_t head_dim = b->model->hp.head_dim, n_q_per_kv = b->shape.widths.n_q_per_kv;
    _Static_assert(MODEL_MAX_HEAD_DIM <= ATTN_TILE * (KV_BLOCK + 2),
                   "attn_tile_floats has room for the gate of each query head");
    float *gates = th->attn_scratch;
    for (size_t i = 0; i < n_q_per_kv; i++) {
        memcpy(gates + i * head_dim, q + (2 * i + 1) * head_dim, head_dim * sizeof *q);
        memmove(q + i * head_dim, q + 2 * i * head_dim, head_dim * sizeof *q);
    }
    memcpy(q + n_q_per_kv * head_dim, gates, n_q_per_kv * head_dim * sizeof *q);
}

/* One KV head of token number t of a token block: its key, and its queries. */
static void prepare_token(struct cpu_thread *th, const struct token_block *tokens, size_t layer,
                          size_t kv_head, size_t t)
{
    const struct backend *b = th->pass->b;
    const struct cpu_layer *l = &b->layers[layer];
    const struct hparams *hp = &b->model->hp;
    const bool has_rope = b->model->layers[layer].traits.has_rope;
    const size_t token = tokens->token0 + t;
    const float q_scale = (float)(1.0 / sqrt((double)hp->head_dim));
    float *row = b->scratch.qkv + token * b->shape.widths.qkv_stride;
    float *q = row + kv_head * q_floats_per_kv(b);
    const size_t n_fetch = t + 1 < tokens->n_tokens ? hp->head_dim : 0;
    if (pass_has_gates(&b->shape.widths))
        split_gates(th, q);
    for (size_t i = 0; i < b->shape.widths.n_q_per_kv; i++)
        norm_and_rope_head(th, q + i * hp->head_dim, l->q_norm, has_rope, token, n_fetch);
    for (size_t i = 0; i < b->shape.widths.n_q_per_kv * hp->head_dim; i++)
        q[i] = q[i] * q_scale;
    float *k = row + b->shape.widths.q_floats + kv_head * hp->head_dim;
    norm_and_rope_head(th, k, l->k_norm, has_rope, token, n_fetch);
    prefetch_floats(k + b->shape.widths.qkv_stride + b->shape.widths.kv_width,
                    n_fetch); /* the value */
}

void attn_append(struct cpu_thread *th, size_t layer)
{
    const struct backend *b = th->pass->b;
    const struct cpu_shape *shape = &b->shape;
    const struct hparams *hp = &b->model->hp;
    const size_t n_items = th->pass->n_token_blocks * hp->n_kv_heads;
    for (struct work_item p = {0}; thread_take_work(th, n_items, 1, 1, &p);) {
        const size_t i = p.begin;
        const struct token_block *tokens = &b->scratch.token_blocks[i / hp->n_kv_heads];
        const size_t kv_head = i % hp->n_kv_heads;
        if (p.end < p.range.end)
            kv_prefetch(&b->scratch.token_blocks[(i + 1) / hp->n_kv_heads], layer,
                        (i + 1) % hp->n_kv_heads);
        for (size_t t = 0; t < tokens->n_tokens; t++)
            prepare_token(th, tokens, layer, kv_head, t);
        const float *k = b->scratch.qkv + tokens->token0 * shape->widths.qkv_stride +
                         shape->widths.q_floats + kv_head * hp->head_dim;
        kv_append(th, tokens, layer, kv_head, k, k + shape->widths.kv_width,
                  shape->widths.qkv_stride);
    }
}

size_t attn_oldest_key(const struct backend *b, size_t layer, size_t pos)
{
    const size_t window = b->model->layers[layer].traits.n_visible_keys;
    return window > 0 && pos + 1 > window ? pos + 1 - window : 0;
}

/* One position block and KV head of a token block of one token. */
struct block_item {
    const struct token_block *tokens;
    size_t kv_head, block;
};

/* The results of a position block, or of several merged ones: m, l (n_q_per_kv), o (n_q_per_kv,
 * head_dim). */
struct partial {
    float *m, *l, *o;
};

static void run_block(const struct backend *b, const struct block_item *item, size_t layer,
                      struct block_item next, struct partial out)
{
    const struct hparams *hp = &b->model->hp;
    const struct token_block *tokens = item->tokens;
    const size_t pos = tokens->pos0, kv_head = item->kv_head, block = item->block;
    const size_t oldest = attn_oldest_key(b, layer, pos);
    const struct kv_block kv = kv_block_at(tokens->seq, layer, kv_head, block);
    const struct attn_block args = {
        .q = b->scratch.qkv + tokens->token0 * b->shape.widths.qkv_stride +
             kv_head * q_floats_per_kv(b),
        .k = kv.k,
        .v = kv.v,
        .scales = kv.scales,
        .ahead = kv_block_at(next.tokens->seq, layer, next.kv_head, next.block).k,
        .n_q = b->shape.widths.n_q_per_kv,
        .head_dim = hp->head_dim,
        .v_stride = b->shape.widths.v_stride,
        .first_seen = oldest - size_min(oldest, block * KV_BLOCK),
        .n_seen = size_min(pos + 1 - block * KV_BLOCK, KV_BLOCK),
        .m = out.m,
        .l = out.l,
        .o = out.o,
    };
    (b->cfg.kv == BN_KV_Q8 ? b->k.attn_block_q8 : b->k.attn_block)(&args);
}

static void merge_head(const struct backend *b, struct partial run, struct partial one, size_t i)
{
    const size_t head_dim = b->model->hp.head_dim;
    b->k.attn_merge(&run.m[i], &run.l[i], run.o + i * head_dim, &one.m[i], &one.l[i],
                    one.o + i * head_dim, head_dim);
}

static float *attn_out(const struct backend *b, size_t token, size_t kv_head)
{
    return b->scratch.attn + token * b->shape.widths.attn_stride +
           kv_head * b->shape.widths.n_q_per_kv * b->model->hp.head_dim;
}

/* Store the result of query head number i of a KV head: O / L, times the sigmoid of its
 * gate if attention has gates. */
static void finish_head(const struct backend *b, struct partial run, size_t token, size_t kv_head,
                        size_t i)
{
    const size_t head_dim = b->model->hp.head_dim;
    float *out = attn_out(b, token, kv_head) + i * head_dim;
    const float *gates = b->scratch.qkv + token * b->shape.widths.qkv_stride +
                         kv_head * q_floats_per_kv(b) + b->shape.widths.n_q_per_kv * head_dim;
    b->k.attn_finish(run.o + i * head_dim, run.l[i], head_dim, out);
    if (pass_has_gates(&b->shape.widths))
        b->k.sigmoid_gate(gates + i * head_dim, out, head_dim, out);
}

/* One token block and KV head over the position blocks that it sees. `next` is the item that
 * probably follows, for prefetching; it is `item` itself if none follows. */
static void run_token_block(struct cpu_thread *th, size_t item, size_t next, size_t layer)
{
    const struct backend *b = th->pass->b;
    const size_t n_kv_heads = b->model->hp.n_kv_heads, kv_head = item % n_kv_heads;
    const struct token_block *tokens = &b->scratch.token_blocks[item / n_kv_heads];
    const struct seq *next_seq = b->scratch.token_blocks[next / n_kv_heads].seq;
    const size_t n_q_per_kv = b->shape.widths.n_q_per_kv, head_dim = b->model->hp.head_dim;
    const size_t last = tokens->pos0 / KV_BLOCK; /* position block of the tokens themselves */
    const size_t first = attn_oldest_key(b, layer, tokens->pos0) / KV_BLOCK;
    const size_t oldest_of_last = attn_oldest_key(b, layer, tokens->pos0 + tokens->n_tokens - 1);
    const size_t next_first =
        attn_oldest_key(b, layer, b->scratch.token_blocks[next / n_kv_heads].pos0) / KV_BLOCK;
    const attn_tile_fn run = b->cfg.kv == BN_KV_Q8 ? b->k.attn_tile_q8 : b->k.attn_tile;
    for (size_t block = first; block <= last; block++) {
        const struct kv_block kv = kv_block_at(tokens->seq, layer, kv_head, block);
        const struct kv_block ahead =
            block < last ? kv_block_at(tokens->seq, layer, kv_head, block + 1)
                         : kv_block_at(next_seq, layer, next % n_kv_heads, next_first);
        run(&(struct attn_tile){
            .q = b->scratch.qkv + tokens->token0 * b->shape.widths.qkv_stride +
                 kv_head * q_floats_per_kv(b),
            .q_stride = b->shape.widths.qkv_stride,
            .k = kv.k,
            .v = kv.v,
            .scales = kv.scales,
            .ahead = ahead.k,
            .n_tokens = tokens->n_tokens,
            .n_q = n_q_per_kv,
            .head_dim = head_dim,
            .v_stride = b->shape.widths.v_stride,
            .n_seen = size_min(tokens->pos0 + 1 - block * KV_BLOCK, KV_BLOCK),
            .n_hidden = oldest_of_last - size_min(oldest_of_last, block * KV_BLOCK),
            .is_first = block == first,
            .m = th->attn_m,
            .l = th->attn_l,
            .o = th->attn_o,
            .scratch = th->attn_scratch,
            .out = block == last ? attn_out(b, tokens->token0, kv_head) : NULL,
            .out_stride = b->shape.widths.attn_stride,
        });
    }
    for (size_t t = 0; t < tokens->n_tokens; t++)
        for (size_t i = 0; i < n_q_per_kv; i++)
            finish_head(b,
                        (struct partial){th->attn_m + t * n_q_per_kv, th->attn_l + t * n_q_per_kv,
                                         th->attn_o + t * n_q_per_kv * head_dim},
                        tokens->token0 + t, kv_head, i);
}

/* Each range is processed in descending order: later tokens of a sequence see more positions (up to
 * a window), and the items that take longest should not come last. */
static void apply_token_blocks(struct cpu_thread *th, size_t layer)
{
    const size_t n_items = th->pass->n_token_blocks * th->pass->b->model->hp.n_kv_heads;
    for (struct work_item p = {0}; thread_take_work(th, n_items, 1, 1, &p);) {
        const size_t item = p.range.end - 1 - (p.begin - p.range.begin);
        run_token_block(th, item, item > p.range.begin ? item - 1 : item, layer);
    }
    thread_sync(th);
}

/* A slot holds o, m, l, see scratch.attn_partials. */
static struct partial slot_at(const struct backend *b, size_t slot)
{
    const size_t n_q_per_kv = b->shape.widths.n_q_per_kv, head_dim = b->model->hp.head_dim;
    float *at = b->scratch.attn_partials + slot * n_q_per_kv * (head_dim + 2);
    return (struct partial){at + n_q_per_kv * head_dim, at + n_q_per_kv * head_dim + n_q_per_kv,
                            at};
}

/* The position blocks that the first token of a token block sees. Later tokens of the token block
 * see no other ones, because all its positions are in the last of these blocks. */
static struct work_range blocks_seen(const struct backend *b, const struct token_block *tokens,
                                     size_t layer)
{
    return (struct work_range){attn_oldest_key(b, layer, tokens->pos0) / KV_BLOCK,
                               tokens->pos0 / KV_BLOCK + 1};
}

/* Merge the slots of a round into the result of each token and query head. An item is a token block
 * and a KV head, and each token block has one token here. A round is up to n_round position blocks
 * of every item, from number block0 on, counted from the first one that the token sees. */
static void merge_round(struct cpu_thread *th, size_t layer, size_t block0, size_t n_round)
{
    const struct backend *b = th->pass->b;
    const struct hparams *hp = &b->model->hp;
    const size_t n_q_per_kv = b->shape.widths.n_q_per_kv, head_dim = hp->head_dim;
    const struct work_range heads = thread_range(th, th->pass->n_token_blocks * hp->n_heads, 1);
    for (size_t j = heads.begin; j < heads.end; j++) {
        const size_t token = j / hp->n_heads, head = j % hp->n_heads;
        const struct work_range seen = blocks_seen(b, &b->scratch.token_blocks[token], layer);
        const size_t n_blocks = seen.end - seen.begin;
        const size_t item = token * hp->n_kv_heads + head / n_q_per_kv, i = head % n_q_per_kv;
        const size_t end = size_min(n_blocks, block0 + n_round);
        if (block0 >= end)
            continue;
        /* Slot 0 of an item holds its result so far; the position blocks of this round follow. */
        const struct partial run = slot_at(b, item * (n_round + 1));
        for (size_t block = block0; block < end; block++) {
            const struct partial one = slot_at(b, item * (n_round + 1) + 1 + block - block0);
            if (block == 0) {
                run.m[i] = one.m[i];
                run.l[i] = one.l[i];
                memcpy(run.o + i * head_dim, one.o + i * head_dim, head_dim * sizeof(float));
            } else {
                merge_head(b, run, one, i);
            }
        }
        if (end == n_blocks)
            finish_head(b, run, token, head / n_q_per_kv, i);
    }
}

/* Position block number `block` of those that an item sees, or the last one if it sees fewer. */
static struct block_item block_item_at(const struct backend *b, size_t layer, size_t item,
                                       size_t block)
{
    const size_t n_kv_heads = b->model->hp.n_kv_heads;
    const struct token_block *tokens = &b->scratch.token_blocks[item / n_kv_heads];
    const struct work_range seen = blocks_seen(b, tokens, layer);
    return (struct block_item){tokens, item % n_kv_heads,
                               size_min(seen.begin + block, seen.end - 1)};
}

static void apply_split(struct cpu_thread *th, size_t layer)
{
    const struct pass *pass = th->pass;
    const struct backend *b = pass->b;
    const size_t n_items = pass->n_token_blocks * b->model->hp.n_kv_heads;
    /* Position blocks of an item in a round. An item has one more slot, for its result. At least
     * SPLIT_BLOCKS slots per item exist, because ATTN_SPLIT has few items: see cpu_sizes.c. */
    const size_t n_round = b->shape.n_slots / n_items - 1;
    size_t n_blocks = 0;
    for (size_t i = 0; i < pass->n_token_blocks; i++) {
        const struct work_range seen = blocks_seen(b, &b->scratch.token_blocks[i], layer);
        n_blocks = size_max(n_blocks, seen.end - seen.begin);
    }
    for (size_t block0 = 0; block0 < n_blocks; block0 += n_round) {
        const size_t n = size_min(n_round, n_blocks - block0);
        const struct work_range work = thread_range(th, n_items * n, 1);
        for (size_t j = work.begin; j < work.end; j++) {
            const struct block_item now = block_item_at(b, layer, j / n, block0 + j % n);
            const struct work_range seen = blocks_seen(b, now.tokens, layer);
            const size_t next = size_min(j + 1, work.end - 1);
            /* If the item sees fewer blocks, block_item_at returned its last one, which has been or
             * will be computed for its own number. */
            if (now.block == seen.begin + block0 + j % n)
                run_block(b, &now, layer, block_item_at(b, layer, next / n, block0 + next % n),
                          slot_at(b, j / n * (n_round + 1) + 1 + j % n));
        }
        thread_sync(th);
        merge_round(th, layer, block0, n_round);
        thread_sync(th);
    }
}

void attn_apply(struct cpu_thread *th, size_t layer)
{
    if (th->pass->strategy.attn == ATTN_SPLIT)
        apply_split(th, layer);
    else
        apply_token_blocks(th, layer);
}

uint64_t attn_bytes(const struct pass *pass)
{
    const struct backend *b = pass->b;
    uint64_t n_blocks = 0;
    for (size_t layer = 0; layer < b->model->hp.n_layers; layer++) {
        if (b->model->layers[layer].traits.is_delta_net)
            continue;
        for (size_t i = 0; i < pass->n_token_blocks; i++) {
            const struct work_range seen = blocks_seen(b, &b->scratch.token_blocks[i], layer);
            n_blocks += seen.end - seen.begin;
        }
    }
    return n_blocks * b->model->hp.n_kv_heads * b->shape.kv_block_bytes;
}
