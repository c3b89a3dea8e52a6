/*
 * Chooses how a pass is computed, from the sizes of the model, the number of tokens and the number
 * of threads. No choice changes a bit of the result. All functions are pure.
 */
#ifndef ENGINE_CPU_CPU_STRATEGY_H
#define ENGINE_CPU_CPU_STRATEGY_H

#include "engine/cpu/kernels.h"

#include <stdbool.h>
#include <stddef.h>

/* A work item of attention is a token block and a KV head. With fewer items per thread than this,
 * some threads would have much more work than others. If then each token block has one token, the
 * position blocks are divided over the threads instead (ATTN_SPLIT). Also limits the size of
 * scratch.attn_partials. */
#define ATTN_ITEMS_PER_THREAD 4

/* Facts that are the same for all passes. */
struct strategy_model {
    const struct cpu_kernels *k;
    size_t line_bytes; /* ternary weights of all layers that one token uses, at two bits */
    size_t head_bytes; /* of the output head, read for one row of logits */
    size_t n_kv_heads;
    size_t n_threads;
    size_t n_ubatch;       /* most tokens in a pass */
    bool uses_r16;         /* linear layers are in R16 */
    bool is_quantised;     /* false: activations stay floats, and R16 takes one token at a time */
    const char *head_form; /* text: how the output head is read */
    const char *kv_form;   /* text: type of the KV cache */
    size_t kv_bytes_per_token;
    bool all_threads; /* the user chose the number of threads: every pass uses all of them */
};

struct strategy_work {
    size_t n_tokens;
    size_t n_token_blocks;   /* at most n_tokens; equal if each token block has one token */
    size_t n_requested_rows; /* rows of logits */
};

enum linear_method {
    /* One token: rows (of weights by column: columns) are split over the threads, and each thread
     * quantises the token. */
    LINEAR_MATVEC,
    /* Several tokens. In R1-256: the gemm of this name in struct cpu_kernels. In R16, FEW,
     * MEDIUM and MANY do not differ: the kernels are `r16`, or the tokens are taken one at a
     * time if they are few or not quantised. */
    LINEAR_FEW,
    LINEAR_MEDIUM,
    LINEAR_MANY,
};

enum attn_method {
    ATTN_TOKEN_BLOCKS, /* a work item is a token block and a KV head, for all position blocks */
    ATTN_SPLIT,        /* token blocks of one token: position blocks are split over the threads */
};

struct strategy {
    size_t n_active; /* threads that run; 1: only the calling thread */
    enum linear_method linear;
    enum attn_method attn;
};

struct strategy strategy_for_pass(const struct strategy_model *m, const struct strategy_work *w);

/* The kernels of a method. LINEAR_MATVEC gets those for few tokens. */
const struct ternary_gemm *strategy_gemm(const struct cpu_kernels *k, enum linear_method method);
/* The method for the linear layers in R1-256 of a pass of n_tokens. In R16, only LINEAR_MATVEC
 * differs from the others. */
enum linear_method strategy_linear(const struct cpu_kernels *k, size_t n_tokens);

/* Describe the choices for a pass in lines of text. Returns the full length, as snprintf does, or 0
 * if snprintf fails. */
size_t strategy_explain(const struct strategy_model *m, const struct strategy_work *w, char *text,
                        size_t text_bytes);

/* How many of n_threads >= 1 threads pack this many bytes when a model is opened; at least 1. */
size_t strategy_load_threads(size_t weight_bytes, size_t n_threads);

#endif
