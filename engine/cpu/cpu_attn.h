/*
 * Attention of a pass. All threads call attn_append after a barrier that completes scratch.qkv, and
 * attn_apply after another barrier.
 *
 * A position block gives each token a partial result that depends on no other position block. The
 * partial results of a token are merged in ascending order of the position blocks. So the result
 * does not depend on which thread computes which of them.
 */
#ifndef ENGINE_CPU_CPU_ATTN_H
#define ENGINE_CPU_CPU_ATTN_H

#include "engine/cpu/cpu_state.h"

/* Apply QK norm, RoPE and the query scale to scratch.qkv in place, and append keys and values to
 * the KV caches. If attention has gates, also move those of a KV head behind its queries. */
void attn_append(struct cpu_thread *th, size_t layer);

/* Write the results of attention of all tokens, each over its own sequence, to scratch.attn. Ends
 * with a barrier. */
void attn_apply(struct cpu_thread *th, size_t layer);

/* The position of the oldest key that a token at `pos` attends to. */
size_t attn_oldest_key(const struct backend *b, size_t layer, size_t pos);

/* Bytes of keys, values and their scales that a pass reads: whole position blocks, once per token
 * block. */
uint64_t attn_bytes(const struct pass *pass);

#endif
