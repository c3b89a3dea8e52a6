/*
 * The steps of model_open that read the metadata and the tensors. Private to engine/model.
 */
#ifndef ENGINE_MODEL_MODEL_READ_H
#define ENGINE_MODEL_MODEL_READ_H

#include "engine/model/model.h"

/* hparams.c: read the hyperparameters. BN_EFORMAT: a key is missing, of the wrong kind, out of
 * range or in contradiction to another one; the message names it or its value. BN_EUNSUPPORTED: a
 * graph that this program does not compute, such as shared experts, layers of unequal widths, or an
 * unknown activation. */
bool hparams_read(const struct gguf *g, const struct arch *arch, const struct model_config *cfg,
                  struct hparams *out, struct bn_error *err);

/* layer_table.c: set the traits of each layer, in which layers may differ (struct layer_traits).
 * hparams must have been read. BN_EFORMAT: a key is missing, does not have one value for each
 * layer, or has a value out of range. */
bool layer_table_read(const struct gguf *g, const struct arch *arch, const struct hparams *hp,
                      struct layer *layers, struct bn_error *err);

/* weights.c: find all tensors and set the members of the model and its layers that follow from
 * them. gguf, arch, hp and the traits of the layers must be set. Errors as in model_open. */
bool weights_find(struct model *m, const struct model_config *cfg, struct bn_error *err);

/* unknown_tensors.c: check the tensors that weights_find did not use. is_used (n_tensors) is 1 for
 * the tensors that it used. BN_EUNSUPPORTED: a tensor that would change the answers; the message
 * names it. */
bool unknown_tensors_check(const struct model *m, const struct model_config *cfg,
                           const uint8_t *is_used, struct bn_error *err);

#endif
