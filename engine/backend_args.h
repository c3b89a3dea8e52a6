/*
 * A model's configuration in the words of a backend: for opening a model, and for planning one.
 */
#ifndef ENGINE_BACKEND_ARGS_H
#define ENGINE_BACKEND_ARGS_H

#include "engine/backend/backend.h"
#include "engine/engine.h"

#define DEFAULT_UBATCH 512

/* All but what is of one file and one run: file_mapped, log and trace. */
static inline struct backend_config backend_args(const struct bn_model_config *cfg)
{
    return (struct backend_config){
        .isa = cfg->isa,
        .n_threads = cfg->n_threads,
        .n_ubatch = cfg->n_ubatch > 0 ? cfg->n_ubatch : DEFAULT_UBATCH,
        .head = cfg->head,
        .kv = cfg->kv,
        .skip = cfg->skip,
        .profile = cfg->profile,
        .pin = cfg->pin,
    };
}

#endif
