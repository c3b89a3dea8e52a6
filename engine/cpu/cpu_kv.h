/*
 * The KV cache of one sequence, in position blocks of KV_BLOCK positions. Each of them holds all KV
 * heads of the layers with keys and values: [block][layer][kv head]{K, V, scales}, in the formats
 * of kernels_attn.h: F16 without scales, or Q8. Layers with a window may have a ring instead, see
 * cpu_ring.h.
 *
 * The position blocks of the whole context are one mapping whose pages the system allocates on
 * first use. So memory grows with the text, and truncating only sets a number. Positions at or past
 * the length hold zeros or old values, on which no result depends.
 */
#ifndef ENGINE_CPU_CPU_KV_H
#define ENGINE_CPU_CPU_KV_H

#include "engine/cpu/cpu_recurrent.h"
#include "engine/cpu/cpu_ring.h"
#include "engine/cpu/cpu_state.h"

struct seq {
    struct backend *backend;
    const double *rope_freq; /* (n_rot / 2), those of the backend for this n_ctx */
    struct mem_map map;
    size_t n_ctx, length;       /* positions */
    size_t layer_bytes;         /* of a position block in one layer */
    size_t block_bytes;         /* of a position block in all layers that map holds */
    struct ring ring;           /* of the layers with a ring */
    struct recurrent recurrent; /* states of gated delta nets, which have no keys and values */
};

/* Open an empty sequence, which the caller closes before b. BN_EARG: n_ctx is 0, or the context or
 * the recurrent state exceeds the address space. BN_ENOMEM. */
bool kv_open(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err);
void kv_close(struct seq *s); /* NULL is allowed */

/* The operations of struct backend_ops. kv_save, kv_save_bytes and kv_load are seq_save,
 * seq_save_bytes and seq_load. kv_state_save and kv_state_load always return true. */
size_t kv_reachable(const struct seq *s, size_t n_keep);
void kv_truncate(struct seq *s, size_t n_keep);
bool kv_state_save(struct seq *s, void *to);
bool kv_state_load(struct seq *s, const void *from, size_t length);
bool kv_save(struct seq *s, const struct bn_stream *out, struct bn_error *err);
size_t kv_save_bytes(const struct seq *s);
bool kv_load(struct seq *s, size_t length, const struct bn_stream *in, struct bn_error *err);

/* Call it before a pass that appends n_ids positions. Records the positions of the ring that the
 * pass overwrites: they are lost even if the pass fails. Does nothing without a ring. */
void kv_begin(struct seq *s, size_t n_ids);

/* The part of position block `block` for one KV head of a layer that has keys and values. */
struct kv_block {
    uint8_t *k, *v; /* in the layouts of struct attn_block (kernels_attn.h) */
    float *scales;  /* (2, KV_BLOCK), must not be used without Q8 */
};
static inline struct kv_block kv_block_at(const struct seq *s, size_t layer, size_t kv_head,
                                          size_t block)
{
    const struct cpu_shape *shape = &s->backend->shape;
    const struct cpu_layer *l = &s->backend->layers[layer];
    uint8_t *const at = l->has_ring ? (uint8_t *)s->ring.map.ptr +
                                          block % s->ring.contents.n_blocks * s->ring.block_bytes
                                    : (uint8_t *)s->map.ptr + block * s->block_bytes;
    uint8_t *const k = at + l->kv_index * s->layer_bytes + kv_head * shape->kv_block_bytes;
    return (struct kv_block){k, k + shape->k_bytes,
                             (float *)(void *)(k + shape->k_bytes + shape->v_bytes)};
}

/* Append the keys and values of a token block: k and v are tokens->n_tokens rows of head_dim
 * floats, kv_stride floats apart. th->f16 and th->q8 are scratch memory. */
void kv_append(const struct cpu_thread *th, const struct token_block *tokens, size_t layer,
               size_t kv_head, const float *k, const float *v, size_t kv_stride);

/* Prefetch the cache lines of the keys that kv_append will write. With Q8 the positions of a token
 * block can be in two lines; only that of the first position is prefetched. */
void kv_prefetch(const struct token_block *tokens, size_t layer, size_t kv_head);

#endif
