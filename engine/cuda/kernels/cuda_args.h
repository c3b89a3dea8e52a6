/*
 * The interface between the host code and the kernels: one argument struct for each kernel, passed
 * by value, and the list of all kernels. Plain C that nvcc also compiles.
 *
 * Pointers are device addresses. Activations are token-major: element i of token t is at [t *
 * stride + i]. A line of R1-256 is 64 bytes: the 2-bit codes of 256 columns of a row.
 */
#ifndef ENGINE_CUDA_KERNELS_CUDA_ARGS_H
#define ENGINE_CUDA_KERNELS_CUDA_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define KV_BLOCK 64     /* positions in a position block */
#define LINE_COLS 256   /* columns in a line of R1-256 */
#define LINE_BYTES 64   /* bytes of a line */
#define FEW_TOKENS 4    /* tokens that share one load of weights in linear_few */
#define FEW_ROWS 16     /* rows per thread block of linear_few: 64 threads, 8 threads for 2 rows */
#define ONE_THREADS 256 /* threads per block of linear_one */
#define ONE_CHUNKS 4    /* 16-byte chunks of a row that a thread of linear_one preloads */
#define ROW_TILE 8192   /* floats of a row in shared memory: 32 kB */
/* Bytes from line to line in shared memory, so that neighbours are in different banks. */
#define LINE_STRIDE 320
#define ONE_COLS (ROW_TILE * 4 / LINE_STRIDE * LINE_COLS) /* widest input of linear_one */
#define MANY_TOKENS 64  /* tokens per thread block of linear_many: 8 mma tiles of 8 */
#define MANY_ROWS 128   /* rows per thread block: 4 warps with two 16-row mma tiles each */
#define ATTN_TOKENS 4   /* most tokens per thread block of attn_apply, 64 threads for each */
#define ATTN_HEADS 4    /* query heads that share one load of a key or value */
#define ATTN_SPLIT 64   /* position blocks that run in parallel in decode */
#define HEAD_GROUP 16   /* output rows that the logit buffers can hold */
#define HEAD_ROWS 4     /* output rows that share one load of the table */
#define DOT_ROWS 16     /* table rows per block of rows_dot: 128 threads, 8 for each row */
#define BEST_ROWS 16    /* table rows for which one best candidate is recorded */
#define BOUND_ROWS 64   /* table rows per block of coarse_bound: 128 threads, 4 for 2 rows */
#define COARSE_COLS 128 /* columns in a line of the coarse plane */
#define COARSE_SUMS 16  /* partial sums of a row of the coarse plane */
#define PICK_THREADS 512
#define COLLECT_IDS 256 /* table rows per block of pick_collect, one for each thread */
#define PICK_FIRST 256  /* candidates in cuda_found, which is copied to the host */

/* Sixteen bytes, loaded from a 16-byte aligned address. */
struct words {
    uint32_t at[4];
};

struct cuda_token {
    uint16_t *kv; /* KV cache of the token's sequence, see kv_shape */
    float *slots; /* (position blocks, n_heads, head_dim + 2) partial results: o, m, l */
    int32_t pos, id;
};

/* Layout of the KV cache. The strides count F16 elements from one position block, layer or KV head
 * to the next. Each KV head has K as (head_dim, KV_BLOCK), then V as (KV_BLOCK, v_stride). */
struct kv_shape {
    uint64_t block_elems, layer_elems, head_elems;
    uint32_t head_dim, v_stride;
};

struct embed_args {
    const uint8_t *table; /* rows of row_bytes bytes each */
    const struct cuda_token *tokens;
    float *h;
    uint64_t row_bytes;
    uint32_t n, stride, type; /* type is enum tensor_type */
};

/* RMSNorm of x unless w is NULL, then quantisation to q. Grid: tokens. */
struct norm_args {
    const float *x, *w;
    int8_t *q; /* (n_tokens, q_stride), zeros past n */
    float *q_s;
    int32_t *q_sum;
    float eps;
    uint32_t n, x_stride, q_stride;
};

enum linear_kind { LINEAR_STORE, LINEAR_ADD, LINEAR_RELU2, LINEAR_SILU };

/* y = W q. With a gate (RELU2, SILU) rows come in pairs, gate and up of one output: row 2i belongs
 * to section 0, row 2i + 1 to section 1. Otherwise section s ends at row_end[s]. */
struct linear_args {
    const uint8_t *lines; /* (n_rows, n_lines, LINE_BYTES) */
    const int8_t *q;      /* (n_tokens, n_lines * LINE_COLS) */
    const float *q_s;
    const int32_t *q_sum;
    const float *bias; /* (n_rows) in row order, or NULL */
    float *y;
    uint32_t n_rows, n_lines, n_tokens, y_stride;
    uint32_t row_end[2];
    float scale[3], extra[3];
    int32_t kind;
};

/* Norm and W q of one token in one kernel; linear.q, q_s and q_sum are not used. */
struct norm_linear_args {
    struct norm_args norm;
    struct linear_args linear;
    uint32_t n_lanes; /* warp lanes that share two rows: 8, 16 or 32 */
};

/* Rotates q and k, scales q, appends k and v to the cache. Grid: tokens, KV heads. */
struct rope_args {
    const struct cuda_token *tokens;
    const float *c, *s; /* (n_tokens, n_rot / 2) */
    float *qkv;
    struct kv_shape kv;
    uint32_t qkv_stride, q_width, kv_width, group, n_rot, layer, neox;
    float q_scale;
};

struct attn_args {
    const struct cuda_token *tokens;
    const float *qkv;
    float *out; /* (n_tokens, out_stride); running results while position blocks are merged */
    struct kv_shape kv;
    uint32_t n_tokens, qkv_stride, out_stride, n_heads, group, layer, split;
};

struct cuda_request {
    uint64_t seed, position; /* seed and position for the Gumbel noise */
    double beta;             /* 1 / temp; 0: no Gumbel draw */
    float gap;
    uint32_t k; /* 0: no candidates */
    uint32_t token, spare;
};

struct cuda_cand {
    int32_t id;
    float logit;
};

/* Candidates of one row, unordered: at least the k best and those within the gap, or all that can
 * win the draw. pick_args.cands has all of them; the first PICK_FIRST are also here. */
struct cuda_found {
    uint32_t n, not_finite;
    uint32_t n_read, spare; /* n_read: table rows multiplied one by one */
    struct cuda_cand first[PICK_FIRST];
};

/* Screening of one row: the floor for pick_collect, and the unit of the quantised hidden state. */
struct cuda_screen {
    double floor;
    float unit;
    uint32_t screened; /* 0: the bounds are not valid for this hidden state */
};

/* The coarse plane of the output head, as struct coarse_mat of the CPU backend. */
struct coarse_plane {
    uint8_t *lines;  /* (n_vocab, n_blocks, LINE_BYTES) */
    uint16_t *steps; /* (n_vocab, step_stride) BF16, zeros past n_blocks */
    uint32_t n_blocks, step_stride;
};

/* Packs a table into its coarse plane. One warp per row. */
struct coarse_args {
    const uint8_t *table;
    struct coarse_plane plane;
    uint32_t *too_large; /* set to 1 if a weight cannot be packed */
    uint64_t row_bytes;
    uint32_t n, n_vocab, type;
};

/* Queries: hidden states as two planes of bytes, with bounds of their rounding errors. Shapes are
 * per request. */
struct query_buffers {
    int8_t *x;      /* (n_blocks, 2, COARSE_COLS) high bytes, then twice the low ones */
    int32_t *fix;   /* (n_blocks, COARSE_SUMS) */
    float *spread;  /* (step_stride), zeros past n_blocks */
    double *errors; /* (n_blocks, COARSE_COLS) rounding errors */
    double *norms;  /* (n_blocks, 2) */
    struct cuda_screen *screens;
    uint32_t n_blocks, step_stride; /* n_blocks 0: no screening */
    double kappa, gamma, root;      /* constants of the bound */
};

/* Final norm, and the query made from its result. Also clears `found`. Grid: requested rows. */
struct head_norm_args {
    const struct cuda_request *requests;
    const float *h, *w;
    float *x; /* (n_requests, stride) */
    struct cuda_found *found;
    struct query_buffers query;
    float eps;
    uint32_t n, h_stride, stride;
};

/* Logits or upper bounds (n_rows, z_stride), and the best candidate of each BEST_ROWS rows. */
struct logit_buffers {
    float *z;
    struct cuda_cand *bests; /* (n_rows, best_stride) */
    uint32_t n_vocab, z_stride, best_stride;
};

struct bound_args {
    struct coarse_plane plane;
    struct query_buffers query;
    struct logit_buffers out;
    uint32_t n_rows;
};

/* z = table x for n_rows rows of x. */
struct dot_args {
    const uint8_t *table;
    const float *x;
    struct logit_buffers out;
    struct cuda_found *found; /* (n_rows) */
    const int32_t *ids;       /* (out.n_vocab) table rows to multiply; only for rows_dot_listed */
    uint64_t row_bytes;
    uint32_t n, x_stride, n_rows, type;
};

struct pick_args {
    const struct cuda_request *requests;
    struct dot_args dot;         /* for exact logits */
    struct cuda_screen *screens; /* (n_requests) */
    struct cuda_cand *cands;     /* (n_requests, z_stride) */
    uint32_t is_exact;           /* z holds logits, not bounds */
};

struct read_args {
    const uint8_t *at;
    uint64_t n_chunks; /* number of 16-byte chunks */
    uint32_t *sum;
};

/* Name, argument struct, threads per block. */
#define CUDA_KERNELS(X)                                                                            \
    X(embed_rows, embed_args, 128)                                                                 \
    X(norm_quantise, norm_args, 512)                                                               \
    X(linear_one, norm_linear_args, ONE_THREADS)                                                   \
    X(linear_few, linear_args, 64)                                                                 \
    X(linear_many, linear_args, 128)                                                               \
    X(rope_append, rope_args, 128)                                                                 \
    X(attn_apply, attn_args, 256)                                                                  \
    X(attn_merge, attn_args, 64)                                                                   \
    X(head_norm, head_norm_args, 512)                                                              \
    X(rows_dot_one, dot_args, 128)                                                                 \
    X(rows_dot_few, dot_args, 128)                                                                 \
    X(rows_dot_listed, dot_args, 128)                                                              \
    X(coarse_pack, coarse_args, 128)                                                               \
    X(coarse_bound_one, bound_args, 128)                                                           \
    X(coarse_bound_few, bound_args, 128)                                                           \
    X(pick_floor, pick_args, PICK_THREADS)                                                         \
    X(pick_collect, pick_args, COLLECT_IDS)                                                        \
    X(read_memory, read_args, 256)

#endif
