/*
 * The table of saved chats for people: see store_table in store.h. It reads each chat as a whole,
 * but without a vocabulary, so that no answer is decoded.
 */
#include "app/chat/conversation/store_format.h"

#include "app/common/term_text.h"
#include "engine/base/size.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define ROW_COLUMNS 79    /* a row is longer only if its name is so long */
#define OTHER_COLUMNS 29  /* of a row without the name and the first message */
#define NAME_COLUMNS 24   /* a longer name moves the rest of its row */
#define MAX_BYTES 4000000 /* a larger chat is not read, because this takes too long */

static const char unreadable[] = "(cannot be read)";

/* Append the time of the last change of a file or its journal, or blanks. */
static void add_time(const char *path, struct strbuf *out)
{
    char target[PATH_BYTES], journal[STORE_JOURNAL_PATH_BYTES], text[20] = "";
    struct stat file, more;
    struct tm local;
    path_follow(path, target);
    store_journal_path(target, journal);
    if (stat(path, &file) == 0) {
        time_t when = file.st_mtime;
        if (stat(journal, &more) == 0 && more.st_mtime > when)
            when = more.st_mtime;
        if (localtime_r(&when, &local))
            (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &local);
    }
    strbuf_addf(out, "%-16s", text);
}

/* Why the chat is not read for the table, or NULL. */
static const char *refusal(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode)) /* opening a FIFO would block */
        return unreadable;
    return file.st_size > MAX_BYTES ? "(large)" : NULL;
}

/* False: out of memory. */
static bool add_row(const char *name, size_t columns, const char *open_path, struct strbuf *out,
                    struct bn_error *err)
{
    const struct store reader = {.model_name = ""};
    char path[PATH_BYTES];
    struct transcript t = {0};
    struct store_reading reading;
    const size_t width = term_text_width(bn_str_of(name));
    const bool has_path = store_path(name, path, err);
    const bool is_open = has_path && open_path[0] && path_is_same(path, open_path);
    strbuf_addf(out, "%c %s%*s  ", is_open ? '*' : ' ', name,
                width < columns ? (int)(columns - width) : 0, "");
    add_time(has_path ? path : "", out);
    const char *why = has_path ? refusal(path) : unreadable;
    bool ok = true;
    if (!why && !store_read(&reader, path, &t, &reading, err)) {
        why = unreadable;
        ok = err->code != BN_ENOMEM;
    }
    if (why) {
        strbuf_addf(out, "      -  %s\n", why);
        return ok;
    }
    strbuf_addf(out, "  %5zu  ", t.now.n);
    const size_t used = OTHER_COLUMNS + size_max(width, columns);
    if (t.now.n > 0 && used < ROW_COLUMNS)
        term_text_brief(exchange_typed(t.now.items[0]), ROW_COLUMNS - used, out);
    strbuf_add_char(out, '\n');
    transcript_finish(&t);
    return true;
}

bool store_table(const char *open_path, struct strbuf *out, size_t *n_chats, struct bn_error *err)
{
    struct strbuf names = {0};
    if (!store_list(&names, n_chats, err)) {
        strbuf_finish(&names);
        return false;
    }
    size_t columns = strlen("name");
    for (char *at = names.ptr; *n_chats > 0 && *at; at += strlen(at) + 1) {
        at[strcspn(at, "\n")] = 0; /* each name ends with a newline; behind the last one is a 0 */
        const size_t width = term_text_width(bn_str_of(at));
        columns = width <= NAME_COLUMNS ? size_max(columns, width) : columns;
    }
    if (*n_chats > 0)
        strbuf_addf(out, "  %-*s  %-16s  %5s  %s\n", (int)columns, "name", "last change", "turns",
                    "first message");
    bool ok = true;
    for (char *at = names.ptr; ok && *n_chats > 0 && *at; at += strlen(at) + 1)
        ok = add_row(at, columns, open_path, out, err);
    strbuf_finish(&names);
    if (out->failed)
        return bn_fail(err, BN_ENOMEM, "out of memory for the list of saved chats");
    return ok;
}
