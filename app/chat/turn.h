/*
 * One turn: what was asked for, how far it is, what came of it. A chat has one at a time, a batch
 * one a line.
 *
 * Texts and lists are owned and freed by turn_finish.
 */
#ifndef APP_TURN_H
#define APP_TURN_H

#include "app/chat/answer/answer_run.h"
#include "app/chat/conversation/chat_prompt.h"
#include "app/common/strbuf.h"
#include "app/options/options.h"

/* A turn as it runs and after it: the numbers behind status row, stats line and JSON. */
struct turn {
    enum prompt_mode mode;
    enum finish finish;            /* FINISH_NONE while it runs */
    struct sampler_params sampler; /* biases not included */
    size_t max_tokens;
    struct answer_result result; /* whole once it has ended */
    size_t n_prompt;
    size_t n_read, n_to_read; /* progress through the prompt */
    size_t n_tokens;          /* of the answer so far, an earlier part not counted */
    size_t n_dropped;         /* exchanges that no longer fit, dropped by this turn */
    size_t n_dropped_tokens;
    bool is_stopping; /* asked to stop, and by whom does not matter */
    double started;   /* clock_seconds */
    double begun_reading;
    struct strbuf text;    /* the answer's text so far, an earlier part included */
    struct strbuf shown;   /* without thought */
    size_t n_shown_before; /* bytes of it that an earlier turn gave */
    struct strbuf thought;
    struct token_list ids;      /* like text */
    struct generator_alt *alts; /* (n_alt_tokens, n_alts) */
    size_t n_alts, n_alt_tokens, cap_alts;
};

void turn_finish(struct turn *turn); /* all zero is fine */

/* Sampler (without biases) and length as the options say; without --seed a seed is drawn. */
void turn_settings(struct turn *turn, const struct options *o);

/* Tokens kept free for the answer: a turn that could say nothing is not begun. */
size_t turn_reserve(const struct turn *turn, size_t n_ctx);

/* Alternatives of one more token. Without memory the table is short, the answer is not. */
void turn_keep_alts(struct turn *turn, const struct generator_alt *alts, size_t n_alts);

#endif
