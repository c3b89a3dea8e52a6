/*
 * What the files of the CPU backend share: weights in memory, the scratch of one pass, the view a
 * thread has of a pass. Private to engine/cpu.
 *
 * One pass evaluates up to n_ubatch tokens of one or several sequences. Activations are
 * token-major: element i of token t is at [t * stride + i], strides are multiples of a cache line,
 * and threads own row ranges that are multiples of ROW_UNIT, so outputs of two threads never share
 * a line.
 */
#ifndef ENGINE_CPU_CPU_STATE_H
#define ENGINE_CPU_CPU_STATE_H

#include "engine/backend/backend.h"
#include "engine/base/memory.h"
#include "engine/cpu/cpu_barrier.h"
#include "engine/cpu/cpu_strategy.h"
#include "engine/cpu/cpu_team.h"
#include "engine/cpu/kernels.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROW_UNIT 16    /* floats in a cache line */
#define HEAD_GROUP 16  /* output rows that share one pass over the head table */
#define LEAD_ROWS 4096 /* most rows of the head that are multiplied first to find a floor */
#define SPLIT_BLOCKS                                                                               \
    64                   /* blocks a kv head gets per round when positions are split over threads  \
                          */
#define MAX_THREADS 1024 /* more than any machine this runs on; bounds the scratch */

/* Rows of one of the matrices that were concatenated: y = acc * (scale / s) * extra + bias. */
struct section {
    size_t row0, n_rows;
    float scale, extra;
    const float *bias; /* (n_rows), NULL if there is none */
};

struct weights {
    struct ternary_mat mat;
    size_t n_cols;
    struct ternary_cols cols; /* the same column by column, for one token; none: n_cols 0. Then mat
                                 is the file's own bytes, its columns in file order */
    struct section sections[3]; /* in row order, all of mat's rows */
    size_t n_sections;
};

struct cpu_layer {
    const float *attn_norm, *ffn_norm;         /* (n_embd) */
    const float *attn_sub_norm, *ffn_sub_norm; /* (n_heads * head_dim), (n_ff); NULL if absent */
    struct weights qkv, o, gate_up, down;
};

/* One tile: consecutive positions of one sequence, all within ATTN_TILE aligned ones. */
struct token_block {
    struct seq *seq;
    size_t token0, n_tokens; /* of the pass */
    size_t pos0;             /* of the first one */
};

/* One row of the head that somebody reqs. */
struct requested_row {
    const struct head_request *request;
    struct head_row *row;
    size_t token;    /* of the pass */
    size_t position; /* of the token being drawn */
    size_t n_found;  /* candidates in row->cands */
    bool screened;   /* else the whole table is read for it; what follows is cpu_screen.c's */
    struct coarse_query query;
};

/* Sizes that follow from the model, in elements unless said. */
struct cpu_shape {
    size_t q_width, kv_width; /* n_heads * head_dim, n_kv_heads * head_dim */
    size_t group;             /* query heads a KV head */
    size_t max_cols;          /* widest input of a linear layer */
    size_t h_stride, qkv_stride, attn_stride, ffn_stride, vocab_stride;
    size_t q8_stride;        /* bytes, whole lines */
    size_t v_stride;         /* head_dim rounded up to 32, see attn_block */
    size_t k_bytes, v_bytes; /* of a block of positions of one KV head, see cpu_kv.h */
    size_t kv_block_bytes;   /* the same with scales */
    size_t n_slots;          /* of partial attention results */
    size_t n_coarse;         /* blocks of a row of the head's coarse plane, 0: there is none */
    size_t row_bytes;        /* of the embedding table, of the head table as it is multiplied */
    size_t head_row_bytes;
};

/* Squared lengths of a block of a hidden state and of what its fixed point misses. */
struct block_norms {
    double h2, missed2;
};

/* Where a pass keeps what it computes; sized for n_ubatch tokens when the backend opens. */
struct scratch {
    struct mem_map map;
    float *h;        /* (n_ubatch, h_stride) residual stream */
    float *qkv;      /* (n_ubatch, qkv_stride) q, k, v as projected */
    float *attn;     /* (n_ubatch, attn_stride) */
    float *ffn;      /* (n_ubatch, ffn_stride) act(gate) * up; in the place of qkv and attn */
    int8_t *q8;      /* (n_ubatch rounded up, q8_stride) input of the next linear layer, packed */
    float *q8_s;     /* (n_ubatch) its scales */
    int32_t *q8_sum; /* (n_ubatch) */
    float *rope_c;   /* (n_ubatch, n_rot / 2) */
    float *rope_s;   /* (n_ubatch, n_rot / 2) */
    float *attn_partials; /* (n_slots, group, head_dim + 2) o, m, l of a block */
    float *head_x;        /* (HEAD_GROUP, h_stride) after the final norm */
    float *z; /* (HEAD_GROUP, vocab_stride) logits, or bounds of them; in the same place */
    /* For rows of the head that are screened, see coarse_query. */
    int8_t *coarse_x;                     /* (HEAD_GROUP, n_coarse, 2, COARSE_COLS) */
    int32_t *coarse_fix;                  /* (HEAD_GROUP, n_coarse, 16) */
    float *coarse_spread;                 /* (HEAD_GROUP, step_stride) */
    struct block_norms *coarse_norms;     /* (HEAD_GROUP, n_coarse) */
    float *lead;                          /* (HEAD_GROUP, LEAD_ROWS) logits of rows tried first */
    struct token_block *token_blocks;     /* (n_ubatch) */
    struct requested_row *requested_rows; /* (n_ubatch) */
    struct cpu_thread *threads;           /* (n_threads) */
};

/* A thread's own part of a pass. Buffers are its alone. */
struct cpu_thread {
    struct pass *pass;
    size_t index, n_threads;
    int32_t *live; /* (max_cols + LIVE_SLACK) rows or columns that are multiplied */
    int32_t *sums; /* (n_embd, whole lines) over this lane's live columns; all lanes read it */
    uint64_t up_skipped, down_skipped; /* bytes of weights not read in this pass */
    int8_t *q8; /* (q8_stride) a token before it is packed; all there is when it is alone */
    float q8_s; /* its scale when it is alone */
    int32_t q8_sum;
    float *row;      /* (n_embd) a decoded table row */
    const int8_t *q; /* input of the next linear layer for several tokens, gathered */
    uint8_t *panel;  /* (PANEL_ROWS, q8_stride) unpacked weights, gathered tokens or a group */
    int32_t *acc;    /* (MATMUL_TOKENS, PANEL_ROWS) */
    float *y[2];     /* (MATMUL_TOKENS, PANEL_ROWS) */
    float *attn_o;   /* (ATTN_TILE, group, head_dim) running results of a tile */
    float *attn_m, *attn_l;   /* (ATTN_TILE, group) */
    float *attn_scratch;      /* (attn_tile_floats) */
    uint16_t *f16;            /* (head_dim) */
    size_t phase;             /* barriers passed */
    atomic_size_t n_taken[2]; /* pieces of its share, by whomever: in even, in odd phases */
    uint64_t *seen; /* (n_vocab) bits: ids already among the candidates; all zero between uses */
    int32_t *ids;   /* (LEAD_ROWS) rows of the head to be multiplied */
    struct head_cand *picks;       /* (LEAD_ROWS) a heap */
    float best[HEAD_GROUP];        /* largest logit of its vocabulary range */
    double best_noisy[HEAD_GROUP]; /* the same with Gumbel noise */
    int32_t best_noisy_id[HEAD_GROUP];
};

/* See cpu_profile.h. */
enum profile_step {
    PROFILE_EMBED,
    PROFILE_NORM,
    PROFILE_QKV,
    PROFILE_ROPE,
    PROFILE_ATTN,
    PROFILE_O,
    PROFILE_GATE_UP,
    PROFILE_DOWN,
    PROFILE_HEAD,
    PROFILE_N
};
struct profile {
    double last, seconds[PROFILE_N];
    uint64_t n_calls[PROFILE_N], n_bytes[PROFILE_N], n_macs[PROFILE_N];
};

struct pass {
    struct backend *b;
    const struct eval_item *items;
    size_t n_items, n_tokens;
    size_t n_token_blocks, n_requested_rows;
    const struct ternary_gemm *gemm; /* how several tokens are multiplied */
    struct strategy strategy;        /* what runs how */
    const atomic_bool *cancel;
    uint64_t n_bytes;
    bool stopped;              /* written by lane 0 before a barrier, read by all after it */
    atomic_size_t head_bytes;  /* read of the head's table and its coarse plane */
    atomic_bool not_finite;    /* a logit is infinite or NaN */
    atomic_size_t room_needed; /* most candidates a row lacked room for, 0: none */
    struct cpu_barrier barrier;
    struct profile profile; /* of many passes; lane 0 writes */
};

struct backend {
    const struct model *model;
    struct cpu_kernels k;
    struct backend_config cfg;
    struct backend_info info;
    struct cpu_shape shape;
    size_t n_threads, n_ubatch;
    struct team_pins *pins; /* NULL: threads go where the system puts them */
    struct strategy_model strategy_model;
    struct mem_map lines; /* every ternary matrix in R1-256, in the order a pass reads them */
    size_t line_bytes;    /* used of it */
    float *floats;        /* norms and biases */
    size_t n_floats;
    double *rope_freq;        /* (n_rot / 2) radians a position */
    const float *output_norm; /* (n_embd), in floats */
    struct tensor_ref head;   /* what is multiplied: the file's, or a copy at eight bits */
    struct mem_map head_map;
    struct mem_map coarse_map;
    struct coarse_mat coarse; /* of the head; no blocks: every row is read */
    size_t coarse_bytes;      /* used of the map */
    struct cpu_layer *layers; /* (n_layers) */
    struct scratch scratch;
    struct pass pass;
};

#endif
