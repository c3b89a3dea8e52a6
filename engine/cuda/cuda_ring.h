/*
 * Rings on the device (engine/layout/window_ring.h). The format of saved states is that of the CPU
 * backend with F16 keys and values (engine/cpu/cpu_ring.h), so either backend can load a state of
 * the other. Private to engine/cuda.
 */
#ifndef ENGINE_CUDA_CUDA_RING_H
#define ENGINE_CUDA_CUDA_RING_H

#include "engine/cuda/cuda_state.h"

/* Sets has_ring and kv_index of all layers that have keys and values. */
void cuda_kv_number(struct backend *b);
/* Save: copies the window before the length of s to a saved state, and sets the bytes of other
 * positions to 0. Load: copies the window before `length` from a saved state; the ring then holds
 * no earlier positions. `to` and `from` point to the part of the state after the recurrent state.
 * Without rings nothing is copied. BN_EDEVICE: a driver call failed. */
bool cuda_ring_save(const struct seq *s, void *to, struct bn_error *err);
bool cuda_ring_load(struct seq *s, size_t length, const void *from, struct bn_error *err);

#endif
