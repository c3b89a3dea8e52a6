/*
 * Counts the tokens of a thought while an answer is generated, and closes a thought that reaches
 * its budget: the tokens that close it replace the choices of the model.
 *
 * Used by the thread that generates. A watch receives the bytes of each token. The text on the
 * screen is split by another struct thought_splitter, because the detokeniser may hold text back.
 */
#ifndef APP_THINK_WATCH_H
#define APP_THINK_WATCH_H

#include "app/chat/conversation/thought.h"

#include <stdint.h>

#define THINK_NO_BUDGET SIZE_MAX

struct think_limit {
    enum thought_mode mode; /* at the beginning of the text to generate */
    size_t n_before;        /* after /continue in a thought: tokens of the earlier part; else 0 */
    size_t n_budget;        /* most tokens of a thought, or THINK_NO_BUDGET */
    const int32_t *close;   /* (n_close) tokens that close a thought; owned by the caller */
    size_t n_close;
};

struct think_watch {
    struct think_limit limit;
    struct thought_splitter thought; /* its state tells whether the answer is inside a thought */
    char last[4]; /* (n_last) last bytes: enough to detect an incomplete UTF-8 character */
    size_t n_last;
    size_t n_thought; /* tokens of the thought so far, without n_before and without the markers */
    size_t n_pending; /* last tokens, which count only if they are not part of </think> */
    size_t n_closed;  /* tokens of limit.close that were added */
    bool is_cut;      /* the budget was reached: limit.close follows; stays set */
};

/* The limit is copied, but not the ids in it. */
void think_watch_init(struct think_watch *w, const struct think_limit *limit);
void think_watch_finish(struct think_watch *w); /* an all-zero watch is fine */

/* Call this for each token of the answer with its bytes, in order, also for those that
 * think_watch_next returned. */
void think_watch_add(struct think_watch *w, struct bn_str bytes);

/* True: the thought must be closed now, and *id is the next token of the answer, whatever the model
 * chooses. If the budget ends in the middle of a character or of what may become </think>, the
 * watch waits for the end of this text, but at most THINK_WAIT tokens. Then it closes the thought,
 * unless the model has completed </think>. Always false if limit.n_close is 0. */
#define THINK_WAIT 8
bool think_watch_next(struct think_watch *w, int32_t *id);

#endif
