/*
 * The budget of a thought: see think_watch.h.
 *
 * Derivation of THINK_WAIT: a character has at most 4 bytes and </think> has 8. A token of text has
 * at least one byte, so what is incomplete when the budget ends is complete, or turns out to be no
 * </think>, within 8 tokens. The limit is needed because another incomplete character or marker can
 * follow directly.
 */
#include "app/chat/answer/think_watch.h"

#include "engine/base/size.h"
#include "engine/base/utf8.h"

#include <string.h>

static void ignore(void *ud, enum answer_part part, struct bn_str text)
{
    (void)ud, (void)part, (void)text; /* only the state matters */
}

void think_watch_init(struct think_watch *w, const struct think_limit *limit)
{
    *w = (struct think_watch){.limit = *limit};
    thought_init(&w->thought, limit->mode);
}

void think_watch_finish(struct think_watch *w)
{
    thought_finish(&w->thought);
    *w = (struct think_watch){0};
}

/* Append bytes to `last`, of which only the newest stay. */
static void keep_last(struct think_watch *w, struct bn_str bytes)
{
    const size_t n_max = sizeof(w->last), n_new = size_min(bytes.n_bytes, n_max);
    const size_t n_old = size_min(w->n_last, n_max - n_new);
    memmove(w->last, w->last + w->n_last - n_old, n_old);
    if (n_new > 0)
        memcpy(w->last + n_old, bytes.ptr + bytes.n_bytes - n_new, n_new);
    w->n_last = n_old + n_new;
}

void think_watch_add(struct think_watch *w, struct bn_str bytes)
{
    const bool was_inside = w->thought.state == THOUGHT_INSIDE;
    if (w->is_cut) {
        w->n_closed = size_min(w->n_closed + 1, w->limit.n_close);
        return;
    }
    if (w->thought.state == THOUGHT_OVER)
        return;
    thought_feed(&w->thought, bytes, ignore, NULL);
    keep_last(w, bytes);
    w->n_pending += was_inside; /* the token with <think> does not count */
    /* `held` has text that may be the beginning of </think>: the next tokens decide whether the
     * pending tokens count. */
    if (w->thought.state == THOUGHT_INSIDE && w->thought.held.n_bytes > 0)
        return;
    if (w->thought.state == THOUGHT_INSIDE)
        w->n_thought += w->n_pending;
    w->n_pending = 0;
}

/* Whether the text that closes a thought may follow: no character and no marker is incomplete. */
static bool may_close(const struct think_watch *w)
{
    return w->thought.held.n_bytes == 0 && utf8_partial_bytes(w->last, w->n_last) == 0;
}

bool think_watch_next(struct think_watch *w, int32_t *id)
{
    const size_t n = w->limit.n_before + w->n_thought + w->n_pending;
    if (!w->is_cut && w->thought.state == THOUGHT_INSIDE && w->limit.n_close > 0 &&
        n >= w->limit.n_budget && (may_close(w) || n - w->limit.n_budget >= THINK_WAIT)) {
        w->is_cut = true;
        w->n_thought += w->n_pending; /* the model did not complete a marker */
    }
    if (!w->is_cut || w->n_closed == w->limit.n_close)
        return false;
    *id = w->limit.close[w->n_closed];
    return true;
}
