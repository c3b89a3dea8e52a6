/*
 * Opens, fills, saves and restores a KV cache.
 */
#include "engine/cpu/cpu_kv.h"

#include "engine/base/relax.h"
#include "engine/base/size.h"
#include "engine/model/rope.h"

#include <string.h>

bool kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err)
{
    const struct hparams *hp = &b->model->hp;
    if (n_ctx < 1)
        return bn_fail(err, BN_EARG, "a context needs at least 1 token");
    struct seq *s = mem_alloc(1, sizeof *s);
    if (!s)
        return bn_fail(err, BN_ENOMEM, "no memory for a sequence");
    s->backend = b;
    s->n_ctx = n_ctx;
    s->rope_freq = b->rope_freq + (rope_is_long(b->model, n_ctx) ? hp->n_rot / 2 : 0);
    const size_t n_blocks = position_blocks(n_ctx);
    size_t n_bytes;
    const size_t n_layers = hp->n_attn_layers - b->shape.ring.n_layers;
    if (!size_mul(&s->layer_bytes, b->shape.kv_block_bytes, hp->n_kv_heads) ||
        !size_mul(&s->block_bytes, s->layer_bytes, n_layers) ||
        !size_mul(&n_bytes, s->block_bytes, n_blocks)) {
        (void)bn_fail(err, BN_EARG, "a context of %zu tokens is too large", n_ctx);
        goto fail;
    }
    if (!ring_open(&s->ring, b, n_ctx, err))
        goto fail;
    if (n_bytes > 0 && !mem_map_open(&s->map, n_bytes, MEM_PAGES_HUGE)) {
        (void)bn_fail(err, BN_ENOMEM, "no memory for the %zu bytes of a context of %zu tokens",
                      n_bytes, n_ctx);
        goto fail;
    }
    if (!recurrent_open(&s->recurrent, hp, err))
        goto fail;
    *out = s;
    return true;

fail:
    kv_close(s);
    return false;
}

void kv_close(struct seq *s)
{
    if (!s)
        return;
    ring_close(&s->ring);
    recurrent_close(&s->recurrent);
    mem_map_close(&s->map);
    mem_free(s);
}

size_t kv_reachable(const struct seq *s, size_t n_keep)
{
    const size_t n =
        s->recurrent.n_floats > 0 ? copies_reachable(&s->recurrent.copies, n_keep) : n_keep;
    return ring_reachable(&s->ring.contents, &s->backend->shape.ring, s->length, n);
}

void kv_begin(struct seq *s, size_t n_ids)
{
    ring_begin_write(&s->ring.contents, s->length + n_ids);
}

void kv_truncate(struct seq *s, size_t n_keep)
{
    if (n_keep < s->length) {
        s->length = n_keep;
        recurrent_truncate(&s->recurrent, n_keep);
    }
    if (s->length == 0)
        s->ring.contents.first = 0; /* an empty ring has lost no position */
}

bool kv_state_save(struct seq *s, void *to)
{
    const size_t n_bytes = s->recurrent.n_floats * sizeof(float);
    if (n_bytes > 0)
        memcpy(to, recurrent_current(&s->recurrent), n_bytes);
    ring_save(&s->ring, s->backend, s->length, (uint8_t *)to + n_bytes);
    return true;
}

bool kv_state_load(struct seq *s, const void *from, size_t length)
{
    recurrent_load(&s->recurrent, from, length);
    ring_load(&s->ring, s->backend, length,
              (const uint8_t *)from + s->recurrent.n_floats * sizeof(float));
    s->length = length;
    return true;
}

static void append_f16(const struct cpu_thread *th, const struct kv_block *to, size_t pos,
                       const float *k, const float *v)
{
    const struct backend *b = th->pass->b;
    const size_t head_dim = b->model->hp.head_dim;
    uint16_t *const keys = (uint16_t *)(void *)to->k + pos;
    b->k.to_f16(k, head_dim, th->f16);
    for (size_t i = 0; i < head_dim; i++)
        keys[i * KV_BLOCK] = th->f16[i];
    b->k.to_f16(v, head_dim, (uint16_t *)(void *)to->v + pos * b->shape.widths.v_stride);
}

static void append_q8(const struct cpu_thread *th, const struct kv_block *to, size_t pos,
                      const float *k, const float *v)
{
    const struct backend *b = th->pass->b;
    const size_t head_dim = b->model->hp.head_dim;
    struct act_scale scale;
    b->k.quantise(&(struct act_in){.x = k, .n = head_dim, .ahead = v}, th->q8, &scale);
    to->scales[pos] = 1.0f / scale.s;
    for (size_t i = 0; i < head_dim; i += ATTN_QUAD) /* th->q8 has zeros past head_dim */
        memcpy(to->k + i * KV_BLOCK + pos * ATTN_QUAD, th->q8 + i, ATTN_QUAD);
    b->k.quantise(&(struct act_in){.x = v, .n = head_dim}, th->q8, &scale);
    to->scales[KV_BLOCK + pos] = 1.0f / scale.s;
    uint8_t *const values = to->v + pos / ATTN_QUAD * ATTN_QUAD * b->shape.widths.v_stride;
    for (size_t i = 0; i < head_dim; i++)
        values[i * ATTN_QUAD + pos % ATTN_QUAD] = (uint8_t)th->q8[i];
}

void kv_append(const struct cpu_thread *th, const struct token_block *tokens, size_t layer,
               size_t kv_head, const float *k, const float *v, size_t kv_stride)
{
    const struct kv_block to = kv_block_at(tokens->seq, layer, kv_head, tokens->pos0 / KV_BLOCK);
    const size_t pos = tokens->pos0 % KV_BLOCK;
    for (size_t t = 0; t < tokens->n_tokens; t++) {
        if (th->pass->b->cfg.kv == BN_KV_Q8)
            append_q8(th, &to, pos + t, k + t * kv_stride, v + t * kv_stride);
        else
            append_f16(th, &to, pos + t, k + t * kv_stride, v + t * kv_stride);
    }
}

void kv_prefetch(const struct token_block *tokens, size_t layer, size_t kv_head)
{
    const struct backend *b = tokens->seq->backend;
    const struct kv_block to = kv_block_at(tokens->seq, layer, kv_head, tokens->pos0 / KV_BLOCK);
    /* A row of a key block has one element (in Q8 four) of each position. */
    const size_t pos_bytes = b->cfg.kv == BN_KV_Q8 ? ATTN_QUAD : sizeof(uint16_t);
    const uint8_t *at = to.k + tokens->pos0 % KV_BLOCK * pos_bytes;
    for (; at < to.k + b->shape.k_bytes; at += KV_BLOCK * pos_bytes)
        cpu_prefetch(at);
}

/* Each of n_rows rows has pos_bytes bytes for each of KV_BLOCK positions. Write zeros to
 * positions n and up. */
static void clear_rows(uint8_t *rows, size_t n_rows, size_t n, size_t pos_bytes)
{
    for (size_t i = 0; i < n_rows; i++)
        memset(rows + (i * KV_BLOCK + n) * pos_bytes, 0, (KV_BLOCK - n) * pos_bytes);
}

/* Write zeros to positions n and up of V of type Q8, where four positions of an element are
 * adjacent. */
static void clear_values_q8(const struct kv_block *b, size_t v_stride, size_t n)
{
    for (size_t pos = n; pos < KV_BLOCK; pos++)
        for (size_t i = 0; i < v_stride; i++)
            b->v[(pos / ATTN_QUAD * v_stride + i) * ATTN_QUAD + pos % ATTN_QUAD] = 0;
}

/* Clear the positions of the last position block past the length, so that the bytes of seq_save
 * depend only on the tokens and contain no removed text. */
static void clear_past_length(struct seq *s)
{
    const struct backend *b = s->backend;
    const struct hparams *hp = &b->model->hp;
    const size_t n = s->length % KV_BLOCK, v_stride = b->shape.widths.v_stride;
    if (n == 0)
        return;
    for (size_t i = 0; i < hp->n_layers * hp->n_kv_heads; i++) {
        const size_t layer = i / hp->n_kv_heads;
        if (b->model->layers[layer].traits.is_delta_net || b->layers[layer].has_ring)
            continue; /* the blocks have no part for this layer */
        const struct kv_block block =
            kv_block_at(s, layer, i % hp->n_kv_heads, s->length / KV_BLOCK);
        if (b->cfg.kv == BN_KV_Q8) {
            clear_rows(block.k, b->shape.k_bytes / (ATTN_QUAD * KV_BLOCK), n, ATTN_QUAD);
            clear_values_q8(&block, v_stride, n);
            clear_rows((uint8_t *)block.scales, 2, n, sizeof(float));
        } else {
            clear_rows(block.k, hp->head_dim, n, sizeof(uint16_t));
            memset(block.v + n * v_stride * sizeof(uint16_t), 0,
                   (KV_BLOCK - n) * v_stride * sizeof(uint16_t));
        }
    }
}

/* Save or load the position blocks of positions 0 .. length - 1, with one call of the stream for
 * each. A block has no bytes if all layers are delta nets or have rings. */
static bool move_blocks(const struct seq *s, size_t length, const struct bn_stream *stream)
{
    for (size_t pos = 0, block = 0; pos < length; pos += KV_BLOCK, block++)
        if (s->block_bytes > 0 &&
            !stream->move(stream->ud, (uint8_t *)s->map.ptr + block * s->block_bytes,
                          s->block_bytes))
            return false;
    return true;
}

/* Save or load the state of `length` positions: the recurrent state, then the windows of rings in
 * the format of saved states. */
static bool move_state(struct seq *s, size_t length, const struct bn_stream *stream, void *windows,
                       bool is_load)
{
    const size_t n_floats = s->recurrent.n_floats, n_bytes = ring_state_bytes(&s->ring, s->backend);
    if (n_floats > 0 &&
        !stream->move(stream->ud, recurrent_current(&s->recurrent), n_floats * sizeof(float)))
        return false;
    if (n_bytes == 0)
        return true;
    if (!is_load)
        ring_save(&s->ring, s->backend, length, windows);
    const bool ok = stream->move(stream->ud, windows, n_bytes);
    if (is_load && ok)
        ring_load(&s->ring, s->backend, length, windows);
    return ok;
}

/* Memory for the windows of the rings that move_state copies; none without rings. */
static bool open_windows(const struct seq *s, struct mem_map *windows, struct bn_error *err)
{
    const size_t n_bytes = ring_state_bytes(&s->ring, s->backend);
    *windows = (struct mem_map){0};
    return n_bytes == 0 || mem_map_open(windows, n_bytes, MEM_PAGES_NORMAL) ||
           bn_fail(err, BN_ENOMEM, "no memory for %zu bytes of keys and values", n_bytes);
}

bool kv_save(struct seq *s, const struct bn_stream *out, struct bn_error *err)
{
    struct mem_map windows;
    if (!open_windows(s, &windows, err))
        return false;
    clear_past_length(s);
    const bool ok =
        move_blocks(s, s->length, out) && move_state(s, s->length, out, windows.ptr, false);
    mem_map_close(&windows);
    return ok || bn_fail(err, BN_EIO, "the KV cache of %zu tokens could not be written", s->length);
}

size_t kv_save_bytes(const struct seq *s)
{
    const size_t n_blocks = position_blocks(s->length);
    return n_blocks * s->block_bytes + s->recurrent.n_floats * sizeof(float) +
           ring_state_bytes(&s->ring, s->backend);
}

bool kv_load(struct seq *s, size_t length, const struct bn_stream *in, struct bn_error *err)
{
    if (length > s->n_ctx)
        return bn_fail(err, BN_ECONTEXT, "%zu saved tokens do not fit in a context of %zu", length,
                       s->n_ctx);
    kv_truncate(s, 0);
    struct mem_map windows;
    if (!open_windows(s, &windows, err))
        return false;
    const bool ok = move_blocks(s, length, in) && move_state(s, length, in, windows.ptr, true);
    mem_map_close(&windows);
    if (!ok) {
        recurrent_reset(&s->recurrent); /* part of the state may have been read */
        return bn_fail(err, BN_EIO, "the saved KV cache of %zu tokens ends too early", length);
    }
    copies_set_length(&s->recurrent.copies, length);
    s->length = length;
    return true;
}
