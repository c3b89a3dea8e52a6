/*
 * The step "merge" of docs/kernels.md for attention in decode: the results of the position blocks
 * of a token and head are combined in ascending order.
 *
 * Only sums depend on the order. Maxima do not, so the factors of a batch of position blocks are
 * computed at once, one block in each lane. Then a chain of products and fma remains for each
 * element, with the loads of a whole batch in flight.
 */
#ifndef CUDA_ATTN_MERGE_CUH
#define CUDA_ATTN_MERGE_CUH

#include "engine/cuda/kernels/attention/cuda_attn_block.cuh"

#define MERGE_BATCH 16 /* position blocks whose results a thread loads before it uses them */

/* Slot of a position block and query head: o, m, l. */
DEV float *attn_slot(const struct attn_args *a, float *slots, uint32_t block, uint32_t head)
{
    return slots + ((uint64_t)block * a->n_heads + head) * SLOT_FLOATS(a->kv.head_dim);
}

/* Results of the position blocks so far: the running maximum and sum, and four elements of O. */
struct merged {
    struct attn_run run;
    struct four o;
};

/* The maximum m and the sum l of the position block that this lane has in a batch of n blocks;
 * without a block, values that change no result. */
DEV struct attn_run load_run(const float *m, uint32_t step, uint32_t n)
{
    const uint32_t at = thread_x() % MERGE_BATCH;
    struct attn_run run = {-INFINITY, 0.0f};
    if (at < n) {
        run.m = m[at * step];
        run.l = m[at * step + 1];
    }
    return run;
}

/* The factors of the position block of this lane, whose maximum is m. Sets *top, the maximum before
 * the batch, to that after it. A maximum is exact in any order: no m is a NaN or -0. */
DEV struct attn_factors batch_factors(float *top, float m, bool exists)
{
    struct attn_factors f = {1.0f, 0.0f};
    float before = *top, all = m; /* maximum before this block; of the lanes combined so far */
#pragma unroll
    for (uint32_t mask = 1; mask < MERGE_BATCH; mask *= 2) {
        const float other = shuffle_xor_f32(all, mask);
        if (thread_x() & mask)
            before = other > before ? other : before;
        all = other > all ? other : all;
    }
    *top = all > *top ? all : *top;
    if (exists) {
        const float now = m > before ? m : before;
        f.old_factor = exp0(before - now);
        f.new_factor = exp0(m - now);
    }
    return f;
}

/* Merges the results of n position blocks, at most MERGE_BATCH. `slot`: that of the first of them,
 * from this lane's element on. mine: m and l of this lane's block. There are always 8 or 16 steps,
 * without a test for each block, so that shuffles need not wait for each other. Steps without a
 * block have the factors 1 and 0 and the results 0. They change no bit except the sign of a zero,
 * which does not affect the next product. */
DEV void merge_batch(struct merged *to, const float *slot, uint32_t step, uint32_t n,
                     struct attn_run mine)
{
    struct words o[MERGE_BATCH] = {{{0}}};
#pragma unroll
    for (uint32_t u = 0; u < MERGE_BATCH; u++)
        if (u < n)
            o[u] = load_words(slot + u * step);
    const struct attn_factors f = batch_factors(&to->run.m, mine.m, thread_x() % MERGE_BATCH < n);
#pragma unroll
    for (uint32_t u = 0; u < MERGE_BATCH; u++) {
        if (u == MERGE_BATCH / 2 && n <= u)
            break;
        const float old_factor = shuffle_f32(f.old_factor, u);
        const float new_factor = shuffle_f32(f.new_factor, u);
        to->run.l = fmaf(shuffle_f32(mine.l, u), new_factor, to->run.l * old_factor);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            to->o.at[e] = fmaf(f32_of_bits(o[u].at[e]), new_factor, to->o.at[e] * old_factor);
    }
}

/* Merges the results of n_blocks position blocks of one head into out, by one warp. `slots`: the
 * slot of the first visible block, whose results are the initial ones. A lane has four elements of
 * the head. It finds the factors of one block of a batch and gets the others from their lanes. */
DEV void merge_head(const struct attn_args *a, const float *slots, uint32_t n_blocks, float *out)
{
    const uint32_t head_dim = a->kv.head_dim, lane = thread_x() % 32;
    const uint32_t step = a->n_heads * SLOT_FLOATS(head_dim); /* floats to the next block */
    const float *m = slots + SLOT_M(head_dim);
#pragma unroll 1
    for (uint32_t i0 = 0; i0 < head_dim; i0 += 4 * 32) { /* all lanes must reach each shuffle */
        const uint32_t i = i0 + 4 * lane < head_dim ? i0 + 4 * lane : 0;
        struct attn_run next = load_run(m + step, step, n_blocks - 1);
        struct merged all = {{m[0], m[1]}, load_four(slots, i, SLOT_M(head_dim))};
#pragma unroll 1
        for (uint32_t block = 1; block < n_blocks; block += MERGE_BATCH) {
            const uint32_t n = n_blocks - block;
            const struct attn_run mine = next;
            if (n > MERGE_BATCH) /* loaded here, because the factors of a batch need it first */
                next = load_run(m + (uint64_t)(block + MERGE_BATCH) * step, step, n - MERGE_BATCH);
            merge_batch(&all, slots + (uint64_t)block * step + i, step, n, mine);
        }
        const float r = 1.0f / all.run.l;
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            if (i0 + 4 * lane + e < head_dim)
                out[i + e] = all.o.at[e] * r;
    }
}

#endif
