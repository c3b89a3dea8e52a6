/*
 * Splits the text of an answer into thought and answer at <think> and </think>, while it is
 * generated. Pure functions.
 *
 * Used only if the template has thoughts. Text that may be the beginning of a marker is held back
 * until more text decides it.
 */
#ifndef APP_THOUGHT_H
#define APP_THOUGHT_H

#include "app/common/strbuf.h"

enum answer_part { PART_ANSWER, PART_THOUGHT };

struct thought {
    enum { THOUGHT_START, THOUGHT_INSIDE, THOUGHT_GAP, THOUGHT_OVER } state;
    struct strbuf held;
};

enum thought_mode {
    THOUGHT_NONE,    /* the template has no thoughts: everything is answer */
    THOUGHT_MAYBE,   /* an answer that begins with <think> has a thought */
    THOUGHT_RUNNING, /* the prompt ends inside a thought */
};
void thought_init(struct thought *t, enum thought_mode mode);
void thought_finish(struct thought *t);
/* The mode for the rest of the answer. */
enum thought_mode thought_mode_now(const struct thought *t);

typedef void (*thought_fn)(void *ud, enum answer_part part, struct bn_str text);
void thought_feed(struct thought *t, struct bn_str text, thought_fn emit, void *ud);
/* The answer has ended: emit the text that was held back. */
void thought_end(struct thought *t, thought_fn emit, void *ud);

#endif
