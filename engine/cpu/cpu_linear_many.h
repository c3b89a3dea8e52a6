/*
 * Ternary linear layers of several tokens: what cpu_linear.c does with more than one. Entered by
 * all lanes, each for its share of rows; the input is in scratch.q8.
 */
#ifndef ENGINE_CPU_CPU_LINEAR_MANY_H
#define ENGINE_CPU_CPU_LINEAR_MANY_H

#include "engine/cpu/cpu_linear.h"

/* y = W q or y = y + W q, as `out` has it. */
void linear_many(struct cpu_thread *th, const struct weights *w, acc_out_fn out, struct rows y);
/* y = act(W_gate q) * (W_up q); w has two sections, gate and up. */
void linear_many_gate(struct cpu_thread *th, const struct weights *w, acc_gate_fn act,
                      struct rows y);

#endif
