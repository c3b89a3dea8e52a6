/*
 * Gated delta nets in a pass. All threads call the first three functions; each works on its part.
 * Barriers must separate delta_gates and delta_convolve from delta_apply. A token's row in
 * scratch.qkv has the queries, keys and values of all heads, then the output gates z.
 */
#ifndef ENGINE_CPU_CPU_DELTA_H
#define ENGINE_CPU_CPU_DELTA_H

#include "engine/cpu/cpu_state.h"

/* Compute beta and the decay of each token and value head from scratch.h. Every thread may read
 * them after the next barrier. */
void delta_gates(struct cpu_thread *th, size_t layer);

/* The convolution of queries, keys and values, and the norm of queries and keys, in place. Saves
 * the last inputs in the new state. */
void delta_convolve(struct cpu_thread *th, size_t layer);

/* Run all tokens through the states; scratch.attn = the normed and then gated results. */
void delta_apply(struct cpu_thread *th, size_t layer);

/* Bytes of states that a pass reads and writes. */
uint64_t delta_bytes(const struct pass *pass);
/* Multiply-adds of a pass with the states: three per element and token. */
uint64_t delta_macs(const struct pass *pass);

#endif
