/*
 * One turn: its settings, its progress and its result. The status row, the statistics line and the
 * JSON object are made from it. A chat has one turn at a time; a batch has a turn for each line of
 * its input. Main thread only: the numbers of the worker come with its events.
 */
#ifndef APP_TURN_H
#define APP_TURN_H

#include "app/chat/answer/answer_run.h"
#include "app/chat/conversation/prompt_fit.h"
#include "app/common/strbuf.h"
#include "app/options/options.h"

/* Sums over the passes of a prefill, for a fit of its cost. A pass has n tokens around token m of
 * those to evaluate, and takes t seconds. It is a micro-batch, or several if one of them is much
 * smaller than the others. */
struct prefill_sums {
    size_t n_passes;
    double n, nm, nmm, t, tm, tt; /* of n, n * m, n * m * m, t, t * m and t * t / n */
    double n_largest;             /* most tokens of a pass */
};

struct turn {
    enum prompt_mode mode;
    enum finish_reason finish;     /* FINISH_NONE while it runs; may stay so after an error */
    struct sampler_params sampler; /* without biases */
    size_t max_tokens;             /* of the answer; 0: the rest of the context */
    size_t think_budget;           /* most tokens of a thought, or THINK_NO_BUDGET */
    struct answer_result result;   /* set when the turn has ended without an error */
    size_t n_prompt, n_earlier;    /* tokens of the prompt; n_earlier as in struct prompt */
    size_t n_tokens;               /* tokens of the answer so far; after /continue only new ones */
    size_t n_dropped;              /* older turns that this turn removed from the context */
    size_t n_dropped_tokens;       /* their tokens */
    size_t n_skipped_before;       /* transcript_state.n_skipped before this turn */
    size_t n_turns;                /* turns in the context, this one included */
    size_t n_changed;              /* with n_dropped > 0: as in struct prompt_fitted */
    enum prompt_overflow overflow; /* how this turn handles a full context */
    bool starts_in_thought;        /* the prompt opened a thought */
    bool is_too_long;              /* the turn failed: its message alone does not fit */
    bool is_system_too_long;       /* part of is_too_long: the system message leaves no space */
    bool is_stopping;              /* a stop was requested */
    bool lost_token;               /* no memory for a token or its alternatives: incomplete */
    size_t n_failed_before;        /* strbuf_n_failed at the start; see turn_is_complete */
    struct answer_prefill prefill; /* the last report; zeros before the first one */
    struct prefill_sums prefill_sums;
    struct strbuf text;  /* the answer so far; after /continue with its earlier part */
    struct strbuf shown; /* `text` without the thought and its markers */
    struct strbuf thought;
    size_t n_shown_before, n_thought_before; /* after /continue: bytes of the earlier part */
    struct token_list ids;                   /* the tokens of `text` */
    size_t n_alts;                           /* alternatives requested for each token; 0: none */
    struct generator_alt *alts; /* (n_alt_tokens, n_alts + 1); a row ends with the chosen token */
    size_t n_alt_tokens, cap_alts;
};

void turn_finish(struct turn *turn); /* frees texts and lists; an all-zero turn is fine */

/* Set sampler (without biases), max_tokens and think_budget from the options. If the option seed is
 * not set, draw a seed. */
void turn_settings(struct turn *turn, const struct options *o);

/* Store a report. Reports may be missing: a later one replaces those that were not read. */
void turn_prefilled(struct turn *turn, const struct answer_prefill *report);
/* Estimated seconds until the prompt is evaluated. `now`: run_clock_seconds. 0: it is evaluated,
 * or the time is unknown: in the first half second an estimate would be too rough. */
double turn_seconds_left(const struct turn *turn, double now);

/* Tokens that were in the KV cache before the turn, but were evaluated again: those of earlier
 * turns behind a change of the prompt (a template drops old thoughts, or the user has changed the
 * conversation), or those behind the nearest saved state if they are more. Valid when `result` is
 * set. */
size_t turn_reevaluated(const struct turn *turn);

/* Number of tokens that must be free for the answer before a turn starts: max_tokens, but at most
 * an eighth of the context, so that the conversation can use most of it. Without a limit
 * (max_tokens is 0): an eighth. */
size_t turn_reserve(const struct turn *turn, size_t n_ctx);

/* Whether /continue found that the answer was complete. */
bool turn_added_nothing(const struct turn *turn);

/* False: memory ran out during the turn (in a batch: since the program started), so a part of the
 * answer may be missing in the texts, `ids` or `alts`, or on the screen. */
bool turn_is_complete(const struct turn *turn);

/* Append text that a struct thought_splitter has separated to turn->thought or turn->shown. If
 * memory runs out, turn_is_complete is false afterwards. */
void turn_add_part(struct turn *turn, enum answer_part part, struct bn_str text);

/* Store a copy of the alternatives of one more token. `row` (turn->n_alts + 1) ends with the chosen
 * token. If turn->n_alts is 0, nothing is stored. False: out of memory. */
bool turn_add_alts(struct turn *turn, const struct generator_alt *row);
/* Row i of turn->alts: the alternatives, best first, then the chosen token. */
const struct generator_alt *turn_alts(const struct turn *turn, size_t i);

#endif
