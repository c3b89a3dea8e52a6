/*
 * Commands about files: /file /save /load /sessions /export.
 */
#include "app/commands/commands.h"

#include "app/common/input_text.h"
#include "app/common/json_out.h"
#include "app/common/term_text.h"
#include "engine/base/size.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Show the attached files, with the numbers for /file off N. */
static void list_files(struct command_host *host)
{
    const struct attachment_list *l = &host->chat->attached;
    const struct attachment_room room = chat_room(host->chat);
    struct strbuf text = {0};
    for (size_t i = 0; i < l->n; i++)
        strbuf_addf(&text, "%2zu  %7zu tok  %s\n", i + 1, l->items[i].n_tokens, l->items[i].path);
    if (room.n_ctx > 0) /* 0: unknown while the model loads */
        strbuf_addf(&text, "in all %zu of the %zu tok that are free for a message; ",
                    attachments_tokens(l, l->n), room.n_tokens);
    strbuf_add_text(&text, "/file off [N] removes them");
    host->ui->ops->notice(host->ui, TONE_PLAIN, strbuf_str(&text));
    strbuf_finish(&text);
}

static bool remove_files(struct command_host *host, struct bn_str args)
{
    struct attachment_list *l = &host->chat->attached;
    size_t number = 0; /* 0: all files */
    while (args.n_bytes > 0 && (args.ptr[0] == ' ' || args.ptr[0] == '\t'))
        args = (struct bn_str){args.ptr + 1, args.n_bytes - 1};
    if (l->n == 0)
        return command_fail(host, "no file is attached");
    if (args.n_bytes > 0 && !command_number(host, args, 1, l->n, &number))
        return false;
    if (number > 0) {
        ui_notice(host->ui, TONE_PLAIN, "%s will not be sent", l->items[number - 1].path);
        attachments_remove(l, number - 1);
        return true;
    }
    ui_notice(host->ui, TONE_PLAIN, "%zu file%s will not be sent", l->n, l->n == 1 ? "" : "s");
    attachments_finish(l);
    return true;
}

static bool attach(struct command_host *host, const char *path)
{
    struct attachment_list *l = &host->chat->attached;
    const struct attachment_room room = chat_room(host->chat);
    enum attachment_added added;
    struct bn_error err;
    if (!attachments_add(l, host->chat->model->tokenizer, path, &room, &added, &err))
        return command_fail_file(host, &err);
    if (added == ATTACHMENT_PRESENT)
        ui_notice(host->ui, TONE_PLAIN, "%s is attached already", path);
    else
        ui_notice(host->ui, TONE_PLAIN,
                  "%s will be sent before your next message: %zu bytes, %zu tok", path,
                  l->items[l->n - 1].facts.n_bytes, l->items[l->n - 1].n_tokens);
    return true;
}

/* Attach all files of the list or, if one of them fails, none. */
static bool attach_all(struct command_host *host, struct bn_str list)
{
    struct attachment_list *l = &host->chat->attached;
    const size_t n_before = l->n;
    struct strbuf path = {0};
    bool ok = true;
    for (size_t at = 0; ok && input_next_path(list, &at, &path); strbuf_cut(&path, 0))
        ok = path.failed ? command_fail(host, "out of memory for the paths") /* it may be cut */
                         : attach(host, strbuf_text(&path));
    strbuf_finish(&path);
    if (!ok && l->n > n_before)
        ui_notice(host->ui, TONE_PLAIN, "so none of these files will be sent");
    while (!ok && l->n > n_before)
        attachments_remove(l, l->n - 1);
    return ok;
}

/* "off", alone or before a blank, removes files. Otherwise, if a file has the whole argument as its
 * path, attach this file, even if the path contains blanks. Otherwise the argument is a list of
 * paths, in which blanks are quoted. */
bool cmd_file(struct command_host *host, struct bn_str args)
{
    struct strbuf exact = {0};
    if (args.n_bytes == 0 && host->chat->attached.n == 0) {
        ui_notice(host->ui, TONE_PLAIN, "no file is attached; /file PATH attaches one");
        return true;
    }
    if (args.n_bytes == 0) {
        list_files(host);
        return true;
    }
    if (bn_str_starts(args, bn_str_of("off")) && (args.n_bytes == 3 || strchr(" \t", args.ptr[3])))
        return remove_files(host, (struct bn_str){args.ptr + 3, args.n_bytes - 3});
    strbuf_add_str(&exact, args);
    const bool is_one = access(strbuf_text(&exact), F_OK) == 0;
    const bool ok = is_one ? attach(host, strbuf_text(&exact)) : attach_all(host, args);
    strbuf_finish(&exact);
    return ok;
}

/* The path of the saved chat that the argument names. Without an argument: of the named chat that
 * this chat writes. False: the reason was shown. */
static bool saved_chat_path(struct command_host *host, struct bn_str args, char out[PATH_BYTES])
{
    struct strbuf name = {0};
    struct bn_error err;
    if (args.n_bytes == 0) {
        memcpy(out, host->chat->store->named.path, PATH_BYTES);
        if (!out[0])
            ui_notice(host->ui, TONE_ERROR, "a name is needed; /sessions lists the saved chats");
        return out[0] != 0;
    }
    char given[PATH_BYTES];
    strbuf_add_str(&name, args);
    bool ok = store_path(strbuf_text(&name), given, &err) && access(given, F_OK) == 0;
    if (!ok) { /* no chat has exactly this name: as in command_path, quotes are removed */
        strbuf_cut(&name, 0);
        input_one_path(args, &name);
        ok = store_path(strbuf_text(&name), given, &err) || command_fail_file(host, &err);
    }
    if (ok)
        path_follow(given, out);
    strbuf_finish(&name);
    return ok;
}

/* What /load does with a saved chat that is in use: refuse it, or continue on a copy. */
enum load_way { LOAD_REFUSES, LOAD_COPIES };

/* Write the conversation to this file, and make it the file of the chat. `path` is a result of
 * saved_chat_path. False: the reason was shown. */
static bool save_as(struct command_host *host, const char *path)
{
    struct store *store = host->chat->store;
    const struct transcript_state *state = transcript_saved(&host->chat->transcript);
    struct store_file next = {0};
    char holder[FILE_LOCK_HOLDER_BYTES];
    struct bn_error err;
    if (path_is_same(path, store->named.path))
        return store_replace(store, &store->named, state, &err) || command_fail_file(host, &err);
    if (!store_open(&next, path, holder)) {
        ui_notice(host->ui, TONE_ERROR, "%s is in use by %s; save under another name", path,
                  holder);
        return command_set_file_failed(host);
    }
    chat_show_set_aside(host->chat, &next, host->ui->ops->notice);
    if (!store_replace(store, &next, state, &err)) {
        struct bn_error ignored; /* there is nothing to write */
        (void)store_close(store, &next, state, &ignored);
        return command_fail_file(host, &err);
    }
    if (!chat_close_named(host->chat))
        host->write_failed = true;
    store->named = next;
    return true;
}

/* Whether /save may write this file, which is not the file of the chat. An empty conversation never
 * replaces a file: perhaps the user wanted to load it, and it is damaged. */
static bool may_save_as(struct command_host *host, struct bn_str args, const char *path)
{
    const struct transcript_state *s = transcript_saved(&host->chat->transcript);
    if (s->n > 0 || s->system.n_bytes > 0 || access(path, F_OK) != 0)
        return command_may_write(host, "save", args, path);
    ui_notice(host->ui, TONE_ERROR, "the conversation is empty: %s is not replaced", path);
    return false;
}

bool cmd_save(struct command_host *host, struct bn_str args)
{
    char path[PATH_BYTES];
    struct bn_str name = args;
    (void)command_cut_bang(&name); /* command_may_write examines it */
    if (!saved_chat_path(host, name, path) ||
        (!path_is_same(path, host->chat->store->named.path) && !may_save_as(host, args, path)) ||
        !save_as(host, path))
        return false;
    command_save_chat(host); /* adds the path of the saved chat to last.json */
    const size_t n = transcript_saved(&host->chat->transcript)->n;
    ui_notice(host->ui, TONE_PLAIN, "%zu turn%s saved in %s", n, n == 1 ? "" : "s", path);
    chat_write_snapshot(host->chat, path);
    return true;
}

/* Open the file that /load NAME makes the file of the chat: the saved chat or, if it is in use
 * (store_open) and `way` is LOAD_COPIES, a new file. False: the reason was shown. */
static bool open_to_load(struct command_host *host, struct bn_str name, const char *path,
                         enum load_way way, struct store_file *out)
{
    char holder[FILE_LOCK_HOLDER_BYTES], copy[PATH_BYTES];
    if (store_open(out, path, holder))
        return true;
    if (way != LOAD_COPIES) {
        ui_notice(host->ui, TONE_ERROR, "%s is in use by %s; /load %.*s! continues on a copy", path,
                  holder, (int)size_min(name.n_bytes, 200), name.ptr);
        return command_set_file_failed(host);
    }
    store_copy_path(path, copy);
    if (!store_open(out, copy, holder)) {
        ui_notice(host->ui, TONE_ERROR, "%s is in use by %s", copy, holder);
        return command_set_file_failed(host);
    }
    chat_show_set_aside(host->chat, out, host->ui->ops->notice);
    out->is_behind = true; /* the copy is not written yet */
    ui_notice(host->ui, TONE_NOTE, "continuing on a copy: %s", copy);
    return true;
}

static void show_loaded(struct command_host *host, const char *path,
                        const struct store_reading *reading)
{
    const size_t n = host->chat->transcript.now.n;
    chat_update_n_used(host->chat);
    chat_show_reading(host->chat, path, reading, host->ui->ops->notice);
    ui_notice(host->ui, TONE_PLAIN, "%zu turn%s loaded, %zu tok; /history shows them", n,
              n == 1 ? "" : "s", host->chat->n_used);
    chat_show_next_drop(host->chat);
}

/* Read the saved chat and make it the conversation. If `next` has a path, it becomes the file of
 * the chat, and *next is empty afterwards; it has none if the chat uses the file already. False:
 * the reason was shown, and *next does not change. */
static bool load_from(struct command_host *host, const char *path, struct store_file *next)
{
    struct store *store = host->chat->store;
    struct transcript *t = &host->chat->transcript;
    struct transcript loaded = {0};
    struct store_reading reading;
    struct bn_error err;
    const size_t before = t->now.chat_number;
    if (!store_read(store, path, &loaded, &reading, &err))
        return command_fail_file(host, &err);
    /* Detach the saved chat first: its last write needs the present conversation. */
    if (next->path[0] && !chat_pause_named(host->chat))
        host->write_failed = true;
    if (!transcript_replace(t, &loaded)) {
        if (next->path[0])
            chat_resume_named(host->chat);
        return command_fail(host, "out of memory: nothing was changed");
    }
    if (next->path[0]) {
        store->named = *next;
        if (!next->is_behind) /* not a copy: a copy has no file yet that a journal could continue */
            store_continue(&store->named, &t->now, &reading);
        *next = (struct store_file){0};
    } else {
        t->now.chat_number = before; /* read again: it stays the same chat, with the same file */
    }
    t->unsaved = false;
    chat_use_snapshot(host->chat, path);
    command_save_chat(host); /* so that --continue continues the loaded chat */
    show_loaded(host, path, &reading);
    return true;
}

bool cmd_load(struct command_host *host, struct bn_str args)
{
    char path[PATH_BYTES];
    struct store *store = host->chat->store;
    struct store_file next = {0};
    struct bn_error ignored; /* store_close has nothing to write */
    const enum load_way way = command_cut_bang(&args) ? LOAD_COPIES : LOAD_REFUSES;
    if (!saved_chat_path(host, args, path))
        return false;
    /* Before open_to_load, which would create missing directories. */
    const bool is_missing = access(path, F_OK) != 0 && args.n_bytes > 0;
    if (is_missing && memchr(args.ptr, '/', args.n_bytes)) {
        ui_notice(host->ui, TONE_ERROR, "cannot open '%s': %s", path, strerror(errno));
        return command_set_file_failed(host);
    }
    if (is_missing) { /* only a name can be in the list of /sessions */
        ui_notice(host->ui, TONE_ERROR, "there is no saved chat '%.*s'; /sessions lists them",
                  (int)size_min(args.n_bytes, 200), args.ptr);
        return command_set_file_failed(host);
    }
    if (!path_is_same(path, store->named.path) && !open_to_load(host, args, path, way, &next))
        return false;
    const bool ok = load_from(host, path, &next);
    if (next.path[0]) {
        next.is_behind = false; /* the saved chat was not loaded, so there is no copy to write */
        (void)store_close(store, &next, &host->chat->transcript.now, &ignored);
    }
    return ok;
}

/* A table for people; scripts get the names alone. */
bool cmd_sessions(struct command_host *host, struct bn_str args)
{
    struct strbuf text = {0};
    struct bn_error err;
    size_t n;
    (void)args; /* no arguments */
    if (!(host->ui->ops->is_terminal ? store_table(host->chat->store->named.path, &text, &n, &err)
                                     : store_list(&text, &n, &err))) {
        strbuf_finish(&text);
        return command_fail_file(host, &err);
    }
    if (n == 0)
        ui_notice(host->ui, TONE_PLAIN, "no conversation is saved yet; /save NAME saves this one");
    else
        /* without the last newline */
        host->ui->ops->notice(host->ui, TONE_TABLE, (struct bn_str){text.ptr, text.n_bytes - 1});
    strbuf_finish(&text);
    return true;
}

/* ---- /export ---- */

enum export_kind { EXPORT_TEXT, EXPORT_MARKDOWN, EXPORT_JSONL };

/* `thought` is that of an answer; empty: none. JSON has a field for it. The other formats have no
 * place for it and leave it out, as /copy does. */
static void export_message(struct strbuf *out, enum export_kind kind, const char *role,
                           struct bn_str text, struct bn_str thought)
{
    if (kind == EXPORT_JSONL) {
        json_t *o = json_pack("{s:s, s:o}", "role", role, "content", json_out_text(text));
        if (thought.n_bytes > 0)
            json_out_put(&o, "thought", json_out_text(thought));
        json_out_line(o, out);
        return;
    }
    strbuf_addf(out, kind == EXPORT_MARKDOWN ? "## %s\n\n" : "%s:\n", role);
    strbuf_add_str(out, text);
    strbuf_add_text(out, "\n\n");
}

static void export_answer(const struct chat *chat, struct strbuf *out, enum export_kind kind,
                          const struct exchange *e)
{
    struct strbuf thought = {0}, answer = {0};
    chat_split_answer(chat, e, &thought, &answer);
    export_message(out, kind, "assistant", strbuf_str(&answer), strbuf_str(&thought));
    out->failed |= answer.failed || thought.failed; /* a part would look like the whole answer */
    strbuf_finish(&thought);
    strbuf_finish(&answer);
}

static void export_all(const struct chat *chat, struct strbuf *out, enum export_kind kind)
{
    const struct transcript_state *s = &chat->transcript.now;
    const struct bn_str none = {0};
    if (s->system.n_bytes > 0)
        export_message(out, kind, "system", s->system, none);
    for (size_t i = 0; i < s->n; i++) {
        export_message(out, kind, "user", s->items[i]->user, none);
        if (s->items[i]->answer.finish != FINISH_NONE)
            export_answer(chat, out, kind, s->items[i]);
    }
}

/* The format that the ending of the file's name means. False: the name has another ending. */
static bool export_kind_of(struct bn_str args, enum export_kind *kind)
{
    static const char *const ends[] = {
        [EXPORT_TEXT] = ".txt", [EXPORT_MARKDOWN] = ".md", [EXPORT_JSONL] = ".jsonl"};
    struct strbuf path = {0};
    bool found = false;
    (void)command_cut_bang(&args); /* not part of the name */
    command_path(args, &path);
    for (size_t i = 0; !found && i < sizeof(ends) / sizeof(ends[0]); i++) {
        found = path_ends_with(strbuf_text(&path), ends[i]);
        *kind = (enum export_kind)i;
    }
    strbuf_finish(&path);
    return found;
}

bool cmd_export(struct command_host *host, struct bn_str args)
{
    enum export_kind kind;
    struct strbuf text = {0};
    if (!export_kind_of(args, &kind))
        return command_fail(host, "usage: /export FILE, with a name ending in .md, .txt or .jsonl");
    if (host->chat->transcript.now.n == 0 && host->chat->transcript.now.system.n_bytes == 0)
        return command_fail(host, "nothing was said yet");
    export_all(host->chat, &text, kind);
    const bool ok = command_export_text(host, "export", args, &text);
    strbuf_finish(&text);
    return ok;
}
