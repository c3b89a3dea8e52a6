/*
 * Evaluates token ids, and passes every row of logits to a callback or sums the losses of the ids.
 */
#ifndef APP_LOGIT_ROWS_H
#define APP_LOGIT_ROWS_H

#include "engine/engine.h"

struct logit_rows {
    /* Called for each position `pos` of the evaluated ids in the session, in order, with the logits
     * (n_vocab) of the id at pos + 1, which are valid during the call. Returning false stops the
     * evaluation with `err`. */
    bool (*row)(void *ud, size_t pos, const float *logits, struct bn_error *err);
    void *ud;
    struct bn_progress progress; /* of the ids of one call, reported after some of them */
};

/* Append ids to a session of `model`. With n_ids 0 it does nothing. BN_ENOMEM, errors of
 * bn_session_eval and of the callback. After an error a part of the ids may be in the session. */
bool logit_rows_eval(const struct bn_model *model, struct bn_session *session, const int32_t *ids,
                     size_t n_ids, const struct logit_rows *rows, struct bn_error *err);

/* The loss of an id is -log of its probability, in nats. */
struct loss_sums {
    double sum, sum_squares; /* of the losses, and of their squares */
    size_t n;                /* number of losses */
};
/* Evaluate all ids but the last in an empty session of `model`, and add the losses of all ids but
 * the first to *sums. n_ids is at least 1. `progress` is reported for the evaluated ids. BN_ENOMEM
 * and errors of bn_session_eval; after an error *sums may include some of the losses. */
bool logit_rows_add_losses(const struct bn_model *model, struct bn_session *session,
                           const int32_t *ids, size_t n_ids, struct loss_sums *sums,
                           struct bn_progress progress, struct bn_error *err);

#endif
