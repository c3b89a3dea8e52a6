/*
 * Ternary linear layers in R16: the counterpart of cpu_linear.c for weights with n_groups > 0. All
 * threads call every function; each works on its part of the tokens or rows.
 */
#ifndef ENGINE_CPU_CPU_LINEAR_GROUPS_H
#define ENGINE_CPU_CPU_LINEAR_GROUPS_H

#include "engine/cpu/cpu_linear.h"

/* As linear_input, linear_store, linear_add and linear_gate. */
void groups_input(struct cpu_thread *th, const struct weights *to, struct rows x, const float *w);
void groups_store(struct cpu_thread *th, const struct weights *w, struct rows y);
void groups_add(struct cpu_thread *th, const struct weights *w, struct rows y);
void groups_gate(struct cpu_thread *th, const struct weights *w, enum ffn_act act, struct rows y);

/* Quantise x (to->n_cols), a vector that no other thread quantises, as token `token` of the shared
 * input of a layer. */
void groups_quantise(struct cpu_thread *th, const struct weights *to, const float *x, size_t token);

/* y (n_tokens, y.stride) = rows row0 .. row1 - 1 of W times the first n_tokens tokens of the shared
 * input, by this thread alone. row0 is a multiple of R16_ROWS; W has one section. */
void groups_multiply(struct cpu_thread *th, const struct weights *w, size_t row0, size_t row1,
                     size_t n_tokens, struct rows y);

#endif
