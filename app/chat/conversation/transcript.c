/*
 * The conversation with undo and redo: see transcript.h.
 *
 * A state is an array of counted references to turns. A cut stores the state before it. It also
 * stores the number of turns and the serial of the last turn after it. Undo compares these two with
 * the present state: if they are equal, the turns are still as the cut left them.
 */
#include "app/chat/conversation/transcript.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

struct transcript_step {
    struct transcript_state state; /* the state that undo or redo restores */
    enum cut_kind kind; /* CUT_NONE, in the redo list only: a step that restores one exchange */
    /* In the undo list: number of turns and last serial after the cut. Not set in the redo list. */
    size_t after_n, after_serial;
    bool is_edit; /* in the undo list: the first message that the cut removed is in the editor */
};

#define MAX_STEPS 64 /* of undo, and of redo; older steps are dropped, to bound the memory */

static const char *const reason_names[FINISH_N] = {
    [FINISH_NONE] = "none",
    [FINISH_STOP] = "stop",
    [FINISH_LENGTH] = "length",
    [FINISH_STOP_STRING] = "stop_string",
    [FINISH_INTERRUPTED] = "interrupted",
    [FINISH_CONTEXT] = "context",
    [FINISH_DEGENERATE] = "degenerate",
};

const char *finish_reason_name(enum finish_reason f)
{
    return reason_names[f];
}

enum finish_reason finish_reason_of(const char *name)
{
    for (size_t i = 0; i < FINISH_N; i++)
        if (strcmp(reason_names[i], name) == 0)
            return (enum finish_reason)i;
    return FINISH_NONE;
}

/* The copy has a final 0, so that tests can use it as a C string. */
static bool copy_text(struct bn_str *out, struct bn_str text)
{
    char *p = mem_alloc(text.n_bytes + 1, 1);
    if (!p)
        return false;
    if (text.n_bytes > 0)
        memcpy(p, text.ptr, text.n_bytes);
    *out = (struct bn_str){p, text.n_bytes};
    return true;
}

static void free_text(struct bn_str *s)
{
    mem_free((void *)(uintptr_t)s->ptr); /* copy_text allocated it; the cast drops const */
    *s = (struct bn_str){0};
}

void exchange_release(struct exchange *e)
{
    if (!e || --e->n_refs > 0)
        return;
    free_text(&e->user);
    free_text(&e->user_extra);
    free_text(&e->typed);
    free_text(&e->files);
    free_text(&e->answer.text);
    free_text(&e->answer.extra);
    mem_free((void *)(uintptr_t)e->answer.ids);
    mem_free(e);
}

/* A copy of the message of `from` with this answer. The caller sets its serials. */
static struct exchange *exchange_new(const struct exchange *from, const struct answer *answer)
{
    struct exchange *e = mem_alloc(1, sizeof(*e));
    if (!e)
        return NULL;
    e->n_refs = 1;
    int32_t *ids = mem_alloc(answer->n_ids, sizeof(*ids));
    e->answer.ids = ids;
    if (!ids || !copy_text(&e->user, from->user) || !copy_text(&e->user_extra, from->user_extra) ||
        !copy_text(&e->typed, from->typed) || !copy_text(&e->files, from->files) ||
        !copy_text(&e->answer.text, answer->text) || !copy_text(&e->answer.extra, answer->extra)) {
        exchange_release(e);
        return NULL;
    }
    if (answer->n_ids > 0)
        memcpy(ids, answer->ids, answer->n_ids * sizeof(*ids));
    e->answer.n_ids = answer->n_ids;
    e->answer.finish = answer->finish;
    e->answer.starts_in_thought = answer->starts_in_thought;
    return e;
}

static void state_finish(struct transcript_state *s)
{
    for (size_t i = 0; i < s->n; i++)
        exchange_release(s->items[i]);
    mem_free(s->items);
    free_text(&s->system);
    free_text(&s->system_extra);
    free_text(&s->file_extra);
    *s = (struct transcript_state){0};
}

/* A copy with new references to the same exchanges. */
static bool state_copy(struct transcript_state *out, const struct transcript_state *in)
{
    struct transcript_state s = {.chat_number = in->chat_number, .n_skipped = in->n_skipped};
    if (!mem_grow(&s.items, &s.cap, in->n, sizeof(*s.items)) || !copy_text(&s.system, in->system) ||
        !copy_text(&s.system_extra, in->system_extra) ||
        !copy_text(&s.file_extra, in->file_extra)) {
        state_finish(&s);
        return false;
    }
    for (size_t i = 0; i < in->n; i++) {
        s.items[i] = in->items[i];
        s.items[i]->n_refs++;
    }
    s.n = in->n;
    *out = s;
    return true;
}

static void steps_clear(struct transcript_step *steps, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        state_finish(&steps[i].state);
    *n = 0;
}

/* Reserve space for steps_push. A full list needs none, because steps_push drops a step. */
static bool steps_reserve(struct transcript_step **steps, size_t n, size_t *cap)
{
    return mem_grow(steps, cap, size_min(n + 1, MAX_STEPS), sizeof(**steps));
}

/* Append a step. Drops the oldest step if the list is full. */
static void steps_push(struct transcript_step *steps, size_t *n, struct transcript_step step)
{
    if (*n == MAX_STEPS) {
        state_finish(&steps[0].state);
        memmove(steps, steps + 1, (MAX_STEPS - 1) * sizeof(*steps));
        --*n;
    }
    steps[(*n)++] = step;
}

/* Exchanges were removed from the end, the first of them `removed`. Put turns back into the prompt
 * that were left out only since that exchange was added. */
static void restore_skipped(struct transcript_state *s, const struct exchange *removed)
{
    size_t n = 0;
    while (n < s->n && n < s->n_skipped && s->items[n]->serial < removed->oldest_serial)
        n++;                         /* serials ascend */
    s->n_skipped = n < s->n ? n : 0; /* the last turn is never left out */
}

static void drop_last(struct transcript_state *s)
{
    struct exchange *e = s->items[--s->n];
    restore_skipped(s, e);
    exchange_release(e);
}

static size_t last_serial(const struct transcript_state *s)
{
    return s->n > 0 ? s->items[s->n - 1]->serial : SIZE_MAX;
}

/* Whether the conversation is as this cut left it. */
static bool is_unchanged_since(const struct transcript *t, const struct transcript_step *cut)
{
    return cut->after_n == t->now.n && cut->after_serial == last_serial(&t->now);
}

/* The cut of the message that is edited; NULL: none is edited. */
static struct transcript_step *open_edit(const struct transcript *t)
{
    struct transcript_step *cut = t->n_cuts > 0 ? &t->cuts[t->n_cuts - 1] : NULL;
    return cut && cut->is_edit && is_unchanged_since(t, cut) ? cut : NULL;
}

/* Store the present state as a cut and make `next` the conversation. Takes ownership of `next`. */
static bool make_cut(struct transcript *t, struct transcript_state *next, enum cut_kind kind)
{
    if (!steps_reserve(&t->cuts, t->n_cuts, &t->cap_cuts)) {
        state_finish(next);
        return false;
    }
    const struct transcript_step cut = {
        .state = t->now, .kind = kind, .after_n = next->n, .after_serial = last_serial(next)};
    steps_push(t->cuts, &t->n_cuts, cut);
    t->now = *next;
    t->unsaved = true;
    return true;
}

void transcript_finish(struct transcript *t)
{
    state_finish(&t->now);
    steps_clear(t->cuts, &t->n_cuts);
    steps_clear(t->redos, &t->n_redos);
    mem_free(t->cuts);
    mem_free(t->redos);
    *t = (struct transcript){0};
}

bool transcript_add_question(struct transcript *t, struct bn_str user)
{
    struct transcript_state *s = &t->now;
    if (!mem_grow(&s->items, &s->cap, s->n + 1, sizeof(*s->items)))
        return false;
    struct exchange *e = exchange_new(&(struct exchange){.user = user}, &(struct answer){0});
    if (!e)
        return false;
    e->serial = t->n_made++;
    e->oldest_serial = s->n_skipped < s->n ? s->items[s->n_skipped]->serial : SIZE_MAX;
    s->items[s->n++] = e;
    t->unsaved = true;
    return true;
}

/* Replace the last exchange of `s` by one with this answer. */
static bool replace_answer(struct transcript *t, struct transcript_state *s,
                           const struct answer *answer)
{
    struct exchange **last = &s->items[s->n - 1];
    struct exchange *e = exchange_new(*last, answer);
    if (!e)
        return false;
    e->serial = t->n_made++;
    e->oldest_serial = (*last)->oldest_serial;
    exchange_release(*last);
    *last = e;
    return true;
}

/* The last exchange was answered. */
static void end_edit(struct transcript *t)
{
    steps_clear(t->redos, &t->n_redos);
    if (t->n_cuts > 0)
        t->cuts[t->n_cuts - 1].is_edit = false; /* if a message was edited, it was sent */
}

bool transcript_answer(struct transcript *t, const struct answer *answer)
{
    struct transcript_step *cut = t->n_cuts > 0 ? &t->cuts[t->n_cuts - 1] : NULL;
    const bool was_retried = cut && cut->kind == CUT_RETRY && is_unchanged_since(t, cut);
    if (!replace_answer(t, &t->now, answer))
        return false;
    if (was_retried)
        cut->after_serial = last_serial(&t->now);
    end_edit(t);
    t->unsaved = true;
    return true;
}

bool transcript_retry(struct transcript *t, const struct answer *answer, size_t n_skipped)
{
    struct transcript_state next;
    if (!state_copy(&next, &t->now))
        return false;
    if (!replace_answer(t, &next, answer)) {
        state_finish(&next);
        return false;
    }
    end_edit(t);
    if (!make_cut(t, &next, CUT_RETRY))
        return false;
    t->cuts[t->n_cuts - 1].state.n_skipped = n_skipped;
    return true;
}

void transcript_remove_last(struct transcript *t)
{
    if (t->now.n > 0)
        drop_last(&t->now);
}

void transcript_set_skipped(struct transcript *t, size_t n_skipped)
{
    t->now.n_skipped = n_skipped;
    for (size_t i = 0; i < t->now.n; i++)
        t->now.items[i]->oldest_serial = SIZE_MAX;
}

/* The state takes the text. */
static void replace_system(struct transcript_state *s, struct bn_str text)
{
    free_text(&s->system);
    free_text(&s->system_extra);
    s->system = text;
}

bool transcript_set_system(struct transcript *t, struct bn_str text)
{
    struct transcript_step *edit = open_edit(t);
    struct bn_str copy, edit_copy = {0};
    if (!copy_text(&copy, text))
        return false;
    if (edit && !copy_text(&edit_copy, text)) {
        free_text(&copy);
        return false;
    }
    replace_system(&t->now, copy);
    if (edit) /* the files have the state before the edit: they need the new system message too */
        replace_system(&edit->state, edit_copy);
    t->unsaved = true;
    return true;
}

bool transcript_set_typed(struct transcript *t, struct bn_str typed, struct bn_str files)
{
    struct exchange *e = t->now.items[t->now.n - 1];
    struct bn_str typed_copy, files_copy;
    if (!copy_text(&typed_copy, typed))
        return false;
    if (!copy_text(&files_copy, files)) {
        free_text(&typed_copy);
        return false;
    }
    free_text(&e->typed);
    free_text(&e->files);
    e->typed = typed_copy;
    e->files = files_copy;
    return true;
}

struct bn_str exchange_typed(const struct exchange *e)
{
    return e->typed.n_bytes > 0 ? e->typed : e->user;
}

bool transcript_set_extra(struct transcript *t, enum extra_owner place, struct bn_str json)
{
    struct bn_str copy;
    struct bn_str *at = place == EXTRA_OF_FILE     ? &t->now.file_extra
                        : place == EXTRA_OF_SYSTEM ? &t->now.system_extra
                                                   : &t->now.items[t->now.n - 1]->user_extra;
    if (!copy_text(&copy, json))
        return false;
    free_text(at);
    *at = copy;
    return true;
}

/* Keep only the n exchanges from index `first` on. */
static bool cut_to(struct transcript *t, size_t first, size_t n, enum cut_kind kind)
{
    struct transcript_state next;
    if (!state_copy(&next, &t->now))
        return false;
    for (size_t i = 0; i < next.n; i++)
        if (i < first || i >= first + n)
            exchange_release(next.items[i]);
    for (size_t i = 0; i < n; i++)
        next.items[i] = next.items[first + i];
    next.n = n;
    next.n_skipped = next.n_skipped > first ? next.n_skipped - first : 0;
    if (first + n < t->now.n)
        restore_skipped(&next, t->now.items[first + n]);
    steps_clear(t->redos, &t->n_redos);
    return make_cut(t, &next, kind);
}

bool transcript_clear(struct transcript *t)
{
    if (!cut_to(t, 0, 0, CUT_CLEAR))
        return false;
    t->now.chat_number = ++t->n_chats;
    return true;
}

bool transcript_forget(struct transcript *t, size_t n_oldest)
{
    return cut_to(t, n_oldest, t->now.n - n_oldest, CUT_FORGET);
}

bool transcript_rewind(struct transcript *t, size_t n_keep)
{
    return cut_to(t, 0, n_keep, CUT_EDIT);
}

bool transcript_replace(struct transcript *t, struct transcript *other)
{
    struct transcript_state next = other->now;
    other->now = (struct transcript_state){0};
    transcript_finish(other);
    for (size_t i = 0; i < next.n; i++) {
        next.items[i]->serial = t->n_made++; /* serials are unique within `t` */
        next.items[i]->oldest_serial = SIZE_MAX;
    }
    next.chat_number = ++t->n_chats;
    steps_clear(t->redos, &t->n_redos);
    return make_cut(t, &next, CUT_LOAD);
}

/* Push the present state to the redo list, which has space for it, and make `to` the conversation.
 * Takes ownership of `to`. */
static void step_back(struct transcript *t, struct transcript_state to, enum cut_kind kind)
{
    const struct transcript_step step = {.state = t->now, .kind = kind};
    steps_push(t->redos, &t->n_redos, step);
    t->now = to;
    t->unsaved = true;
}

void transcript_begin_edit(struct transcript *t)
{
    t->cuts[t->n_cuts - 1].is_edit = true;
}

const struct transcript_state *transcript_saved(const struct transcript *t)
{
    const struct transcript_step *edit = open_edit(t);
    return edit ? &edit->state : &t->now;
}

/* The cut that undo would revert; NULL if it would remove the last exchange.
 *
 * If the last exchange that a cut left gets a longer answer (/continue), a new exchange with a new
 * serial replaces it. Then the turns are never again as this cut left them. Undo first removes them
 * one by one; when the conversation is empty, it reverts the newest cut. A /retry is a cut of its
 * own, which undo reverts first. */
static const struct transcript_step *cut_to_undo(const struct transcript *t)
{
    const struct transcript_step *cut = t->n_cuts > 0 ? &t->cuts[t->n_cuts - 1] : NULL;
    const bool is_cut = cut && (t->now.n == 0 || is_unchanged_since(t, cut));
    return is_cut ? cut : NULL;
}

enum cut_kind transcript_undo_cut(const struct transcript *t)
{
    const struct transcript_step *cut = cut_to_undo(t);
    return cut ? cut->kind : CUT_NONE;
}

enum cut_kind transcript_redo_cut(const struct transcript *t)
{
    return t->n_redos > 0 ? t->redos[t->n_redos - 1].kind : CUT_NONE;
}

size_t transcript_undo_chat_number(const struct transcript *t)
{
    const struct transcript_step *cut = cut_to_undo(t);
    return cut ? cut->state.chat_number : t->now.chat_number;
}

size_t transcript_redo_chat_number(const struct transcript *t)
{
    return t->n_redos > 0 ? t->redos[t->n_redos - 1].state.chat_number : t->now.chat_number;
}

enum undo_result transcript_undo(struct transcript *t)
{
    const struct transcript_step *cut = cut_to_undo(t);
    if (!cut && t->now.n == 0)
        return UNDO_NOTHING;
    if (!steps_reserve(&t->redos, t->n_redos, &t->cap_redos))
        return UNDO_NO_MEMORY;
    if (cut) {
        t->n_cuts--;
        step_back(t, cut->state, cut->kind);
        return UNDO_CUT;
    }
    struct transcript_state shorter;
    if (!state_copy(&shorter, &t->now))
        return UNDO_NO_MEMORY;
    drop_last(&shorter);
    step_back(t, shorter, CUT_NONE);
    return UNDO_EXCHANGE;
}

enum undo_result transcript_redo(struct transcript *t)
{
    if (t->n_redos == 0)
        return UNDO_NOTHING;
    const struct transcript_step step = t->redos[t->n_redos - 1];
    struct transcript_state next = step.state;
    if (step.kind != CUT_NONE) {
        if (!steps_reserve(&t->cuts, t->n_cuts, &t->cap_cuts))
            return UNDO_NO_MEMORY;
        t->n_redos--;
        (void)make_cut(t, &next, step.kind); /* cannot fail: the space is reserved */
        return UNDO_CUT;
    }
    t->n_redos--;
    state_finish(&t->now);
    t->now = next;
    t->unsaved = true;
    return UNDO_EXCHANGE;
}

const struct exchange *transcript_last(const struct transcript *t)
{
    return t->now.n > 0 ? t->now.items[t->now.n - 1] : NULL;
}

bool transcript_is_same(const struct transcript_state *a, const struct transcript_state *b)
{
    bool is_same = a->n == b->n && bn_str_equal(a->system, b->system) &&
                   bn_str_equal(a->system_extra, b->system_extra) &&
                   bn_str_equal(a->file_extra, b->file_extra);
    for (size_t i = 0; is_same && i < a->n; i++) {
        const struct exchange *x = a->items[i], *y = b->items[i];
        is_same = bn_str_equal(x->user, y->user) && bn_str_equal(x->user_extra, y->user_extra) &&
                  x->answer.finish == y->answer.finish &&
                  x->answer.starts_in_thought == y->answer.starts_in_thought &&
                  bn_str_equal(x->answer.text, y->answer.text) &&
                  bn_str_equal(x->answer.extra, y->answer.extra);
    }
    return is_same;
}
