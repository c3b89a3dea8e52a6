/*
 * Attention in decode: the data of a thread block in shared memory. Keys and values of a position
 * block come from the cache; the queries, and the key and the value of the token itself, from the
 * product before it. Norm, RoPE and scale of docs/kernels.md are applied here, one warp for each
 * head.
 *
 * Only the kernel that uses this file appends to the cache of a layer in decode. So the copies from
 * the cache may start before the previous kernel has ended, and the last position block is read
 * without the token's own position, which is added in shared memory.
 */
#ifndef CUDA_ATTN_LOAD_CUH
#define CUDA_ATTN_LOAD_CUH

#include "engine/cuda/kernels/attention/cuda_attn_block.cuh"

#define SPLIT_BATCH 8 /* elements or positions that a thread loads before it uses them */

/* k and v have one position block and one tile of elements. */
struct split_shared {
    uint32_t k[SPLIT_TILE][KV_BLOCK / 2]; /* two positions in a word */
    uint16_t v[KV_BLOCK][SPLIT_TILE];
    float q[ATTN_HEADS + 1][SPLIT_HEAD]; /* queries and the key of the token, after RoPE */
    float p[ATTN_HEADS][KV_BLOCK];       /* probabilities */
    float r[ATTN_HEADS];                 /* 1 / their sum, only if there is one position block */
    float c[SPLIT_HEAD / 2], s[SPLIT_HEAD / 2];
    uint16_t new_k[SPLIT_HEAD], new_v[SPLIT_HEAD]; /* of the token, as in the cache */
    bool is_last;                                  /* see is_last_share */
};

/* Number of elements in the tile that starts at element i0. */
DEV uint32_t tile_elems(uint32_t head_dim, uint32_t i0)
{
    return head_dim - i0 < SPLIT_TILE ? head_dim - i0 : SPLIT_TILE;
}

/* Starts copying the keys of the tile that starts at element i0, in chunks of 8 F16 elements. */
DEV void copy_keys(const struct kv_shape *kv, struct split_shared *s, const uint16_t *keys,
                   uint32_t i0)
{
    const uint32_t n_chunks = tile_elems(kv->head_dim, i0) * (KV_BLOCK / 8);
    const uint16_t *from = keys + i0 * KV_BLOCK;
    for (uint32_t c = thread_x(); c < n_chunks; c += n_threads_x())
        copy_async(&s->k[0][0] + 4 * c, from + 8 * c, true);
}

/* As copy_keys, for the values of whole batches of positions. Values of positions that the token
 * does not see become zeros. Rows are padded to 32 elements: the last chunk is whole. */
DEV void copy_values(const struct kv_shape *kv, struct split_shared *s, const uint16_t *keys,
                     uint32_t i0, struct seen range)
{
    const uint16_t *values = keys + kv->head_dim * KV_BLOCK + i0;
    const uint32_t n_chunks = (tile_elems(kv->head_dim, i0) + 7) / 8;
    const uint32_t chunk = thread_x() % (SPLIT_TILE / 8), step = n_threads_x() / (SPLIT_TILE / 8);
    const uint32_t end = (range.end + SPLIT_BATCH - 1) / SPLIT_BATCH * SPLIT_BATCH;
    uint32_t j = range.first / SPLIT_BATCH * SPLIT_BATCH + thread_x() / (SPLIT_TILE / 8);
    for (; j < end && chunk < n_chunks; j += step)
        copy_async(&s->v[j][8 * chunk], values + j * kv->v_stride + 8 * chunk,
                   j >= range.first && j < range.end);
}

/* Cosines and sines of the token. No kernel of a layer writes them. */
DEV void load_angles(const struct rope_args *a, struct split_shared *s, uint32_t token)
{
    const uint32_t n_pairs = a->n_rot / 2;
#pragma unroll 1
    for (uint32_t i = thread_x(); i < n_pairs; i += n_threads_x()) {
        s->c[i] = a->c[(uint64_t)token * n_pairs + i];
        s->s[i] = a->s[(uint64_t)token * n_pairs + i];
    }
}

/* Loads head x, norms it with w unless w is NULL, and rotates it. The result is in `to`, where this
 * warp sees it. */
DEV void load_head(const struct rope_args *a, const struct split_shared *s, const float *x,
                   const float *w, float *to)
{
    const uint32_t lane = thread_x() % 32, head_dim = a->kv.head_dim;
    float v[SPLIT_HEAD / 32];
#pragma unroll
    for (uint32_t u = 0; u < SPLIT_HEAD / 32; u++)
        v[u] = lane + 32 * u < head_dim ? x[lane + 32 * u] : 0.0f;
    if (w) {
        float sum[2] = {0.0f, 0.0f}; /* partial sums lane and lane + 32 of sum64 */
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_HEAD / 32; u++)
            sum[u % 2] = fmaf(v[u], v[u], sum[u % 2]);
        const float r = 1.0f / sqrtf(warp_tree(sum[0] + sum[1]) / (float)head_dim + a->eps);
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_HEAD / 32; u++)
            if (lane + 32 * u < head_dim)
                v[u] = (v[u] * r) * w[lane + 32 * u];
    }
#pragma unroll
    for (uint32_t u = 0; u < SPLIT_HEAD / 32; u++)
        to[lane + 32 * u] = v[u];
    warp_sync();
#pragma unroll 1
    for (uint32_t i = lane; i < a->n_rot / 2; i += 32)
        rotate(a, to, i, s->c[i], s->s[i]);
    warp_sync();
}

/* Converts the token's key, which load_head has loaded, and its value v to F16, and stores them in
 * new_k and new_v. Also appends them to the cache, unless `keys`, the keys of the last position
 * block, is NULL. */
DEV void store_token(const struct kv_shape *kv, struct split_shared *s, const float *v,
                     uint16_t *keys, uint32_t slot)
{
#pragma unroll 2
    for (uint32_t i = thread_x() % 32; i < kv->head_dim; i += 32) {
        s->new_k[i] = cache_f16(s->q[ATTN_HEADS][i]);
        s->new_v[i] = cache_f16(v[i]);
        if (keys) {
            keys[i * KV_BLOCK + slot] = s->new_k[i];
            keys[kv->head_dim * KV_BLOCK + slot * kv->v_stride + i] = s->new_v[i];
        }
    }
}

/* Loads the queries, one in each warp, and the token's key and value in the last warp if has_token.
 * The caller's barrier makes them visible. Of the thread blocks with the same KV head, only those
 * of its first query heads append to the cache. */
DEV void load_heads(const struct rope_args *a, struct split_shared *s, const struct attn_thread *p,
                    uint32_t token, uint32_t kv_head, bool has_token)
{
    const uint32_t warp = thread_x() / 32, head_dim = a->kv.head_dim;
    const float *k = a->qkv + (uint64_t)token * a->qkv_stride + a->q_floats + kv_head * head_dim;
    const bool is_query = warp < p->n_heads;
    if (!is_query && !(warp == ATTN_HEADS && has_token))
        return;
    load_head(a, s, is_query ? p->q + warp * head_dim : k, is_query ? a->q_norm : a->k_norm,
              s->q[warp]);
    if (is_query) {
#pragma unroll 1
        for (uint32_t i = thread_x() % 32; i < head_dim; i += 32)
            s->q[warp][i] = s->q[warp][i] * a->q_scale;
    } else {
        const struct cuda_token *at = &a->tokens[token];
        const uint32_t place = kv_place(&a->kv, at->ring_blocks, p->pos / KV_BLOCK);
        uint16_t *keys = kv_begin(&a->kv, at, a->layer, kv_head) + place * a->kv.block_elems;
        store_token(&a->kv, s, k + a->kv_width, p->head == kv_head * a->n_q_per_kv ? keys : NULL,
                    p->pos % KV_BLOCK);
    }
}

/* Put the key and the value of the token into the tile that starts at element i0. Call them between
 * barriers, because other threads have copied the tile. */
DEV void insert_key(struct split_shared *s, uint32_t head_dim, uint32_t i0, uint32_t slot)
{
    const uint32_t shift = slot % 2 * 16;
#pragma unroll 1
    for (uint32_t i = thread_x(); i < tile_elems(head_dim, i0); i += n_threads_x()) {
        uint32_t *both = &s->k[i][slot / 2];
        *both = (*both & ~(0xffffu << shift)) | (uint32_t)s->new_k[i0 + i] << shift;
    }
}
DEV void insert_value(struct split_shared *s, uint32_t head_dim, uint32_t i0, uint32_t slot)
{
#pragma unroll 1
    for (uint32_t i = thread_x(); i < tile_elems(head_dim, i0); i += n_threads_x())
        s->v[slot][i] = s->new_v[i0 + i];
}

#endif
