/*
 * Finds and checks the tensors of a model. Private to engine/model.
 */
#ifndef ENGINE_MODEL_WEIGHTS_H
#define ENGINE_MODEL_WEIGHTS_H

#include "engine/model/model.h"

/* Fill embd, head, norms, layers, n_params and ternary_type. gguf, arch and hp must be set and the
 * layers allocated. Fails like model_open. */
bool weights_find(struct model *m, const struct model_config *cfg, struct bn_error *err);

#endif
