/*
 * Attention in decode: the position blocks of a token are distributed over thread blocks. A thread
 * block writes the results (o, m, l) of each of its position blocks to a slot of the sequence, and
 * attn_merge combines the slots in ascending order (docs/kernels.md).
 *
 * A thread block copies the keys and values of a position block to shared memory with one wait. The
 * loads of a thread would otherwise wait for each other. A head wider than SPLIT_TILE is processed
 * in several tiles, with a wait for each. The copies of the first position block of a thread block
 * start before the previous kernel has ended, unless that kernel may write to this block: each
 * sequence has one token, so a pass writes only to the last position block, whose place in a ring
 * can be that of the first one.
 */
#ifndef CUDA_ATTN_SPLIT_CUH
#define CUDA_ATTN_SPLIT_CUH

#include "engine/cuda/kernels/cuda_attn_block.cuh"

#define SPLIT_PAIR 2  /* query heads per thread in the scores: 2 x 64 threads for ATTN_HEADS */
#define SPLIT_BATCH 8 /* elements or positions that a thread loads before it uses them */

/* Data of one position block; k, v and q of one tile of elements. */
struct split_shared {
    uint16_t k[SPLIT_TILE][KV_BLOCK];
    uint16_t v[KV_BLOCK][SPLIT_TILE];
    float q[SPLIT_TILE][ATTN_HEADS];
    float p[KV_BLOCK][ATTN_HEADS]; /* probabilities */
    float warp_best[ATTN_HEADS][2];
};

/* Slot of a position block and query head: o (head_dim), m, l. */
DEV float *attn_slot(const struct attn_args *a, float *slots, uint32_t block, uint32_t head)
{
    return slots + ((uint64_t)block * a->n_heads + head) * (a->kv.head_dim + 2);
}

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
        copy_async(&s->k[0][0] + 8 * c, from + 8 * c, true);
}

/* As copy_keys, for the first n values. Rows are padded to 32 elements: the last chunk is whole. */
DEV void copy_values(const struct attn_args *a, struct split_shared *s, const uint16_t *values,
                     uint32_t i0, uint32_t n)
{
    const uint32_t n_chunks = (tile_elems(a, i0) + 7) / 8;
    for (uint32_t c = thread_x(); c < n * (SPLIT_TILE / 8); c += n_threads_x()) {
        const uint32_t j = c / (SPLIT_TILE / 8), chunk = c % (SPLIT_TILE / 8);
        if (chunk < n_chunks)
            copy_async(&s->v[j][8 * chunk], values + j * a->kv.v_stride + i0 + 8 * chunk, true);
    }
}

/* Queries of up to ATTN_HEADS heads; missing heads repeat the first one. */
DEV void load_queries(const struct attn_args *a, struct split_shared *s,
                      const struct attn_thread *p, uint32_t i0)
{
    const uint32_t n = tile_elems(a, i0);
    for (uint32_t i = thread_x(); i < n; i += n_threads_x())
#pragma unroll
        for (uint32_t h = 0; h < ATTN_HEADS; h++)
            s->q[i][h] = p->q[(h < p->n_heads ? h : 0) * a->kv.head_dim + i0 + i];
}

/* Adds the products of the n elements of a tile to z[e] = q(head + e) . k(position j), which is one
 * chain of fma over the whole head. */
DEV void score_tile(const struct split_shared *s, uint32_t j, uint32_t head, uint32_t n, float *z)
{
    uint32_t i = 0;
    for (; i + SPLIT_BATCH <= n; i += SPLIT_BATCH) {
        float k[SPLIT_BATCH], q[SPLIT_BATCH][SPLIT_PAIR];
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH; u++) {
            k[u] = f32_of_f16(s->k[i + u][j]);
#pragma unroll
            for (uint32_t e = 0; e < SPLIT_PAIR; e++)
                q[u][e] = s->q[i + u][head + e];
        }
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH; u++)
#pragma unroll
            for (uint32_t e = 0; e < SPLIT_PAIR; e++)
                z[e] = fmaf(q[u][e], k[u], z[e]);
    }
    for (; i < n; i++)
#pragma unroll
        for (uint32_t e = 0; e < SPLIT_PAIR; e++)
            z[e] = fmaf(s->q[i][head + e], f32_of_f16(s->k[i][j]), z[e]);
}

/* Turns the scores of two heads into probabilities. Sets m[e] to the maximum and, in the first warp
 * of each pair of heads, l[e] to the sum. All threads of the block must call it. */
DEV void softmax_split(struct split_shared *s, uint32_t j, uint32_t head, struct seen range,
                       const float *z, float *m, float *l)
{
    const bool seen = j >= range.first && j < range.end;
#pragma unroll
    for (uint32_t e = 0; e < SPLIT_PAIR; e++) {
        const float top = warp_max(seen && z[e] == z[e] ? z[e] : -INFINITY);
        if (j % 32 == 0)
            s->warp_best[head + e][j / 32] = top;
    }
    block_sync();
#pragma unroll
    for (uint32_t e = 0; e < SPLIT_PAIR; e++) {
        m[e] = score_maximum(s->warp_best[head + e]);
        s->p[j][head + e] = seen ? exp0(z[e] - m[e]) : 0.0f;
    }
    block_sync();
    if (j < 32)
#pragma unroll
        for (uint32_t e = 0; e < SPLIT_PAIR; e++)
            l[e] = warp_tree(s->p[j][head + e] + s->p[j + 32][head + e]);
}

/* Adds value v of position j, times its probability, to o[h] of each head. */
DEV void weigh_position(const struct split_shared *s, uint32_t j, float v, float *o)
{
    const struct words p = load_words(s->p[j]);
#pragma unroll
    for (uint32_t h = 0; h < ATTN_HEADS; h++)
        o[h] = fmaf(f32_of_bits(p.at[h]), v, o[h]);
}

/* o[h] = sum of probability * value for element i of the tile, one chain of fma over the visible
 * positions. */
DEV void weigh_tile(const struct split_shared *s, uint32_t i, struct seen range, float *o)
{
    uint32_t j = range.first;
#pragma unroll
    for (uint32_t h = 0; h < ATTN_HEADS; h++)
        o[h] = 0.0f;
    for (; j + SPLIT_BATCH <= range.end; j += SPLIT_BATCH) {
        float v[SPLIT_BATCH];
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH; u++)
            v[u] = f32_of_f16(s->v[j + u][i]);
#pragma unroll
        for (uint32_t u = 0; u < SPLIT_BATCH; u++)
            weigh_position(s, j + u, v[u], o);
    }
    for (; j < range.end; j++)
        weigh_position(s, j, f32_of_f16(s->v[j][i]), o);
}

/* Computes the results of one position block. The caller has started the copies of the first tile
 * of keys and values. All threads of the block must call it. */
DEV void split_block(const struct attn_args *a, struct split_shared *s, const struct attn_thread *p,
                     uint32_t block, struct seen range)
{
    const uint32_t head_dim = a->kv.head_dim, j = thread_x() % KV_BLOCK;
    const uint32_t head = thread_x() / KV_BLOCK * SPLIT_PAIR; /* first one for the scores */
    const uint16_t *keys = block_keys(a, p, block), *values = keys + head_dim * KV_BLOCK;
    float *slots = a->tokens[block_z()].slots;
    float z[SPLIT_PAIR] = {0.0f, 0.0f}, m[SPLIT_PAIR], l[SPLIT_PAIR] = {0.0f, 0.0f};
    for (uint32_t i0 = 0; i0 < head_dim; i0 += SPLIT_TILE) {
        if (i0 > 0) {
            block_sync();
            copy_keys(a, s, keys, i0);
        }
        load_queries(a, s, p, i0);
        copy_async_wait();
        block_sync();
        score_tile(s, j, head, tile_elems(a, i0), z);
    }
    softmax_split(s, j, head, range, z, m, l);
    for (uint32_t i0 = 0; i0 < head_dim; i0 += SPLIT_TILE) {
        if (i0 > 0) {
            block_sync();
            copy_values(a, s, values, i0, range.end);
            copy_async_wait();
            block_sync();
        }
        for (uint32_t i = thread_x(); i < tile_elems(a, i0); i += n_threads_x()) {
            float o[ATTN_HEADS];
            weigh_tile(s, i, range, o);
            for (uint32_t h = 0; h < p->n_heads; h++)
                attn_slot(a, slots, block, p->head + h)[i0 + i] = o[h];
        }
    }
#pragma unroll
    for (uint32_t e = 0; e < SPLIT_PAIR; e++)
        if (j == 0 && head + e < p->n_heads) {
            attn_slot(a, slots, block, p->head + head + e)[head_dim] = m[e];
            attn_slot(a, slots, block, p->head + head + e)[head_dim + 1] = l[e];
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
            copy_values(&a, &s, keys + a.kv.head_dim * KV_BLOCK, 0, range.end);
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
KERNEL(attn_merge, attn_args, 64)
{
    const uint32_t token = block_x(), head = block_y(), head_dim = a.kv.head_dim;
    const uint32_t pos = (uint32_t)a.tokens[token].pos;
    const uint32_t first = oldest_seen(a.window, pos) / KV_BLOCK;
    float *out = a.out + (uint64_t)token * a.out_stride + (uint64_t)head * head_dim;
    for (uint32_t i = thread_x(); i < head_dim; i += n_threads_x()) {
        struct attn_run run = {0.0f, 0.0f};
        float o = 0.0f;
#pragma unroll 4
        for (uint32_t block = first; block <= pos / KV_BLOCK; block++) {
            const float *slot = attn_slot(&a, a.tokens[token].slots, block, head);
            const struct attn_factors f =
                merge_block(&run, slot[head_dim], slot[head_dim + 1], block == first);
            o = block == first ? slot[i] : fmaf(slot[i], f.new_factor, o * f.old_factor);
        }
        out[i] = o * (1.0f / run.l);
    }
}

#endif
