/*
 * Ternary linear layers of a pass: norm, quantise, multiply, scale. Every function is entered by
 * all lanes; each works on its share of tokens or rows.
 */
#ifndef ENGINE_CPU_CPU_LINEAR_H
#define ENGINE_CPU_CPU_LINEAR_H

#include "engine/cpu/cpu_state.h"

/* Rows of F32, one a token. */
struct rows {
    float *at; /* (n_tokens, stride) */
    size_t stride;
};

/* The input of the next linear layer, `to`: each token of x (to->n_cols), normed with w unless that
 * is NULL, then quantised. Afterwards every lane may read it. */
void linear_input(struct cpu_thread *th, const struct weights *to, struct rows x, const float *w);

/* y = W q for this lane's rows of W and all tokens. */
void linear_store(struct cpu_thread *th, const struct weights *w, struct rows y);
/* y = y + W q */
void linear_add(struct cpu_thread *th, const struct weights *w, struct rows y);
/* y = act(W_gate q) * (W_up q); the two halves of w's rows are gate and up. */
void linear_gate(struct cpu_thread *th, const struct weights *w, enum ffn_act act, struct rows y);

/* One token: ask for what a product with n_rows rows of w will read first, before the barrier and
 * the norm that come before it. */
void linear_fetch(const struct cpu_thread *th, const struct weights *w, size_t n_rows);

#endif
