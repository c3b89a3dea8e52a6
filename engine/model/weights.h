/*
 * The tensors of a model, found and measured. Private to engine/model.
 */
#ifndef ENGINE_MODEL_WEIGHTS_H
#define ENGINE_MODEL_WEIGHTS_H

#include "engine/model/model.h"

/* Fill embd, head, norms, layers, n_params, ternary_type of a model whose gguf, arch and hp are set
 * and whose layers are allocated. Errors as model_open. */
bool weights_find(struct model *m, const struct model_config *cfg, struct bn_error *err);

#endif
