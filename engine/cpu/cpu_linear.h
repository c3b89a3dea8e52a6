/*
 * Ternary linear layers of a pass: RMSNorm, quantise, multiply, scale. All threads call every
 * function; each works on its part of the tokens or rows.
 */
#ifndef ENGINE_CPU_CPU_LINEAR_H
#define ENGINE_CPU_CPU_LINEAR_H

#include "engine/cpu/cpu_state.h"

/* Rows of F32, one per token. */
struct rows {
    float *at; /* (n_tokens, stride) */
    size_t stride;
};

/* Prepare the input of the next linear layer, `to`: each token of x (to->n_cols) is normed with w
 * unless w is NULL, and quantised. Afterwards every thread may read the result. */
void linear_input(struct cpu_thread *th, const struct weights *to, struct rows x, const float *w);

/* y = W q for this thread's rows of W and all tokens. */
void linear_store(struct cpu_thread *th, const struct weights *w, struct rows y);
/* y = y + W q */
void linear_add(struct cpu_thread *th, const struct weights *w, struct rows y);
/* y = act(W_gate q) * (W_up q). The first half of w's rows is gate, the second half is up. */
void linear_gate(struct cpu_thread *th, const struct weights *w, enum ffn_act act, struct rows y);

/* In a pass of one token, prefetch what a product with n_rows rows of w reads first. Call it before
 * the barrier and the norm that precede the product. */
void linear_fetch(const struct cpu_thread *th, const struct weights *w, size_t n_rows);

#endif
