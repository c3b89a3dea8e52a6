/*
 * What attn_apply and attn_split share: the visible positions of a position block, and the step
 * "merge" of docs/kernels.md. Also the work of a thread of attn_split.
 */
#ifndef CUDA_ATTN_BLOCK_CUH
#define CUDA_ATTN_BLOCK_CUH

#include "engine/cuda/kernels/attention/cuda_vec.cuh"

/* The oldest position that a token at `pos` sees. window: as in attn_args. */
DEV uint32_t oldest_seen(uint32_t window, uint32_t pos)
{
    return window > 0 && pos >= window ? pos + 1 - window : 0;
}

/* The positions of a position block that a token sees: first .. end - 1; end 0: none. */
struct seen {
    uint32_t first, end;
};
DEV struct seen seen_of(uint32_t oldest, uint32_t pos, uint32_t block)
{
    struct seen s = {0, 0};
    if (block > pos / KV_BLOCK || block < oldest / KV_BLOCK)
        return s;
    s.first = block == oldest / KV_BLOCK ? oldest % KV_BLOCK : 0;
    s.end = block < pos / KV_BLOCK ? KV_BLOCK : pos % KV_BLOCK + 1;
    return s;
}

/* The work of one thread of attn_split. */
struct attn_thread {
    const float *q;         /* query of the first head */
    const uint16_t *kv;     /* keys and values of the layer and KV head, see kv_begin */
    uint32_t head, n_heads; /* first query head; number of query heads, at most ATTN_HEADS */
    uint32_t pos, oldest;   /* of the token, and the oldest one that it sees */
    uint32_t ring_blocks;
};

/* block_y() counts chunks of up to ATTN_HEADS query heads of the same KV head, those of KV head 0
 * first. */
DEV struct attn_thread attn_thread_init(const struct attn_args *a, uint32_t token)
{
    const uint32_t n_chunks = (a->n_q_per_kv + ATTN_HEADS - 1) / ATTN_HEADS;
    const uint32_t kv_head = block_y() / n_chunks, first = block_y() % n_chunks * ATTN_HEADS;
    struct attn_thread p;
    p.head = kv_head * a->n_q_per_kv + first;
    p.n_heads = a->n_q_per_kv - first < ATTN_HEADS ? a->n_q_per_kv - first : ATTN_HEADS;
    p.pos = (uint32_t)a->tokens[token].pos;
    p.q = a->qkv + (uint64_t)token * a->qkv_stride + (uint64_t)kv_head * a->q_kv_stride +
          first * a->kv.head_dim;
    p.oldest = oldest_seen(a->window, p.pos);
    p.kv = kv_begin(&a->kv, &a->tokens[token], a->layer, kv_head);
    p.ring_blocks = a->tokens[token].ring_blocks;
    return p;
}

/* The keys of a position block; its values follow after head_dim * KV_BLOCK elements. */
DEV const uint16_t *block_keys(const struct attn_args *a, const struct attn_thread *p,
                               uint32_t block)
{
    return p->kv + kv_place(&a->kv, p->ring_blocks, block) * a->kv.block_elems;
}

/* Running maximum and sum of one query head: M and L of docs/kernels.md. */
struct attn_run {
    float m, l;
};

/* Factors of the running results and of a new block, which merge_block returns. The first block is
 * copied unchanged. */
struct attn_factors {
    float old_factor, new_factor;
};
DEV struct attn_factors merge_block(struct attn_run *run, float m, float l, bool is_first)
{
    struct attn_factors f = {0.0f, 1.0f};
    if (is_first) {
        run->m = m;
        run->l = l;
        return f;
    }
    const float top = m > run->m ? m : run->m;
    f.old_factor = exp0(run->m - top);
    f.new_factor = exp0(m - top);
    run->l = fmaf(l, f.new_factor, run->l * f.old_factor);
    run->m = top;
    return f;
}

#endif
