/*
 * Functions that several commands share: see commands.h.
 */
#include "app/commands/commands.h"

#include "app/common/file/new_file.h"
#include "app/common/input_text.h"
#include "engine/base/size.h"

#include <sys/stat.h>
#include <unistd.h>

void command_save_chat(struct command_host *host)
{
    if (!chat_save(host->chat))
        host->write_failed = true;
}

bool command_fail(struct command_host *host, const char *reason)
{
    host->ui->ops->notice(host->ui, TONE_ERROR, bn_str_of(reason));
    return false;
}

bool command_fail_error(struct command_host *host, const struct bn_error *err)
{
    if (err->code == BN_ECONTEXT)
        host->failure = ENTRY_TOO_LONG;
    return command_fail(host, err->text);
}

bool command_set_file_failed(struct command_host *host)
{
    host->failure = ENTRY_NO_FILE;
    return false;
}

bool command_fail_file(struct command_host *host, const struct bn_error *err)
{
    (void)command_fail_error(host, err);
    return err->code != BN_EARG && err->code != BN_ECONTEXT && err->code != BN_ENOMEM &&
           command_set_file_failed(host);
}

size_t command_count_tokens(const struct command_host *host, struct bn_str text)
{
    struct token_list ids = {0};
    struct bn_error ignored; /* a failure counts as 0 */
    const struct segment s = {.kind = SEGMENT_MESSAGE, .text = text, .message = SEGMENT_NO_MESSAGE};
    (void)tokenizer_encode(host->chat->model->tokenizer, &s, 1, TOKENIZER_BOS_NEVER, &ids,
                           &ignored);
    const size_t n = ids.n;
    token_list_finish(&ids);
    return n;
}

bool command_number(struct command_host *host, struct bn_str args, size_t fallback, size_t max,
                    size_t *out)
{
    size_t n = 0;
    if (args.n_bytes == 0) {
        *out = fallback;
        return true;
    }
    for (size_t i = 0; i < args.n_bytes; i++) {
        if (args.ptr[i] < '0' || args.ptr[i] > '9') {
            n = 0;
            break;
        }
        if (n <= max) /* before an overflow */
            n = 10 * n + (size_t)(args.ptr[i] - '0');
    }
    const bool is_limited = max <= INT32_MAX;
    if (n >= 1 && (n <= max || !is_limited)) {
        *out = size_min(n, max);
        return true;
    }
    if (!is_limited)
        return command_fail(host, "expected a whole number of at least 1");
    ui_notice(host->ui, TONE_ERROR, "expected a whole number from 1 to %zu", max);
    return false;
}

void command_path(struct bn_str arg, struct strbuf *out)
{
    const size_t n_before = out->n_bytes;
    strbuf_add_str(out, arg);
    if (access(strbuf_text(out) + n_before, F_OK) == 0)
        return;
    strbuf_cut(out, n_before);
    input_one_path(arg, out);
}

bool command_cut_bang(struct bn_str *args)
{
    size_t n_backslashes = 0;
    if (args->n_bytes < 2 || args->ptr[args->n_bytes - 1] != '!')
        return false;
    while (n_backslashes < args->n_bytes - 1 &&
           args->ptr[args->n_bytes - 2 - n_backslashes] == '\\')
        n_backslashes++;
    if (n_backslashes % 2 == 1)
        return false;
    args->n_bytes--;
    return true;
}

bool command_may_write(struct command_host *host, const char *command, struct bn_str args,
                       const char *path)
{
    struct stat st;
    struct bn_error err;
    const bool replaces = command_cut_bang(&args), exists = stat(path, &st) == 0;
    if (!path[0])
        return command_fail(host, "the name of the file is empty");
    if (!store_has_folder(path, &err))
        return command_fail_file(host, &err);
    if (exists && S_ISDIR(st.st_mode)) {
        ui_notice(host->ui, TONE_ERROR, "%s is a directory; a name for the file is missing", path);
        return command_set_file_failed(host);
    }
    if (!exists || replaces)
        return true;
    ui_notice(host->ui, TONE_ERROR, "%s already exists; /%s %.*s! replaces it", path, command,
              (int)size_min(args.n_bytes, 400), args.ptr);
    return false;
}

bool command_export_text(struct command_host *host, const char *command, struct bn_str args,
                         const struct strbuf *text)
{
    struct strbuf path = {0};
    struct bn_str name = args;
    (void)command_cut_bang(&name); /* command_may_write examines it */
    command_path(name, &path);
    const char *file = strbuf_text(&path);
    struct new_file n;
    struct bn_error err;
    bool ok = false;
    if (text->failed || path.failed) {
        (void)command_fail(host, "out of memory for the text of the file");
    } else if (command_may_write(host, command, args, file)) {
        ok = new_file_open(&n, file, &err);
        if (ok) {
            ok = fwrite(strbuf_text(text), 1, text->n_bytes, n.f) == text->n_bytes ||
                 new_file_fail(&n, &err);
            ok = new_file_close(&n, ok ? NEW_FILE_SYNC : NEW_FILE_DROP, &err);
        }
        if (ok)
            ui_notice(host->ui, TONE_PLAIN, "%zu bytes written to %s", text->n_bytes, file);
        else
            (void)command_fail_file(host, &err);
    }
    strbuf_finish(&path);
    return ok;
}
