/*
 * The sense check: does a model predict a short English text better than the frequencies of its
 * tokens do?
 *
 * The text names six days of the week. Let S be its tokens without the first one, and D the
 * distinct tokens of S. For each token of S the model's distribution is limited to D, that is, a
 * softmax over the logits of D. The loss is the mean of -log(probability) over S. The bound is the
 * same mean for the frequencies of the tokens in S, which is their entropy. No fixed distribution
 * over D has a smaller loss than the bound (Gibbs' inequality), so a loss above the bound shows
 * that the context is of no use to the model. The loss of trained models is about a tenth of the
 * bound. Models whose weights are badly damaged or are read in a wrong order have a loss above it.
 *
 * The limit to D makes the measure independent of the size of the vocabulary. Tokens that a chat
 * model expects instead of a list, for example the end of the text, do not count. Only a few rows
 * of the output head are needed.
 */
#ifndef APP_SENSE_CHECK_H
#define APP_SENSE_CHECK_H

#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

/* The most tokens of the text. It has 11 in most vocabularies of English, 17 in that of Llama 2. If
 * it has more than 20, the vocabulary cuts its words into letters or arbitrary pieces, and is not
 * one of English. */
#define SENSE_TEXT_TOKENS 20
#define SENSE_IDS (SENSE_TEXT_TOKENS + 1) /* with a bos */

struct sense_text {
    int32_t ids[SENSE_IDS]; /* (n_ids) */
    size_t n_ids;           /* 0 if the model cannot be judged */
    size_t first;           /* index of the first id that is scored, at least 1 if n_ids > 0 */
    const char *why;        /* why the model cannot be judged, a clause, static; NULL if it can */
};
/* Encode the text. The model cannot be judged if the vocabulary is not one of English, or if the
 * file lists its languages and English is not among them; then `out->why` is set and the function
 * returns true. Errors of tokenizer_encode. */
bool sense_text_make(const struct bn_file *file, const struct tokenizer *t, struct sense_text *out,
                     struct bn_error *err);

struct sense_result {
    const char *why;  /* as in struct sense_text; NULL if the model was judged */
    double loss;      /* nats per token; 0 like the next two fields if the model was not judged */
    double bound;     /* entropy of the scored tokens, in nats */
    bool is_nonsense; /* the loss is above the bound, or not a number */
};
/* Compute the result of a text with which the model can be judged. rows (n_ids - first): row i has
 * the candidates for ids[first + i]. Each row has all ids from ids[first] on, in any order. */
void sense_measure(const struct sense_text *text, const struct head_row *rows,
                   struct sense_result *out);

/* Encode the text, evaluate it in a new session, and measure. Takes as long as a prompt of about 11
 * tokens, and needs memory for a second session, of SENSE_IDS tokens. Other sessions do not change.
 * A model that cannot be judged is no error; out->why says so. cancel may be NULL. Errors of
 * sense_text_make, bn_session_open and bn_session_eval. */
bool sense_check(struct bn_model *model, const struct bn_file *file, const struct tokenizer *t,
                 struct bn_cancel *cancel, struct sense_result *out, struct bn_error *err);

#endif
