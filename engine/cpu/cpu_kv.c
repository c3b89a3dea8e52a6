/*
 * Opening, filling, saving and restoring a KV cache.
 */
#include "engine/cpu/cpu_kv.h"

#include "engine/base/size.h"

#include <string.h>

bool kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err)
{
    const struct hparams *hp = &b->model->hp;
    struct seq *s = mem_alloc(1, sizeof *s);
    if (!s)
        return bn_fail(err, BN_ENOMEM, "no memory for a sequence");
    s->backend = b;
    s->n_ctx = n_ctx;
    s->k_elems = hp->head_dim * ATTN_BLOCK;
    s->head_elems = (hp->head_dim + b->shape.v_stride) * ATTN_BLOCK;
    const size_t n_blocks = n_ctx / ATTN_BLOCK + (n_ctx % ATTN_BLOCK != 0);
    size_t n_bytes;
    if (n_ctx < 1 || !size_mul(&s->layer_elems, s->head_elems, hp->n_kv_heads) ||
        !size_mul(&s->block_elems, s->layer_elems, hp->n_layers) ||
        !size_mul3(&n_bytes, s->block_elems, n_blocks, sizeof(uint16_t))) {
        kv_close(s);
        return bn_fail(err, BN_EARG, "a context of %zu tokens is too large", n_ctx);
    }
    if (!mem_map_open(&s->map, n_bytes, MEM_PAGES_HUGE)) {
        kv_close(s);
        return bn_fail(err, BN_ENOMEM, "no room for the %zu bytes of a context of %zu tokens",
                       n_bytes, n_ctx);
    }
    *out = s;
    return true;
}

void kv_close(struct seq *s)
{
    if (!s)
        return;
    mem_map_close(&s->map);
    mem_free(s);
}

size_t kv_length(const struct seq *s)
{
    return s->length;
}

void kv_truncate(struct seq *s, size_t n_keep)
{
    if (n_keep < s->length)
        s->length = n_keep;
}

void kv_append(const struct tile *tile, size_t layer, size_t kv_head, const float *k,
               const float *v, size_t kv_stride, uint16_t *f16)
{
    const struct seq *s = tile->seq;
    const struct backend *b = s->backend;
    const size_t head_dim = b->model->hp.head_dim, block = tile->pos0 / ATTN_BLOCK;
    uint16_t *keys = kv_keys(s, layer, kv_head, block) + tile->pos0 % ATTN_BLOCK;
    uint16_t *values =
        kv_values(s, layer, kv_head, block) + tile->pos0 % ATTN_BLOCK * b->shape.v_stride;
    for (size_t t = 0; t < tile->n_tokens; t++) {
        b->k.to_f16(k + t * kv_stride, head_dim, f16);
        for (size_t i = 0; i < head_dim; i++)
            keys[i * ATTN_BLOCK + t] = f16[i];
        b->k.to_f16(v + t * kv_stride, head_dim, values + t * b->shape.v_stride);
    }
}

/* Zeros where the last block holds positions past the length: a snapshot is a function of the
 * tokens, and says nothing about text that was taken back. */
static void clear_past_length(struct seq *s)
{
    const struct backend *b = s->backend;
    const struct hparams *hp = &b->model->hp;
    const size_t n = s->length % ATTN_BLOCK, block = s->length / ATTN_BLOCK;
    if (n == 0)
        return;
    for (size_t layer = 0; layer < hp->n_layers; layer++)
        for (size_t g = 0; g < hp->n_kv_heads; g++) {
            uint16_t *keys = kv_keys(s, layer, g, block), *values = kv_values(s, layer, g, block);
            for (size_t i = 0; i < hp->head_dim; i++)
                memset(keys + i * ATTN_BLOCK + n, 0, (ATTN_BLOCK - n) * sizeof *keys);
            memset(values + n * b->shape.v_stride, 0,
                   (ATTN_BLOCK - n) * b->shape.v_stride * sizeof *values);
        }
}

/* Whole blocks up to the one that holds position length - 1, one piece each. */
static bool move_blocks(const struct seq *s, size_t length, const struct seq_stream *stream)
{
    const size_t block_bytes = s->block_elems * sizeof(uint16_t);
    for (size_t pos = 0, block = 0; pos < length; pos += ATTN_BLOCK, block++)
        if (!stream->move(stream->ud, (uint8_t *)s->map.ptr + block * block_bytes, block_bytes))
            return false;
    return true;
}

bool kv_save(struct seq *s, const struct seq_stream *out, struct bn_error *err)
{
    clear_past_length(s);
    if (!move_blocks(s, s->length, out))
        return bn_fail(err, BN_EIO, "the KV cache of %zu tokens could not be written", s->length);
    return true;
}

bool kv_load(struct seq *s, size_t length, const struct seq_stream *in, struct bn_error *err)
{
    if (length > s->n_ctx)
        return bn_fail(err, BN_ECONTEXT, "%zu saved tokens do not fit in a context of %zu", length,
                       s->n_ctx);
    s->length = 0;
    if (!move_blocks(s, length, in))
        return bn_fail(err, BN_EIO, "the saved KV cache of %zu tokens ends too early", length);
    s->length = length;
    return true;
}
