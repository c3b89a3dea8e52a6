/*
 * Attention kernels over one position block of the KV cache, and the layouts of keys and values in
 * it: F16, or Q8 (bytes with a scale for each position and head). docs/kernels.md has the
 * arithmetic, kernels.h the rules for all kernels.
 */
#ifndef ENGINE_CPU_KERNELS_ATTN_H
#define ENGINE_CPU_KERNELS_ATTN_H

#include "engine/layout/layout_units.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most tokens of an attn_tile. The keys of 32 aligned positions fill whole cache lines, so threads
 * that append different token blocks never write the same line. */
#define ATTN_TILE 32
/* Adjacent bytes in Q8, as int8 dot products take them: elements of a key, positions of a value */
#define ATTN_QUAD 4
/* Largest head_dim with Q8: sums of 1024 products fit int32, keys up to 127, queries in fixed point
 * up to 16256 (127 * 128). */
#define Q8_DIM_MOST 1024

/* One position block of one KV head, for n_q query heads of one token. */
struct attn_block {
    const float *q; /* (n_q, head_dim), with the query scale applied */
    /* F16: (head_dim, KV_BLOCK). Q8: (head_dim / 4 rounded up, KV_BLOCK, 4), zeros past
     * head_dim. 64-byte aligned */
    const void *k;
    /* F16: (KV_BLOCK, v_stride). Q8: (KV_BLOCK / 4, v_stride, 4), four positions of an
     * element together. 64-byte aligned */
    const void *v;
    const float *scales; /* Q8: (2, KV_BLOCK) of keys, then of values; F16: unused */
    const void *ahead;   /* keys that are read next; only prefetched, so any pointer */
    size_t n_q, head_dim;
    size_t v_stride; /* head_dim rounded up to 32: a row of F16 is whole cache lines */
    /* This token attends to the positions first_seen .. n_seen - 1, first_seen < n_seen <=
     * KV_BLOCK. */
    size_t first_seen, n_seen;
    /* (n_q) output: m is the largest score, ignoring NaN (-infinity if all are NaN); l the sum of
     * exp(score - m) */
    float *m, *l;
    float *o; /* (n_q, head_dim) output: sum of exp(score - m) * value */
};
typedef void (*attn_block_fn)(const struct attn_block *b);

/* Set the scores below first_seen to -infinity, whose probability is +0. Kernels call it. */
static inline void attn_hide_scores(float z[KV_BLOCK], size_t first_seen)
{
    for (size_t j = 0; j < first_seen; j++)
        z[j] = -INFINITY;
}

/* Merge a position block's (m, l, o) into the running (M, L, O) of one query head; o, O
 * (head_dim). */
typedef void (*attn_merge_fn)(float *big_m, float *big_l, float *big_o, const float *m,
                              const float *l, const float *o, size_t head_dim);
/* out[i] = O[i] * (1 / L) */
typedef void (*attn_finish_fn)(const float *big_o, float big_l, size_t head_dim, float *out);

/* Attention of consecutive tokens over one position block, merged into their running results.
 * n_seen (1 .. KV_BLOCK) is for the first token; each later token sees one position more, up to the
 * whole position block. The last token does not see the first n_hidden positions of the block,
 * because they are before its window; for each earlier token their number is one less, at least 0.
 * A token that sees no position of the block keeps its running results. With is_first there are no
 * running results yet, and those of such a token become m = -infinity, l = 0, o = 0. */
struct attn_tile {
    const float *q; /* query of token t and head i: (head_dim) at q + t * q_stride + i * head_dim */
    size_t q_stride;
    const void *k, *v;   /* as in attn_block */
    const float *scales; /* as in attn_block */
    const void *ahead;   /* as in attn_block */
    size_t n_tokens;     /* 1 .. ATTN_TILE */
    size_t n_q, head_dim, v_stride;
    size_t n_seen;
    size_t n_hidden; /* may be larger than KV_BLOCK */
    bool is_first;   /* the first position block of these tokens: m, l and o are only written */
    float *m, *l;    /* (n_tokens, n_q) in and out */
    float *o;        /* (n_tokens, n_q, head_dim) in and out */
    float *scratch;  /* (attn_tile_floats), 64-byte aligned */
    /* Destination of the result, only prefetched: token t and head i at out + t * out_stride +
     * i * head_dim; or NULL. */
    const float *out;
    size_t out_stride;
};
typedef void (*attn_tile_fn)(const struct attn_tile *a);

/* Floats of scratch: K or V in F32, and per query a row of probabilities and two factors. */
static inline size_t attn_tile_floats(size_t n_q, size_t v_stride)
{
    return KV_BLOCK * v_stride + ATTN_TILE * n_q * (KV_BLOCK + 2);
}

#endif
