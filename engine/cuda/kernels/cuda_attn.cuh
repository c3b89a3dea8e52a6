/*
 * Attention in a pass with several tokens of one sequence (prefill, drafts): a thread block
 * processes all position blocks that its tokens see, in turn, and merges them in ascending order
 * (docs/kernels.md). The running results are in `out`, where one thread writes each element.
 */
#ifndef CUDA_ATTN_CUH
#define CUDA_ATTN_CUH

#include "engine/cuda/kernels/cuda_attn_block.cuh"

/* Computes the results of one position block for the thread's heads and elements, and merges them
 * into the running results. For the token's last block it writes the final results instead. */
DEV void fold_block(const struct attn_args *a, const struct attn_shared *s,
                    const struct attn_thread *p, uint32_t block, const float *m,
                    struct attn_run *runs)
{
    const uint32_t head_dim = a->kv.head_dim, last = p->pos / KV_BLOCK;
    const bool is_first = block == p->oldest / KV_BLOCK;
    const uint32_t token = block_z() * (n_threads_x() / KV_BLOCK) + p->local;
    const struct seen range = seen_of(p->oldest, p->pos, block);
    const uint16_t *values = block_keys(a, p, block) + head_dim * KV_BLOCK;
    float *out = a->out + (uint64_t)token * a->out_stride + (uint64_t)p->head * head_dim;
    struct attn_factors f[ATTN_HEADS];
    float r[ATTN_HEADS];
#pragma unroll
    for (uint32_t h = 0; h < ATTN_HEADS; h++) {
        f[h] = merge_block(&runs[h], m[h], s->l[p->local][h], is_first);
        r[h] = 1.0f / runs[h].l;
    }
    for (uint32_t i = p->j; i < head_dim; i += KV_BLOCK) {
        float o[ATTN_HEADS];
        weigh_values(a, s, p, values + i, range, o);
#pragma unroll
        for (uint32_t h = 0; h < ATTN_HEADS; h++) {
            if (h >= p->n_heads)
                continue;
            float *at = out + h * head_dim + i;
            if (!is_first)
                o[h] = fmaf(o[h], f[h].new_factor, *at * f[h].old_factor);
            *at = block < last ? o[h] : o[h] * r[h];
        }
    }
}

/* Grid: 1; KV heads times chunks of ATTN_HEADS query heads; tokens / ATTN_TOKENS rounded up. */
KERNEL(attn_apply, attn_args, 256)
{
    SHARED struct attn_shared s;
    const struct attn_thread p =
        attn_thread_init(&a, block_z() * (n_threads_x() / KV_BLOCK) + thread_x() / KV_BLOCK);
    struct attn_run runs[ATTN_HEADS] = {{0.0f, 0.0f}};
    /* The first and the last position block of any token of the thread block, because all threads
     * must reach each barrier. */
    uint32_t first = UINT32_MAX, last = 0;
    const uint32_t n_local = n_threads_x() / KV_BLOCK;
    for (uint32_t i = 0; i < n_local && block_z() * n_local + i < a.n_tokens; i++) {
        const uint32_t pos = (uint32_t)a.tokens[block_z() * n_local + i].pos;
        const uint32_t oldest = oldest_seen(a.window, pos);
        first = oldest / KV_BLOCK < first ? oldest / KV_BLOCK : first;
        last = pos / KV_BLOCK > last ? pos / KV_BLOCK : last;
    }
    for (uint32_t block = first; block <= last; block++) {
        struct seen range = {0, 0};
        float z[ATTN_HEADS] = {0.0f}, m[ATTN_HEADS];
        if (!p.idle)
            range = seen_of(p.oldest, p.pos, block);
        if (p.j >= range.first && p.j < range.end)
            score_position(&a, &p, block_keys(&a, &p, block), z);
        softmax_block(&s, &p, range, z, m);
        if (range.end > 0)
            fold_block(&a, &s, &p, block, m, runs);
        block_sync();
    }
}

#endif
