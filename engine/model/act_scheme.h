/*
 * Chooses how the inputs of ternary layers are quantised. The option --activations decides. If it
 * is `auto`, the training of the architecture decides; if that is unknown, the choice depends on
 * whether the weights have one scale per tensor.
 */
#ifndef ENGINE_MODEL_ACT_SCHEME_H
#define ENGINE_MODEL_ACT_SCHEME_H

#include "engine/model/model.h"

/* Set m->act_scheme, and m->act_reason for display. Call it after weights_find, which sets
 * m->finest. */
void act_scheme_choose(struct model *m, enum bn_activations requested);

/* The scheme in words, for example "int8 per token". Static text. */
const char *act_scheme_name(enum act_scheme scheme);

#endif
