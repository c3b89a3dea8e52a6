/*
 * Fits a conversation into the context: see prompt_fit.h.
 *
 * The number of turns to leave out is found by bisection, because each attempt encodes the whole
 * rest of the conversation.
 */
#include "app/chat/conversation/prompt_fit.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

struct prompt_window prompt_window_of(const struct transcript_state *s,
                                      enum prompt_overflow overflow)
{
    const size_t n_first = overflow == OVERFLOW_KEEP_FIRST ? size_min(1, s->n_skipped) : 0;
    return (struct prompt_window){n_first, s->n_skipped, PROMPT_WHOLE};
}

struct fitting {
    const struct prompt_maker *m;
    const struct transcript_state *s;
    const struct prompt_limits *limits;
    enum prompt_mode mode;
};

/* Encode the prompt as if s->n_skipped were n_skipped. BN_EARG: it has no ids. */
static bool encode(const struct fitting *f, size_t n_skipped, struct prompt *out,
                   struct bn_error *err)
{
    struct transcript_state s = *f->s;
    s.n_skipped = n_skipped;
    struct prompt_window w = prompt_window_of(&s, f->limits->overflow);
    w.mode = f->mode;
    if (!prompt_encode(f->m, &s, &w, out, err))
        return false;
    if (out->ids.n > 0)
        return true;
    prompt_finish(out);
    return bn_fail(err, BN_EARG, "the prompt is empty: no tokens");
}

static size_t most_ids(const struct prompt_limits *l)
{
    return l->n_ctx - l->n_reserve;
}

/* Find the prompt with the most turns that has at most n_most ids, provided that fewer turns have
 * fewer ids. It leaves out more than n_skipped turns. If even the fewest turns have more ids (the
 * last one, with OVERFLOW_KEEP_FIRST also the first), the result is the prompt with those. */
static bool find_prompt(const struct fitting *f, size_t n_skipped, size_t n_most, size_t *n_found,
                        struct prompt *out, struct bn_error *err)
{
    /* Numbers of turns left out: with `low` the prompt is too long, `high` is that of `best`. */
    size_t low = n_skipped, high = f->s->n - 1;
    struct prompt best;
    if (!encode(f, high, &best, err))
        return false;
    while (best.ids.n <= n_most && high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        struct prompt p;
        if (!encode(f, middle, &p, err)) {
            prompt_finish(&best);
            return false;
        }
        if (p.ids.n <= n_most) {
            prompt_finish(&best);
            best = p;
            high = middle;
        } else {
            prompt_finish(&p);
            low = middle;
        }
    }
    *n_found = high;
    *out = best;
    return true;
}

/* The number of ids of `after` that follow its common beginning with `before`. */
static size_t changed_ids(const struct prompt *before, const struct prompt *after)
{
    size_t n = 0;
    while (n < before->ids.n && n < after->ids.n && before->ids.ids[n] == after->ids.ids[n])
        n++;
    return after->ids.n - n;
}

bool prompt_fail_context(const char *what, size_t n_ids, size_t n_reserve, size_t n_ctx,
                         struct bn_error *err)
{
    if (n_reserve == 0) /* a context of fewer than 8 tokens */
        return bn_fail(err, BN_ECONTEXT, "%s has %zu tokens, but the context has only %zu", what,
                       n_ids, n_ctx);
    return bn_fail(err, BN_ECONTEXT,
                   "%s has %zu tokens, and %zu are reserved for the answer, but the context has "
                   "only %zu",
                   what, n_ids, n_reserve, n_ctx);
}

static bool fail_context(const struct fitting *f, size_t n_ids, bool last_too_long,
                         struct bn_error *err)
{
    const char *what = last_too_long ? "the prompt"
                       : f->limits->overflow == OVERFLOW_KEEP_FIRST
                           ? "the prompt with the first turn"
                           : "the conversation";
    return prompt_fail_context(what, n_ids, f->limits->n_reserve, f->limits->n_ctx, err);
}

/* The prompt has n_ids ids and no more turns may be left out. Find out whether the last turn fits
 * without the older ones. */
static bool fail_full(const struct fitting *f, size_t n_ids, bool *too_long, struct bn_error *err)
{
    const struct prompt_limits alone = {.overflow = OVERFLOW_DROP}; /* `encode` reads no more */
    const struct fitting last = {f->m, f->s, &alone, f->mode};
    struct prompt p;
    if (!encode(&last, f->s->n - 1, &p, err))
        return false;
    *too_long = p.ids.n > most_ids(f->limits);
    n_ids = *too_long ? p.ids.n : n_ids;
    prompt_finish(&p);
    return fail_context(f, n_ids, *too_long, err);
}

/* Leave out older turns until the prompt has at most limits->percent of the context, and encode it.
 * If that is impossible, fitting into the context is enough. `whole` is the prompt without the
 * *n_skipped turns that were left out so far, and is too long. Updates *n_skipped. */
static bool leave_out(const struct fitting *f, const struct prompt *whole,
                      struct prompt_fitted *out, size_t *n_skipped, bool *too_long,
                      struct bn_error *err)
{
    const struct prompt_limits *l = f->limits;
    const size_t n_before = *n_skipped;
    const size_t n_most = size_min(most_ids(l), l->n_ctx * l->percent / 100);
    struct prompt p;
    if (l->overflow == OVERFLOW_STOP || n_before + 1 >= f->s->n)
        return fail_full(f, whole->ids.n, too_long, err);
    if (!find_prompt(f, n_before, n_most, n_skipped, &p, err))
        return false;
    if (p.ids.n > most_ids(l)) {
        const size_t n_ids = p.ids.n;
        prompt_finish(&p);
        return fail_full(f, n_ids, too_long, err); /* perhaps only because of the first turn */
    }
    /* With OVERFLOW_KEEP_FIRST, n_skipped counts the first turn, but that turn stays. */
    const size_t n_first = l->overflow == OVERFLOW_KEEP_FIRST && n_before == 0;
    *out = (struct prompt_fitted){.prompt = p,
                                  .n_dropped = *n_skipped - n_before - n_first,
                                  .n_dropped_tokens = whole->ids.n - p.ids.n,
                                  .n_changed = changed_ids(whole, &p)};
    return true;
}

bool prompt_fit(const struct prompt_maker *m, struct transcript_state *s, enum prompt_mode mode,
                const struct prompt_limits *limits, struct prompt_fitted *out, bool *too_long,
                struct bn_error *err)
{
    const struct fitting f = {m, s, limits, mode};
    size_t n_skipped = s->n_skipped;
    struct prompt whole;
    *too_long = false;
    if (!encode(&f, n_skipped, &whole, err))
        return false;
    if (whole.ids.n <= most_ids(limits)) {
        *out = (struct prompt_fitted){.prompt = whole};
        return true;
    }
    const bool ok = leave_out(&f, &whole, out, &n_skipped, too_long, err);
    prompt_finish(&whole);
    if (ok)
        s->n_skipped = n_skipped;
    return ok;
}

/* The conversation with an empty message more. Free `items` of *out. */
static bool ask_empty(const struct transcript_state *s, struct exchange *empty,
                      struct transcript_state *out)
{
    *out = (struct transcript_state){.n = s->n + 1, .n_skipped = s->n_skipped, .system = s->system};
    out->items = mem_alloc(out->n, sizeof(struct exchange *));
    if (!out->items)
        return false;
    for (size_t i = 0; i < s->n; i++)
        out->items[i] = s->items[i];
    out->items[s->n] = empty;
    return true;
}

/* The number of ids of the prompt with an empty message more, without the turns that
 * limits->overflow permits to leave out. Errors of prompt_encode. */
static bool count_empty(const struct prompt_maker *m, const struct transcript_state *s,
                        const struct prompt_limits *limits, size_t *out, struct bn_error *err)
{
    struct exchange empty = {0};
    struct transcript_state asked;
    struct prompt p = {0};
    if (!ask_empty(s, &empty, &asked))
        return bn_fail(err, BN_ENOMEM, "out of memory for the prompt");
    if (limits->overflow != OVERFLOW_STOP)
        asked.n_skipped = s->n;
    struct prompt_window w = prompt_window_of(&asked, limits->overflow);
    w.mode = PROMPT_ANSWER;
    const bool ok = prompt_encode(m, &asked, &w, &p, err);
    *out = p.ids.n;
    prompt_finish(&p);
    mem_free(asked.items);
    return ok;
}

size_t prompt_room(const struct prompt_maker *m, const struct transcript_state *s,
                   const struct prompt_limits *limits)
{
    size_t n;
    struct bn_error ignored; /* the result is then 0 */
    if (!count_empty(m, s, limits, &n, &ignored))
        return 0;
    return most_ids(limits) > n ? most_ids(limits) - n : 0;
}

bool prompt_check_system(const struct prompt_maker *m, struct bn_str system,
                         const struct prompt_limits *limits, struct bn_error *err)
{
    const struct transcript_state alone = {.system = system};
    size_t n;
    struct bn_error ignored; /* sending a message reports it */
    return system.n_bytes == 0 || !count_empty(m, &alone, limits, &n, &ignored) ||
           n < most_ids(limits) ||
           prompt_fail_context("the system message with its template", n, limits->n_reserve,
                               limits->n_ctx, err);
}

size_t prompt_next_drop(const struct prompt_maker *m, const struct transcript_state *s,
                        const struct prompt_limits *limits)
{
    struct exchange empty = {0};
    struct transcript_state asked;
    struct prompt_fitted fitted;
    struct bn_error ignored; /* sending a message reports it */
    bool too_long;
    if (!ask_empty(s, &empty, &asked))
        return 0;
    const bool ok = prompt_fit(m, &asked, PROMPT_ANSWER, limits, &fitted, &too_long, &ignored);
    mem_free(asked.items);
    if (!ok)
        return 0;
    prompt_finish(&fitted.prompt);
    return fitted.n_dropped;
}
