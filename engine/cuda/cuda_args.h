/*
 * What the host hands to the kernels: one struct a kernel, passed by value, and the list of
 * kernels.
 *
 * Plain C that nvcc reads as well. Pointers are addresses on the device. Activations are
 * token-major: element i of token t at [t * stride + i].
 */
#ifndef ENGINE_CUDA_CUDA_ARGS_H
#define ENGINE_CUDA_CUDA_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#define KV_BLOCK 64     /* positions in a block of the recipe */
#define LINE_COLS 256   /* columns in a line of R1-256 (docs/kernels.md) */
#define LINE_BYTES 64   /* its bytes */
#define FEW_TOKENS 4    /* tokens that linear_few takes at a time */
#define FEW_ROWS 16     /* rows a block of linear_few: 64 threads, 8 for 2 rows */
#define ONE_THREADS 256 /* a block of linear_one */
#define ONE_HELD 4      /* 16-byte chunks of a row that a lane of it holds while the norm runs */
#define ROW_TILE 8192   /* floats of a row in shared memory: 32 kB */
#define LINE_ROOM 320   /* bytes between lines in shared memory: neighbours in other banks */
#define ONE_COLS (ROW_TILE * 4 / LINE_ROOM * LINE_COLS) /* widest input of linear_one */
#define MANY_TOKENS 64  /* tile of linear_many: 8 mma columns of 8 */
#define MANY_ROWS 128   /* 4 warps of two 16-row mma tiles */
#define ATTN_TOKENS 4   /* most tokens a block of attn_apply takes, 64 threads each */
#define ATTN_HEADS 4    /* query heads that share one load of a key or value */
#define ATTN_SPLIT 64   /* blocks of positions that run at once when positions are split */
#define HEAD_GROUP 16   /* output rows between two uses of the logit buffer */
#define HEAD_ROWS 4     /* output rows that share one load of the table */
#define DOT_ROWS 16     /* table rows a block of rows_dot: 128 threads, 8 a row; also a part */
#define PART_ROWS 16    /* table rows whose largest logit, or bound, is known apart */
#define BOUND_ROWS 64   /* table rows a block of coarse_bound: 128 threads, 4 for 2 rows */
#define COARSE_COLS 128 /* columns in a line of the coarse plane (docs/kernels.md) */
#define COARSE_LANES 16 /* sums of a row of it */
#define PICK_THREADS 512
#define TAKE_IDS 256   /* table rows a block of pick_take looks at, one a thread */
#define PICK_FIRST 256 /* candidates that come back with a row's summary */

/* Sixteen bytes at a multiple of sixteen. */
struct words {
    uint32_t at[4];
};

/* One token of a pass. */
struct cuda_token {
    uint16_t *kv; /* its sequence's cache, see kv_shape */
    float *slots; /* (blocks, n_heads, head_dim + 2) its sequence's partial results: o, m, l */
    int32_t pos, id;
};

/* Where keys and values lie, in F16 elements: block, layer and KV head by these strides; then K as
 * (head_dim, KV_BLOCK), lanes being positions, then V as (KV_BLOCK, v_stride). */
struct kv_shape {
    uint64_t block_elems, layer_elems, head_elems;
    uint32_t head_dim, v_stride;
};

struct embed_args {
    const uint8_t *table; /* rows of row_bytes */
    const struct cuda_token *tokens;
    float *h;
    uint64_t row_bytes;
    uint32_t n, stride, type; /* enum tensor_type */
};

/* x -> RMSNorm unless w is NULL -> q, its scale and its sum; a block a token. */
struct norm_args {
    const float *x, *w;
    int8_t *q; /* (n_tokens, q_stride), zeros past n */
    float *q_s;
    int32_t *q_sum;
    float eps;
    uint32_t n, x_stride, q_stride;
};

enum linear_kind { LINEAR_STORE, LINEAR_ADD, LINEAR_RELU2, LINEAR_SILU };

/* y = W q. The gates take rows in pairs, gate and up of one output: row 2i is section 0, row 2i + 1
 * section 1. Otherwise section s ends at row_end[s]. */
struct linear_args {
    const uint8_t *lines; /* (n_rows, n_lines, LINE_BYTES) */
    const int8_t *q;      /* (n_tokens, n_lines * LINE_COLS) */
    const float *q_s;
    const int32_t *q_sum;
    const float *bias; /* (n_rows) in the order of the rows, or NULL */
    float *y;
    uint32_t n_rows, n_lines, n_tokens, y_stride;
    uint32_t row_end[2];
    float scale[3], extra[3];
    int32_t kind;
};

/* One token, its norm and W q; q, q_s and q_sum are not used. `lanes` have two rows: 8, 16, 32. */
struct norm_linear_args {
    struct norm_args norm;
    struct linear_args linear;
    uint32_t lanes;
};

/* Rotate q and k in place, scale q, keys and values to the cache; a block a token and KV head. */
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
    float *out; /* (n_tokens, out_stride); running results while blocks are merged */
    struct kv_shape kv;
    uint32_t n_tokens, qkv_stride, out_stride, n_heads, group, layer, split;
};

/* One wanted row of the head. */
struct cuda_want {
    uint64_t seed, position; /* Gumbel */
    double beta;             /* 1 / temp, 0: no Gumbel draw */
    float gap;
    uint32_t k; /* 0: no candidates */
    uint32_t token, spare;
};

struct cuda_cand {
    int32_t id;
    float logit;
};

/* Of one row: at least its k best and those within the gap, or whoever may win the draw, in no
 * order; all of them in `more`, the first also here. */
struct cuda_found {
    uint32_t n, not_finite;
    uint32_t n_read, spare; /* table rows multiplied one by one */
    struct cuda_cand first[PICK_FIRST];
};

/* Of one row: what pick_take compares with, and how the hidden state was quantised. */
struct cuda_screen {
    double floor;
    float unit;
    uint32_t screened; /* 0: the bounds of this hidden state would prove nothing */
};

/* The coarse plane of the head, see coarse_mat of the CPU backend. */
struct coarse_plane {
    uint8_t *lines;  /* (n_vocab, n_blocks, LINE_BYTES) */
    uint16_t *steps; /* (n_vocab, step_stride) BF16, zeros past n_blocks */
    uint32_t n_blocks, step_stride;
};

/* A table to its coarse plane; a warp a row. */
struct coarse_args {
    const uint8_t *table;
    struct coarse_plane plane;
    uint32_t *too_large; /* set if a weight cannot be packed */
    uint64_t row_bytes;
    uint32_t n, n_vocab, type;
};

/* Hidden states as two planes of bytes and what their rounding may cost; a row of each for each
 * wanted row. */
struct query_room {
    int8_t *x;      /* (n_blocks, 2, COARSE_COLS) high, twice low */
    int32_t *fix;   /* (n_blocks, COARSE_LANES) */
    float *spread;  /* (step_stride) zeros past n_blocks */
    double *missed; /* (n_blocks, COARSE_COLS) */
    double *norms;  /* (n_blocks, 2) */
    struct cuda_screen *screens;
    uint32_t n_blocks, step_stride; /* 0 blocks: nothing is screened */
    double kappa, gamma, root;      /* constants of the bound */
};

/* The final norm, and the query made of it; a block a wanted row. Empties found. */
struct head_norm_args {
    const struct cuda_want *wants;
    const float *h, *w;
    float *x; /* (n_wants, stride) */
    struct cuda_found *found;
    struct query_room query;
    float eps;
    uint32_t n, h_stride, stride;
};

/* Where logits, or bounds of them, go: (n_rows, z_stride), and the best of each PART_ROWS. */
struct logit_room {
    float *z;
    struct cuda_cand *parts; /* (n_rows, part_stride) */
    uint32_t n_vocab, z_stride, part_stride;
};

/* An upper bound of every logit. */
struct bound_args {
    struct coarse_plane plane;
    struct query_room query;
    struct logit_room out;
    uint32_t n_rows;
};

/* z = table x for n_rows rows of x. */
struct dot_args {
    const uint8_t *table;
    const float *x;
    struct logit_room out;
    struct cuda_found *found; /* (n_rows) */
    const int32_t *ids;       /* rows_named: which rows, n_vocab of them */
    uint64_t row_bytes;
    uint32_t n, x_stride, n_rows, type;
};

/* From logits or bounds to candidates. */
struct pick_args {
    const struct cuda_want *wants;
    struct dot_args dot;         /* for exact logits */
    struct cuda_screen *screens; /* (n_wants) */
    struct cuda_cand *more;      /* (n_wants, z_stride) */
    uint32_t is_exact;           /* z holds logits, not bounds */
};

struct read_args {
    const uint8_t *at;
    uint64_t n_chunks; /* of 16 bytes */
    uint32_t *sum;
};

/* Name, arguments, threads a block. */
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
    X(rows_named, dot_args, 128)                                                                   \
    X(coarse_pack, coarse_args, 128)                                                               \
    X(coarse_bound_one, bound_args, 128)                                                           \
    X(coarse_bound_few, bound_args, 128)                                                           \
    X(pick_floor, pick_args, PICK_THREADS)                                                         \
    X(pick_take, pick_args, TAKE_IDS)                                                              \
    X(read_memory, read_args, 256)

#endif
