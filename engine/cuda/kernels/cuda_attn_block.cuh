/*
 * Attention over one position block: the steps "scores", "block" and "merge" of docs/kernels.md. In
 * attn_apply a token has 64 threads: one per position for the scores. Then thread j has the
 * elements j, j + 64, ... of the head. Each load of a key or value serves up to ATTN_HEADS query
 * heads. attn_split uses some of these functions.
 */
#ifndef CUDA_ATTN_BLOCK_CUH
#define CUDA_ATTN_BLOCK_CUH

#include "engine/cuda/kernels/cuda_vec.cuh"

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

/* The work of one thread. */
struct attn_thread {
    const float *q;     /* query of the first head */
    const uint16_t *kv; /* keys and values of the layer and KV head, see kv_begin */
    /* only for attn_apply: token among those of the thread block; position in the position block,
     * then first element of the head that the thread computes */
    uint32_t local, j;
    uint32_t head, n_heads; /* first query head; number of query heads, at most ATTN_HEADS */
    uint32_t pos, oldest;   /* of the token, and the oldest one that it sees */
    uint32_t ring_blocks;
    bool idle; /* the thread block has no token for this thread */
};

/* block_y() counts chunks of up to ATTN_HEADS query heads of the same KV head, those of KV head 0
 * first. */
DEV struct attn_thread attn_thread_init(const struct attn_args *a, uint32_t token)
{
    const uint32_t n_chunks = (a->group + ATTN_HEADS - 1) / ATTN_HEADS;
    const uint32_t kv_head = block_y() / n_chunks, first = block_y() % n_chunks * ATTN_HEADS;
    struct attn_thread p;
    p.idle = token >= a->n_tokens;
    p.local = thread_x() / KV_BLOCK;
    p.j = thread_x() % KV_BLOCK;
    p.head = kv_head * a->group + first;
    p.n_heads = a->group - first < ATTN_HEADS ? a->group - first : ATTN_HEADS;
    p.pos = p.idle ? 0 : (uint32_t)a->tokens[token].pos;
    p.q = p.idle ? a->qkv
                 : a->qkv + (uint64_t)token * a->qkv_stride + (uint64_t)kv_head * a->q_group +
                       first * a->kv.head_dim;
    p.oldest = oldest_seen(a->window, p.pos);
    p.kv = kv_begin(&a->kv, &a->tokens[p.idle ? 0 : token], a->layer, kv_head);
    p.ring_blocks = a->tokens[p.idle ? 0 : token].ring_blocks;
    return p;
}

/* The keys of a position block; its values follow after head_dim * KV_BLOCK elements. */
DEV const uint16_t *block_keys(const struct attn_args *a, const struct attn_thread *p,
                               uint32_t block)
{
    return p->kv + kv_place(&a->kv, p->ring_blocks, block) * a->kv.block_elems;
}

/* z[h] = q(h) . k for position p->j, one chain of fma over the head. Missing heads repeat the
 * first one. */
DEV void score_position(const struct attn_args *a, const struct attn_thread *p,
                        const uint16_t *keys, float *z)
{
    const uint32_t head_dim = a->kv.head_dim;
    const float *q[ATTN_HEADS];
#pragma unroll
    for (uint32_t h = 0; h < ATTN_HEADS; h++) {
        q[h] = p->q + (h < p->n_heads ? h : 0) * head_dim;
        z[h] = 0.0f;
    }
#pragma unroll 4
    for (uint32_t i = 0; i < head_dim; i++) {
        const float k = f32_of_f16(keys[i * KV_BLOCK + p->j]);
#pragma unroll
        for (uint32_t h = 0; h < ATTN_HEADS; h++)
            z[h] = fmaf(q[h][i], k, z[h]);
    }
}

/* Softmax of the scores of a position block, for each token of a thread block. */
struct attn_shared {
    float p[ATTN_TOKENS][KV_BLOCK][ATTN_HEADS];  /* probabilities */
    float warp_best[ATTN_TOKENS][ATTN_HEADS][2]; /* maximum of each of the two warps */
    float l[ATTN_TOKENS][ATTN_HEADS];            /* sum of the probabilities */
};

/* The maximum of the scores of a position block, from that of each warp, which ignores NaN. + 0
 * turns -0 into +0. */
DEV float score_maximum(const float *warp_best)
{
    const float a = warp_best[0], b = warp_best[1];
    return (b > a ? b : a) + 0.0f;
}

/* Turns scores z into probabilities s->p with the sum s->l. Sets m[h] to the maximum. All threads
 * of the block must call it. */
DEV void softmax_block(struct attn_shared *s, const struct attn_thread *p, struct seen range,
                       const float *z, float *m)
{
    const uint32_t local = p->local, j = p->j;
    const bool seen = j >= range.first && j < range.end;
#pragma unroll
    for (uint32_t h = 0; h < ATTN_HEADS; h++) {
        const float top = warp_max(seen && z[h] == z[h] ? z[h] : -INFINITY);
        if (j % 32 == 0)
            s->warp_best[local][h][j / 32] = top;
    }
    block_sync();
#pragma unroll
    for (uint32_t h = 0; h < ATTN_HEADS; h++) {
        m[h] = score_maximum(s->warp_best[local][h]);
        s->p[local][j][h] = seen ? exp0(z[h] - m[h]) : 0.0f;
    }
    block_sync();
    if (j < 32) {
#pragma unroll
        for (uint32_t h = 0; h < ATTN_HEADS; h++) {
            const float l = warp_tree(s->p[local][j][h] + s->p[local][j + 32][h]);
            if (j == 0)
                s->l[local][h] = l;
        }
    }
    block_sync();
}

/* o[h] = sum of probability * value for one element of the head, one chain of fma over the visible
 * positions. `values` is that element at position 0 of the block. */
DEV void weigh_values(const struct attn_args *a, const struct attn_shared *s,
                      const struct attn_thread *p, const uint16_t *values, struct seen range,
                      float *o)
{
#pragma unroll
    for (uint32_t h = 0; h < ATTN_HEADS; h++)
        o[h] = 0.0f;
#pragma unroll 4
    for (uint32_t j = range.first; j < range.end; j++) {
        const float v = f32_of_f16(values[j * a->kv.v_stride]);
#pragma unroll
        for (uint32_t h = 0; h < ATTN_HEADS; h++)
            o[h] = fmaf(s->p[p->local][j][h], v, o[h]);
    }
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
