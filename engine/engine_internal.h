/*
 * The members of bn_model, for engine.c and session*.c, and functions of engine.c that
 * bitnet-inspect and the tests also call. Not part of the public interface.
 */
#ifndef ENGINE_ENGINE_INTERNAL_H
#define ENGINE_ENGINE_INTERNAL_H

#include "engine/backend/backend.h"
#include "engine/engine.h"

struct bn_model {
    struct model *model;
    const struct backend_ops *ops;
    struct backend *backend;
    struct bn_model_info info;
    /* (n_ubatch) scratch memory of bn_batch_eval. It is allocated when the model opens, so that no
     * batch fails for lack of memory. */
    struct eval_item *batch;
    uint64_t bytes_read; /* see bn_model_bytes_read */
    uint64_t kv_hash;    /* of what determines a KV cache: see kv_hash in engine.c */
};

/* The backend configuration of a model configuration. The caller fills in file_mapped, log, trace
 * and trace_ud; backend_choose sets the index of the device. */
struct backend_config engine_backend_config(const struct bn_model_config *cfg);

/* How many sequences of n_ctx tokens to decode together: 1 to 16. free_bytes is the free memory of
 * the device, of which the sequences may use half; SIZE_MAX if unknown, which counts as enough for
 * 16. The next two parameters are those of struct bn_model_info. */
size_t engine_batch_width(size_t free_bytes, size_t kv_bytes_per_token, size_t seq_fixed_bytes,
                          size_t n_ctx);

/* The context of a session that requests none: as much of n_ctx_train as fits into half of the free
 * memory, rounded down to a multiple of 256 if it is less, but at least 512 tokens, or n_ctx_train
 * if that is less than 512. free_bytes is SIZE_MAX if unknown; then n_ctx_train. */
size_t engine_default_ctx(size_t free_bytes, size_t kv_bytes_per_token, size_t seq_fixed_bytes,
                          size_t n_ctx_train);

#endif
