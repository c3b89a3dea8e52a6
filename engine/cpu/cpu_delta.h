/*
 * Gated delta nets in a pass. All threads call the first three functions; each works on its part.
 * A token's row in scratch.qkv has the queries, keys and values of all heads, then the output gates
 * z. A barrier must complete the residual stream (member h of struct scratch) before delta_gates,
 * scratch.qkv before delta_convolve, and the results of both functions before delta_apply.
 */
#ifndef ENGINE_CPU_CPU_DELTA_H
#define ENGINE_CPU_CPU_DELTA_H

#include "engine/cpu/cpu_state.h"

/* Set scratch.delta_gates, beta and the decay of each token and value head, from the residual
 * stream. */
void delta_gates(struct cpu_thread *th, size_t layer);

/* The convolution of queries, keys and values, and the norm of queries and keys, in place. Saves
 * the last inputs in the new state. */
void delta_convolve(struct cpu_thread *th, size_t layer);

/* Run all tokens through the states, and write the new states; scratch.attn = the normed and then
 * gated results, complete after the next barrier. */
void delta_apply(struct cpu_thread *th, size_t layer);

/* Bytes of states that a pass reads and writes. */
uint64_t delta_bytes(const struct pass *pass);
/* Multiply-adds of a pass with the states: three per element of the matrices and token. */
uint64_t delta_macs(const struct pass *pass);

#endif
