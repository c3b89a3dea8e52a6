/*
 * The KV cache of one sequence: blocks of ATTN_BLOCK positions, each block all layers and KV heads
 * [block][layer][kv head]{K (head_dim, ATTN_BLOCK), V (ATTN_BLOCK, v_stride)}, F16.
 *
 * One mapping for the whole context, touched as it fills: it costs what it holds, growing is free,
 * and truncating sets a number. Positions at or past the length hold zeros or what was there before
 * a truncate; nothing reads them.
 */
#ifndef ENGINE_CPU_CPU_KV_H
#define ENGINE_CPU_CPU_KV_H

#include "engine/cpu/cpu_state.h"

#define KV_VERSION "cpu-f16-1"

struct seq {
    struct backend *backend;
    struct mem_map map;
    size_t n_ctx, length; /* positions */
    size_t k_elems;       /* of one layer's and KV head's K in a block */
    size_t head_elems;    /* K and V together */
    size_t layer_elems, block_elems;
};

/* BN_EARG: the context does not fit in memory addresses. BN_ENOMEM. */
bool kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err);
void kv_close(struct seq *s); /* NULL is fine */
size_t kv_length(const struct seq *s);
void kv_truncate(struct seq *s, size_t n_keep);
bool kv_save(struct seq *s, const struct seq_stream *out, struct bn_error *err);
bool kv_load(struct seq *s, size_t length, const struct seq_stream *in, struct bn_error *err);

static inline uint16_t *kv_keys(const struct seq *s, size_t layer, size_t kv_head, size_t block)
{
    return (uint16_t *)s->map.ptr + block * s->block_elems + layer * s->layer_elems +
           kv_head * s->head_elems;
}
static inline uint16_t *kv_values(const struct seq *s, size_t layer, size_t kv_head, size_t block)
{
    return kv_keys(s, layer, kv_head, block) + s->k_elems;
}

/* Write keys and values of a tile: k and v are (tile->n_tokens) rows kv_stride floats apart. f16 is
 * (head_dim) of scratch. */
void kv_append(const struct tile *tile, size_t layer, size_t kv_head, const float *k,
               const float *v, size_t kv_stride, uint16_t *f16);

#endif
