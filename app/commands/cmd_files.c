/*
 * Commands about files: /file /save /load /sessions /export.
 */
#include "app/commands/commands.h"

#include "app/common/input_text.h"
#include "app/common/json_out.h"
#include "app/common/term_text.h"
#include "engine/base/size.h"

#include <unistd.h>

static bool attach(struct command_host *host, const char *path)
{
    struct bn_error err;
    const size_t n_before = host->attachments->n_bytes;
    if (!input_attach(path, host->attachments, &err)) {
        strbuf_cut(host->attachments, n_before);
        return command_fail(host, err.text);
    }
    strbuf_add_char(host->attachments, '\n');
    const struct bn_str text = {host->attachments->ptr + n_before,
                                host->attachments->n_bytes - n_before};
    ui_notice(host->ui, TONE_PLAIN, "%s will be sent before your next message: %zu bytes, %zu tok",
              path, text.n_bytes, command_count_tokens(host, text));
    return true;
}

/* The argument is one path, which may contain blanks, or several paths. */
bool cmd_file(struct command_host *host, struct bn_str args)
{
    struct strbuf paths = {0};
    bool ok = true;
    if (args.n_bytes == 0)
        return command_fail(host, "usage: /file PATH ...");
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

/* The path of the saved chat that the argument names; without one, of the current saved chat. */
static bool session_path(struct command_host *host, struct bn_str args, char out[PATH_BYTES])
{
    struct strbuf name = {0};
    struct bn_error err;
    if (args.n_bytes == 0) {
        memcpy(out, host->chat->store->session_path, PATH_BYTES);
        if (!out[0])
            ui_notice(host->ui, TONE_ERROR,
                      "a name is needed; /sessions lists the saved conversations");
        return out[0] != 0;
    }
    strbuf_add_str(&name, args);
    const bool ok = store_path(strbuf_text(&name), out, &err) || command_fail(host, err.text);
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
        ui_notice(host->ui, TONE_ERROR, "%s already exists; /save %.*s! replaces it", path,
                  (int)args.n_bytes, args.ptr);
        return false;
    }
    if (!store_write(host->chat->store, &host->chat->transcript.now, path, &err))
        return command_fail(host, err.text);
    memcpy(host->chat->store->session_path, path, sizeof(path));
    host->chat->transcript.unsaved = false;
    ui_notice(host->ui, TONE_PLAIN, "%zu turn%s saved in %s", host->chat->transcript.now.n,
              host->chat->transcript.now.n == 1 ? "" : "s", path);
    chat_write_snapshot(host->chat, path);
    return true;
}

bool cmd_load(struct command_host *host, struct bn_str args)
{
    char path[PATH_BYTES];
    struct transcript loaded = {0};
    struct store_reading reading;
    struct strbuf said = {0};
    struct bn_error err;
    if (!session_path(host, args, path))
        return false;
    if (access(path, F_OK) != 0 && args.n_bytes > 0 && !memchr(args.ptr, '/', args.n_bytes)) {
        ui_notice(host->ui, TONE_ERROR,
                  "there is no saved conversation '%.*s'; /sessions lists them",
                  (int)size_min(args.n_bytes, 200), args.ptr);
        return false;
    }
    if (!store_read(host->chat->store, path, &loaded, &reading, &err))
        return command_fail(host, err.text);
    const size_t n = loaded.now.n;
    if (!transcript_replace(&host->chat->transcript, &loaded))
        return command_fail(host, "out of memory: nothing was changed");
    memcpy(host->chat->store->session_path, path, sizeof(path));
    host->chat->transcript.unsaved = false;
    const size_t n_tokens = chat_count(host->chat);
    host->chat->n_used = n_tokens == SIZE_MAX ? 0 : n_tokens;
    chat_use_snapshot(host->chat, path);
    store_reading_text(&reading, &said);
    if (said.n_bytes > 0)
        host->ui->ops->notice(host->ui, reading.n_forged > 0 ? TONE_WARNING : TONE_NOTE,
                              strbuf_str(&said));
    strbuf_finish(&said);
    ui_notice(host->ui, TONE_PLAIN, "%zu turn%s loaded, %zu tok; /history shows them", n,
              n == 1 ? "" : "s", host->chat->n_used);
    return true;
}

bool cmd_sessions(struct command_host *host, struct bn_str args)
{
    struct strbuf names = {0};
    struct bn_error err;
    size_t n;
    (void)args; /* no arguments */
    if (!store_list(&names, &n, &err))
        return command_fail(host, err.text);
    if (n == 0)
        ui_notice(host->ui, TONE_PLAIN, "no conversation is saved yet; /save NAME saves this one");
    else
        host->ui->ops->notice(host->ui, TONE_PLAIN,
                              (struct bn_str){names.ptr, names.n_bytes - 1}); /* without the last
                                                                                 newline */
    strbuf_finish(&names);
    return true;
}

/* ---- /export ---- */

enum export_kind { EXPORT_TEXT, EXPORT_MARKDOWN, EXPORT_JSONL };

static void export_message(struct strbuf *out, enum export_kind kind, const char *role,
                           struct bn_str text)
{
    if (kind == EXPORT_JSONL) {
        json_out_line(json_pack("{s:s, s:o}", "role", role, "content", json_out_text(text)), out);
        return;
    }
    strbuf_addf(out, kind == EXPORT_MARKDOWN ? "## %s\n\n" : "%s:\n", role);
    strbuf_add_str(out, text);
    strbuf_add_text(out, "\n\n");
}

static void export_all(struct strbuf *out, enum export_kind kind, const struct transcript_state *s)
{
    if (s->system.n_bytes > 0)
        export_message(out, kind, "system", s->system);
    for (size_t i = 0; i < s->n; i++) {
        export_message(out, kind, "user", s->items[i]->user);
        if (s->items[i]->answer.finish != FINISH_NONE)
            export_message(out, kind, "assistant", s->items[i]->answer.text);
    }
}

bool cmd_export(struct command_host *host, struct bn_str args)
{
    struct strbuf text = {0};
    struct bn_str name = args;
    if (command_ends_with(name, "!"))
        name.n_bytes--;
    const enum export_kind kind = command_ends_with(name, ".md")      ? EXPORT_MARKDOWN
                                  : command_ends_with(name, ".jsonl") ? EXPORT_JSONL
                                                                      : EXPORT_TEXT;
    if (kind == EXPORT_TEXT && !command_ends_with(name, ".txt"))
        return command_fail(host, "usage: /export FILE, with a name ending in .md, .txt or .jsonl");
    export_all(&text, kind, &host->chat->transcript.now);
    const bool ok = command_write_file(host, "export", args, &text);
    strbuf_finish(&text);
    return ok;
}
