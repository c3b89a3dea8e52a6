/*
 * The sense check: see sense_check.h.
 *
 * The text has six words in a fixed order. It is short in tokens, every model of English has seen
 * it often, and a model without knowledge of English cannot predict it by chance.
 */
#include "app/common/check/sense_check.h"

#include <math.h>
#include <string.h>

static const char sense_sentence[] = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday";

/* Whether the text begins with "en" in any case: "en", "EN-us", "english". Bit 0x20 makes an ASCII
 * letter lower-case. */
static bool is_english(struct bn_str language)
{
    return language.n_bytes >= 2 && (language.ptr[0] | 0x20) == 'e' &&
           (language.ptr[1] | 0x20) == 'n';
}

/* Whether the file lists its languages without English. */
static bool excludes_english(const struct bn_file *file)
{
    struct bn_str_walk walk;
    struct bn_str language;
    size_t n;
    if (!bn_file_walk_strs(file, "general.languages", &walk, &n) || n == 0)
        return false;
    while (bn_str_walk_next(&walk, &language))
        if (is_english(language))
            return false;
    return true;
}

/* Whether the ids that are scored, all but the first, are the same. Then there is nothing to
 * predict. */
static bool is_uniform(const struct token_list *ids)
{
    for (size_t i = 2; i < ids->n; i++)
        if (ids->ids[i] != ids->ids[1])
            return false;
    return true;
}

bool sense_text_make(const struct bn_file *file, const struct tokenizer *t, struct sense_text *out,
                     struct bn_error *err)
{
    const struct tokenizer_info *info = tokenizer_info(t);
    const struct segment text = {
        .kind = SEGMENT_MESSAGE, .text = bn_str_of(sense_sentence), .message = SEGMENT_NO_MESSAGE};
    struct token_list ids = {0};
    *out = (struct sense_text){.why = NULL};
    if (excludes_english(file)) {
        out->why = "the file lists its languages, and English is not among them";
        return true;
    }
    if (!tokenizer_encode(t, &text, 1, TOKENIZER_BOS_NEVER, &ids, err)) {
        token_list_finish(&ids);
        return false;
    }
    if (ids.n < 2 || ids.n > SENSE_TEXT_TOKENS || is_uniform(&ids)) {
        out->why = "its vocabulary has no tokens for English words";
    } else {
        if (info->add_bos && info->bos != TOKEN_NONE)
            out->ids[out->n_ids++] = info->bos;
        memcpy(out->ids + out->n_ids, ids.ids, ids.n * sizeof(ids.ids[0]));
        out->first = out->n_ids + 1; /* the first token is not scored: no day precedes it */
        out->n_ids += ids.n;
    }
    token_list_finish(&ids);
    return true;
}

/* How often the text has this id among those that are scored. */
static size_t count_of(const struct sense_text *text, int32_t id)
{
    size_t n = 0;
    for (size_t i = text->first; i < text->n_ids; i++)
        n += text->ids[i] == id;
    return n;
}

/* The distinct ids that are scored. Returns their number. */
static size_t distinct_ids(const struct sense_text *text, int32_t out[SENSE_IDS])
{
    size_t n = 0;
    for (size_t i = text->first; i < text->n_ids; i++) {
        size_t j = 0;
        while (j < n && out[j] != text->ids[i])
            j++;
        if (j == n)
            out[n++] = text->ids[i];
    }
    return n;
}

/* -log of the probability of `id` among the candidates that are scored ids of the text. The largest
 * logit is subtracted first, because exp of a large logit would overflow. */
static double loss_of(const struct sense_text *text, const struct head_row *row, int32_t id)
{
    double best = -INFINITY, sum = 0, own = -INFINITY; /* own: the logit of `id` */
    for (size_t i = 0; i < row->n; i++)
        if (count_of(text, row->cands[i].id) > 0)
            best = fmax(best, (double)row->cands[i].logit);
    for (size_t i = 0; i < row->n; i++) {
        const double logit = (double)row->cands[i].logit;
        if (count_of(text, row->cands[i].id) > 0)
            sum += exp(logit - best);
        if (row->cands[i].id == id)
            own = logit;
    }
    return log(sum) + best - own;
}

void sense_measure(const struct sense_text *text, const struct head_row *rows,
                   struct sense_result *out)
{
    const size_t n = text->n_ids - text->first;
    *out = (struct sense_result){.why = NULL};
    for (size_t i = 0; i < n; i++) {
        const int32_t id = text->ids[text->first + i];
        out->loss += loss_of(text, &rows[i], id) / (double)n;
        out->bound -= log((double)count_of(text, id) / (double)n) / (double)n;
    }
    out->is_nonsense = !(out->loss <= out->bound); /* true also if the loss is NaN */
}

/* Evaluate all ids but the last, because no id follows it. The last n_rows positions of these have
 * the logits for the ids from text->first on. */
static bool evaluate(struct bn_session *session, const struct sense_text *text,
                     const struct bn_control *control, struct sense_result *out,
                     struct bn_error *err)
{
    struct head_cand cands[SENSE_IDS][SENSE_IDS]; /* a row for each scored id */
    struct head_row rows[SENSE_IDS];
    int32_t ids[SENSE_IDS];
    const struct head_request head = {/* k 0: only the logits of `ids` */
                                      .kind = HEAD_TOP,
                                      .k = 0,
                                      .ids = ids,
                                      .n_ids = distinct_ids(text, ids)};
    const size_t n_rows = text->n_ids - text->first;
    for (size_t i = 0; i < n_rows; i++)
        rows[i] = (struct head_row){.cands = cands[i], .cap = SENSE_IDS};
    if (!bn_session_eval(session, text->ids, text->n_ids - 1, &head, rows, n_rows, control, err))
        return false;
    sense_measure(text, rows, out);
    return true;
}

bool sense_check(struct bn_model *model, const struct bn_file *file, const struct tokenizer *t,
                 struct bn_cancel *cancel, struct sense_result *out, struct bn_error *err)
{
    const struct bn_session_config cfg = {.n_ctx = SENSE_IDS};
    const struct bn_control control = {.cancel = cancel};
    struct sense_text text;
    struct bn_session *session;
    if (!sense_text_make(file, t, &text, err))
        return false;
    if (text.why) {
        *out = (struct sense_result){.why = text.why};
        return true;
    }
    if (!bn_session_open(model, &cfg, &session, err))
        return false;
    const bool ok = evaluate(session, &text, &control, out, err);
    bn_session_close(session);
    return ok;
}
