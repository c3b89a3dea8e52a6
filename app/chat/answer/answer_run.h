/*
 * Generates one answer: evaluates the prompt, chooses tokens, turns them into text.
 *
 * answer_run runs on the worker's thread. It passes tokens and text to a sink, and returns the
 * numbers in struct answer_result. --batch has its own loop: it uses struct answer_state and fills
 * the result itself. An end token (tokenizer_is_eog) is not part of the answer. An id beyond the
 * vocabulary counts as an end token.
 */
#ifndef APP_ANSWER_RUN_H
#define APP_ANSWER_RUN_H

#include "app/chat/answer/generator.h"
#include "app/chat/answer/think_watch.h"
#include "app/chat/conversation/transcript.h"
#include "app/common/timing/gap_times.h"
#include "tokenizer/tokenizer.h"

/* An answer with the same token this many times in a row has degenerated and is ended. The number
 * is far above the repetitions in ordinary text, such as a line of dashes. */
#define ANSWER_DEGENERATE 200

/* The text of an answer that is being generated, and when it ends. */
struct answer_state {
    const struct tokenizer *tokenizer; /* the caller sets this field and the next two */
    size_t max_tokens;                 /* 0: the rest of the context */
    size_t n_ctx;
    struct token_list ids;     /* prompt and answer; the caller adds the prompt */
    struct detok *detok;       /* opened by the caller */
    struct think_watch think;  /* initialised by the caller */
    size_t n_tokens;           /* of the answer */
    size_t n_same;             /* how many times in a row the last token occurs; 0 without tokens */
    enum finish_reason finish; /* FINISH_NONE until the answer ends */
};
void answer_state_finish(struct answer_state *s); /* an all-zero state is fine */
/* Append the next token: the choice of the model, or a token that closes a thought. *text is the
 * new text to show, valid until the next call. An end token is not appended and only sets `finish`
 * to FINISH_STOP. BN_ENOMEM: the caller must end the answer, because the token may be in `ids`
 * already. */
bool answer_state_add(struct answer_state *s, int32_t id, struct bn_str *text,
                      struct bn_error *err);

struct answer_job {
    const int32_t *prompt; /* (n_prompt), at least one id */
    size_t n_prompt;
    size_t max_tokens; /* 0: the rest of the context */
    size_t n_alts;     /* alternatives to report with each token, at most GENERATOR_MAX_ALTS */
    bool at_start;     /* false: the answer continues an earlier part */
    struct sampler_params sampler;
    enum spec_mode spec;
    const char *const *stops; /* (n_stops) */
    size_t n_stops;
    const char *snapshot; /* file that the worker loads before answer_run, which ignores this
                             field; NULL for none */
    struct think_limit think;
    size_t n_stable; /* for bn_control.n_stable: ids of the prompt that the next prompt also has */
};

struct answer_token {
    int32_t id;         /* TOKEN_NONE: text that the detokeniser held back until the end */
    struct bn_str text; /* new text to show, may be empty; valid during the call */
    const struct generator_alt *alts; /* (n_alts) best first, then the chosen token; may be empty */
    size_t n_alts;                    /* 0, or one more than answer_job.n_alts */
};

/* The progress of prefill. Times are in run_clock_seconds. */
struct answer_prefill {
    size_t n_total;      /* tokens of the prompt that must be evaluated */
    double begun;        /* when the evaluation began */
    size_t n_evaluated;  /* tokens of the complete micro-batches: they are in the KV cache */
    double evaluated_at; /* when the last of these micro-batches ended; at first `begun` */
    size_t n_done;       /* n_evaluated, and a share of the running micro-batch: see bn_progress */
    double done_at;      /* when n_done was reported */
};

struct answer_sink {
    /* Called at the start, after each micro-batch, and at most ten times per second within them. */
    void (*prefill)(void *ud, const struct answer_prefill *prefill);
    /* False: stop the answer. One more call may follow, with the text that was held back. */
    bool (*token)(void *ud, const struct answer_token *token);
    void *ud;
};

/* --batch leaves n_held, n_drafted, n_accepted and decode_bytes 0. */
struct answer_result {
    enum finish_reason finish;
    size_t n_prompt;
    size_t n_reused;              /* tokens of the prompt that were taken from the KV cache */
    size_t n_evaluated;           /* tokens of the prompt that were evaluated. If prefill was
                                     interrupted, the sum with n_reused is less than n_prompt */
    size_t n_reevaluated;         /* part of n_evaluated: bn_sync_stats.n_reevaluated; 0 if prefill
                                     was interrupted */
    struct bn_state_stats states; /* saved states after the answer; with --batch after the prompt */
    size_t n_held;                /* tokens in the KV cache before the prompt was evaluated */
    size_t n_tokens;              /* of the answer */
    size_t n_first;               /* tokens chosen without an evaluation after that of the prompt:
                                     usually 1, more with speculative decoding */
    size_t n_thought;             /* part of n_tokens: in a thought, without its markers */
    bool is_thought_cut;          /* the thought was closed because it reached its budget */
    size_t n_drafted;             /* tokens proposed by speculative decoding */
    size_t n_accepted;            /* those of them that were accepted */
    /* seconds; the start is that of answer_run, so it is after the loading of a snapshot. With
     * --batch it is the start of prefill. */
    double first_token_s; /* from the start to the choice of the first token; 0: no token */
    double prefill_s;     /* from the start to the end of prefill; also if n_tokens is 0. To the end
                              of its last micro-batch if it was interrupted */
    double decode_s;      /* from the first token to the last */
    /* Of the times from one token of the answer to the next, as they reach the sink: tokens of an
     * accepted draft follow each other at once. All 0: fewer than two tokens. */
    struct gap_percentiles gaps;
    uint64_t decode_bytes; /* read from memory during decode_s, as generator_bytes_read counts */
};

/* The tokens that were chosen during decode_s, so without the first ones. */
size_t answer_n_decoded(const struct answer_result *r);
/* Tokens per second; 0 for fewer than two tokens: one time alone varies too much. Every rate of an
 * answer is this one, except the live rate of the status row. */
double answer_rate(size_t n_tokens, double seconds);
double answer_prefill_rate(const struct answer_result *r);
double answer_decode_rate(const struct answer_result *r);
/* Bytes read from memory per token of answer_n_decoded; 0 for fewer than two of them. */
double answer_decode_bytes(const struct answer_result *r);

/* Run the job. An interrupted answer is a result, not an error. Errors of generator_set, detok_open
 * and generator_step; BN_ENOMEM. The sink may have received tokens before an error; *result is
 * written only on success. */
bool answer_run(struct generator *g, const struct tokenizer *tokenizer,
                const struct answer_job *job, const struct answer_sink *sink,
                struct bn_cancel *cancel, struct answer_result *result, struct bn_error *err);

#endif
