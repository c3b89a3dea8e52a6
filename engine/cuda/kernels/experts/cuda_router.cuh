/*
 * The router of a mixture of experts, and the choice of the experts of each token (docs/kernels.md,
 * "Experts").
 */
#ifndef CUDA_ROUTER_CUH
#define CUDA_ROUTER_CUH

#include "engine/cuda/kernels/head/cuda_head.cuh"

#define NO_EXPERT UINT32_MAX

/* Logits of one expert for tokens token0 .. token0 + n_t - 1, by eight threads. n_t must be a
 * compile-time constant in the caller, so that `sums` is in registers. Tokens past the last one
 * repeat it. */
DEV void router_dot(const struct router_args *a, uint32_t token0, uint32_t n_t)
{
    const uint32_t member = thread_x() % 8;
    const uint32_t expert = (block_x() * n_threads_x() + thread_x()) / 8;
    /* Threads past the last expert take row 0, because all lanes of a warp must call dot_tree. */
    const float *row = a->rows + (uint64_t)(expert < a->n_experts ? expert : 0) * a->n;
    float sums[ROUTER_TILE][8] = {{0.0f}};
    const bool aligned = a->n % 4 == 0; /* then every row begins at a multiple of 16 bytes */
#pragma unroll 2
    for (uint32_t i = 8 * member; i < a->n; i += 64) {
        const uint32_t n_left = a->n - i < 8 ? a->n - i : 8;
        float w[8];
        if (aligned && n_left == 8) {
            const struct words low = load_once(row + i), high = load_once(row + i + 4);
#pragma unroll
            for (uint32_t e = 0; e < 8; e++)
                w[e] = f32_of_bits(e < 4 ? low.at[e] : high.at[e - 4]);
        } else {
#pragma unroll
            for (uint32_t e = 0; e < 8; e++)
                w[e] = e < n_left ? row[i + e] : 0.0f;
        }
#pragma unroll
        for (uint32_t t = 0; t < n_t; t++) {
            const uint32_t token = token0 + t < a->n_tokens ? token0 + t : a->n_tokens - 1;
            add_eight(sums[t], w, a->x + (uint64_t)token * a->x_stride + i, n_left);
        }
    }
#pragma unroll
    for (uint32_t t = 0; t < n_t; t++) {
        const float z = dot_tree(sums[t]);
        if (member == 0 && expert < a->n_experts && token0 + t < a->n_tokens)
            a->z[(uint64_t)(token0 + t) * a->n_experts + expert] = z;
    }
}

KERNEL(router_logits, router_args, ROUTER_THREADS)
{
    if (a.n_tokens == 1)
        router_dot(&a, 0, 1);
    else
        router_dot(&a, ROUTER_TILE * block_y(), ROUTER_TILE);
}

/* The best expert that is not taken yet. Lane l of the warp has experts l, l + 32, ... A NaN counts
 * as -infinity. */
DEV struct indexed_float next_best(const struct choose_args *a, const float *z,
                                   const uint32_t *taken)
{
    struct indexed_float best = {-INFINITY, NO_EXPERT};
    for (uint32_t e = thread_x(); e < a->n_experts; e += 32) {
        const float ze = z[e] == z[e] ? z[e] : -INFINITY;
        /* the first one that is not taken is a candidate even if it is -infinity */
        if (!(taken[e / 32] >> (e % 32) & 1) && (best.index == NO_EXPERT || ze > best.v)) {
            best.v = ze;
            best.index = e;
        }
    }
    return warp_largest(best);
}

/* One warp per token. */
KERNEL(choose_experts, choose_args, 32)
{
    SHARED float z[MAX_EXPERTS];
    SHARED uint32_t taken[MAX_EXPERTS / 32]; /* bit e % 32 of word e / 32 */
    SHARED uint32_t experts[MAX_USED_EXPERTS];
    SHARED float weights[MAX_USED_EXPERTS];
    SHARED float sum;
    const float *from = a.z + (uint64_t)block_x() * a.n_experts;
    struct cuda_choice *to = a.chosen + (uint64_t)block_x() * a.n_used;
    for (uint32_t e = thread_x(); e < a.n_experts; e += 32)
        z[e] = from[e];
    taken[thread_x()] = 0; /* a word for each lane: MAX_EXPERTS / 32 is 32 */
    block_sync();
    for (uint32_t i = 0; i < a.n_used; i++) {
        const struct indexed_float best = next_best(&a, z, taken);
        if (thread_x() == 0) {
            experts[i] = best.index;
            weights[i] = best.v;
        }
        block_sync(); /* now no lane reads `taken` any more */
        if (thread_x() == 0)
            taken[best.index / 32] |= 1u << (best.index % 32);
        block_sync();
    }
    if (thread_x() == 0) {
        const float top = weights[0];
        float s = 0.0f;
        for (uint32_t i = 0; i < a.n_used; i++) {
            weights[i] = exp0(weights[i] - top);
            s = s + weights[i];
        }
        sum = s;
    }
    block_sync();
    for (uint32_t i = thread_x(); i < a.n_used; i += 32) {
        uint32_t rank = 0; /* choices are stored in ascending order of the expert */
        for (uint32_t j = 0; j < a.n_used; j++)
            rank += experts[j] < experts[i];
        to[rank].expert = experts[i];
        to[rank].weight = weights[i] / sum;
        if (atomic_add(&a.counts[2 * experts[i]], 1) == UINT32_MAX)
            (void)atomic_add(&a.counts[2 * experts[i] + 1], 1); /* the low word has wrapped to 0 */
    }
}

#endif
