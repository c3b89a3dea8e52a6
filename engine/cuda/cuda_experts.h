/*
 * The feed-forward part of a layer with a mixture of experts. Private to engine/cuda.
 */
#ifndef ENGINE_CUDA_CUDA_EXPERTS_H
#define ENGINE_CUDA_CUDA_EXPERTS_H

#include "engine/cuda/cuda_state.h"

/* Changes the inputs and outputs of gate_up and down to those of experts. The caller has already
 * set them as for a layer without experts. */
void cuda_experts_connect(struct backend *b, struct cuda_layer *l);
/* Enqueues the feed-forward part of a layer with experts: h = h + the chosen experts' results. */
void cuda_experts_apply(struct backend *b, size_t layer);
/* Bytes of experts' weights that the last pass has read. */
uint64_t cuda_experts_pass_bytes(const struct backend *b);
/* Member expert_counts of backend_ops. */
size_t cuda_expert_counts(const struct backend *b, uint64_t *out, size_t cap);

#endif
