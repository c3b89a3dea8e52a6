/*
 * Attention of a pass: rotate and store, then scores and values block by block. Every function is
 * entered by all lanes.
 *
 * The work is (tokens, KV head, blocks); a block's result is a function of its own 64 positions,
 * and blocks are merged in ascending order, so the answer does not depend on who computed what.
 */
#ifndef ENGINE_CPU_CPU_ATTN_H
#define ENGINE_CPU_CPU_ATTN_H

#include "engine/cpu/cpu_state.h"

/* Rotate and scale the queries in scratch.qkv in place; rotate the keys; append keys and values to
 * the sequences' caches. */
void attn_append(struct cpu_thread *th, size_t layer);

/* Attention of all tokens over their sequences, to scratch.attn. Returns when all lanes are done.
 */
void attn_apply(struct cpu_thread *th, size_t layer);

#endif
