/*
 * What the tests of attention share: the result of one query by engine/cpu/ref, and a loop over
 * cases and both orders of threads.
 */
#ifndef TESTS_ENGINE_CUDA_ATTN_KIT_H
#define TESTS_ENGINE_CUDA_ATTN_KIT_H

#include "engine/base/size.h"
#include "engine/cpu/ref/kernels_ref.h"
#include "tests/engine/cuda/twin_kit.h"

/* The oldest position that a token at `pos` sees. window 0: all. */
static inline uint32_t kit_oldest(uint32_t window, uint32_t pos)
{
    return window > 0 && pos >= window ? pos + 1 - window : 0;
}

/* The result of query q, which sees the positions from `oldest` to `pos`; out (head_dim). keys:
 * those of the query's layer and KV head in place 0; position block b is in place b % n_places.
 * big_m, big_l and big_o are the results of all position blocks so far; m, l and one are those of
 * the current block. */
static inline void expect_attention(const struct kv_shape *kv, const uint16_t *keys,
                                    uint32_t n_places, uint32_t oldest, uint32_t pos,
                                    const float *q, float *out)
{
    const uint32_t head_dim = kv->head_dim, first = oldest / KV_BLOCK;
    float big_m = 0, big_l = 0, m, l;
    float *big_o = zeros(head_dim, sizeof *big_o), *one = zeros(head_dim, sizeof *one);
    for (uint32_t block = first; block <= pos / KV_BLOCK; block++) {
        const uint16_t *k = keys + block % n_places * kv->block_elems;
        const struct attn_block args = {.q = q,
                                        .k = k,
                                        .v = k + head_dim * KV_BLOCK,
                                        .n_q = 1,
                                        .head_dim = head_dim,
                                        .v_stride = kv->v_stride,
                                        .first_seen = block == first ? oldest % KV_BLOCK : 0,
                                        .n_seen = size_min(pos + 1 - block * KV_BLOCK, KV_BLOCK),
                                        .m = block == first ? &big_m : &m,
                                        .l = block == first ? &big_l : &l,
                                        .o = block == first ? big_o : one};
        attn_block_ref(&args);
        if (block != first)
            attn_merge_ref(&big_m, &big_l, big_o, &m, &l, one, head_dim);
    }
    attn_finish_ref(big_o, big_l, head_dim, out);
    FREE_ALL(big_o, one);
}

/* Calls the test file's check_case with each element of the array, in both orders of threads. */
#define CHECK_CASES(cases, seed)                                                                   \
    do {                                                                                           \
        struct random r = {seed};                                                                  \
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases)[0]; i++) {                            \
            check_case((cases)[i], &r, TWIN_ASCENDING);                                            \
            check_case((cases)[i], &r, TWIN_DESCENDING);                                           \
        }                                                                                          \
    } while (0)

#endif
