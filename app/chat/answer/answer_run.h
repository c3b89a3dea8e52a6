/*
 * One answer from prompt to finish: read the prompt, choose tokens, turn them into text.
 *
 * Runs on the worker's thread and knows nothing of it: what happens is told to a sink. The token
 * that ends an answer is not part of it.
 */
#ifndef APP_ANSWER_RUN_H
#define APP_ANSWER_RUN_H

#include "app/chat/answer/generator.h"
#include "app/chat/conversation/transcript.h"
#include "tokenizer/tokenizer.h"

/* The same token so often in a row is no answer any more. */
#define ANSWER_DEGENERATE 200

/* The text of an answer that is being generated, and when it ends. */
struct answer_state {
    const struct tokenizer *tokenizer; /* set by the caller, like the next two */
    size_t max_tokens;                 /* 0: the rest of the context */
    size_t n_ctx;
    struct token_list ids; /* prompt and answer; the caller puts the prompt there */
    struct detok *detok;   /* opened by the caller */
    size_t n_tokens;       /* of the answer */
    size_t n_same;         /* how often the last token came in a row */
    enum finish finish;    /* FINISH_NONE until the answer ends */
};
void answer_state_finish(struct answer_state *s); /* all zero is fine */
/* Append a token that the model chose. `text` is what may be shown now, valid until the next call.
 * A token that ends the answer sets `finish` and is not appended. BN_ENOMEM. */
bool answer_state_add(struct answer_state *s, int32_t id, struct bn_str *text,
                      struct bn_error *err);

struct answer_job {
    const int32_t *prompt; /* (n_prompt) */
    size_t n_prompt;
    size_t max_tokens; /* 0: the rest of the context */
    size_t n_alts; /* alternatives reported with each token, at most GENERATOR_MAX_ALTS; 0: none */
    bool at_start; /* the answer's text begins here (false: it goes on) */
    struct sampler_params sampler;
    enum spec_mode spec;
    const char *const *stops; /* (n_stops) */
    size_t n_stops;
    const char *snapshot; /* to be taken up before the prompt is read; NULL: none */
};

struct answer_token {
    int32_t id;         /* TOKEN_NONE: text that was held back until the end */
    struct bn_str text; /* what may be shown now; may be empty; valid during the call */
    const struct generator_alt *alts; /* (n_alts) best first, then the chosen one itself; or none */
    size_t n_alts;
};

struct answer_sink {
    void (*reading)(void *ud, size_t n_done,
                    size_t n_total); /* tokens of the prompt, while reading */
    bool (*token)(void *ud, const struct answer_token *token); /* false: nobody listens, stop */
    void *ud;
};

struct answer_result {
    enum finish finish;
    size_t n_prompt;
    size_t n_reused;    /* of the prompt: were in the KV cache */
    size_t n_evaluated; /* of the prompt: were read now */
    size_t n_tokens;    /* of the answer */
    size_t n_drafted;   /* speculated; of these were right and saved a step: */
    size_t n_accepted;
    double first_token_s; /* from the start to the first token; 0 without one */
    double prefill_s;
    double decode_s;       /* from the first token to the last */
    uint64_t decode_bytes; /* read from memory then */
};

/* Rates as they are shown everywhere; 0 where there is too little to say. */
double answer_prefill_rate(const struct answer_result *r);
double answer_decode_rate(const struct answer_result *r);
double answer_decode_bytes(const struct answer_result *r); /* a token */

/* An interrupted answer is a result, not an error. Errors of generator_step; BN_ENOMEM. */
bool answer_run(struct generator *g, const struct tokenizer *tokenizer,
                const struct answer_job *job, const struct answer_sink *sink,
                struct bn_cancel *cancel, struct answer_result *result, struct bn_error *err);

#endif
