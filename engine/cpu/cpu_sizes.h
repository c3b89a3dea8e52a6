/*
 * Sizes that follow from the model and the configuration, and the scratch memory of a pass.
 */
#ifndef ENGINE_CPU_CPU_SIZES_H
#define ENGINE_CPU_CPU_SIZES_H

#include "engine/cpu/cpu_state.h"

/* Fill in *s; after an error it is undefined. BN_EUNSUPPORTED: a width or the vocabulary is too
 * large, rows are not whole blocks of their type, or heads are too large for a KV cache of type
 * Q8. */
bool cpu_sizes_shape(struct cpu_shape *s, const struct model *m, const struct backend_config *cfg,
                     size_t n_threads, struct bn_error *err);

/* The plan operation of the backend. BN_EUNSUPPORTED: as above, a size overflows, or the model
 * would be many times larger in memory than in the file. BN_EARG: more than MAX_THREADS threads. */
bool cpu_sizes_plan(const struct model *m, const struct backend_config *cfg,
                    struct backend_plan *plan, struct bn_error *err);

/* Allocate b->scratch, all zeros, for b->shape, b->n_ubatch and b->n_threads, and set pass and
 * index of its threads. The caller closes scratch.map. BN_ENOMEM. */
bool cpu_scratch_open(struct backend *b, struct bn_error *err);

#endif
