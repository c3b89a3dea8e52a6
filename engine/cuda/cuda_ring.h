/*
 * Rings: the keys and values of window layers, of which only the last positions are kept. Sizes and
 * the format of saved states are those of the CPU backend with F16 keys and values
 * (engine/cpu/cpu_ring.h), so either backend can load a state of the other. Private to engine/cuda.
 */
#ifndef ENGINE_CUDA_CUDA_RING_H
#define ENGINE_CUDA_CUDA_RING_H

#include "engine/cuda/cuda_state.h"

/* Sets has_ring and kv_index of all layers that have keys and values. */
void cuda_kv_number(struct backend *b);
/* Position blocks in the ring of a sequence of n_ctx positions; 0 without rings. */
size_t cuda_ring_blocks(const struct backend *b, size_t n_ctx);
/* Records that positions up to n_end - 1 will be written, which overwrites the oldest ones. Call it
 * before a pass: its writes happen even if the pass fails. Does nothing without rings. */
void cuda_ring_extend(struct seq *s, size_t n_end);
/* Returns n_keep if the sequence is not longer than n_keep, if the ring holds all positions of the
 * window before position n_keep, or if there are no rings. Otherwise returns 0. */
size_t cuda_ring_reachable(const struct seq *s, size_t n_keep);
/* Save: copies the window before the length of s to a saved state, and sets the bytes of other
 * positions to 0. Load: copies the window before `length` from a saved state; the ring then holds
 * no earlier positions. `to` and `from` point to the part of the state after the recurrent state.
 * Without rings nothing is copied. BN_EDEVICE: a driver call failed. */
bool cuda_ring_save(const struct seq *s, void *to, struct bn_error *err);
bool cuda_ring_load(struct seq *s, size_t length, const void *from, struct bn_error *err);

#endif
