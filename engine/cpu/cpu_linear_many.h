/*
 * Ternary linear layers of several tokens, for cpu_linear.c. All threads call these functions, each
 * for its part of the rows; the input is in scratch.q8.
 */
#ifndef ENGINE_CPU_CPU_LINEAR_MANY_H
#define ENGINE_CPU_CPU_LINEAR_MANY_H

#include "engine/cpu/cpu_linear.h"

/* y = W q or y = y + W q, depending on `out`. */
void linear_many(struct cpu_thread *th, const struct weights *w, acc_out_fn out, struct rows y);
/* y = act(W_gate q) * (W_up q). w has two sections, gate and up. */
void linear_many_gate(struct cpu_thread *th, const struct weights *w, acc_gate_fn act,
                      struct rows y);

#endif
