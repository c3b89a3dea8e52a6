/*
 * RoPE and writing the KV cache (docs/kernels.md). Also copy_words, and read_memory, which only
 * reads so that the host can measure the bandwidth.
 */
#ifndef CUDA_VEC_CUH
#define CUDA_VEC_CUH

#include "engine/cuda/kernels/device/cuda_reduce.cuh"

/* RoPE of pair i of head x. c and s: cosine and sine of its angle, times rope_magnitude. */
DEV void rotate(const struct rope_args *a, float *x, uint32_t i, float c, float s)
{
    float *const at = x + (a->neox ? i : 2 * i);
    float *const bt = x + (a->neox ? i + a->n_rot / 2 : 2 * i + 1);
    const float p = *at, q = *bt;
    *at = fmaf(-q, s, p * c);
    *bt = fmaf(q, c, p * s);
}

/* F16 for the KV cache: magnitudes above the largest finite number become this number. */
DEV uint16_t cache_f16(float x)
{
    if (fabsf(x) > F16_MAX)
        x = x < 0.0f ? -F16_MAX : F16_MAX;
    return f16_of_f32(x);
}

/* Keys and values of a layer and KV head in place 0; place i is i * block_elems further. kv_place
 * returns the place of a position block. */
DEV uint16_t *kv_begin(const struct kv_shape *kv, const struct cuda_token *at, uint32_t layer,
                       uint32_t kv_head)
{
    return (kv->is_ring ? at->ring : at->kv) + layer * kv->layer_elems + kv_head * kv->head_elems;
}

/* The place of a position block in the cache or in a ring. */
DEV uint32_t kv_place(const struct kv_shape *kv, uint32_t ring_blocks, uint32_t block)
{
    return kv->is_ring ? block % ring_blocks : block;
}

/* RMSNorm of each query head and of the key, in place, one warp for each. */
DEV void norm_heads(const struct rope_args *a, float *q, float *k)
{
    const uint32_t head_dim = a->kv.head_dim, lane = thread_x() % 32;
    for (uint32_t head = thread_x() / 32; head <= a->n_q_per_kv; head += n_threads_x() / 32) {
        float *x = head < a->n_q_per_kv ? q + head * head_dim : k;
        const float *w = head < a->n_q_per_kv ? a->q_norm : a->k_norm;
        float low = 0.0f, high = 0.0f; /* partial sums lane and lane + 32 of sum64 */
        for (uint32_t i = lane; i < head_dim; i += 64) {
            low = fmaf(x[i], x[i], low);
            if (i + 32 < head_dim)
                high = fmaf(x[i + 32], x[i + 32], high);
        }
        const float r = 1.0f / sqrtf(warp_tree(low + high) / (float)head_dim + a->eps);
        for (uint32_t i = lane; i < head_dim; i += 32)
            x[i] = (x[i] * r) * w[i];
    }
}

KERNEL(rope_append, rope_args, 128)
{
    const uint32_t token = block_x(), kv_head = block_y(), n_pairs = a.n_rot / 2;
    const uint32_t head_dim = a.kv.head_dim, n_q = a.n_q_per_kv * head_dim;
    const struct cuda_token at = a.tokens[token];
    const float *c = a.c + (uint64_t)token * n_pairs, *s = a.s + (uint64_t)token * n_pairs;
    float *row = a.qkv + (uint64_t)token * a.qkv_stride;
    float *q = row + (uint64_t)kv_head * a.q_kv_stride;
    float *k = row + a.q_floats + (uint64_t)kv_head * head_dim;
    const float *v = k + a.kv_width;

    if (a.q_norm) {
        norm_heads(&a, q, k);
        block_sync();
    }
    for (uint32_t i = thread_x(); i < (a.n_q_per_kv + 1) * n_pairs; i += n_threads_x()) {
        const uint32_t head = i / n_pairs, pair = i % n_pairs;
        rotate(&a, head < a.n_q_per_kv ? q + head * head_dim : k, pair, c[pair], s[pair]);
    }
    block_sync();
    for (uint32_t i = thread_x(); i < n_q; i += n_threads_x())
        q[i] = q[i] * a.q_scale;
    const uint32_t block = (uint32_t)at.pos / KV_BLOCK, slot = (uint32_t)at.pos % KV_BLOCK;
    uint16_t *keys = kv_begin(&a.kv, &at, a.layer, kv_head) +
                     kv_place(&a.kv, at.ring_blocks, block) * a.kv.block_elems;
    uint16_t *values = keys + head_dim * KV_BLOCK + slot * a.kv.v_stride;
    for (uint32_t i = thread_x(); i < head_dim; i += n_threads_x()) {
        keys[i * KV_BLOCK + slot] = cache_f16(k[i]);
        values[i] = cache_f16(v[i]);
    }
}

KERNEL(copy_words, copy_args, 256)
{
    for (uint32_t i = block_x() * n_threads_x() + thread_x(); i < a.n_words;
         i += n_blocks_x() * n_threads_x())
        a.to[i] = a.from[i];
}

KERNEL(read_memory, read_args, 256)
{
    uint32_t sum = 0;
    const uint64_t step = (uint64_t)n_blocks_x() * n_threads_x();
#pragma unroll 8
    for (uint64_t i = (uint64_t)block_x() * n_threads_x() + thread_x(); i < a.n_chunks; i += step) {
        const struct words w = load_stream(a.at + 16 * i);
        sum += w.at[0] ^ w.at[1] ^ w.at[2] ^ w.at[3];
    }
    if (sum == 1) /* the condition only keeps the compiler from removing the loads */
        *a.sum = sum;
}

#endif
