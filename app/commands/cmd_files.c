/*
 * Commands about files: /file /save /load /sessions /export.
 */
#include "app/commands/commands.h"

#include "app/common/input_text.h"
#include "app/common/json_out.h"
#include "app/common/term_text.h"
#include "engine/base/size.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static bool show_error(struct command_host *host, const struct bn_error *err)
{
    ui_notice(host->ui, TONE_ERROR, "%s", err->text);
    return false;
}

static bool attach(struct command_host *host, const char *path)
{
    struct bn_error err;
    const size_t n_before = host->attachments->n_bytes;
    const bool ok = input_attach(path, host->attachments, &err);
    if (ok) {
        struct token_list ids = {0};
        struct bn_error ignored; /* the count is only information */
        strbuf_add_char(host->attachments, '\n');
        const struct segment s = {
            .kind = SEGMENT_MESSAGE,
            .text = {host->attachments->ptr + n_before, host->attachments->n_bytes - n_before},
            .message = SEGMENT_NO_MESSAGE};
        (void)tokenizer_encode(host->chat->model->tokenizer, &s, 1, TOKENIZER_BOS_NEVER, &ids,
                               &ignored);
        ui_notice(host->ui, TONE_PLAIN, "%s goes before your next message: %zu bytes, %zu tok",
                  path, s.text.n_bytes, ids.n);
        token_list_finish(&ids);
    } else {
        strbuf_cut(host->attachments, n_before);
        (void)show_error(host, &err);
    }
    return ok;
}

/* The argument is one path, which may contain blanks, or several paths. */
bool cmd_file(struct command_host *host, struct bn_str args)
{
    struct strbuf paths = {0};
    bool ok = true;
    if (args.n_bytes == 0) {
        ui_notice(host->ui, TONE_ERROR, "which file? /file PATH ...");
        return false;
    }
    strbuf_add_str(&paths, args);
    if (access(strbuf_text(&paths), F_OK) == 0 || !strpbrk(strbuf_text(&paths), " \t")) {
        ok = attach(host, strbuf_text(&paths));
    } else {
        const size_t n_before = host->attachments->n_bytes;
        for (char *rest = paths.ptr, *word; ok && (word = strtok_r(rest, " \t", &rest)) != NULL;)
            ok = attach(host, word);
        if (!ok)
            strbuf_cut(host->attachments, n_before); /* all or nothing */
    }
    strbuf_finish(&paths);
    return ok;
}

/* The path that an argument names, or that of the current saved chat if there is no argument. */
static bool session_path(struct command_host *host, struct bn_str args, char out[PATH_BYTES])
{
    struct strbuf name = {0};
    struct bn_error err;
    if (args.n_bytes == 0) {
        memcpy(out, host->chat->store->session_path, PATH_BYTES);
        if (!out[0])
            ui_notice(host->ui, TONE_ERROR, "under which name? /sessions lists those there are");
        return out[0] != 0;
    }
    strbuf_add_str(&name, args);
    const bool ok = store_path(strbuf_text(&name), out, &err) || show_error(host, &err);
    strbuf_finish(&name);
    return ok;
}

bool cmd_save(struct command_host *host, struct bn_str args)
{
    char path[PATH_BYTES];
    struct bn_error err;
    const bool forces = command_ends_with(args, "!");
    if (forces)
        args.n_bytes--;
    if (!session_path(host, args, path))
        return false;
    if (!forces && strcmp(path, host->chat->store->session_path) != 0 && access(path, F_OK) == 0) {
        ui_notice(host->ui, TONE_ERROR, "%s is there already; /save %.*s! replaces it", path,
                  (int)args.n_bytes, args.ptr);
        return false;
    }
    if (!store_write(host->chat->store, &host->chat->transcript.now, path, &err))
        return show_error(host, &err);
    memcpy(host->chat->store->session_path, path, sizeof(path));
    host->chat->transcript.unsaved = false;
    ui_notice(host->ui, TONE_PLAIN, "%zu exchange%s saved in %s", host->chat->transcript.now.n,
              host->chat->transcript.now.n == 1 ? "" : "s", path);
    chat_write_snapshot(host->chat, path);
    return true;
}

bool cmd_load(struct command_host *host, struct bn_str args)
{
    char path[PATH_BYTES];
    struct transcript loaded = {0};
    struct store_reading reading;
    struct bn_error err;
    if (!session_path(host, args, path))
        return false;
    if (access(path, F_OK) != 0 && args.n_bytes > 0 && !memchr(args.ptr, '/', args.n_bytes)) {
        ui_notice(host->ui, TONE_ERROR, "there is no '%.*s' to load; /sessions lists what there is",
                  (int)size_min(args.n_bytes, 200), args.ptr);
        return false;
    }
    if (!store_read(host->chat->store, path, &loaded, &reading, &err))
        return show_error(host, &err);
    const size_t n = loaded.now.n;
    if (!transcript_replace(&host->chat->transcript, &loaded)) {
        ui_notice(host->ui, TONE_ERROR, "out of memory: nothing was changed");
        return false;
    }
    memcpy(host->chat->store->session_path, path, sizeof(path));
    host->chat->transcript.unsaved = false;
    const size_t n_tokens = chat_count(host->chat);
    host->chat->n_used = n_tokens == SIZE_MAX ? 0 : n_tokens;
    chat_use_snapshot(host->chat, path);
    if (reading.n_retokenised > 0)
        ui_notice(host->ui, TONE_NOTE, "%zu of %zu answers are read again as text%s",
                  reading.n_retokenised, reading.n_answers,
                  reading.other_vocabulary ? ": another model's vocabulary" : "");
    ui_notice(host->ui, TONE_PLAIN, "%zu exchange%s loaded, %zu tok; /history shows them", n,
              n == 1 ? "" : "s", host->chat->n_used);
    return true;
}

bool cmd_sessions(struct command_host *host, struct bn_str args)
{
    struct strbuf names = {0};
    struct bn_error err;
    size_t n;
    (void)args; /* takes none */
    if (!store_list(&names, &n, &err))
        return show_error(host, &err);
    if (n == 0)
        ui_notice(host->ui, TONE_PLAIN, "nothing is saved yet; /save NAME does");
    else
        host->ui->ops->notice(host->ui, TONE_PLAIN,
                              (struct bn_str){names.ptr, names.n_bytes - 1}); /* without the last
                                                                                 newline */
    strbuf_finish(&names);
    return true;
}

/* ---- /export ---- */

enum export_kind { EXPORT_TEXT, EXPORT_MARKDOWN, EXPORT_JSONL };

static void export_message(FILE *f, enum export_kind kind, const char *role, struct bn_str text)
{
    if (kind == EXPORT_JSONL) {
        struct bn_error seen_by_fclose;
        json_t *o = json_object();
        if (o && json_out_add(o, "role", json_string(role)))
            (void)json_out_add(o, "content", json_out_text(text)); /* json_out_write fails on an
                                                                      incomplete object */
        (void)json_out_write(o, f, JSON_OUT_LINE, &seen_by_fclose);
        return;
    }
    fprintf(f, kind == EXPORT_MARKDOWN ? "## %s\n\n" : "%s:\n", role);
    fwrite(text.ptr, 1, text.n_bytes, f);
    fputs("\n\n", f);
}

static void export_all(FILE *f, enum export_kind kind, const struct transcript_state *s)
{
    if (s->system.n_bytes > 0)
        export_message(f, kind, "system", s->system);
    for (size_t i = 0; i < s->n; i++) {
        export_message(f, kind, "user", s->items[i]->user);
        if (s->items[i]->answer.finish != FINISH_NONE)
            export_message(f, kind, "assistant", s->items[i]->answer.text);
    }
}

bool cmd_export(struct command_host *host, struct bn_str args)
{
    struct strbuf path = {0};
    struct bn_str name = args;
    if (command_ends_with(name, "!"))
        name.n_bytes--;
    const enum export_kind kind = command_ends_with(name, ".md")      ? EXPORT_MARKDOWN
                                  : command_ends_with(name, ".jsonl") ? EXPORT_JSONL
                                                                      : EXPORT_TEXT;
    if (kind == EXPORT_TEXT && !command_ends_with(name, ".txt")) {
        ui_notice(host->ui, TONE_ERROR, "/export FILE with a name ending in .md, .txt or .jsonl");
        return false;
    }
    if (!command_may_write(host, "export", &args))
        return false;
    strbuf_add_str(&path, args);
    FILE *f = fopen(strbuf_text(&path), "wb");
    if (f)
        export_all(f, kind, &host->chat->transcript.now);
    bool ok = f && !ferror(f);
    if (f && fclose(f) != 0)
        ok = false;
    if (ok)
        ui_notice(host->ui, TONE_PLAIN, "written to %s", strbuf_text(&path));
    else
        ui_notice(host->ui, TONE_ERROR, "cannot write '%s': %s", strbuf_text(&path),
                  strerror(errno));
    strbuf_finish(&path);
    return ok;
}
