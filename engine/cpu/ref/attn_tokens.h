/*
 * attn_tile as a loop over tokens: runs attn_block for each token and merges the results into the
 * running results. This is the reference. Instruction sets that gain nothing from handling several
 * tokens together use it too.
 */
#ifndef ENGINE_CPU_REF_ATTN_TOKENS_H
#define ENGINE_CPU_REF_ATTN_TOKENS_H

#include "engine/base/force_inline.h"
#include "engine/base/size.h"
#include "engine/cpu/kernels.h"

#define TOKEN_HEADS 4 /* most query heads in a call of attn_block, as many as kernels combine */

/* Set the running results of query i (head i % n_q of token i / n_q) to those of no positions. */
BN_FORCE_INLINE void attn_clear_result(const struct attn_tile *a, size_t i)
{
    a->m[i] = -INFINITY;
    a->l[i] = 0.0f;
    for (size_t d = 0; d < a->head_dim; d++)
        a->o[i * a->head_dim + d] = 0.0f;
}

/* attn_tile_fn by calls of `run`, an attn_block, for up to TOKEN_HEADS heads of a token. With
 * is_first, `run` writes the running results; otherwise it writes to scratch, and `merge` adds the
 * results to the running ones. */
BN_FORCE_INLINE void attn_tile_by_token(const struct attn_tile *a, attn_block_fn run,
                                        attn_merge_fn merge)
{
    float *const m = a->scratch, *const l = m + TOKEN_HEADS, *const o = l + TOKEN_HEADS;
    for (size_t i = 0; i < a->n_tokens * a->n_q;) {
        const size_t t = i / a->n_q, head = i % a->n_q, n_later = a->n_tokens - 1 - t;
        const size_t first_seen = a->n_hidden > n_later ? a->n_hidden - n_later : 0;
        if (first_seen >= size_min(a->n_seen + t, KV_BLOCK)) {
            if (a->is_first)
                attn_clear_result(a, i);
            i++;
            continue;
        }
        struct attn_block b = {
            .q = a->q + t * a->q_stride + head * a->head_dim,
            .k = a->k,
            .v = a->v,
            .scales = a->scales,
            .ahead = a->ahead,
            .n_q = size_min(TOKEN_HEADS, a->n_q - head),
            .head_dim = a->head_dim,
            .v_stride = a->v_stride,
            .first_seen = first_seen,
            .n_seen = size_min(a->n_seen + t, KV_BLOCK),
            .m = a->is_first ? a->m + i : m,
            .l = a->is_first ? a->l + i : l,
            .o = a->is_first ? a->o + i * a->head_dim : o,
        };
        run(&b);
        for (size_t j = 0; j < b.n_q && !a->is_first; j++)
            merge(&a->m[i + j], &a->l[i + j], a->o + (i + j) * a->head_dim, &m[j], &l[j],
                  o + j * a->head_dim, a->head_dim);
        i += b.n_q;
    }
}

#endif
