/*
 * The data of a thread block of attn_apply, and the steps that each of its rows takes: which
 * positions a row sees, softmax, and the merge of maxima and sums. A row is a query: a pair of
 * token and query head.
 */
#ifndef CUDA_ATTN_ROWS_CUH
#define CUDA_ATTN_ROWS_CUH

#include "engine/cuda/kernels/attention/cuda_attn_tile.cuh"

#define KEY_CHUNK 32   /* elements of a head in a chunk of queries and keys */
#define VALUE_CHUNK 16 /* positions in a chunk of values; it has as many bytes as one of keys */
#define SCORE_ROWS 4
#define VALUE_ROWS 8
/* Copies of 16 bytes of keys or values by a thread for each chunk. */
#define KV_COPIES (KEY_CHUNK * KV_BLOCK / 8 / APPLY_THREADS)
/* Rows of which a thread copies 16 bytes of each chunk of queries: row t / 8 + 16 e of thread t. */
#define COPY_ROWS (APPLY_ROWS * KEY_CHUNK / 4 / APPLY_THREADS)

struct apply_stage {
    float q[APPLY_ROWS][KEY_CHUNK + 4]; /* 4 more floats place neighbours in different banks */
    uint16_t kv[KEY_CHUNK * KV_BLOCK];  /* (KEY_CHUNK, KV_BLOCK) or (VALUE_CHUNK, APPLY_ELEMS) */
};

/* The tokens of one sequence in a thread block, and the position blocks that they see. */
struct apply_seq {
    const uint16_t *kv;
    uint32_t ring_blocks;
    uint32_t token, token_end;
    uint32_t oldest, last;   /* first and last position that some token sees */
    uint32_t full, full_end; /* position blocks that all tokens see as a whole */
};

/* A row: its token, and its running maximum and sum. */
struct apply_row {
    uint32_t token, pos, oldest;
    struct attn_run run;
};

struct apply_shared {
    struct apply_stage stage[2];
    float p[APPLY_ROWS][KV_BLOCK + 4]; /* probabilities, or UNSEEN */
    struct apply_seq seq;
    struct apply_row rows[APPLY_ROWS];
    struct seen seen[APPLY_ROWS]; /* positions of the block */
    float m[APPLY_ROWS];          /* maximum of the scores of the block */
    /* Factors of the merge. old_factor < 0: the block is the row's first one, and its results are
     * copied. new_factor < 0: the row does not see the block. At the end, new_factor is 1 / L. */
    float old_factor[APPLY_ROWS], new_factor[APPLY_ROWS];
};

/* The work of a thread. */
struct apply_thread {
    uint32_t row0;   /* first row of the thread block, among all rows of the KV head */
    uint32_t n_rows; /* number of rows of the thread block */
    uint32_t kv_head;
    uint32_t elem0;               /* first element of the head whose results the thread block has */
    uint32_t score_row, position; /* first row and position of the thread's tile of scores */
    uint32_t value_row, elem;     /* those of its tile of results, whose rows are 4 apart */
    const float *q[COPY_ROWS];    /* the rows whose queries the thread copies */
    bool by_words;                /* the queries can be copied in 16-byte words */
};

/* Sets s->rows. One of the four threads of a row writes its members. */
DEV void init_row(const struct attn_args *a, struct apply_shared *s, const struct apply_thread *p)
{
    const uint32_t row = thread_x() / 4;
    struct apply_row r = {UINT32_MAX, 0, 0, {0.0f, 0.0f}}; /* in no sequence */
    if (thread_x() % 4 != 0)
        return;
    if (row < p->n_rows) {
        r.token = (p->row0 + row) / a->n_q_per_kv;
        r.pos = (uint32_t)a->tokens[r.token].pos;
        r.oldest = oldest_seen(a->window, r.pos);
    }
    s->rows[row] = r;
}

/* Sets s->seen: the positions of a position block that each row sees. Rows of other sequences see
 * none. */
DEV void set_seen(struct apply_shared *s, uint32_t block)
{
    const struct apply_row *r = &s->rows[thread_x() / 4];
    const struct seen none = {0, 0};
    if (thread_x() % 4 == 0)
        s->seen[thread_x() / 4] = r->token >= s->seq.token && r->token < s->seq.token_end
                                      ? seen_of(r->oldest, r->pos, block)
                                      : none;
}

/* Turns scores into probabilities s->p and sets s->m. */
DEV void softmax_rows(struct apply_shared *s, const struct apply_thread *p, bool is_full,
                      const struct tile_sums *z)
{
#pragma unroll
    for (uint32_t r = 0; r < SCORE_ROWS; r++) {
        const uint32_t row = p->score_row + r;
        const uint32_t first = is_full ? 0 : s->seen[row].first;
        const uint32_t end = is_full ? KV_BLOCK : s->seen[row].end;
        struct words w;
        float top = -INFINITY; /* a comparison with NaN is false */
#pragma unroll
        for (uint32_t c = 0; c < TILE_COLS; c++)
            if (p->position + c >= first && p->position + c < end)
                top = z->at[r][c] > top ? z->at[r][c] : top;
        for (uint32_t mask = 16; mask > 1; mask /= 2) { /* lanes of the same row: same lowest bit */
            const float other = shuffle_xor_f32(top, mask);
            top = other > top ? other : top;
        }
        top = top + 0.0f; /* -0 becomes +0 */
#pragma unroll
        for (uint32_t c = 0; c < TILE_COLS; c++) {
            const bool seen = p->position + c >= first && p->position + c < end;
            w.at[c] = bits_of_f32(seen ? exp0(z->at[r][c] - top) : UNSEEN);
        }
        store_words(&s->p[row][p->position], w);
        if (p->position == 0)
            s->m[row] = top;
    }
}

/* One step of the tree of sum64: adds the second half of x (2 n) to the first. */
DEV void add_half(float *x, uint32_t n)
{
#pragma unroll
    for (uint32_t i = 0; i < n; i++)
        x[i] = x[i] + x[i + n];
}

/* Sums the probabilities of a row by its four threads. Thread t % 4 has the lanes t % 4, t % 4 + 4,
 * ... of sum64, so only the last two steps of the tree are between threads. */
DEV float sum_row(const float *p)
{
    float x[KV_BLOCK / 4];
#pragma unroll
    for (uint32_t i = 0; i < KV_BLOCK / 4; i++) {
        const float v = p[thread_x() % 4 + 4 * i];
        x[i] = v >= 0.0f ? v : 0.0f;
    }
    add_half(x, 8);
    add_half(x, 4);
    add_half(x, 2);
    add_half(x, 1);
    x[0] = x[0] + shuffle_xor_f32(x[0], 2);
    return x[0] + shuffle_xor_f32(x[0], 1);
}

/* Merges maximum and sum of a block into those of the row, and sets the factors for its results. */
DEV void merge_row(struct apply_shared *s, uint32_t block)
{
    const uint32_t row = thread_x() / 4;
    const float l = sum_row(s->p[row]);
    struct apply_row *r = &s->rows[row];
    const bool is_first = block == r->oldest / KV_BLOCK;
    struct attn_factors f = {UNSEEN, UNSEEN};
    if (thread_x() % 4 != 0)
        return;
    if (s->seen[row].end > 0)
        f = merge_block(&r->run, s->m[row], l, is_first);
    s->old_factor[row] = is_first ? UNSEEN : f.old_factor;
    s->new_factor[row] = f.new_factor;
}

#endif
