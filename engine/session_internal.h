/*
 * The members of bn_session, for the files session*.c. Private to them.
 */
#ifndef ENGINE_SESSION_INTERNAL_H
#define ENGINE_SESSION_INTERNAL_H

#include "engine/engine_internal.h"
#include "engine/session_states.h"

struct bn_session {
    struct bn_model *model;
    struct seq *seq;
    size_t n_ctx;
    struct mem_map map; /* memory of ids; the system provides a page at the first write to it */
    int32_t *ids;       /* (n_ctx), the first n_ids are in the KV cache; memory of `map` */
    size_t n_ids;
    struct states states; /* for returns to earlier lengths; empty if the model needs none */
};

/* BN_EARG: an id is not in the vocabulary. `label` says in the message which kind of id it is. */
bool session_check_ids(const struct bn_model *model, const int32_t *ids, size_t n_ids,
                       const char *label, struct bn_error *err);

#endif
