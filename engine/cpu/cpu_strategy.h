/*
 * What runs how: decided here, once a pass, from the sizes of the model, the number of tokens and
 * threads. Pure functions; the cut-offs, with what was measured for each, are one table in the .c.
 *
 * No choice changes a bit of the result: every way gives the same sums.
 */
#ifndef ENGINE_CPU_CPU_STRATEGY_H
#define ENGINE_CPU_CPU_STRATEGY_H

#include "engine/cpu/kernels.h"

#include <stdbool.h>
#include <stddef.h>

/* What does not change from pass to pass. */
struct strategy_model {
    const struct cpu_kernels *k;
    size_t line_bytes; /* ternary weights at two bits, all layers */
    size_t head_bytes; /* read of the head for one row */
    size_t n_kv_heads;
    size_t n_threads;      /* of the team */
    size_t n_ubatch;       /* most tokens of a pass */
    const char *head_form; /* how the head is read, in words */
    const char *kv_form;   /* what the KV cache holds, in words */
    size_t kv_bytes_per_token;
    bool all_threads; /* somebody asked for so many: no pass uses fewer */
};

struct strategy_work {
    size_t n_tokens;
    size_t
        n_token_blocks; /* of consecutive tokens of one sequence; n_tokens: each is alone in its own */
    size_t n_requested_rows; /* rows of the head */
};

enum linear_method {
    LINEAR_MATVEC, /* one token: rows over the lanes, each lane quantises for itself */
    LINEAR_FEW,    /* several tokens, and how cpu_kernels multiplies them */
    LINEAR_MEDIUM,
    LINEAR_MANY,
};

enum attn_method {
    ATTN_TOKEN_BLOCKS, /* a tile and a KV head for a lane, through all their blocks */
    ATTN_SPLIT, /* one token a tile: its blocks of positions over the lanes, merged in order */
};

struct strategy {
    size_t n_active; /* of the team's threads that work; 1: the calling thread alone */
    enum linear_method linear;
    enum attn_method attn;
};

struct strategy strategy_for_pass(const struct strategy_model *m, const struct strategy_work *w);

/* The kernels of a way; those for few tokens also where the way needs none. */
const struct ternary_gemm *strategy_gemm(const struct cpu_kernels *k, enum linear_method way);
enum linear_method strategy_linear(const struct cpu_kernels *k, size_t n_tokens);

/* The choices for a pass, in lines of text; returns the characters they have, as snprintf does. */
size_t strategy_explain(const struct strategy_model *m, const struct strategy_work *w, char *text,
                        size_t text_bytes);

/* Threads that pack so many bytes of weights when a model is opened. */
size_t strategy_load_threads(size_t weight_bytes, size_t n_threads);

#endif
