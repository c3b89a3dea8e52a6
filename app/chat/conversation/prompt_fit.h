/*
 * Fits a conversation into the context: encodes its prompt, and leaves out older turns if the
 * prompt is too long.
 *
 * A prompt without its oldest turns differs from the KV cache near the beginning, so all tokens
 * after them are evaluated again. For this reason many turns are left out at once. The free space
 * lasts for many turns, each of which evaluates only its own tokens.
 */
#ifndef APP_PROMPT_FIT_H
#define APP_PROMPT_FIT_H

#include "app/chat/conversation/chat_prompt.h"

enum prompt_overflow {
    OVERFLOW_DROP,       /* leave out the oldest turns */
    OVERFLOW_KEEP_FIRST, /* leave out the oldest turns except the first */
    OVERFLOW_STOP,       /* leave out nothing and fail */
};

struct prompt_limits {
    size_t n_ctx;     /* tokens of the context */
    size_t n_reserve; /* tokens that must stay free for the answer, less than n_ctx */
    size_t percent;   /* if turns are left out: the percentage of n_ctx that the prompt should have
                         at most (see prompt_fit) */
    enum prompt_overflow overflow;
};

struct prompt_fitted {
    struct prompt prompt;    /* owned; free with prompt_finish */
    size_t n_dropped;        /* turns that this call left out */
    size_t n_dropped_tokens; /* their tokens */
    size_t n_changed;        /* with n_dropped > 0: tokens of `prompt` after the beginning that it
                                shares with the prompt that was too long */
};

/* The part of the conversation that is in the prompt. The mode is PROMPT_WHOLE. */
struct prompt_window prompt_window_of(const struct transcript_state *s,
                                      enum prompt_overflow overflow);

/* Encode the prompt of the last turn, which must exist. If it does not fit, leave out older turns
 * as limits->overflow says, and update s->n_skipped. The system message and the last turn always
 * stay, and with OVERFLOW_KEEP_FIRST the first turn, so the prompt may have more than `percent` of
 * n_ctx. On failure `s` does not change, and *out is not written. Errors of prompt_encode; BN_EARG:
 * the prompt has no ids; BN_ECONTEXT: the prompt does not fit. *too_long is true after a
 * BN_ECONTEXT if the last turn alone does not fit either, otherwise false. */
bool prompt_fit(const struct prompt_maker *m, struct transcript_state *s, enum prompt_mode mode,
                const struct prompt_limits *limits, struct prompt_fitted *out, bool *too_long,
                struct bn_error *err);

/* Fail with BN_ECONTEXT: `what`, such as "the prompt", has n_ids tokens, and n_reserve must stay
 * free in a context of n_ctx. */
bool prompt_fail_context(const char *what, size_t n_ids, size_t n_reserve, size_t n_ctx,
                         struct bn_error *err);

/* The number of tokens that a new message can have, if all turns are left out that limits->overflow
 * permits. 0: no space, no memory, or the conversation cannot be encoded (sending a message then
 * reports the error). */
size_t prompt_room(const struct prompt_maker *m, const struct transcript_state *s,
                   const struct prompt_limits *limits);

/* Check that the context has space for a message after this system message. BN_ECONTEXT: it has
 * none. True also if the prompt cannot be encoded (sending a message then reports the error). */
bool prompt_check_system(const struct prompt_maker *m, struct bn_str system,
                         const struct prompt_limits *limits, struct bn_error *err);

/* The number of turns that prompt_fit will leave out for the next message, however short it is. 0:
 * the conversation fits, or prompt_fit will fail. */
size_t prompt_next_drop(const struct prompt_maker *m, const struct transcript_state *s,
                        const struct prompt_limits *limits);

#endif
