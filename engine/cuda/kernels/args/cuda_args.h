/*
 * The interface between the host code and the kernels: argument structs, of which each kernel takes
 * one by value, and the list of all kernels. Plain C that nvcc also compiles.
 *
 * Pointers are device addresses. Activations are token-major: element i of token t is at [t *
 * stride + i]. A line of R1-256 is 64 bytes: the 2-bit codes of 256 columns of a row.
 */
#ifndef ENGINE_CUDA_KERNELS_CUDA_ARGS_H
#define ENGINE_CUDA_KERNELS_CUDA_ARGS_H

#include "engine/cuda/kernels/args/cuda_delta_args.h"
#include "engine/cuda/kernels/args/cuda_experts_args.h"
#include "engine/cuda/kernels/args/cuda_head_args.h"
#include "engine/cuda/kernels/args/cuda_r16_args.h"
#include "engine/layout/layout_units.h"

#include <stdbool.h>
#include <stdint.h>

#define FEW_TOKENS 16   /* most tokens per thread block of linear_few: two mma tiles of 8 */
#define FEW_ROWS 16     /* rows per thread block of linear_few: one mma tile */
#define FEW_THREADS 128 /* per thread block of linear_few: one for each token and two rows */
#define ONE_THREADS 256 /* per thread block of linear_one */
#define ONE_BLOCKS 3    /* thread blocks of linear_one that fit on a multiprocessor */
/* 16-byte chunks of a row that a thread of linear_one preloads: 8 threads hold 2,560 columns */
#define ONE_CHUNKS 5
#define ROW_TILE 8192    /* floats of a row in shared memory: 32 kB */
#define NORM_THREADS 256 /* per thread block of norm_quantise */
/* Norm weights that linear_one copies to shared memory, where the int8 values later replace them.
 * At least ROW_TILE - 4 * NORM_HELD * ONE_THREADS = 3,072 are needed. More are better, because a
 * thread then holds fewer in registers. With the tile, 47,360 of 49,152 bytes are in use, and
 * reductions need some of the rest. */
#define ONE_NORM_TILE 3648
/* Bytes in shared memory from the int8 activations of one line to those of the next line in
 * linear_one. The 64 bytes beyond LINE_COLS place the same columns of two neighbouring lines in
 * different banks. */
#define LINE_STRIDE 320
/* Widest input of linear_one: a longer row of int8 values would not fit in the 32 kB. */
#define ONE_COLS (ROW_TILE * 4 / LINE_STRIDE * LINE_COLS)
#define MANY_TOKENS 64 /* tokens per thread block of linear_many: 8 mma tiles of 8 */
#define MANY_ROWS 128  /* rows per thread block: 4 warps with two 16-row mma tiles each */
#define HALF_ROWS 64   /* rows per thread block of linear_half: two warps share 32 rows */
#define MANY_THREADS 128
#define ATTN_HEADS 4  /* query heads that share one load of a key or value in attn_split */
#define APPLY_ROWS 32 /* queries per thread block of attn_apply: pairs of token and query head */
#define APPLY_THREADS (4 * APPLY_ROWS)
#define APPLY_ELEMS 128 /* elements of a head whose results a thread block of attn_apply has */
/* Most thread blocks of attn_split that share the position blocks of a token. */
#define ATTN_MAX_SHARES 128
#define SPLIT_TILE 128 /* elements of a head whose keys or values attn_split holds at once */
#define SPLIT_HEAD 256 /* widest head of attn_split */
/* Threads per thread block of attn_split: a warp for each query head and one for the token's
 * key. */
#define SPLIT_THREADS (32 * ATTN_HEADS + 32)
/* A slot has the results of a position block and query head: o (head_dim), padding, m, l, padding.
 * Its address is a multiple of 16 bytes. SLOT_M: index of m. */
#define SLOT_M(head_dim) (((head_dim) + 3) / 4 * 4)
#define SLOT_FLOATS(head_dim) (SLOT_M(head_dim) + 4)

/* Sixteen bytes, loaded from a 16-byte aligned address. */
struct words {
    uint32_t at[4];
};

/* Eight bytes, loaded from an 8-byte aligned address. */
struct word_pair {
    uint32_t at[2];
};

/* Two floats. */
struct float_pair {
    float at[2];
};

struct cuda_token {
    uint16_t *kv;         /* KV cache of the token's sequence, see kv_shape */
    uint16_t *ring;       /* keys and values of layers with a ring */
    float *slots;         /* (position blocks, n_heads, SLOT_FLOATS) partial results */
    int32_t pos, id;      /* position in the sequence, token id */
    uint32_t ring_blocks; /* position blocks of the ring */
};

/* Layout of the KV cache. The strides count F16 elements from one position block, layer or KV head
 * to the next. Each KV head has K as (head_dim, KV_BLOCK), then V as (KV_BLOCK, v_stride). In a
 * ring, position block i is in place i % ring_blocks. */
struct kv_shape {
    uint64_t block_elems, layer_elems, head_elems;
    uint32_t head_dim, v_stride;
    uint32_t is_ring; /* 0: a place for each position block */
};

struct embed_args {
    const uint8_t *table; /* rows of row_bytes bytes each */
    const struct cuda_token *tokens;
    float *h; /* (n_tokens, stride) */
    uint64_t row_bytes;
    float factor;             /* each element is multiplied by it */
    uint32_t n, stride, type; /* n elements per row; type is enum tensor_type */
};

/* RMSNorm of x unless w is NULL, then quantisation to q. Grid: tokens. */
struct norm_args {
    const float *x, *w; /* x (n_tokens, x_stride); w (n) */
    int8_t *q;          /* (n_tokens, q_stride), zeros past n */
    float *q_s;         /* (n_tokens) factor s of the quantisation */
    int32_t *q_sum;     /* (n_tokens) sum of q */
    float eps;
    uint32_t n, x_stride, q_stride;
};

/* RMSNorm of x unless w is NULL, signs unless they are NULL, and the transform of each block. If
 * is_inverse, the signs come after the transform. If n_outer is not 0 and w is NULL, x is first
 * brought into another order of heads: as (n_outer, n_inner, n / (n_outer * n_inner)) it becomes
 * (n_inner, n_outer, ...). y may be x if w is NULL and n_outer is 0. Grid: rows. */
struct rotate_args {
    const float *x, *w, *signs; /* x (n_rows, x_stride); w, signs (n) */
    float *y;                   /* (n_rows, y_stride) */
    float eps, factor;          /* factor: 1 / sqrt(block) */
    uint32_t n, block, x_stride, y_stride, is_inverse, n_outer, n_inner;
};

/* What happens to a result v: y = v, y += v, or y = act(v of gate) * (v of up). The kinds with a
 * gate come last: kernels and launches test kind >= LINEAR_RELU2. */
enum linear_kind { LINEAR_STORE, LINEAR_ADD, LINEAR_RELU2, LINEAR_SILU };

/* y = W q. W consists of the rows of one to three matrices of the file, its sections. With a gate
 * (RELU2, SILU) rows come in pairs, gate and up of one output: row 2i belongs to section 0, row
 * 2i + 1 to section 1. Otherwise section s ends before row_end[s], and the last section at n_rows;
 * row_end of a section that does not exist is not read. */
struct linear_args {
    const uint8_t *lines; /* (n_rows, n_lines, LINE_BYTES) */
    const int8_t *q;      /* (n_tokens, n_lines * LINE_COLS) */
    const float *q_s;     /* as in norm_args */
    const int32_t *q_sum;
    const float *bias; /* (n_rows) in row order, or NULL */
    float *y;          /* (n_tokens, y_stride) */
    uint32_t n_rows, n_lines, n_tokens, y_stride;
    uint32_t row_end[2];
    float scale[3], extra[3]; /* of each section: the scale of the weights, a factor after it */
    int32_t kind;             /* enum linear_kind */
};

/* Norm and W q of one token in one kernel. The members q, q_s and q_sum of both are not used. Grid:
 * sets of 2 * ONE_THREADS / n_lanes rows. */
struct norm_linear_args {
    struct norm_args norm;
    struct linear_args linear;
    uint32_t n_lanes; /* warp lanes that share two rows: 8, 16 or 32 */
};

/* Norms each head of q and k if the norm weights exist, rotates q and k (unless n_rot is 0), scales
 * q, and appends k and v to the cache or to the ring. Grid: tokens, KV heads. */
struct rope_args {
    const struct cuda_token *tokens;
    const float *c, *s;           /* (n_tokens, n_rot / 2) */
    const float *q_norm, *k_norm; /* (head_dim), or NULL */
    float *qkv;                   /* (n_tokens, qkv_stride): q (q_floats), k and v (kv_width) */
    struct kv_shape kv;
    /* n_q_per_kv: query heads per KV head. q_kv_stride: floats from the first query of a KV head to
     * that of the next one; gates may lie between them. layer: number among those with a ring, or
     * among those with all keys and values. neox: 1 if the elements of a pair are n_rot / 2 apart,
     * 0 if they are adjacent. */
    uint32_t qkv_stride, q_floats, q_kv_stride, kv_width, n_q_per_kv, n_rot, layer, neox;
    float q_scale, eps;
};

/* Attention of each token over the keys and values of its sequence. n_q_per_kv, q_kv_stride, layer:
 * as in rope_args. window: keys that a token sees, its own included; 0: all. */
struct attn_args {
    const struct cuda_token *tokens;
    const float *qkv; /* as in rope_args */
    float *out;       /* (n_tokens, out_stride) */
    struct kv_shape kv;
    uint32_t n_tokens, qkv_stride, out_stride, n_heads, n_q_per_kv, q_kv_stride, layer, window;
};

/* rope_append and attention in one kernel, for tokens of different sequences with heads of at most
 * SPLIT_HEAD elements. q and k in qkv do not change. */
struct split_args {
    struct rope_args rope;
    struct attn_args attn;
    uint32_t *n_ended; /* (n_tokens, n_head_chunks) shares that have ended; 0 before and after */
    uint32_t n_head_chunks; /* sets of up to ATTN_HEADS query heads with the same KV head */
};

/* Copies words of four bytes between device memory and mapped host memory. */
struct copy_args {
    const uint32_t *from;
    uint32_t *to;
    uint32_t n_words;
};

/* Reads memory, so that the host can measure the bandwidth. */
struct read_args {
    const uint8_t *at;
    uint64_t n_chunks; /* number of 16-byte chunks */
    uint32_t *sum;     /* (1) its value has no meaning */
};

/* Name, argument struct, threads per thread block. */
#define CUDA_KERNELS(X)                                                                            \
    X(embed_rows, embed_args, EMBED_COLS / 8)                                                      \
    X(rotate_rows, rotate_args, 512)                                                               \
    X(norm_quantise, norm_args, NORM_THREADS)                                                      \
    X(linear_one, norm_linear_args, ONE_THREADS)                                                   \
    X(linear_few, linear_args, FEW_THREADS)                                                        \
    X(linear_many, linear_args, MANY_THREADS)                                                      \
    X(linear_half, linear_args, MANY_THREADS)                                                      \
    X(rope_append, rope_args, 128)                                                                 \
    X(attn_apply, attn_args, APPLY_THREADS)                                                        \
    X(attn_split, split_args, SPLIT_THREADS)                                                       \
    X(delta_gates, delta_gates_args, DELTA_THREADS)                                                \
    X(delta_convolve, delta_convolve_args, CONVOLVE_THREADS)                                       \
    X(delta_norm, delta_norm_args, 64)                                                             \
    X(delta_run, delta_run_args, DELTA_THREADS)                                                    \
    X(delta_out, delta_out_args, 64)                                                               \
    X(split_gates, split_gates_args, 256)                                                          \
    X(attn_gate, attn_gate_args, 256)                                                              \
    X(head_norm, head_norm_args, 512)                                                              \
    X(rows_dot_one, dot_args, 128)                                                                 \
    X(rows_dot_few, dot_args, 128)                                                                 \
    X(rows_dot_listed, dot_args, 16 * DOT_ROWS)                                                    \
    X(scan_logits, dot_args, SCAN_THREADS)                                                         \
    X(blocks_quantise, blocks_args, BLOCKS_THREADS)                                                \
    X(r16_one, r16_args, R16_THREADS)                                                              \
    X(r16_many, r16_args, R16_THREADS)                                                             \
    X(r16_float, r16_args, R16_THREADS)                                                            \
    X(router_logits, router_args, ROUTER_THREADS)                                                  \
    X(choose_experts, choose_args, 32)                                                             \
    X(sort_pairs, sort_pairs_args, PAIR_THREADS)                                                   \
    X(experts_one, experts_args, R16_THREADS)                                                      \
    X(experts_many, experts_args, R16_THREADS)                                                     \
    X(experts_float, experts_args, R16_THREADS)                                                    \
    X(add_experts, experts_add_args, ADD_THREADS)                                                  \
    X(coarse_pack, coarse_args, 128)                                                               \
    X(coarse_bound_one, bound_args, 128)                                                           \
    X(coarse_bound_few, bound_args, 128)                                                           \
    X(pick_floor, pick_args, PICK_THREADS)                                                         \
    X(pick_collect, pick_args, COLLECT_THREADS)                                                    \
    X(copy_words, copy_args, 256)                                                                  \
    X(read_memory, read_args, 256)

#endif
