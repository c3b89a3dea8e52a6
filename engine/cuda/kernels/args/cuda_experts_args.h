/*
 * The arguments of the kernels for mixtures of experts. Part of cuda_args.h, which describes the
 * conventions; docs/kernels.md, "Experts", has the arithmetic.
 *
 * A pair is a token with one of its chosen experts. Pair number token * n_used + i is the token
 * with its i-th expert, in ascending order of the experts. Results of an expert have a row for each
 * pair.
 */
#ifndef ENGINE_CUDA_KERNELS_CUDA_EXPERTS_ARGS_H
#define ENGINE_CUDA_KERNELS_CUDA_EXPERTS_ARGS_H

#include "engine/cuda/kernels/args/cuda_r16_args.h"

#include <stdint.h>

#define MAX_EXPERTS 1024    /* of a layer */
#define MAX_USED_EXPERTS 64 /* of a token */
#define ROUTER_THREADS 64   /* per thread block of router_logits: 8 for each expert */
#define ROUTER_TILE 8       /* tokens that share one load of the router's rows */
#define PAIR_THREADS 1024   /* of sort_pairs: at least MAX_EXPERTS */
#define EXPERT_TILES 4      /* thread blocks that share the pairs of an expert */
#define ADD_THREADS 128     /* elements of h per thread block of add_experts */

struct cuda_choice {
    uint32_t expert;
    float weight; /* softmax of z over the chosen experts of the token */
};

/* z(e) = dot64(row e of the router, x), not quantised. Grid: sets of ROUTER_THREADS / 8 experts,
 * sets of ROUTER_TILE tokens. */
struct router_args {
    const float *rows; /* (n_experts, n) */
    const float *x;    /* (n_tokens, x_stride) */
    float *z;          /* (n_tokens, n_experts) */
    uint32_t n, n_experts, n_tokens, x_stride;
};

/* Chooses the n_used experts with the largest z, of equal ones the lower index. A NaN counts as
 * -infinity. Grid: tokens. */
struct choose_args {
    const float *z;             /* (n_tokens, n_experts) */
    struct cuda_choice *chosen; /* (n_tokens, n_used) in ascending order of `expert` */
    /* (n_experts, 2) how often each expert was chosen so far, as 64 bits: low word, high word. The
     * kernel adds the choices of this pass. */
    uint32_t *counts;
    uint32_t n_experts, n_used;
};

/* Sorts the pairs of a pass by expert. The order of an expert's pairs is not defined and has no
 * effect on any result. starts[n_experts] is n_pairs. Grid: 1. */
struct sort_pairs_args {
    const struct cuda_choice *chosen; /* (n_pairs) */
    uint32_t *starts;                 /* (n_experts + 1) first place of each expert in `pairs` */
    uint32_t *pairs;                  /* (n_pairs) */
    uint32_t *n_active;               /* (1) experts with a pair */
    uint32_t n_pairs, n_experts;
};

/* y = W x for each pair, with the rows of its expert. With w.kind LINEAR_SILU, section 0 is the
 * matrix W_gate and section 1 is the matrix W_up, and y = silu(min(W_gate x, clamp)) *
 * max(-clamp, min(W_up x, clamp)). With LINEAR_STORE there is one section and no limit. w.n_tokens
 * is the number of pairs, and w.n_groups counts the row groups of all experts and sections. */
struct experts_args {
    struct r16_args w;
    const struct cuda_choice *chosen;
    const uint32_t *starts, *pairs; /* as in sort_pairs_args; only experts_many uses them */
    uint32_t n_groups;              /* row groups of one expert in a section */
    uint32_t n_used;
    uint32_t pairs_per_input; /* n_used if the inputs are those of tokens, 1 if each pair has one */
    float clamp;
};

/* h = h + weight * y for the pairs of a token, in ascending order of experts. Grid: tokens, sets
 * of ADD_THREADS elements. */
struct experts_add_args {
    const struct cuda_choice *chosen;
    const float *y; /* (n_pairs, y_stride) */
    float *h;       /* (n_tokens, h_stride) */
    uint32_t n, y_stride, h_stride, n_used;
};

#endif
