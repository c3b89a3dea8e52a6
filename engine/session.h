/*
 * What a session needs of its model. engine.c owns the model and fills this in; session.c sees
 * nothing else of it. Private to the engine.
 */
#ifndef ENGINE_SESSION_H
#define ENGINE_SESSION_H

#include "engine/backend/backend.h"
#include "engine/engine.h"

struct session_host {
    const struct backend_ops *ops;
    struct backend *backend;
    struct eval_item
        *batch; /* (n_ubatch) for the items of a batched eval, which may not allocate */
    size_t n_vocab, n_ubatch, n_ctx_train;
    uint64_t *bytes_read; /* by all evals so far; the model's */
    uint64_t fingerprint; /* of names, types and shapes: what a saved KV cache belongs to */
};

const struct session_host *session_host_of(const struct bn_model *model);

#endif
