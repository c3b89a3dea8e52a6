/*
 * The KV cache of one sequence: blocks of ATTN_BLOCK positions, each block all layers and KV heads
 * [block][layer][kv head]{K, V, scales}, each as kernels_attn.h has it: F16 without scales, or
 * bytes.
 *
 * One mapping for the whole context, touched as it fills: it costs what it holds, growing is free,
 * and truncating sets a number. Positions at or past the length hold zeros or what was there before
 * a truncate; nothing reads them.
 */
#ifndef ENGINE_CPU_CPU_KV_H
#define ENGINE_CPU_CPU_KV_H

#include "engine/cpu/cpu_state.h"

struct seq {
    struct backend *backend;
    struct mem_map map;
    size_t n_ctx, length;            /* positions */
    size_t layer_bytes, block_bytes; /* of a block: one layer, all */
};

/* BN_EARG: the context does not fit in memory addresses. BN_ENOMEM. */
bool kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err);
void kv_close(struct seq *s); /* NULL is fine */
size_t kv_length(const struct seq *s);
void kv_truncate(struct seq *s, size_t n_keep);
bool kv_save(struct seq *s, const struct bn_stream *out, struct bn_error *err);
bool kv_load(struct seq *s, size_t length, const struct bn_stream *in, struct bn_error *err);

/* A block of one layer and KV head. */
struct kv_block {
    uint8_t *k, *v;
    float *scales; /* (2, ATTN_BLOCK) of bytes */
};
static inline struct kv_block kv_block_at(const struct seq *s, size_t layer, size_t kv_head,
                                          size_t block)
{
    const struct cpu_shape *shape = &s->backend->shape;
    uint8_t *const k = (uint8_t *)s->map.ptr + block * s->block_bytes + layer * s->layer_bytes +
                       kv_head * shape->kv_block_bytes;
    return (struct kv_block){k, k + shape->k_bytes,
                             (float *)(void *)(k + shape->k_bytes + shape->v_bytes)};
}

/* Write keys and values of a tile: k and v are (tokens->n_tokens) rows kv_stride floats apart. l
 * lends its scratch. */
void kv_append(const struct cpu_thread *th, const struct token_block *tokens, size_t layer,
               size_t kv_head, const float *k, const float *v, size_t kv_stride);

/* Fetch what kv_append writes of keys: a line for each element of a head. */
void kv_fetch(const struct token_block *tokens, size_t layer, size_t kv_head);

#endif
