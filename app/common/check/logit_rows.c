/*
 * Evaluates ids in groups that are small enough for a buffer of candidates: see logit_rows.h.
 */
#include "app/common/check/logit_rows.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>

/* Limit for the candidates in memory, but there is space for at least one row. With a vocabulary of
 * 128 256 ids the limit is 65 rows of 1 MB (8 bytes per candidate). */
#define ROWS_MAX_BYTES ((size_t)64 << 20)

struct buffer {
    struct head_row *rows;   /* (n_rows) */
    struct head_cand *cands; /* (n_rows, n_vocab) */
    float *logits;           /* (n_vocab) of one row, for the callback */
    size_t n_vocab;
};

static bool buffer_open(struct buffer *b, size_t n_rows, size_t n_vocab, struct bn_error *err)
{
    size_t n_cands;
    *b = (struct buffer){.n_vocab = n_vocab};
    if (size_mul(&n_cands, n_rows, n_vocab)) {
        b->rows = mem_alloc(n_rows, sizeof(*b->rows));
        b->cands = mem_alloc(n_cands, sizeof(*b->cands));
        b->logits = mem_alloc(n_vocab, sizeof(*b->logits));
    }
    if (!b->rows || !b->cands || !b->logits)
        return bn_fail(err, BN_ENOMEM, "out of memory for %zu rows of %zu logits", n_rows, n_vocab);
    for (size_t i = 0; i < n_rows; i++)
        b->rows[i] = (struct head_row){.cands = b->cands + i * n_vocab, .cap = n_vocab};
    return true;
}

static void buffer_close(struct buffer *b)
{
    mem_free(b->rows);
    mem_free(b->cands);
    mem_free(b->logits);
}

/* Evaluate n_ids ids at once, and pass their rows to the callback. */
static bool eval_group(struct bn_session *session, const int32_t *ids, size_t n_ids,
                       struct buffer *b, const struct logit_rows *rows, struct bn_error *err)
{
    const struct head_request head = {.kind = HEAD_ALL};
    size_t n_before;
    (void)bn_session_ids(session, &n_before); /* only their number is needed */
    if (!bn_session_eval(session, ids, n_ids, &head, b->rows, n_ids, NULL, err))
        return false;
    for (size_t i = 0; i < n_ids; i++) {
        for (size_t k = 0; k < b->n_vocab; k++) /* HEAD_ALL: candidate k has the id k */
            b->logits[k] = b->rows[i].cands[k].logit;
        if (!rows->row(rows->ud, n_before + i, b->logits, err))
            return false;
    }
    return true;
}

bool logit_rows_eval(const struct bn_model *model, struct bn_session *session, const int32_t *ids,
                     size_t n_ids, const struct logit_rows *rows, struct bn_error *err)
{
    const struct bn_model_info *info = bn_model_info(model);
    const size_t n_fit = size_max(ROWS_MAX_BYTES / sizeof(struct head_cand) / info->n_vocab, 1);
    /* The engine evaluates n_ubatch ids in a pass, so a larger group would not be faster. */
    const size_t n_group = size_min(size_min(n_fit, info->n_ubatch), size_max(n_ids, 1));
    struct buffer b;
    bool ok = buffer_open(&b, n_group, info->n_vocab, err);
    for (size_t i = 0; ok && i < n_ids; i += n_group) {
        const size_t n = size_min(n_group, n_ids - i);
        ok = eval_group(session, ids + i, n, &b, rows, err);
        if (ok && rows->progress.report)
            rows->progress.report(rows->progress.ud, i + n, n_ids);
    }
    buffer_close(&b);
    return ok;
}

/* -log of the softmax of the logits at `id`. The largest logit is subtracted first, because exp of
 * a large logit would overflow. */
static double loss_of(const float *logits, size_t n_vocab, int32_t id)
{
    double best = logits[0], sum = 0;
    for (size_t i = 1; i < n_vocab; i++)
        best = logits[i] > best ? logits[i] : best;
    for (size_t i = 0; i < n_vocab; i++)
        sum += exp(logits[i] - best);
    return log(sum) + best - logits[id];
}

struct scorer {
    const int32_t *ids; /* all ids of the text: the one at pos + 1 follows position pos */
    size_t n_vocab;
    struct loss_sums *sums;
};

static bool add_loss(void *ud, size_t pos, const float *logits, struct bn_error *err)
{
    const struct scorer *s = ud;
    (void)err; /* cannot fail */
    const double loss = loss_of(logits, s->n_vocab, s->ids[pos + 1]);
    s->sums->sum += loss;
    s->sums->sum_squares += loss * loss;
    s->sums->n++;
    return true;
}

bool logit_rows_add_losses(const struct bn_model *model, struct bn_session *session,
                           const int32_t *ids, size_t n_ids, struct loss_sums *sums,
                           struct bn_progress progress, struct bn_error *err)
{
    struct scorer s = {ids, bn_model_info(model)->n_vocab, sums};
    const struct logit_rows rows = {add_loss, &s, progress};
    return logit_rows_eval(model, session, ids, n_ids - 1, &rows, err);
}
