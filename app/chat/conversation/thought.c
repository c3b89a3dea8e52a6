/*
 * A state machine with the states of struct thought_splitter. Text is added to `held`; each state
 * emits or drops the beginning of it, until more text is needed. In THOUGHT_OVER text passes
 * through.
 */
#define _GNU_SOURCE /* memmem */
#include "app/chat/conversation/thought.h"

#include <string.h>

static const struct bn_str open_marker = {"<think>", 7};
static const struct bn_str close_marker = {"</think>", 8};

void thought_init(struct thought_splitter *t, enum thought_mode mode)
{
    thought_finish(t);
    t->state = mode == THOUGHT_NONE      ? THOUGHT_OVER
               : mode == THOUGHT_RUNNING ? THOUGHT_INSIDE
                                         : THOUGHT_START;
}

void thought_finish(struct thought_splitter *t)
{
    strbuf_finish(&t->held);
    *t = (struct thought_splitter){0};
}

enum thought_mode thought_mode_now(const struct thought_splitter *t)
{
    return t->state == THOUGHT_START    ? THOUGHT_MAYBE
           : t->state == THOUGHT_INSIDE ? THOUGHT_RUNNING
                                        : THOUGHT_NONE;
}

static size_t count_blanks(struct bn_str s)
{
    size_t n = 0;
    while (n < s.n_bytes && (s.ptr[n] == '\n' || s.ptr[n] == ' '))
        n++;
    return n;
}

static void emit_held(struct thought_splitter *t, size_t n_bytes, enum answer_part part,
                      thought_fn emit, void *ud)
{
    if (n_bytes > 0)
        emit(ud, part, (struct bn_str){t->held.ptr, n_bytes});
    strbuf_drop(&t->held, n_bytes);
}

/* Look for <think>, which blanks may precede. True: the state has changed. */
static bool at_start(struct thought_splitter *t)
{
    const size_t n_blank = count_blanks(strbuf_str(&t->held));
    const struct bn_str rest = {strbuf_text(&t->held) + n_blank, t->held.n_bytes - n_blank};
    if (bn_str_starts(rest, open_marker)) {
        strbuf_drop(&t->held, n_blank + open_marker.n_bytes);
        t->state = THOUGHT_INSIDE;
        return true;
    }
    if (bn_str_starts(open_marker, rest)) /* may become <think>, or is empty */
        return false;
    t->state = THOUGHT_OVER;
    return true;
}

/* Emit the text before </think>, or before what may become </think>. True: the state has changed.
 */
static bool inside(struct thought_splitter *t, thought_fn emit, void *ud)
{
    const struct bn_str held = strbuf_str(&t->held);
    for (size_t i = 0; i < held.n_bytes; i++) {
        const struct bn_str rest = {held.ptr + i, held.n_bytes - i};
        if (bn_str_starts(rest, close_marker)) {
            emit_held(t, i, PART_THOUGHT, emit, ud);
            strbuf_drop(&t->held, close_marker.n_bytes);
            t->state = THOUGHT_GAP;
            return true;
        }
        if (bn_str_starts(close_marker, rest)) {
            emit_held(t, i, PART_THOUGHT, emit, ud);
            return false;
        }
    }
    emit_held(t, held.n_bytes, PART_THOUGHT, emit, ud);
    return false;
}

/* Drop blanks. True: the state has changed. */
static bool in_gap(struct thought_splitter *t)
{
    strbuf_drop(&t->held, count_blanks(strbuf_str(&t->held)));
    if (t->held.n_bytes == 0)
        return false;
    t->state = THOUGHT_OVER;
    return true;
}

void thought_feed(struct thought_splitter *t, struct bn_str text, thought_fn emit, void *ud)
{
    if (t->state == THOUGHT_OVER && t->held.n_bytes == 0) { /* the usual case */
        if (text.n_bytes > 0)
            emit(ud, PART_ANSWER, text);
        return;
    }
    strbuf_add_str(&t->held, text);
    for (bool more = true; more && t->held.n_bytes > 0;) {
        switch (t->state) {
        case THOUGHT_START:
            more = at_start(t);
            break;
        case THOUGHT_INSIDE:
            more = inside(t, emit, ud);
            break;
        case THOUGHT_GAP:
            more = in_gap(t);
            break;
        case THOUGHT_OVER:
            emit_held(t, t->held.n_bytes, PART_ANSWER, emit, ud);
            more = false;
            break;
        }
    }
}

void thought_end(struct thought_splitter *t, thought_fn emit, void *ud)
{
    const enum answer_part part = t->state == THOUGHT_INSIDE ? PART_THOUGHT : PART_ANSWER;
    emit_held(t, t->held.n_bytes, part, emit, ud);
    thought_finish(t);
}

struct split {
    struct strbuf *thought, *answer;
};

static void add_split(void *ud, enum answer_part part, struct bn_str text)
{
    const struct split *s = ud;
    strbuf_add_str(part == PART_THOUGHT ? s->thought : s->answer, text);
}

/* NULL: </think> is not in the text. */
static const char *find_end(struct bn_str text)
{
    return memmem(text.ptr, text.n_bytes, close_marker.ptr, close_marker.n_bytes);
}

bool thought_has_end(struct bn_str text)
{
    return find_end(text) != NULL;
}

/* Whether the text begins inside of a thought: </think> ends a line, and <think> does not come
 * before it. Elsewhere </think> may be ordinary text, as in an answer about these markers. */
static bool starts_inside(struct bn_str text)
{
    const char *close = find_end(text);
    if (!close)
        return false;
    const size_t at = (size_t)(close - text.ptr), after = at + close_marker.n_bytes;
    return (after == text.n_bytes || text.ptr[after] == '\n') &&
           !memmem(text.ptr, at, open_marker.ptr, open_marker.n_bytes);
}

void thought_split(struct bn_str text, enum thought_mode mode, struct strbuf *thought,
                   struct strbuf *answer)
{
    struct split split = {thought, answer};
    struct thought_splitter t = {0};
    thought_init(&t, mode == THOUGHT_MAYBE && starts_inside(text) ? THOUGHT_RUNNING : mode);
    thought_feed(&t, text, add_split, &split);
    thought_end(&t, add_split, &split);
}
