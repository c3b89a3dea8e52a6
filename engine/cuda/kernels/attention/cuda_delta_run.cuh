/*
 * The states of gated delta nets (docs/kernels.md, "Gated delta nets").
 *
 * Each token changes the state, so the tokens of a sequence are processed one after the other. The
 * columns of a state are independent of each other. The sums over the even and over the odd rows of
 * a column are independent, too. So in heads of 128 or 64 elements two lanes share a column: one
 * has the even rows in its registers, the other the odd rows.
 */
#ifndef CUDA_DELTA_RUN_CUH
#define CUDA_DELTA_RUN_CUH

#include "engine/cuda/kernels/device/cuda_math.cuh"

/* A column of a state before and after a token; its rows are `width` floats apart. `from` may be
 * NULL, which means zeros, and may equal `to`. */
struct state_column {
    const float *from;
    float *to;
    uint32_t width;
};

DEV float column_row(const struct state_column *c, uint32_t i)
{
    return c->from ? c->from[(uint64_t)i * c->width] : 0.0f;
}

/* Updates a column with a token, and returns the token's result for the column. q, k (dim): query
 * and key; v: the value's element; gate: decay and beta. dim is even (DELTA_DIM_UNIT). */
DEV float run_column(const struct state_column *c, uint32_t dim, const float *q, const float *k,
                     float v, const float *gate)
{
    float u0 = 0.0f, u1 = 0.0f, o0 = 0.0f, o1 = 0.0f;
#pragma unroll 8
    for (uint32_t i = 0; i < dim; i += 2) {
        u0 = fmaf(column_row(c, i), k[i], u0);
        u1 = fmaf(column_row(c, i + 1), k[i + 1], u1);
    }
    const float decay = gate[0], delta = fmaf(-decay, u0 + u1, v) * gate[1];
#pragma unroll 8
    for (uint32_t i = 0; i < dim; i += 2) {
        const float s0 = fmaf(k[i], delta, column_row(c, i) * decay);
        const float s1 = fmaf(k[i + 1], delta, column_row(c, i + 1) * decay);
        c->to[(uint64_t)i * c->width] = s0;
        c->to[(uint64_t)(i + 1) * c->width] = s1;
        o0 = fmaf(s0, q[i], o0);
        o1 = fmaf(s1, q[i + 1], o1);
    }
    return o0 + o1;
}

/* The columns of a thread block, for heads of any size: a thread has a column, which stays in
 * memory. */
DEV void run_in_memory(const struct delta_run_args *a, const struct cuda_run *run)
{
    const uint32_t head = block_y(), key_head = head % a->n_key_heads;
    const uint32_t strip = block_z() * STATE_COLS, column = strip + thread_x();
    const uint32_t width = a->dim - strip < STATE_COLS ? a->dim - strip : STATE_COLS;
    const uint64_t at = a->matrices + ((uint64_t)head * a->dim + strip) * a->dim + thread_x();
    struct state_column c = {run->from ? run->from + at : NULL, run->to + at, width};
    if (thread_x() >= width)
        return;
    for (uint32_t t = 0; t < run->n_tokens; t++) {
        const uint32_t token = run->token0 + t;
        const float *row = a->qkv + (uint64_t)token * a->qkv_stride;
        const float *k = row + (uint64_t)(a->n_key_heads + key_head) * a->dim;
        const float *v = row + (uint64_t)(2 * a->n_key_heads + head) * a->dim;
        const float *gate = a->gates + 2 * ((uint64_t)token * a->n_heads + head);
        a->out[(uint64_t)token * a->out_stride + (uint64_t)head * a->dim + column] =
            run_column(&c, a->dim, row + (uint64_t)key_head * a->dim, k, v[column], gate);
        c.from = c.to;
    }
}

/* What the columns of a thread block need of a token. q and k have the even elements in [0] and the
 * odd ones in [1]; the padding places both in different banks. */
struct delta_token {
    float q[2][HELD_ROWS + 4], k[2][HELD_ROWS + 4];
    float v[STATE_COLS], gate[4]; /* decay and beta, then padding */
};

/* The elements that a thread copies from memory to the delta_token of each token of a batch. */
struct delta_elements {
    float q[DELTA_BATCH], k[DELTA_BATCH], v[DELTA_BATCH];
};

/* Loads this thread's elements of the tokens from t on. The last token stands for those after it.
 * The first STATE_COLS threads have an element of v each, the two after them the gates. */
DEV void load_tokens(const struct delta_run_args *a, const struct cuda_run *run, uint32_t t,
                     struct delta_elements *to)
{
    const uint32_t head = block_y(), key_head = head % a->n_key_heads, i = thread_x();
#pragma unroll
    for (uint32_t u = 0; u < DELTA_BATCH; u++) {
        const uint32_t token = run->token0 + (t + u < run->n_tokens ? t + u : run->n_tokens - 1);
        const float *row = a->qkv + (uint64_t)token * a->qkv_stride;
        const float *gate = a->gates + 2 * ((uint64_t)token * a->n_heads + head);
        const float *v = row + (uint64_t)(2 * a->n_key_heads + head) * a->dim;
        if (i < a->dim) {
            to->q[u] = row[key_head * a->dim + i];
            to->k[u] = row[(a->n_key_heads + key_head) * a->dim + i];
        }
        if (i < STATE_COLS)
            to->v[u] = v[block_z() * STATE_COLS + i];
        else if (i < STATE_COLS + 2)
            to->v[u] = gate[i - STATE_COLS];
    }
}

DEV void store_tokens(const struct delta_run_args *a, const struct delta_elements *from,
                      struct delta_token *to)
{
    const uint32_t i = thread_x();
#pragma unroll
    for (uint32_t u = 0; u < DELTA_BATCH; u++) {
        if (i < a->dim) {
            to[u].q[i % 2][i / 2] = from->q[u];
            to[u].k[i % 2][i / 2] = from->k[u];
        }
        if (i < STATE_COLS)
            to[u].v[i] = from->v[u];
        else if (i < STATE_COLS + 2)
            to[u].gate[i - STATE_COLS] = from->v[u];
    }
}

/* Updates a column with a token, as run_column does, by two lanes: s has the even rows of the
 * column if `half` is 0, the odd ones if it is 1. Both lanes return the result. */
DEV float run_half(const struct delta_token *t, uint32_t half, uint32_t column, uint32_t n_rows,
                   float *s)
{
    float u = 0.0f, o = 0.0f;
#pragma unroll
    for (uint32_t i = 0; i < n_rows; i += 4) {
        const struct four k = load_four(t->k[half], i, n_rows);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            u = fmaf(s[i + e], k.at[e], u);
    }
    u = u + shuffle_xor_f32(u, 16); /* commutative: the same bits in both lanes */
    const float decay = t->gate[0], delta = fmaf(-decay, u, t->v[column]) * t->gate[1];
#pragma unroll
    for (uint32_t i = 0; i < n_rows; i += 4) {
        const struct four k = load_four(t->k[half], i, n_rows);
        const struct four q = load_four(t->q[half], i, n_rows);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            s[i + e] = fmaf(k.at[e], delta, s[i + e] * decay);
            o = fmaf(s[i + e], q.at[e], o);
        }
    }
    return o + shuffle_xor_f32(o, 16);
}

/* The columns of a thread block, for heads of 2 n_rows elements: two lanes share a column, which
 * stays in their registers. n_rows must be a compile-time constant. The state is loaded before the
 * previous kernel has ended. A batch of tokens is loaded while the one before it is computed. */
DEV void run_in_registers(const struct delta_run_args *a, const struct cuda_run *run,
                          struct delta_token (*tokens)[DELTA_BATCH], uint32_t n_rows)
{
    const uint32_t half = thread_x() % 32 / 16, column = thread_x() / 32 * 16 + thread_x() % 16;
    const uint32_t head = block_y(), strip = block_z() * STATE_COLS;
    const uint64_t at = a->matrices + ((uint64_t)head * a->dim + strip) * a->dim + column;
    float *out =
        a->out + (uint64_t)run->token0 * a->out_stride + (uint64_t)head * a->dim + strip + column;
    struct delta_elements next;
    float s[HELD_ROWS];
#pragma unroll
    for (uint32_t i = 0; i < n_rows; i++)
        s[i] = run->from ? load_written(run->from + at + (2 * i + half) * STATE_COLS) : 0.0f;
    wait_for_grid();
    load_tokens(a, run, 0, &next);
    store_tokens(a, &next, tokens[0]);
    block_sync();
#pragma unroll 1
    for (uint32_t first = 0; first < run->n_tokens; first += DELTA_BATCH) {
        const uint32_t batch = first / DELTA_BATCH % 2, n_left = run->n_tokens - first;
        if (n_left > DELTA_BATCH)
            load_tokens(a, run, first + DELTA_BATCH, &next);
#pragma unroll 1
        for (uint32_t t = 0; t < DELTA_BATCH && t < n_left; t++) {
            const float y = run_half(&tokens[batch][t], half, column, n_rows, s);
            if (half == 0)
                out[(uint64_t)(first + t) * a->out_stride] = y;
        }
        if (n_left > DELTA_BATCH)
            store_tokens(a, &next, tokens[1 - batch]);
        block_sync();
    }
#pragma unroll
    for (uint32_t i = 0; i < n_rows; i++)
        run->to[at + (2 * i + half) * STATE_COLS] = s[i];
}

/* Run number i, for use before wait_for_grid. */
DEV struct cuda_run find_run(const struct cuda_run *runs, uint32_t i)
{
    const struct word_pair from = load_written_pair(&runs[i].from);
    const struct word_pair to = load_written_pair(&runs[i].to);
    const struct word_pair n = load_written_pair(&runs[i].token0);
    struct cuda_run run;
    run.from = (const float *)(uintptr_t)(from.at[0] | (uint64_t)from.at[1] << 32);
    run.to = (float *)(uintptr_t)(to.at[0] | (uint64_t)to.at[1] << 32);
    run.token0 = n.at[0];
    run.n_tokens = n.at[1];
    return run;
}

KERNEL_EARLY(delta_run, delta_run_args, DELTA_THREADS)
{
    SHARED_WIDE struct delta_token tokens[2][DELTA_BATCH];
    const struct cuda_run run = find_run(a.runs, block_x());
    if (a.dim == 2 * HELD_ROWS) {
        run_in_registers(&a, &run, tokens, HELD_ROWS);
    } else if (a.dim == HELD_ROWS) {
        run_in_registers(&a, &run, tokens, HELD_ROWS / 2);
    } else {
        wait_for_grid();
        run_in_memory(&a, &run);
    }
}

#endif
