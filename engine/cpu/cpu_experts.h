/*
 * The feed-forward part of a layer with a mixture of experts: the router chooses some experts for
 * each token, and only these are read. All threads call the first three functions; each works on
 * its part.
 *
 * A pair is a token with one of its chosen experts. Pairs are ordered by expert, then by token. So
 * the pairs of an expert are consecutive and are multiplied together. docs/kernels.md specifies the
 * arithmetic; the results do not depend on which pairs are multiplied together.
 */
#ifndef ENGINE_CPU_CPU_EXPERTS_H
#define ENGINE_CPU_CPU_EXPERTS_H

#include "engine/cpu/cpu_linear.h"

/* Prepare the input from h (n_tokens, n_embd), which must be complete, and choose the experts.
 * Afterwards the pairs of this layer are set: in scratch.pairs, or in th->chosen for a pass of one
 * token. */
void experts_choose(struct cpu_thread *th, size_t layer, struct rows h);

/* y (one row per pair, n_ff) = silu(gate) * up, with gate and up limited to layer_traits.clamp, for
 * this thread's part. */
void experts_gate(struct cpu_thread *th, size_t layer, struct rows y);

/* h = h + weight * (W_down y) for all pairs. y must be complete, so a barrier comes first.
 * Afterwards h is complete only for this thread's part. */
void experts_add(struct cpu_thread *th, size_t layer, struct rows y, struct rows h);

/* Bytes of the experts that the pass has read; 0 if the model has no experts. */
uint64_t experts_pass_bytes(const struct pass *pass);

/* Choose the n_used largest of z (n): out (n_used) in ascending order of `expert`, with the weights
 * of docs/kernels.md. A NaN in z counts as -infinity. 1 <= n_used <= n, and n_used is at most
 * MODEL_MAX_USED_EXPERTS. */
void experts_pick(const float *z, size_t n, size_t n_used, struct expert_choice *out);

#endif
