/*
 * The files of a chat: last.json and the saved chat, written when a question is sent, after its
 * answer and by commands that change the conversation; and snapshots, written by /save and when the
 * program ends.
 */
#include "app/chat/answer/snapshot.h"
#include "app/chat/chat.h"

#include <unistd.h>

/* Show the first failure only. */
static void show_failure(struct chat *c, const char *why)
{
    /* In CHAT_BROKEN the event loop has closed the painter. */
    if (c->store->has_warned || c->phase == CHAT_BROKEN)
        return;
    c->store->has_warned = true;
    if (c->store->is_script)
        ui_notice(c->ui, TONE_ERROR, "%s; the chat is not saved", why);
    else
        ui_notice(c->ui, TONE_WARNING, "%s; the chat continues unsaved", why);
}

static bool write_file(struct chat *c, struct store_file *f)
{
    struct bn_error err;
    if (!store_save(c->store, f, &c->transcript.now, &err)) {
        show_failure(c, err.text);
        return false;
    }
    if (f == &c->store->session && f->path[0])
        c->transcript.unsaved = false;
    return true;
}

bool chat_write_files(struct chat *c)
{
    const bool has_last = write_file(c, &c->store->last);
    return write_file(c, &c->store->session) && has_last;
}

static bool close_file(struct chat *c, struct store_file *f)
{
    struct bn_error err;
    if (store_close(c->store, f, &c->transcript.now, &err))
        return true;
    show_failure(c, err.text);
    return false;
}

bool chat_close_session(struct chat *c)
{
    return close_file(c, &c->store->session);
}

bool chat_close_files(struct chat *c)
{
    const bool has_last = close_file(c, &c->store->last);
    return chat_close_session(c) && has_last;
}

void chat_use_snapshot(struct chat *c, const char *saved)
{
    struct bn_error ignored; /* without a cache directory there is no snapshot */
    if (!snapshot_path(saved, c->snapshot, &ignored) || access(c->snapshot, F_OK) != 0)
        c->snapshot[0] = 0;
}

void chat_write_snapshot(struct chat *c, const char *saved)
{
    const struct bn_model_info *info = worker_info(c->worker);
    char path[PATH_BYTES];
    struct prompt p;
    struct bn_error err;
    if (!options_flag(c->options, "snapshot") || c->store->is_private || !saved[0] || !info ||
        c->totals.n_turns == 0) /* no turn has ended without an error: nothing new */
        return;
    if (!chat_encode(c, &p, &err)) {
        ui_notice(c->ui, TONE_WARNING, "no snapshot: %s", err.text);
        return;
    }
    bool ok = snapshot_path(saved, path, &err);
    if (ok) { /* the size: keys and values, the current recurrent states, and the saved states */
        ui_notice(c->ui, TONE_NOTE, "writing a snapshot of about %.1f MB to %s",
                  ((double)p.ids.n * (double)info->kv_bytes_per_token + (double)info->state_bytes +
                   (double)c->turn.result.states.n_bytes) /
                      1e6,
                  path);
        ok = worker_save(c->worker, p.ids.ids, p.ids.n, path, &err);
    }
    if (!ok)
        ui_notice(c->ui, TONE_WARNING, "no snapshot: %s", err.text);
    prompt_finish(&p);
}
