/*
 * The files of a chat: last.json and the named chat, written when a question is sent, after its
 * answer and by commands that change the conversation; and snapshots, written by /save and when the
 * program ends. Also has the texts that tell the user what was found in a file that was opened.
 */
#include "app/chat/answer/snapshot.h"
#include "app/chat/chat.h"
#include "app/common/term_text.h"
#include "engine/base/memory.h"

#include <string.h>
#include <unistd.h>

#define MODEL_COLUMNS 60 /* the name of another model in a notice is cut to this width */

/* What a failed write of this file means for the user. */
static const char *effect_of(const struct chat *c, const struct store_file *f, bool is_other_saved)
{
    if (c->store->is_script || (c->is_closing && !is_other_saved))
        return "the chat is not saved";
    if (!is_other_saved)
        return "the chat continues unsaved";
    return f == &c->store->named ? "the chat is not saved there"
                                 : "the chat is saved under its name only";
}

/* Show the first failure of each of the two files only. */
static void show_failure(struct chat *c, const struct store_file *f, const char *why,
                         const char *effect)
{
    struct store *store = c->store;
    bool *has_warned = f == &store->named ? &store->has_warned_named : &store->has_warned_last;
    /* In CHAT_BROKEN the event loop has closed the painter. */
    if (*has_warned || c->phase == CHAT_BROKEN)
        return;
    *has_warned = true;
    ui_notice(c->ui, store->is_script ? TONE_ERROR : TONE_WARNING, "%s; %s", why, effect);
}

bool chat_save(struct chat *c)
{
    struct store_file *last = &c->store->last, *named = &c->store->named;
    const struct transcript_state *state = transcript_saved(&c->transcript);
    struct bn_error last_error, named_error;
    /* Write the named chat first, because path_canonical needs a file that exists. */
    const bool named_ok = store_save(c->store, named, state, &named_error);
    path_canonical(named->path, last->saved_as);
    const bool last_ok = store_save(c->store, last, state, &last_error);
    if (named_ok && named->path[0])
        c->transcript.unsaved = false;
    if (!named_ok)
        show_failure(c, named, named_error.text, effect_of(c, named, last_ok && last->path[0]));
    /* If both have failed, the message about the file that the user has named is enough. */
    if (!last_ok && named_ok)
        show_failure(c, last, last_error.text, effect_of(c, last, named->path[0]));
    return last_ok && named_ok;
}

bool chat_is_kept(struct chat *c, struct bn_error *err)
{
    struct store_file *last = &c->store->last, *named = &c->store->named;
    const struct transcript_state *state = transcript_saved(&c->transcript);
    struct bn_error ignored; /* the failure of the named chat is reported */
    if (c->store->has_lost_named)
        return bn_fail(err, BN_EIO, "an earlier chat could not be saved; /undo returns to it");
    if (state->n == 0 && !named->may_have_turns && !last->may_have_turns)
        return true;     /* no turn would be lost, and no file keeps turns that were removed */
    if (!named->path[0]) /* without a file for the last conversation, store_save does nothing */
        return store_has(last, state) || store_save(c->store, last, state, err);
    return store_has(named, state) || store_save(c->store, named, state, err) ||
           (last->path[0] && store_save(c->store, last, state, &ignored));
}

static bool close_file(struct chat *c, struct store_file *f, bool is_other_saved)
{
    const struct transcript_state *state = transcript_saved(&c->transcript);
    /* The journal stays if the file cannot be written. */
    const char *const effect = store_has(f, state)
                                   ? "its journal keeps the chat, and the next chat reads it"
                                   : effect_of(c, f, is_other_saved);
    struct bn_error err;
    if (store_close(c->store, f, state, &err))
        return true;
    show_failure(c, f, err.text, effect);
    return false;
}

bool chat_close_named(struct chat *c)
{
    return close_file(c, &c->store->named, c->store->last.path[0] && !c->store->last.is_behind);
}

bool chat_pause_named(struct chat *c)
{
    struct store *store = c->store;
    struct bn_error err;
    const size_t n = store->n_paused;
    c->snapshot[0] = 0; /* it belongs to the conversation that ends here */
    if (!store->named.path[0])
        return true;
    if (!mem_grow(&store->paused, &store->cap_paused, n + 1, sizeof(*store->paused))) {
        ui_notice(c->ui, TONE_WARNING, "out of memory: /undo will not save the chat in %s again",
                  store->named.path);
        return chat_close_named(c);
    }
    const bool ok = store_pause(store, &store->named, transcript_saved(&c->transcript), &err);
    if (!ok) {
        store->has_lost_named = true;
        ui_notice(c->ui, store->is_script ? TONE_ERROR : TONE_WARNING,
                  "%s; the last turns of this chat are not saved", err.text);
    }
    store->paused[n] = (struct store_paused){c->transcript.now.chat_number, store->named};
    store->n_paused++;
    store->named = (struct store_file){0};
    return ok;
}

void chat_resume_named(struct chat *c)
{
    struct store *store = c->store;
    char path[PATH_BYTES], holder[FILE_LOCK_HOLDER_BYTES];
    size_t i = store->n_paused;
    while (i > 0 && store->paused[i - 1].chat_number != c->transcript.now.chat_number)
        i--;
    if (i == 0) /* this chat had no file */
        return;
    store->has_lost_named = false; /* its turns are those of the present chat again */
    store->named = store->paused[i - 1].file;
    store->paused[i - 1] = store->paused[--store->n_paused];
    memcpy(path, store->named.path, sizeof(path));
    if (store_resume(&store->named, holder))
        ui_notice(c->ui, TONE_PLAIN, "the conversation is saved in %s again", path);
    else if (holder[0])
        ui_notice(c->ui, TONE_WARNING, "%s is in use by %s: not saved there again", path, holder);
    else
        ui_notice(c->ui, TONE_WARNING, "%s was changed: the chat is not saved there again", path);
}

/* Show the text, unless it is empty, and free it. */
static void show_text(const struct chat *c, enum ui_tone tone, struct strbuf *text, ui_show_fn show)
{
    if (text->n_bytes > 0)
        show(c->ui, tone, strbuf_str(text));
    strbuf_finish(text);
}

void chat_show_set_aside(const struct chat *c, const struct store_file *f, ui_show_fn show)
{
    struct strbuf text = {0};
    if (f->has_set_aside)
        strbuf_addf(&text, "'%s' does not exist, but had a journal, which is now %s.journal.old",
                    f->path, f->path);
    show_text(c, TONE_WARNING, &text, show);
}

/* Append that answers are tokenised again, and why; nothing if all ids in the file are used. */
static void add_retokenised(const struct store_reading *reading, struct strbuf *out)
{
    if (reading->n_retokenised == 0)
        return;
    strbuf_addf(out, "%zu of %zu answers are tokenised again", reading->n_retokenised,
                reading->n_answers);
    if (reading->other_vocabulary && reading->model[0]) {
        strbuf_add_text(out, ": their tokens are of the vocabulary of another model, '");
        term_text_brief(bn_str_of(reading->model), MODEL_COLUMNS, out);
        strbuf_add_char(out, '\'');
    } else if (reading->other_vocabulary)
        strbuf_add_text(out, ": their tokens are of the vocabulary of another model");
    else if (reading->no_vocabulary)
        strbuf_add_text(out, ": the file does not name the vocabulary of their tokens");
    else if (reading->n_with_turn_marks > 0)
        strbuf_addf(out,
                    ": the tokens of %zu would begin or end a turn, so the text is used instead",
                    reading->n_with_turn_marks);
}

void chat_show_reading(const struct chat *c, const char *path, const struct store_reading *reading,
                       ui_show_fn show)
{
    struct strbuf answers = {0}, journal = {0};
    add_retokenised(reading, &answers);
    show_text(c, reading->n_with_turn_marks > 0 ? TONE_WARNING : TONE_NOTE, &answers, show);
    if (reading->journal == JOURNAL_OTHER_STATE)
        strbuf_addf(&journal, "%s.journal belongs to another state of the chat and is not used",
                    path);
    else if (reading->journal == JOURNAL_DAMAGED)
        strbuf_addf(&journal, "%s.journal is damaged: only the turns before the damage are read",
                    path);
    show_text(c, TONE_WARNING, &journal, show);
}

bool chat_close_files(struct chat *c, bool *is_named_chat_written)
{
    const bool has_named = c->store->named.path[0];
    c->is_closing = true;
    *is_named_chat_written = chat_close_named(c) && !c->store->has_lost_named;
    if (!*is_named_chat_written) /* the message about the file that the user has named is enough */
        c->store->has_warned_last = true;
    const bool is_last_saved = close_file(c, &c->store->last, has_named && *is_named_chat_written);
    for (size_t i = 0; i < c->store->n_paused; i++)
        store_forget(&c->store->paused[i].file);
    mem_free(c->store->paused);
    c->store->paused = NULL;
    c->store->n_paused = c->store->cap_paused = 0;
    return *is_named_chat_written && is_last_saved;
}

void chat_use_snapshot(struct chat *c, const char *saved)
{
    struct bn_error ignored; /* without a cache directory there is no snapshot */
    if (!snapshot_path(saved, c->snapshot, &ignored) || access(c->snapshot, F_OK) != 0)
        c->snapshot[0] = 0;
}

void chat_write_snapshot(struct chat *c, const char *saved)
{
    char path[PATH_BYTES];
    struct prompt p;
    struct bn_error err;
    if (!options_flag(c->options, "snapshot") || c->store->is_private || !saved[0] ||
        !worker_info(c->worker) ||
        c->totals.n_turns == 0) /* no turn has ended without an error: nothing new */
        return;
    if (!chat_encode(c, &p, &err)) {
        ui_notice(c->ui, TONE_WARNING, "no snapshot: %s", err.text);
        return;
    }
    if (!snapshot_path(saved, path, &err) ||
        !worker_save(c->worker, p.ids.ids, p.ids.n, path, &err))
        ui_notice(c->ui, TONE_WARNING, "no snapshot: %s", err.text);
    prompt_finish(&p);
}
