/*
 * Decay and beta of gated delta nets (docs/kernels.md, "Gated delta nets").
 */
#ifndef CUDA_DELTA_GATES_CUH
#define CUDA_DELTA_GATES_CUH

#include "engine/cuda/kernels/head/cuda_head.cuh"

/* log(1 + exp(x)); docs/kernels.md has the series. */
DEV float softplus(float x)
{
    const float e = exp0(-fabsf(x));
    const float s = e / (2.0f + e), t = s * s;
    float p = 1.0f / 15;
    p = fmaf(p, t, 1.0f / 13);
    p = fmaf(p, t, 1.0f / 11);
    p = fmaf(p, t, 1.0f / 9);
    p = fmaf(p, t, 1.0f / 7);
    p = fmaf(p, t, 1.0f / 5);
    p = fmaf(p, t, 1.0f / 3);
    p = fmaf(p, t, 1.0f);
    return (x > 0.0f ? x : 0.0f) + (s + s) * p;
}

/* Pairs of elements of a row of a small matrix, as in the file: an F32 number in each word, or two
 * numbers of 16 bits in the first word. */
struct gate_pairs {
    struct word_pair at[GATE_BATCH];
};

/* Whether load_pairs can load the pairs of a row as words, which needs an aligned row of an even
 * number of elements. Otherwise it decodes the elements one by one. */
DEV bool in_words(const uint8_t *row, uint32_t n)
{
    return n % 2 == 0 && ((uintptr_t)row & 7) == 0;
}

/* Loads elements i + 64 u and i + 64 u + 1 of a row of n elements; i is even. Elements past the end
 * are zeros. No load needs the result of another one, so that all of them are in flight. */
DEV struct gate_pairs load_pairs(const uint8_t *row, uint32_t type, uint32_t i, uint32_t n)
{
    struct gate_pairs w = {{{{0, 0}}}};
    if (!in_words(row, n)) {
        for (uint32_t u = 0; u < GATE_BATCH; u++)
            for (uint32_t e = 0; e < 2; e++)
                if (i + 64 * u + e < n)
                    w.at[u].at[e] = bits_of_f32(plain_element(row, type, i + 64 * u + e));
    } else if (type == TENSOR_F32) {
#pragma unroll
        for (uint32_t u = 0; u < GATE_BATCH; u++)
            if (i + 64 * u < n)
                w.at[u] = load_pair(row + 4 * (i + 64 * u));
    } else {
#pragma unroll
        for (uint32_t u = 0; u < GATE_BATCH; u++)
            if (i + 64 * u < n)
                w.at[u].at[0] = *(const uint32_t *)(const void *)(row + 2 * (i + 64 * u));
    }
    return w;
}

/* Decodes pairs of a row of numbers of 16 bits to F32. */
DEV void decode_pairs(const uint8_t *row, uint32_t type, uint32_t n, struct gate_pairs *w)
{
    if (type == TENSOR_F32 || !in_words(row, n))
        return;
#pragma unroll
    for (uint32_t u = 0; u < GATE_BATCH; u++) {
        const uint32_t bits = w->at[u].at[0];
        const struct float_pair f = f32_of_halves(bits);
        w->at[u].at[0] = type == TENSOR_F16 ? bits_of_f32(f.at[0]) : bits << 16;
        w->at[u].at[1] = type == TENSOR_F16 ? bits_of_f32(f.at[1]) : bits & 0xffff0000u;
    }
}

/* Element i of the input after the norm. r: 1 / RMS. The tile has the normed row if it fits. */
DEV float gate_input(const struct delta_gates_args *a, const float *tile, float r, uint32_t i)
{
    const float *x = a->h + (uint64_t)block_x() * a->h_stride;
    return a->n <= ROW_TILE ? tile[i] : (x[i] * r) * a->norm[i];
}

/* dot64 of a row of a small matrix and the normed input, by a warp. Lane l has the partial sums 2 l
 * and 2 l + 1. w has the first pairs of the row; the next ones are loaded while they are used. */
DEV float gate_dot(const struct delta_gates_args *a, const uint8_t *row, uint32_t type,
                   const float *tile, float r, struct gate_pairs w)
{
    float even = 0.0f, odd = 0.0f;
#pragma unroll 1
    for (uint32_t first = 2 * (thread_x() % 32); first < a->n; first += 64 * GATE_BATCH) {
        const struct gate_pairs next = load_pairs(row, type, first + 64 * GATE_BATCH, a->n);
        decode_pairs(row, type, a->n, &w);
#pragma unroll
        for (uint32_t u = 0; u < GATE_BATCH; u++) {
            const uint32_t i = first + 64 * u;
            if (i < a->n)
                even = fmaf(f32_of_bits(w.at[u].at[0]), gate_input(a, tile, r, i), even);
            if (i + 1 < a->n)
                odd = fmaf(f32_of_bits(w.at[u].at[1]), gate_input(a, tile, r, i + 1), odd);
        }
        w = next;
    }
    return warp_tree(even) + warp_tree(odd);
}

/* A warp has a row: the first half of the warps those of alpha of GATE_HEADS heads, the other half
 * those of beta. It loads the first pairs before the previous kernel has ended. */
KERNEL_EARLY(delta_gates, delta_gates_args, DELTA_THREADS)
{
    SHARED_WIDE float tile[ROW_TILE];
    SHARED float z[2 * GATE_HEADS];
    const float *x = a.h + (uint64_t)block_x() * a.h_stride;
    const uint32_t member = thread_x() / 32, first = block_y() * GATE_HEADS;
    const uint32_t wanted = first + member % GATE_HEADS;
    const uint32_t head = wanted < a.n_heads ? wanted : a.n_heads - 1;
    const bool is_beta = member >= GATE_HEADS;
    const uint8_t *row = is_beta ? a.beta + head * a.beta_bytes : a.alpha + head * a.alpha_bytes;
    const uint32_t type = is_beta ? a.beta_type : a.alpha_type;
    const struct gate_pairs w = load_pairs(row, type, 2 * (thread_x() % 32), a.n);
    wait_for_grid();
    const float r = 1.0f / sqrtf(block_square64(x, a.n, tile) / (float)a.n + a.eps);
    if (a.n <= ROW_TILE) {
#pragma unroll 8
        for (uint32_t i = thread_x(); i < a.n; i += n_threads_x())
            tile[i] = (tile[i] * r) * a.norm[i];
        block_sync();
    }
    const float dot = gate_dot(&a, row, type, tile, r, w);
    if (thread_x() % 32 == 0)
        z[member] = dot;
    block_sync();
    if (thread_x() < GATE_HEADS && first + thread_x() < a.n_heads) {
        const uint32_t h = first + thread_x();
        float *gate = a.gates + 2 * ((uint64_t)block_x() * a.n_heads + h);
        gate[0] = exp0(a.a[h] * softplus(z[thread_x()] + a.dt_bias[h]));
        gate[1] = sigmoid(z[GATE_HEADS + thread_x()]);
    }
}

#endif
