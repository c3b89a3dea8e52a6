/*
 * Reads the numbers of a model from its metadata. Private to engine/model.
 */
#ifndef ENGINE_MODEL_HPARAMS_H
#define ENGINE_MODEL_HPARAMS_H

#include "engine/model/model.h"

/* BN_EFORMAT: a required key is missing, of the wrong kind or out of range; the message names it.
 * BN_EUNSUPPORTED: a different graph (experts, YaRN, unequal layers, unknown activation). */
bool hparams_read(const struct gguf *g, const struct arch *arch, const struct model_config *cfg,
                  struct hparams *out, struct bn_error *err);

#endif
