/*
 * Attention over one block of positions of the KV cache: what kernels get, and the forms in which
 * the cache keeps keys and values. The arithmetic is in docs/kernels.md, the general contract of
 * kernels in kernels.h.
 *
 * The cache holds F16, or bytes (Q8) with a scale for each position and head; kernels are of one of
 * the two.
 */
#ifndef ENGINE_CPU_KERNELS_ATTN_H
#define ENGINE_CPU_KERNELS_ATTN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATTN_BLOCK 64    /* positions in a block of the recipe */
#define ATTN_TILE 32     /* most tokens of an attn_tile: their 16-bit keys are a cache line */
#define ATTN_QUAD 4      /* bytes that are multiplied together with Q8: dims of a key, positions */
#define Q8_DIM_MOST 1024 /* head_dim with Q8: sums of 1024 * 127 * 16256 fit 32 bits */

/* One block of keys and values of one KV head, for n_q query heads of one token. */
struct attn_block {
    const float *q;      /* (n_q, head_dim), scaled */
    const void *k;       /* F16: (head_dim, ATTN_BLOCK), lanes are positions. Q8: (head_dim / 4
                            rounded up, ATTN_BLOCK, 4), zeros past head_dim. 64-byte aligned */
    const void *v;       /* F16: (ATTN_BLOCK, v_stride). Q8: (ATTN_BLOCK / 4, v_stride, 4), so four
                            positions of a dim. 64-byte aligned */
    const float *scales; /* Q8: (2, ATTN_BLOCK) of keys, then of values; F16: unused */
    const void *ahead;   /* keys that are read next: at most prefetched, so any pointer */
    size_t n_q, head_dim;
    size_t v_stride; /* head_dim rounded up to 32 */
    size_t n_seen;   /* positions of the block this token sees, 1 .. ATTN_BLOCK */
    float *m, *l;    /* (n_q) out */
    float *o;        /* (n_q, head_dim) out */
};
typedef void (*attn_block_fn)(const struct attn_block *b);

/* Fold a block's (m, l, o) into the running (M, L, O) of one query head; o, O (head_dim). */
typedef void (*attn_merge_fn)(float *big_m, float *big_l, float *big_o, const float *m,
                              const float *l, const float *o, size_t head_dim);
/* out[i] = O[i] * (1 / L) */
typedef void (*attn_finish_fn)(const float *big_o, float big_l, size_t head_dim, float *out);

/* The same for consecutive tokens, folded into their running results: n_seen is of the first token,
 * each of the following sees one position more, up to the whole block. Results so far are those of
 * the blocks before; of the first block they are what it gives. */
struct attn_tile {
    const float *q; /* token t, head i: (head_dim) at q + t * q_stride + i * head_dim; scaled */
    size_t q_stride;
    const void *k, *v; /* as in attn_block */
    const float *scales;
    const void *ahead;
    size_t n_tokens; /* 1 .. ATTN_TILE */
    size_t n_q, head_dim, v_stride;
    size_t n_seen;
    bool is_first;    /* of this token's blocks */
    float *m, *l;     /* (n_tokens, n_q) in and out */
    float *o;         /* (n_tokens, n_q, head_dim) in and out */
    float *scratch;   /* (attn_tile_floats), 64-byte aligned */
    const float *out; /* where the last block's results will be stored, of token t and head i at
                         out + t * out_stride + i * head_dim, for a kernel to fetch; or NULL */
    size_t out_stride;
};
typedef void (*attn_tile_fn)(const struct attn_tile *a);

/* K or V widened, a row of probabilities and two factors a query. */
static inline size_t attn_tile_floats(size_t n_q, size_t v_stride)
{
    return ATTN_BLOCK * v_stride + ATTN_TILE * n_q * (ATTN_BLOCK + 2);
}

#endif
