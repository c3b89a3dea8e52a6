/*
 * Gated delta nets but for their gates, and the gates of attention in the same models
 * (docs/kernels.md, "Gated delta nets").
 *
 * Tokens pass through a state one after the other. The columns of a state are independent, so a
 * thread processes whole columns and needs no barrier.
 */
#ifndef CUDA_DELTA_CUH
#define CUDA_DELTA_CUH

#include "engine/cuda/kernels/device/cuda_reduce.cuh"

/* Input number i of a run in a channel: the inputs before its first token, then those of its
 * tokens. */
DEV float conv_input(const struct delta_convolve_args *a, const struct cuda_run *run,
                     uint32_t channel, uint32_t i)
{
    if (i < STATE_TAPS - 1)
        return run->from ? run->from[a->kept + (uint64_t)i * a->n_channels + channel] : 0.0f;
    return a->qkv[(uint64_t)(run->token0 + i - (STATE_TAPS - 1)) * a->qkv_stride + channel];
}

/* A thread has one channel. Results overwrite the inputs, so the last token comes first. */
KERNEL(delta_convolve, delta_convolve_args, CONVOLVE_THREADS)
{
    const struct cuda_run run = a.runs[block_x()];
    const uint32_t channel = block_y() * n_threads_x() + thread_x();
    if (channel >= a.n_channels)
        return;
    const struct words bits = load_words(a.taps + (uint64_t)channel * STATE_TAPS);
    float x[STATE_TAPS], w[STATE_TAPS];
#pragma unroll
    for (uint32_t i = 0; i < STATE_TAPS - 1; i++) {
        x[i + 1] = conv_input(&a, &run, channel, run.n_tokens + i);
        run.to[a.kept + (uint64_t)i * a.n_channels + channel] = x[i + 1];
    }
#pragma unroll
    for (uint32_t i = 0; i < STATE_TAPS; i++)
        w[i] = f32_of_bits(bits.at[i]);
    for (uint32_t t = run.n_tokens; t-- > 0;) {
        x[0] = conv_input(&a, &run, channel, t);
        float sum = x[0] * w[0];
#pragma unroll
        for (uint32_t i = 1; i < STATE_TAPS; i++)
            sum = fmaf(x[i], w[i], sum);
        a.qkv[(uint64_t)(run.token0 + t) * a.qkv_stride + channel] = sum * sigmoid(sum);
#pragma unroll
        for (uint32_t i = STATE_TAPS - 1; i > 0; i--)
            x[i] = x[i - 1];
    }
}

/* dot64(x, x) by a block of 64 threads. */
DEV float head_square64(const float *x, uint32_t n)
{
    float v = 0.0f;
    for (uint32_t i = thread_x(); i < n; i += 64)
        v = fmaf(x[i], x[i], v);
    return block_sum64(v);
}

KERNEL(delta_norm, delta_norm_args, 64)
{
    const uint32_t head = block_y();
    float *x = a.qkv + (uint64_t)block_x() * a.qkv_stride + (uint64_t)head * a.dim;
    const float length = sqrtf(head_square64(x, a.dim));
    const float r = (head < a.n_key_heads ? a.q_scale : 1.0f) / (length > a.eps ? length : a.eps);
    for (uint32_t i = thread_x(); i < a.dim; i += n_threads_x())
        x[i] = x[i] * r;
}

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

KERNEL(delta_run, delta_run_args, DELTA_THREADS)
{
    const struct cuda_run run = a.runs[block_x()];
    const uint32_t head = block_y(), key_head = head % a.n_key_heads;
    const uint64_t matrix = a.matrices + (uint64_t)head * a.dim * a.dim;
    for (uint32_t column = thread_x(); column < a.dim; column += n_threads_x()) {
        const uint32_t block = column / STATE_COLS * STATE_COLS;
        const uint32_t width = a.dim - block < STATE_COLS ? a.dim - block : STATE_COLS;
        const uint64_t at = matrix + (uint64_t)block * a.dim + (column - block);
        struct state_column c = {run.from ? run.from + at : NULL, run.to + at, width};
        for (uint32_t t = 0; t < run.n_tokens; t++) {
            const uint32_t token = run.token0 + t;
            const float *row = a.qkv + (uint64_t)token * a.qkv_stride;
            const float *k = row + (uint64_t)(a.n_key_heads + key_head) * a.dim;
            const float *v = row + (uint64_t)(2 * a.n_key_heads + head) * a.dim;
            const float *gate = a.gates + 2 * ((uint64_t)token * a.n_heads + head);
            a.out[(uint64_t)token * a.out_stride + (uint64_t)head * a.dim + column] =
                run_column(&c, a.dim, row + (uint64_t)key_head * a.dim, k, v[column], gate);
            c.from = c.to;
        }
    }
}

KERNEL(delta_out, delta_out_args, 64)
{
    const uint64_t head = (uint64_t)block_y() * a.dim;
    float *out = a.out + (uint64_t)block_x() * a.out_stride + head;
    const float *z = a.z + (uint64_t)block_x() * a.qkv_stride + head;
    const float r = 1.0f / sqrtf(head_square64(out, a.dim) / (float)a.dim + a.eps);
    for (uint32_t i = thread_x(); i < a.dim; i += n_threads_x())
        out[i] = (z[i] * sigmoid(z[i])) * ((out[i] * r) * a.norm[i]);
}

KERNEL(split_gates, split_gates_args, 256)
{
    SHARED_WIDE float tile[SPLIT_GATE_FLOATS];
    const uint32_t n = a.n_q_per_kv * a.head_dim;
    float *q = a.qkv + (uint64_t)block_x() * a.qkv_stride + (uint64_t)block_y() * 2 * n;
    for (uint32_t i = thread_x(); i < 2 * n; i += n_threads_x())
        tile[i] = q[i];
    block_sync();
    for (uint32_t i = thread_x(); i < n; i += n_threads_x()) {
        const uint32_t head = i / a.head_dim, from = i + head * a.head_dim;
        q[i] = tile[from];
        q[n + i] = tile[from + a.head_dim];
    }
}

KERNEL(attn_gate, attn_gate_args, 256)
{
    const uint32_t n = a.n_q_per_kv * a.head_dim;
    const float *gates =
        a.qkv + (uint64_t)block_x() * a.qkv_stride + (uint64_t)(2 * block_y() + 1) * n;
    float *out = a.out + (uint64_t)block_x() * a.out_stride + (uint64_t)block_y() * n;
    for (uint32_t i = thread_x(); i < n; i += n_threads_x())
        out[i] = sigmoid(gates[i]) * out[i];
}

#endif
