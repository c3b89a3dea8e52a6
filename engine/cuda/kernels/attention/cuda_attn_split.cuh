/*
 * Attention in decode, in one kernel: RoPE, appending to the cache, the position blocks and their
 * merge. The position blocks of a token are distributed over several thread blocks. The position
 * blocks of one thread block are its share. A thread block writes the results (o, m, l) of each of
 * its position blocks to a slot of the sequence. The thread block that ends last merges the slots
 * in ascending order (docs/kernels.md).
 *
 * A thread block copies the keys and values of a position block to shared memory with one wait, or
 * with one for each tile if a head is wider than SPLIT_TILE. Those of its first position block
 * arrive while the previous kernel still runs.
 */
#ifndef CUDA_ATTN_SPLIT_CUH
#define CUDA_ATTN_SPLIT_CUH

#include "engine/cuda/kernels/attention/cuda_attn_load.cuh"
#include "engine/cuda/kernels/attention/cuda_attn_merge.cuh"

/* Adds the products of the n elements of a tile to z[e] = q . k(position 2 * pair + e), which is
 * one chain of fma over the whole head. query starts with the first element of the tile. */
DEV void score_tile(const struct split_shared *s, const float *query, uint32_t pair, uint32_t n,
                    float *z)
{
    uint32_t i = 0;
#pragma unroll 2
    for (; i + SPLIT_BATCH <= n; i += SPLIT_BATCH) {
        uint32_t k[SPLIT_BATCH];
        struct words q[SPLIT_BATCH / 4];
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH; u++)
            k[u] = s->k[i + u][pair];
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH / 4; u++)
            q[u] = load_words(query + i + 4 * u);
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH; u++) {
            const struct float_pair both = f32_of_halves(k[u]);
            const float x = f32_of_bits(q[u / 4].at[u % 4]);
            z[0] = fmaf(x, both.at[0], z[0]);
            z[1] = fmaf(x, both.at[1], z[1]);
        }
    }
#pragma unroll 1
    for (; i < n; i++) {
        const struct float_pair both = f32_of_halves(s->k[i][pair]);
        z[0] = fmaf(query[i], both.at[0], z[0]);
        z[1] = fmaf(query[i], both.at[1], z[1]);
    }
}

/* Turns the scores of a head, two in each lane of its warp, into probabilities. Returns the largest
 * score m and the sum l of the probabilities. */
DEV struct attn_run softmax_split(struct split_shared *s, uint32_t pair, uint32_t head,
                                  struct seen range, const float *z)
{
    const bool seen[2] = {2 * pair >= range.first && 2 * pair < range.end,
                          2 * pair + 1 >= range.first && 2 * pair + 1 < range.end};
    struct attn_run run;
    float sum[2], best = -INFINITY;
#pragma unroll
    for (uint32_t e = 0; e < 2; e++)
        best = seen[e] && z[e] > best ? z[e] : best; /* a NaN is not larger */
    run.m = warp_max(best) + 0.0f;                   /* + 0 turns -0 into +0 */
#pragma unroll
    for (uint32_t e = 0; e < 2; e++)
        s->p[head][2 * pair + e] = sum[e] = seen[e] ? exp0(z[e] - run.m) : 0.0f;
    /* The tree of sum64: positions 32 apart are in lanes 16 apart. The last step adds the two
     * positions of a lane. */
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
        sum[0] = sum[0] + shuffle_xor_f32(sum[0], mask);
        sum[1] = sum[1] + shuffle_xor_f32(sum[1], mask);
    }
    run.l = sum[0] + sum[1];
    return run;
}

/* o[h] = sum of probability * value for element i of the tile, one chain of fma over the visible
 * positions. The other positions of a batch have probability +0 and value +0, which change no
 * bit. */
DEV void weigh_tile(const struct split_shared *s, uint32_t i, struct seen range, float *o)
{
#pragma unroll
    for (uint32_t h = 0; h < ATTN_HEADS; h++)
        o[h] = 0.0f;
#pragma unroll 2
    for (uint32_t j = range.first / SPLIT_BATCH * SPLIT_BATCH; j < range.end; j += SPLIT_BATCH) {
        float v[SPLIT_BATCH];
        struct words p[ATTN_HEADS][SPLIT_BATCH / 4];
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH; u++)
            v[u] = f32_of_f16(s->v[j + u][i]);
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH / 4; u++)
#pragma unroll
            for (uint32_t h = 0; h < ATTN_HEADS; h++)
                p[h][u] = load_words(&s->p[h][j + 4 * u]);
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH; u++)
#pragma unroll
            for (uint32_t h = 0; h < ATTN_HEADS; h++)
                o[h] = fmaf(f32_of_bits(p[h][u / 4].at[u % 4]), v[u], o[h]);
    }
}

/* Computes scores, probabilities and sums of one position block. The caller has started copying the
 * first tile of keys and values. All threads of the thread block must call it. */
DEV void score_block(const struct attn_args *a, struct split_shared *s, const struct attn_thread *p,
                     float *slots, uint32_t block, struct seen range)
{
    const uint32_t head_dim = a->kv.head_dim, head = thread_x() / 32, pair = thread_x() % 32;
    float z[2] = {0.0f, 0.0f};
#pragma unroll 1
    for (uint32_t i0 = 0; i0 < head_dim; i0 += SPLIT_TILE) {
        if (i0 > 0) {
            block_sync();
            copy_keys(&a->kv, s, block_keys(a, p, block), i0);
        }
        copy_async_wait();
        block_sync();
        if (block == p->pos / KV_BLOCK) {
            insert_key(s, head_dim, i0, p->pos % KV_BLOCK);
            if (i0 == 0)
                insert_value(s, head_dim, 0, p->pos % KV_BLOCK);
            block_sync();
        }
        if (head < p->n_heads)
            score_tile(s, s->q[head] + i0, pair, tile_elems(head_dim, i0), z);
    }
    if (head < p->n_heads) {
        const struct attn_run run = softmax_split(s, pair, head, range, z);
        float *slot = attn_slot(a, slots, block, p->head + head) + SLOT_M(head_dim);
        if (pair == 0 && p->oldest / KV_BLOCK == p->pos / KV_BLOCK) {
            s->r[head] = 1.0f / run.l;
        } else if (pair == 0) {
            slot[0] = run.m;
            slot[1] = run.l;
        }
    }
    block_sync();
}

/* Stores the weighted values of one position block, after score_block: in slots, or times 1 / l as
 * the results if the token sees no other block. */
DEV void weigh_block(const struct attn_args *a, const struct attn_thread *p, struct split_shared *s,
                     float *slots, uint32_t block, struct seen range)
{
    const uint32_t head_dim = a->kv.head_dim;
    const bool is_only = p->oldest / KV_BLOCK == p->pos / KV_BLOCK;
    float *out = a->out + (uint64_t)block_z() * a->out_stride + (uint64_t)p->head * head_dim;
#pragma unroll 1
    for (uint32_t i0 = 0; i0 < head_dim; i0 += SPLIT_TILE) {
        if (i0 > 0) {
            block_sync();
            copy_values(&a->kv, s, block_keys(a, p, block), i0, range);
            copy_async_wait();
            block_sync();
            if (block == p->pos / KV_BLOCK)
                insert_value(s, head_dim, i0, p->pos % KV_BLOCK);
            block_sync();
        }
        const uint32_t i = thread_x();
        if (i >= tile_elems(head_dim, i0))
            continue;
        float o[ATTN_HEADS];
        weigh_tile(s, i, range, o);
#pragma unroll
        for (uint32_t h = 0; h < ATTN_HEADS; h++)
            if (h < p->n_heads && is_only)
                out[h * head_dim + i0 + i] = o[h] * s->r[h];
            else if (h < p->n_heads)
                attn_slot(a, slots, block, p->head + h)[i0 + i] = o[h];
    }
}

/* Starts copying the first tile of a position block. */
DEV struct seen start_block(const struct attn_args *a, struct split_shared *s,
                            const struct attn_thread *p, uint32_t block)
{
    const uint16_t *keys = block_keys(a, p, block);
    const struct seen range = seen_of(p->oldest, p->pos, block);
    copy_keys(&a->kv, s, keys, 0);
    copy_values(&a->kv, s, keys, 0, range);
    return range;
}

/* Returns true in the last of n_shares thread blocks that call it. This thread block then sees what
 * all of them wrote before. The counter is 0 before the first call and after the last one. */
DEV bool is_last_share(uint32_t *n_ended, uint32_t n_shares, struct split_shared *s)
{
    block_sync();
    if (thread_x() == 0) {
        grid_fence();
        s->is_last = atomic_add(n_ended, 1) == n_shares - 1;
        if (s->is_last) {
            grid_fence();
            *n_ended = 0;
        }
    }
    block_sync();
    return s->is_last;
}

/* Four thread blocks must fit on a multiprocessor. A device with 132 multiprocessors then runs all
 * shares of a 2B4T token at once for up to 6,720 tokens of context (5 thread blocks for each
 * position block). Grid: shares of the position blocks; KV heads times chunks of query heads;
 * tokens. */
KERNEL_EARLY_DENSE(attn_split, split_args, SPLIT_THREADS, 4)
{
    SHARED_WIDE struct split_shared s;
    const uint32_t token = block_z(), warp = thread_x() / 32, head_dim = a.attn.kv.head_dim;
    const struct attn_thread p = attn_thread_init(&a.attn, token);
    const uint32_t first = p.oldest / KV_BLOCK, last = p.pos / KV_BLOCK;
    const uint32_t n_blocks = last + 1 - first, kv_head = p.head / a.attn.n_q_per_kv;
    uint32_t block = first + block_x();
    if (block > last) /* need not wait, because another thread block of this kernel does */
        return;
    struct seen range = start_block(&a.attn, &s, &p, block);
    load_angles(&a.rope, &s, token);
    float *slots = a.attn.tokens[token].slots;
    block_sync();
    wait_for_grid();
    load_heads(&a.rope, &s, &p, token, kv_head, (last - block) % n_blocks_x() == 0);
    for (;;) {
        score_block(&a.attn, &s, &p, slots, block, range);
        weigh_block(&a.attn, &p, &s, slots, block, range);
        block += n_blocks_x();
        if (block > last)
            break;
        block_sync();
        range = start_block(&a.attn, &s, &p, block);
    }
    if (n_blocks == 1 || !is_last_share(a.n_ended + (uint64_t)token * a.n_head_chunks + block_y(),
                                        n_blocks < n_blocks_x() ? n_blocks : n_blocks_x(), &s))
        return;
    if (warp < p.n_heads)
        merge_head(&a.attn, attn_slot(&a.attn, slots, first, p.head + warp), n_blocks,
                   a.attn.out + (uint64_t)token * a.attn.out_stride +
                       (uint64_t)(p.head + warp) * head_dim);
}

#endif
