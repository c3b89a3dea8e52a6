/*
 * Attention in decode: the position blocks of a token are distributed over thread blocks. A thread
 * block writes the results (o, m, l) of each of its position blocks to a slot of the sequence, and
 * attn_merge combines the slots in ascending order (docs/kernels.md).
 *
 * A thread block copies the keys and values of a position block to shared memory with one wait, or
 * with one for each tile if a head is wider than SPLIT_TILE. The copies of its first position block
 * start before the previous kernel has ended, unless that kernel may write to this block: each
 * sequence has one token, so a pass writes only to the last position block, whose place in a ring
 * can be that of the first one.
 */
#ifndef CUDA_ATTN_SPLIT_CUH
#define CUDA_ATTN_SPLIT_CUH

#include "engine/cuda/kernels/cuda_attn_merge.cuh"

#define SPLIT_BATCH 8 /* elements or positions that a thread loads before it uses them */

/* Data of one position block; k, v and q of one tile of elements. */
struct split_shared {
    uint32_t k[SPLIT_TILE][KV_BLOCK / 2]; /* two positions in a word */
    uint16_t v[KV_BLOCK][SPLIT_TILE];
    float q[ATTN_HEADS][SPLIT_TILE];
    float p[ATTN_HEADS][KV_BLOCK]; /* probabilities */
};

/* Number of elements in the tile that starts at element i0. */
DEV uint32_t tile_elems(const struct attn_args *a, uint32_t i0)
{
    return a->kv.head_dim - i0 < SPLIT_TILE ? a->kv.head_dim - i0 : SPLIT_TILE;
}

/* Starts copying the keys of the tile that starts at element i0, in chunks of 8 F16 elements. */
DEV void copy_keys(const struct attn_args *a, struct split_shared *s, const uint16_t *keys,
                   uint32_t i0)
{
    const uint32_t n_chunks = tile_elems(a, i0) * (KV_BLOCK / 8);
    const uint16_t *from = keys + i0 * KV_BLOCK;
    for (uint32_t c = thread_x(); c < n_chunks; c += n_threads_x())
        copy_async(&s->k[0][0] + 4 * c, from + 8 * c, true);
}

/* As copy_keys, for the values of whole batches of positions. Values of positions that the token
 * does not see become zeros. Rows are padded to 32 elements: the last chunk is whole. */
DEV void copy_values(const struct attn_args *a, struct split_shared *s, const uint16_t *values,
                     uint32_t i0, struct seen range)
{
    const uint32_t n_chunks = (tile_elems(a, i0) + 7) / 8, chunk = thread_x() % (SPLIT_TILE / 8);
    const uint32_t end = (range.end + SPLIT_BATCH - 1) / SPLIT_BATCH * SPLIT_BATCH;
    if (chunk >= n_chunks)
        return;
    for (uint32_t j = range.first / SPLIT_BATCH * SPLIT_BATCH + thread_x() / (SPLIT_TILE / 8);
         j < end; j += n_threads_x() / (SPLIT_TILE / 8))
        copy_async(&s->v[j][8 * chunk], values + j * a->kv.v_stride + i0 + 8 * chunk,
                   j >= range.first && j < range.end);
}

/* Each warp loads the query of one head. */
DEV void load_queries(const struct attn_args *a, struct split_shared *s,
                      const struct attn_thread *p, uint32_t i0)
{
    const uint32_t n = tile_elems(a, i0), h = thread_x() / 32, lane = thread_x() % 32;
    const float *q = p->q + h * a->kv.head_dim + i0;
    float x[SPLIT_TILE / 32] = {0.0f};
#pragma unroll
    for (uint32_t u = 0; u < SPLIT_TILE / 32; u++)
        if (h < p->n_heads && lane + 32 * u < n)
            x[u] = q[lane + 32 * u];
#pragma unroll
    for (uint32_t u = 0; u < SPLIT_TILE / 32; u++)
        s->q[h][lane + 32 * u] = x[u];
}

/* Adds the products of the n elements of a tile to z[e] = q . k(position 2 * pair + e), which is
 * one chain of fma over the whole head. */
DEV void score_tile(const struct split_shared *s, uint32_t pair, uint32_t head, uint32_t n,
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
            q[u] = load_words(&s->q[head][i + 4 * u]);
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH; u++) {
            const struct two both = f32_of_halves(k[u]);
            const float x = f32_of_bits(q[u / 4].at[u % 4]);
            z[0] = fmaf(x, both.at[0], z[0]);
            z[1] = fmaf(x, both.at[1], z[1]);
        }
    }
#pragma unroll 1
    for (; i < n; i++) {
        const struct two both = f32_of_halves(s->k[i][pair]);
        z[0] = fmaf(s->q[head][i], both.at[0], z[0]);
        z[1] = fmaf(s->q[head][i], both.at[1], z[1]);
    }
}

/* Turns the scores of a head, two in each lane of its warp, into probabilities. Returns their
 * maximum m and their sum l. */
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
    /* The tree of sum64: positions 32 apart are in lanes 16 apart, at last come those of a lane. */
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

/* Computes the results of one position block. The caller has started the copies of the first tile
 * of keys and values. All threads of the block must call it. */
DEV void split_block(const struct attn_args *a, struct split_shared *s, const struct attn_thread *p,
                     uint32_t block, struct seen range)
{
    const uint32_t head_dim = a->kv.head_dim;
    const uint32_t head = thread_x() / 32, pair = thread_x() % 32; /* for the scores */
    const uint16_t *keys = block_keys(a, p, block), *values = keys + head_dim * KV_BLOCK;
    float *slots = a->tokens[block_z()].slots;
    float z[2] = {0.0f, 0.0f};
#pragma unroll 1
    for (uint32_t i0 = 0; i0 < head_dim; i0 += SPLIT_TILE) {
        if (i0 > 0) {
            block_sync();
            copy_keys(a, s, keys, i0);
        }
        load_queries(a, s, p, i0);
        copy_async_wait();
        block_sync();
        if (head < p->n_heads)
            score_tile(s, pair, head, tile_elems(a, i0), z);
    }
    if (head < p->n_heads) {
        const struct attn_run run = softmax_split(s, pair, head, range, z);
        float *slot = attn_slot(a, slots, block, p->head + head) + SLOT_M(head_dim);
        if (pair == 0) {
            slot[0] = run.m;
            slot[1] = run.l;
        }
    }
    block_sync();
#pragma unroll 1
    for (uint32_t i0 = 0; i0 < head_dim; i0 += SPLIT_TILE) {
        if (i0 > 0) {
            block_sync();
            copy_values(a, s, values, i0, range);
            copy_async_wait();
            block_sync();
        }
        for (uint32_t i = thread_x(); i < tile_elems(a, i0); i += n_threads_x()) {
            float o[ATTN_HEADS];
            weigh_tile(s, i, range, o);
#pragma unroll
            for (uint32_t h = 0; h < ATTN_HEADS; h++)
                if (h < p->n_heads)
                    attn_slot(a, slots, block, p->head + h)[i0 + i] = o[h];
        }
    }
}

/* Grid: ATTN_SPLIT shares of position blocks; KV heads times chunks of query heads; tokens. */
KERNEL_EARLY(attn_split, attn_args, SPLIT_THREADS)
{
    SHARED_WIDE struct split_shared s;
    const struct attn_thread p = attn_thread_init(&a, block_z());
    /* The first round runs even without a position block, because each thread must call
     * wait_for_grid. */
    for (uint32_t block = p.oldest / KV_BLOCK + block_x(), started = 0;
         block <= p.pos / KV_BLOCK || !started; block += n_blocks_x()) {
        const uint16_t *keys = block_keys(&a, &p, block);
        const uint16_t *last_keys = block_keys(&a, &p, p.pos / KV_BLOCK);
        const struct seen range = seen_of(p.oldest, p.pos, block);
        /* False if the previous kernel may write to this block: to the last one of the token, or to
         * the first one if a ring has both in the same place. */
        const bool is_final = block < p.pos / KV_BLOCK && keys != last_keys;
        if (!started && !is_final)
            wait_for_grid();
        if (range.end > 0) {
            copy_keys(&a, &s, keys, 0);
            copy_values(&a, &s, keys + a.kv.head_dim * KV_BLOCK, 0, range);
        }
        if (!started && is_final)
            wait_for_grid();
        if (range.end > 0)
            split_block(&a, &s, &p, block, range);
        started = 1;
        block_sync();
    }
}

/* Merges the results of all visible position blocks. Grid: tokens, query heads. */
KERNEL(attn_merge, attn_args, 32)
{
    const uint32_t token = block_x(), head = block_y();
    const uint32_t pos = (uint32_t)a.tokens[token].pos;
    const uint32_t first = oldest_seen(a.window, pos) / KV_BLOCK;
    float *out = a.out + (uint64_t)token * a.out_stride + (uint64_t)head * a.kv.head_dim;
    merge_head(&a, attn_slot(&a, a.tokens[token].slots, first, head), pos / KV_BLOCK + 1 - first,
               out);
}

#endif
