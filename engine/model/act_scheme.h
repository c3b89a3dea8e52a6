/*
 * The choice of how inputs of ternary layers are quantised: by the option, the architecture, and
 * the scales of the weights.
 */
#ifndef ENGINE_MODEL_ACT_SCHEME_H
#define ENGINE_MODEL_ACT_SCHEME_H

#include "engine/model/model.h"

/* Set act_scheme and act_reason of a model whose weights have been found. */
void act_scheme_choose(struct model *m, enum bn_activations requested);

/* "int8 per token" */
const char *act_scheme_name(enum act_scheme scheme);

#endif
