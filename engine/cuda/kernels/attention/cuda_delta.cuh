/*
 * Gated delta nets but for their gates and states, and the gates of attention in the same models
 * (docs/kernels.md, "Gated delta nets").
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

/* dot64(x, x) by a thread block of 64 threads. */
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
