/*
 * Evaluates token ids and passes every row of logits to a callback: for a loss, or for writing them
 * to a file.
 */
#ifndef APP_LOGIT_ROWS_H
#define APP_LOGIT_ROWS_H

#include "engine/engine.h"

struct logit_rows {
    /* Receives the logits (n_vocab) that follow the id at position `pos` of the session, in order.
     * False stops the evaluation with `err`. */
    bool (*row)(void *ud, size_t pos, const float *logits, struct bn_error *err);
    void *ud;
};

/* Append ids to a session of `model`. BN_ENOMEM, errors of bn_session_eval and of the callback. */
bool logit_rows_eval(const struct bn_model *model, struct bn_session *session, const int32_t *ids,
                     size_t n_ids, const struct logit_rows *rows, struct bn_error *err);

/* -log of the probability of `id` under logits (n_vocab), in nats. */
double logit_rows_loss(const float *logits, size_t n_vocab, int32_t id);

#endif
