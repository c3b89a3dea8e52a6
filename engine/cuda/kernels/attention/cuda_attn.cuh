/*
 * Attention in a pass with several tokens of one sequence (prefill, drafts). A row is a query: a
 * pair of token and query head. A thread block has APPLY_ROWS rows of one KV head and processes all
 * position blocks that they see, in turn, merging them in ascending order (docs/kernels.md). Each
 * key and value is loaded once for all rows. The running results stay in registers.
 *
 * Queries, keys and values pass through two buffers in shared memory: the copy of one chunk runs
 * while the other chunk is multiplied. The threads are mapped to their work in three ways:
 *   scores  4 rows x 4 positions per thread; a warp has 8 rows x all positions
 *   values  8 rows x 4 elements per thread; a warp has all rows x 32 elements
 *   rows    4 threads per row: the sum of the probabilities, the factors of the merge
 */
#ifndef CUDA_ATTN_CUH
#define CUDA_ATTN_CUH

#include "engine/cuda/kernels/attention/cuda_attn_rows.cuh"

DEV const float *row_query(const struct attn_args *a, uint32_t kv_head, uint32_t row)
{
    return a->qkv + (uint64_t)(row / a->n_q_per_kv) * a->qkv_stride +
           (uint64_t)kv_head * a->q_kv_stride + row % a->n_q_per_kv * a->kv.head_dim;
}

/* Thread blocks with late tokens come first, because they take longest. A warp of 32 lanes has all
 * rows and a quarter of the elements of the results. */
DEV struct apply_thread apply_thread_init(const struct attn_args *a)
{
    const uint32_t n_all = a->n_tokens * a->n_q_per_kv, t = thread_x(), lane = t % 32,
                   warp = t / 32;
    const uint32_t n_parts = (a->kv.head_dim + APPLY_ELEMS - 1) / APPLY_ELEMS;
    const uint32_t n_kv_heads = a->n_heads / a->n_q_per_kv,
                   n_later = block_x() / (n_parts * n_kv_heads);
    struct apply_thread p;
    p.row0 = ((n_all - 1) / APPLY_ROWS - n_later) * APPLY_ROWS;
    p.n_rows = n_all - p.row0 < APPLY_ROWS ? n_all - p.row0 : APPLY_ROWS;
    p.kv_head = block_x() / n_parts % n_kv_heads;
    p.elem0 = block_x() % n_parts * APPLY_ELEMS;
    /* Lanes that differ by 1 share keys or probabilities, lanes that differ by 2 share queries or
     * values, so a warp needs fewer accesses. */
    p.score_row = (2 * warp + lane % 2) * SCORE_ROWS;
    p.position = lane / 2 * TILE_COLS;
    p.value_row = lane / 2 % 4;
    p.elem = warp * 32 + (lane / 8 * 2 + lane % 2) * TILE_COLS;
#pragma unroll
    for (uint32_t e = 0; e < COPY_ROWS; e++) {
        const uint32_t row = t / 8 + e * (APPLY_THREADS / 8);
        p.q[e] = row_query(a, p.kv_head, p.row0 + (row < p.n_rows ? row : 0));
    }
    p.by_words = (a->kv.head_dim | a->qkv_stride | a->q_kv_stride) % 4 == 0;
    return p;
}

/* The sequence of `token`, whose tokens are consecutive and at consecutive positions. */
DEV struct apply_seq apply_seq_init(const struct attn_args *a, uint32_t kv_head, uint32_t token,
                                    uint32_t token_end)
{
    const struct cuda_token first = a->tokens[token];
    const uint32_t pos = (uint32_t)first.pos;
    struct apply_seq s;
    while (a->tokens[token_end - 1].kv != first.kv)
        token_end--;
    s.kv = kv_begin(&a->kv, &first, a->layer, kv_head);
    s.ring_blocks = first.ring_blocks;
    s.token = token;
    s.token_end = token_end;
    s.oldest = oldest_seen(a->window, pos);
    s.last = pos + (token_end - 1 - token);
    s.full = (oldest_seen(a->window, s.last) + KV_BLOCK - 1) / KV_BLOCK;
    s.full_end = (pos + 1) / KV_BLOCK;
    return s;
}

DEV const uint16_t *seq_keys(const struct attn_args *a, const struct apply_seq *s, uint32_t block)
{
    return s->kv + kv_place(&a->kv, s->ring_blocks, block) * a->kv.block_elems;
}

/* Starts copying the queries and keys of the elements from i0 on. */
DEV void start_keys(const struct attn_args *a, const struct apply_thread *p, struct apply_stage *to,
                    const uint16_t *keys, uint32_t i0)
{
    const uint32_t head_dim = a->kv.head_dim, part = thread_x() % 8, i = i0 + 4 * part;
#pragma unroll
    for (uint32_t e = 0; e < KV_COPIES; e++) {
        const uint32_t c = thread_x() + e * APPLY_THREADS;
        if (i0 + c / 8 < head_dim)
            copy_async(to->kv + 8 * c, keys + i0 * KV_BLOCK + 8 * c, true);
    }
#pragma unroll
    for (uint32_t e = 0; e < COPY_ROWS; e++) {
        float *row = to->q[thread_x() / 8 + e * (APPLY_THREADS / 8)] + 4 * part;
        if (!p->by_words) {
#pragma unroll 1
            for (uint32_t u = 0; u < 4 && i + u < head_dim; u++)
                row[u] = p->q[e][i + u];
        } else if (i < head_dim) {
            copy_async(row, p->q[e] + i, true);
        }
    }
}

/* Starts copying the values of VALUE_CHUNK positions from j0 on. Rows are padded to 32 elements, so
 * the last chunk of 8 is whole. */
DEV void start_values(const struct attn_args *a, const struct apply_thread *p,
                      struct apply_stage *to, const uint16_t *values, uint32_t j0)
{
    const uint32_t n_parts = APPLY_ELEMS / 8, i = p->elem0 + thread_x() % n_parts * 8;
#pragma unroll
    for (uint32_t e = 0; e < KV_COPIES; e++) {
        const uint32_t c = thread_x() + e * APPLY_THREADS;
        if (i < a->kv.v_stride)
            copy_async(to->kv + 8 * c, values + (j0 + c / n_parts) * a->kv.v_stride + i, true);
    }
}

/* Merges the results of a block into the running results. */
DEV void merge_values(const struct apply_shared *s, const struct apply_thread *p,
                      const struct tile_sums *o, struct tile_sums *out)
{
#pragma unroll
    for (uint32_t r = 0; r < VALUE_ROWS; r++) {
        const float old_factor = s->old_factor[p->value_row + 4 * r];
        const float new_factor = s->new_factor[p->value_row + 4 * r];
        if (new_factor < 0.0f)
            continue;
#pragma unroll
        for (uint32_t c = 0; c < TILE_COLS; c++)
            out->at[r][c] = old_factor < 0.0f
                                ? o->at[r][c]
                                : fmaf(o->at[r][c], new_factor, out->at[r][c] * old_factor);
    }
}

/* Computes the scores of a position block. The copy of the first chunk to stage *turn has started;
 * the last copy that starts here is that of the first values, from position j0 on. */
DEV void score_queries(const struct attn_args *a, struct apply_shared *s,
                       const struct apply_thread *p, const uint16_t *keys, uint32_t j0,
                       uint32_t *turn, struct tile_sums *z)
{
    const uint32_t head_dim = a->kv.head_dim;
    for (uint32_t i0 = 0; i0 < head_dim; i0 += KEY_CHUNK) {
        struct apply_stage *now = &s->stage[*turn], *next = &s->stage[*turn ^ 1];
        const uint32_t n = head_dim - i0 < KEY_CHUNK ? head_dim - i0 : KEY_CHUNK;
        const struct tile t = {now->q[p->score_row], now->kv + p->position, KEY_CHUNK + 4, KV_BLOCK,
                               SCORE_ROWS};
        copy_async_wait();
        block_sync();
        if (i0 + KEY_CHUNK < head_dim)
            start_keys(a, p, next, keys, i0 + KEY_CHUNK);
        else
            start_values(a, p, next, keys + head_dim * KV_BLOCK, j0);
        if (p->score_row / 8 * 8 < p->n_rows) /* the same in all lanes of a warp */
            multiply_tile(&t, n, TERMS_ALL, z);
        *turn ^= 1;
    }
}

/* Computes the results of positions j0 .. j0 + VALUE_CHUNK - 1, whose values are in stage `now`. */
DEV void weigh_chunk(const struct attn_args *a, const struct apply_shared *s,
                     const struct apply_thread *p, const struct apply_stage *now, uint32_t j0,
                     enum tile_terms terms, struct tile_sums *o)
{
    const struct tile t = {s->p[p->value_row] + j0, now->kv + p->elem, 4 * (KV_BLOCK + 4),
                           APPLY_ELEMS, VALUE_ROWS};
    if (p->elem0 + p->elem / 32 * 32 < a->kv.head_dim) /* the same in all lanes of a warp */
        multiply_tile(&t, VALUE_CHUNK, terms, o);
}

/* Processes one position block. The caller has started the copy of its first chunk to stage *turn;
 * this function starts that of the next block. All threads of the thread block must call it. */
DEV void apply_block(const struct attn_args *a, struct apply_shared *s,
                     const struct apply_thread *p, uint32_t block, uint32_t *turn,
                     struct tile_sums *out)
{
    const uint16_t *keys = seq_keys(a, &s->seq, block);
    const struct seen all = seen_of(s->seq.oldest, s->seq.last, block); /* by any of the tokens */
    const uint32_t j_begin = all.first / VALUE_CHUNK * VALUE_CHUNK;
    const bool is_full = block >= s->seq.full && block < s->seq.full_end;
    struct tile_sums z = {{{0.0f}}}, o = {{{0.0f}}};
    set_seen(s, block);
    score_queries(a, s, p, keys, j_begin, turn, &z);
    softmax_rows(s, p, is_full, &z);
    for (uint32_t j0 = j_begin; j0 < all.end; j0 += VALUE_CHUNK) {
        struct apply_stage *now = &s->stage[*turn], *next = &s->stage[*turn ^ 1];
        copy_async_wait();
        block_sync();
        if (j0 + VALUE_CHUNK < all.end)
            start_values(a, p, next, keys + a->kv.head_dim * KV_BLOCK, j0 + VALUE_CHUNK);
        else if (block < s->seq.last / KV_BLOCK)
            start_keys(a, p, next, seq_keys(a, &s->seq, block + 1), 0);
        if (j0 == j_begin)
            merge_row(s, block);
        if (is_full)
            weigh_chunk(a, s, p, now, j0, TERMS_ALL, &o);
        else
            weigh_chunk(a, s, p, now, j0, TERMS_SEEN, &o);
        *turn ^= 1;
    }
    block_sync();
    merge_values(s, p, &o, out);
}

/* Divides the running results by the sums of the probabilities and stores them. */
DEV void store_results(const struct attn_args *a, struct apply_shared *s,
                       const struct apply_thread *p, const struct tile_sums *out)
{
    block_sync(); /* all threads have read the factors of the last block */
    if (thread_x() % 4 == 0)
        s->new_factor[thread_x() / 4] = 1.0f / s->rows[thread_x() / 4].run.l;
    block_sync();
#pragma unroll
    for (uint32_t r = 0; r < VALUE_ROWS; r++) {
        const uint32_t row = p->value_row + 4 * r, at = p->row0 + row;
        const uint32_t elem = p->elem0 + p->elem;
        float *to = a->out + (uint64_t)(at / a->n_q_per_kv) * a->out_stride +
                    (p->kv_head * a->n_q_per_kv + at % a->n_q_per_kv) * a->kv.head_dim + elem;
        if (row >= p->n_rows)
            continue;
#pragma unroll
        for (uint32_t c = 0; c < TILE_COLS; c++)
            if (elem + c < a->kv.head_dim)
                to[c] = out->at[r][c] * s->new_factor[row];
    }
}

/* Grid, in one dimension: (n_tokens * n_q_per_kv / APPLY_ROWS) * (KV heads) * (head_dim /
 * APPLY_ELEMS), each quotient rounded up. */
KERNEL_DENSE(attn_apply, attn_args, APPLY_THREADS, 4)
{
    SHARED_WIDE struct apply_shared s;
    const struct apply_thread p = apply_thread_init(&a);
    struct tile_sums out = {{{0.0f}}};
    const uint32_t token_end = (p.row0 + p.n_rows - 1) / a.n_q_per_kv + 1;
    uint32_t turn = 0;
    init_row(&a, &s, &p);
    for (uint32_t token = p.row0 / a.n_q_per_kv; token < token_end; token = s.seq.token_end) {
        block_sync(); /* all threads have used the previous sequence */
        if (thread_x() == 0)
            s.seq = apply_seq_init(&a, p.kv_head, token, token_end);
        block_sync();
        start_keys(&a, &p, &s.stage[turn], seq_keys(&a, &s.seq, s.seq.oldest / KV_BLOCK), 0);
        for (uint32_t block = s.seq.oldest / KV_BLOCK; block <= s.seq.last / KV_BLOCK; block++)
            apply_block(&a, &s, &p, block, &turn, &out);
    }
    store_results(&a, &s, &p, &out);
}

#endif
