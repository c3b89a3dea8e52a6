/*
 * One turn: its settings, its progress and its result. The status row, the statistics line and the
 * JSON object are made from it. A chat has one turn at a time, a batch one for each line.
 */
#ifndef APP_TURN_H
#define APP_TURN_H

#include "app/chat/answer/answer_run.h"
#include "app/chat/conversation/prompt_fit.h"
#include "app/common/strbuf.h"
#include "app/options/options.h"

struct turn {
    enum prompt_mode mode;
    enum finish finish;            /* FINISH_NONE while it runs */
    struct sampler_params sampler; /* without biases */
    size_t max_tokens;
    size_t think_budget;         /* most tokens of a thought, or THINK_NO_BUDGET */
    struct answer_result result; /* complete when the turn has ended */
    size_t n_prompt, n_earlier;  /* tokens of the prompt, and of its earlier turns */
    size_t n_read, n_to_read;    /* tokens of the prompt, while it is evaluated */
    size_t n_tokens;             /* tokens of the answer so far; after /continue only new ones */
    size_t n_dropped;            /* older turns that this turn removed from the context */
    size_t n_dropped_tokens;
    size_t n_changed;              /* with n_dropped > 0: tokens of the prompt to evaluate again */
    enum prompt_overflow overflow; /* what happened, or would happen, in a full context */
    bool is_too_long;              /* it failed, because its message alone is too long */
    bool is_stopping;              /* a stop was requested */
    bool lost_token;               /* no memory for a token: the answer is incomplete */
    size_t n_failed_before;        /* strbuf_n_failed at the start */
    double started;                /* clock_seconds */
    double begun_reading;
    struct strbuf text;  /* the answer so far; after /continue with its earlier part */
    struct strbuf shown; /* the same without the thought */
    struct strbuf thought;
    size_t n_shown_before, n_thought_before; /* bytes of them that come from an earlier turn */
    struct token_list ids;                   /* the tokens of `text` */
    struct generator_alt *alts; /* (n_alt_tokens, n_alts); a row ends with the chosen one */
    size_t n_alts, n_alt_tokens, cap_alts;
};

void turn_finish(struct turn *turn); /* frees texts and lists; an all-zero turn is fine */

/* Set the sampler (without biases) and the length from the options. Without --seed, draw a seed. */
void turn_settings(struct turn *turn, const struct options *o);

/* Tokens that were in the KV cache before the turn, but were evaluated again: those of earlier
 * turns behind a change of the prompt (a template drops old thoughts, or the user has changed the
 * conversation), and those behind the nearest saved state. Valid when the prompt is evaluated. */
size_t turn_again(const struct turn *turn);

/* Number of tokens that must be free for the answer before a turn starts. */
size_t turn_reserve(const struct turn *turn, size_t n_ctx);

/* False: memory ran out, so a part of the answer or of what was shown is missing. */
bool turn_is_complete(const struct turn *turn);

/* Store the alternatives of one more token. False: out of memory. */
bool turn_add_alts(struct turn *turn, const struct generator_alt *alts, size_t n_alts);

#endif
