/*
 * The state of the CPU backend: packed weights, the scratch memory of one pass, and the state of
 * each thread. Private to engine/cpu.
 *
 * One pass evaluates up to n_ubatch tokens of one or several sequences. Activations are
 * token-major: element i of token t is at [t * stride + i]. The strides h_stride to vocab_stride of
 * struct cpu_shape are multiples of a cache line. In linear layers, threads own row ranges that are
 * multiples of ROW_UNIT, so two threads do not write the same cache line there (in R16, if the rows
 * of each section are a multiple of ROW_UNIT too).
 */
#ifndef ENGINE_CPU_CPU_STATE_H
#define ENGINE_CPU_CPU_STATE_H

#include "engine/backend/backend.h"
#include "engine/base/memory.h"
#include "engine/cpu/cpu_barrier.h"
#include "engine/cpu/cpu_shape.h"
#include "engine/cpu/cpu_strategy.h"
#include "engine/cpu/cpu_team.h"
#include "engine/cpu/cpu_weights.h"
#include "engine/cpu/kernels.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEAD_ROWS 4096   /* most rows that the screened head multiplies first, see cpu_screen.c */
#define SPLIT_BLOCKS 64  /* with ATTN_SPLIT: least slots of attn_partials for each item */
#define ROUTER_TOKENS 16 /* tokens for which a thread multiplies the router at a time */

/* An expert that the router has chosen for a token. */
struct expert_choice {
    uint32_t expert;
    float weight;
};

/* A token of a chosen expert. */
struct expert_pair {
    uint32_t token; /* number in the pass */
    float weight;
};

/* Consecutive positions of one sequence that attention handles together, all within ATTN_TILE
 * positions that begin at a multiple of ATTN_TILE. scratch.runs has this type too, without the
 * limit. */
struct token_block {
    struct seq *seq;
    size_t token0, n_tokens; /* token numbers in the pass */
    size_t pos0;             /* position of the first token */
};

/* One row of logits that the caller requested. */
struct requested_row {
    const struct head_request *request;
    struct head_row *row;
    size_t token;    /* number in the pass */
    size_t position; /* position of the token to be drawn */
    size_t n_found;  /* candidates in row->cands */
    bool screened;   /* the coarse plane is used; query is set only then */
    struct coarse_query query;
};

/* The input of a layer in R16: q (n_tokens, q8_stride), for several tokens with room for a multiple
 * of PACK_TOKENS; units and q_sums (n_tokens, block_stride). */
struct block_input {
    struct block_plane planes[MAX_PLANES]; /* high and low bytes, or one plane */
    float *x; /* (n_tokens, x_stride) if activations are not quantised; then planes are unused */
};

/* Squared length of a block of a hidden state, and of its fixed-point error. */
struct block_norms {
    double h2, error2;
};

/* Memory for the results of a pass, sized for n_ubatch tokens when the backend opens. */
struct scratch {
    struct mem_map map;
    float *h; /* (n_ubatch, h_stride) residual stream */
    /* (n_ubatch, qkv_stride) q, k, v; attn_append or delta_convolve changes them in place */
    float *qkv;
    float *attn; /* (n_ubatch, attn_stride) results of attention or of a delta net */
    /* (n_ubatch, ffn_stride) act(gate) * up; with experts a row per pair. Overlaps qkv and attn. */
    float *ffn;
    /* (n_ubatch rounded up to PACK_TOKENS, q8_stride) input of a layer. In R1-256 it is packed, and
     * a token occupies n_lines * LINE_COLS bytes instead of q8_stride. */
    int8_t *q8;
    float *q8_s;               /* (n_ubatch) scales of q8 */
    int32_t *q8_sum;           /* (n_ubatch) sums of q8 */
    struct block_input blocks; /* n_ubatch tokens; planes[0].q is q8 */
    float *rope_c;             /* (n_ubatch, n_rot / 2) */
    float *rope_s;             /* (n_ubatch, n_rot / 2) */
    /* (n_slots) results of position blocks: o (n_q_per_kv, head_dim), then m (n_q_per_kv),
     * l (n_q_per_kv). */
    float *attn_partials;
    float *head_x; /* (HEAD_PASS_ROWS, h_stride) inputs of the output head, see apply_rows */
    /* (HEAD_PASS_ROWS, vocab_stride) logits or their bounds; overlaps qkv, attn and ffn */
    float *z;
    /* Inputs of the screened head, see coarse_query. */
    int8_t *coarse_x;                 /* (HEAD_PASS_ROWS, n_coarse, 2, COARSE_COLS) */
    int32_t *coarse_fix;              /* (HEAD_PASS_ROWS, n_coarse, 16) */
    float *coarse_spread;             /* (HEAD_PASS_ROWS, step_stride) */
    struct block_norms *coarse_norms; /* (HEAD_PASS_ROWS, n_coarse) */
    float *lead; /* (HEAD_PASS_ROWS, LEAD_ROWS) logits of the rows multiplied first */
    /* Only with experts: */
    float *router_z;               /* (n_experts) logits of the router in a pass of one token */
    struct expert_choice *chosen;  /* (n_ubatch, n_used_experts) ascending experts of each token */
    struct expert_pair *pairs;     /* (n_ubatch * n_used_experts) sorted by expert, then token */
    uint32_t *pair_start;          /* (n_experts + 1) first pair of each expert */
    struct block_input pair_input; /* a row per pair, and rows that a kernel may read behind them */
    uint64_t *n_chosen;            /* (n_layers, n_experts) since the backend was opened */
    /* With and without experts: */
    struct token_block *token_blocks;     /* (n_ubatch) */
    struct token_block *runs;             /* (n_ubatch) all tokens of each sequence */
    struct delta_gate *delta_gates;       /* (n_ubatch, n_value_heads) */
    struct requested_row *requested_rows; /* (n_ubatch) */
    struct cpu_thread *threads;           /* (n_threads) */
};

/* The state of one thread. Only this thread uses the buffers, unless stated otherwise. */
struct cpu_thread {
    struct pass *pass;
    size_t index, n_threads; /* of the threads that run in this pass */
    int32_t *live;           /* (max_cols + LIVE_SLACK) numbers of rows or columns to multiply */
    /* (n_embd rounded up to LINE_COLS) sums over this thread's columns; all threads read it */
    int32_t *sums;
    uint64_t up_skipped, down_skipped; /* bytes of weights that were not read in this pass */
    int8_t *q8;                        /* (q8_stride) a quantised token before packing */
    float q8_s;                        /* scale of q8 if the pass has one token */
    int32_t q8_sum;
    struct block_input blocks; /* one token; planes[0].q is q8 */
    float *norm; /* (max_cols) input of a layer after RMSNorm and rotation, see linear_prepare */
    float *row;  /* (n_embd) a decoded row of a table: scratch of rows_dot */
    /* Only with experts: */
    struct expert_choice *chosen; /* (n_used_experts) ascending experts of the only token */
    float *router_x;              /* (ROUTER_TOKENS, h_stride) normed inputs of the router */
    float *router_z;              /* (ROUTER_TOKENS, n_experts) logits */
    /* With and without experts: */
    const int8_t *q; /* gathered input of the linear layer, for several tokens */
    uint8_t *panel; /* (PANEL_ROWS, q8_stride) unpacked weights, gathered tokens or coarse_states */
    int32_t *acc;   /* (MATMUL_TOKENS, PANEL_ROWS) */
    float *y[2];    /* (MATMUL_TOKENS, PANEL_ROWS) results, of gate and of up if there are two */
    float *attn_o;  /* (ATTN_TILE, n_q_per_kv, head_dim) running results of a token block */
    float *attn_m, *attn_l; /* (ATTN_TILE, n_q_per_kv) */
    float *attn_scratch;    /* (attn_tile_floats) */
    uint16_t *f16;          /* (head_dim) */
    size_t phase;           /* number of barriers passed since threads_begin */
    /* Items of this thread's range that any thread has taken, in even and in odd phases. */
    atomic_size_t n_taken[2];
    uint64_t *seen; /* (n_vocab) bits of ids that are candidates already; all zero between uses */
    int32_t *ids;   /* (LEAD_ROWS) rows of the output head to multiply */
    struct head_cand *picks; /* (LEAD_ROWS) a heap */
    /* For each of HEAD_PASS_ROWS rows of logits, over this thread's part of the vocabulary. Other
     * threads read them after a barrier. */
    float best[HEAD_PASS_ROWS]; /* largest logit; if HEAD_GUMBEL is screened, of best_noisy_id */
    double best_noisy[HEAD_PASS_ROWS]; /* largest scaled logit plus Gumbel noise */
    int32_t best_noisy_id[HEAD_PASS_ROWS];
};

/* Steps of a pass that cpu_profile.h measures. */
enum profile_step {
    PROFILE_EMBED,
    PROFILE_NORM,
    PROFILE_QKV,
    PROFILE_ROPE,
    PROFILE_ATTN,
    PROFILE_DELTA,
    PROFILE_O,
    PROFILE_GATE_UP,
    PROFILE_DOWN,
    PROFILE_ROUTER,
    PROFILE_EXPERTS,
    PROFILE_HEAD,
    PROFILE_N
};
struct profile {
    double last, seconds[PROFILE_N]; /* last: when the previous step of the pass ended */
    uint64_t n_calls[PROFILE_N], n_bytes[PROFILE_N], n_macs[PROFILE_N];
};

struct pass {
    struct backend *b;
    const struct eval_item *items;
    size_t n_tokens, n_token_blocks, n_runs, n_requested_rows;
    const struct ternary_gemm *gemm; /* kernels that multiply several tokens */
    struct strategy strategy;
    const struct backend_control *control; /* of the call of eval; may be NULL */
    uint64_t n_bytes;                      /* read, see pass_bytes in cpu_backend.c */
    uint64_t n_experts_read;               /* sum over all layers; thread 0 writes it */
    bool stopped; /* written by thread 0 before a barrier, read by all threads after it */
    atomic_size_t head_bytes; /* bytes read of the output head and its coarse plane */
    atomic_bool not_finite;   /* a logit is infinite or NaN */
    atomic_size_t min_cap;    /* candidates that a too small row must hold; 0: all rows suffice */
    struct cpu_barrier barrier;
    struct profile profile; /* over many passes; only thread 0 writes it */
};

struct backend {
    const struct model *model;
    struct cpu_kernels k;
    struct backend_config cfg;
    struct backend_info info;
    struct cpu_shape shape;
    size_t n_threads, n_ubatch;
    struct team_pins *pins; /* NULL: the system places the threads */
    struct strategy_model strategy_model;
    struct mem_map lines; /* all ternary matrices, packed, in the order of a pass */
    size_t line_bytes;    /* used bytes of lines, without a ternary output head */
    size_t expert_bytes;  /* lines and scales of all experts; 0 without experts */
    float *floats;        /* norms, biases, scales of rows and small matrices */
    size_t n_floats;
    double *rope_freq; /* (2, n_rot / 2) radians per position, in short and in long sessions */
    const float *output_norm; /* (n_embd), points into floats */
    struct tensor_ref head;   /* the output head: rows of the file, or the copy in head_map */
    struct mem_map head_map;  /* the copy at eight bits; NULL: none */
    struct mem_map coarse_map;
    struct coarse_mat coarse; /* coarse plane of the output head; n_blocks 0: there is no plane */
    size_t coarse_bytes;      /* used bytes of coarse_map */
    struct cpu_layer *layers; /* (n_layers) */
    struct weights ternary_head; /* the output head, if it is ternary; else n_groups is 0 */
    struct scratch scratch;
    struct pass pass;
};

#endif
