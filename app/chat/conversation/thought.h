/*
 * Splits the text of an answer into thought and answer at <think> and </think>, while it is
 * generated. Pure functions.
 *
 * For a template without thoughts the mode is THOUGHT_NONE. Text that may be the beginning of a
 * marker is held back until more text decides it.
 */
#ifndef APP_THOUGHT_H
#define APP_THOUGHT_H

#include "app/common/strbuf.h"

enum answer_part { PART_ANSWER, PART_THOUGHT };

struct thought_splitter {
    enum {
        THOUGHT_START,  /* nothing but blanks, newlines and a part of <think> so far */
        THOUGHT_INSIDE, /* after <think>, which may be in the prompt */
        THOUGHT_GAP,    /* after </think>: blanks and newlines are dropped */
        THOUGHT_OVER,   /* in the answer */
    } state;
    struct strbuf held; /* text that was held back */
};

enum thought_mode {
    THOUGHT_NONE,    /* there is no thought, or it is over: everything is answer */
    THOUGHT_MAYBE,   /* an answer that begins with <think> has a thought */
    THOUGHT_RUNNING, /* the prompt ends inside a thought */
};
/* `t` must be all-zero or used before: its memory is freed. */
void thought_init(struct thought_splitter *t, enum thought_mode mode);
void thought_finish(struct thought_splitter *t);
/* The mode with which another struct thought_splitter would continue with the rest of the answer.
 * That one lacks the text that is held back here, and does not drop blanks after </think>. */
enum thought_mode thought_mode_now(const struct thought_splitter *t);

typedef void (*thought_fn)(void *ud, enum answer_part part, struct bn_str text);
/* Add the next text of the answer, and pass each part that is decided to `emit`, without markers
 * and without the blanks and newlines before <think> and after </think>. The text that `emit` gets
 * is valid during its call. If memory runs out, text is lost and counted by strbuf_n_failed. */
void thought_feed(struct thought_splitter *t, struct bn_str text, thought_fn emit, void *ud);
/* Call this at the end of the answer: it emits the text that was held back, and frees memory. *t is
 * all-zero afterwards. */
void thought_end(struct thought_splitter *t, thought_fn emit, void *ud);

/* Append the thought and the answer in the text of a stored answer to `thought` and `answer`. mode:
 * that of prompt_answer_mode. With THOUGHT_MAYBE the text also begins inside its thought if a line
 * ends with </think> and <think> does not come before it: saved chats of earlier versions do not
 * say whether <think> was in the prompt. */
void thought_split(struct bn_str text, enum thought_mode mode, struct strbuf *thought,
                   struct strbuf *answer);

/* Whether </think> is in the text, so that a thought in which the text begins also ends in it. */
bool thought_has_end(struct bn_str text);

#endif
