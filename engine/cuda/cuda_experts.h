/*
 * The feed-forward part of a layer with a mixture of experts. Private to engine/cuda.
 */
#ifndef ENGINE_CUDA_CUDA_EXPERTS_H
#define ENGINE_CUDA_CUDA_EXPERTS_H

#include "engine/cuda/cuda_state.h"

/* Changes gate_up and down, which the caller has set as for a layer without experts: gate_up
 * applies SiLU, down reads scratch.pair_blocks and stores to scratch.expert_y. */
void cuda_experts_connect(struct backend *b, struct cuda_layer *l);
/* Enqueues the feed-forward part of a layer with experts: h = h + the weighted results of the
 * chosen experts. */
void cuda_experts_apply(struct backend *b, size_t layer);
/* Call it after a successful pass: bytes of the weights of the experts that the pass used; 0
 * without experts. In each layer an expert counts once, even if the kernel read its weights again
 * for each of its tokens. */
uint64_t cuda_experts_pass_bytes(const struct backend *b);
/* Member expert_counts of backend_ops. If the device fails, the numbers are 0. */
size_t cuda_expert_counts(const struct backend *b, uint64_t *out, size_t cap);

#endif
