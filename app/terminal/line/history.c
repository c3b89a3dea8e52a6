/*
 * The history file: see history.h. Readline's own file format is not used, because it would read
 * "#12" in a message as a time stamp.
 */
#define _GNU_SOURCE /* flock */
#include "app/terminal/line/history.h"

#include "engine/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#define MAX_BYTES ((size_t)16 << 20) /* a thousand very long entries */

void history_escape(struct bn_str entry, struct strbuf *out)
{
    for (size_t i = 0; i < entry.n_bytes; i++) {
        if (entry.ptr[i] == '\n')
            strbuf_add_text(out, "\\n");
        else if (entry.ptr[i] == '\\')
            strbuf_add_text(out, "\\\\");
        else if (entry.ptr[i] != 0)
            strbuf_add_char(out, entry.ptr[i]);
    }
}

void history_unescape(struct bn_str line, struct strbuf *out)
{
    for (size_t i = 0; i < line.n_bytes; i++) {
        if (line.ptr[i] == '\\' && i + 1 < line.n_bytes)
            strbuf_add_char(out, line.ptr[++i] == 'n' ? '\n' : line.ptr[i]);
        else if (line.ptr[i] != 0)
            strbuf_add_char(out, line.ptr[i]);
    }
}

/* Offset of the first of the last HISTORY_MAX_ENTRIES lines. */
static size_t trim_offset(struct bn_str text)
{
    size_t n_lines = 0;
    for (size_t i = text.n_bytes; i > 0; i--)
        if (text.ptr[i - 1] == '\n' && n_lines++ == HISTORY_MAX_ENTRIES)
            return i;
    return 0;
}

static void call_each_entry(struct history *h, struct bn_str text,
                            void (*each)(void *, const char *), void *ud)
{
    for (size_t at = 0; at < text.n_bytes;) {
        const char *end = memchr(text.ptr + at, '\n', text.n_bytes - at);
        const size_t n = end ? (size_t)(end - text.ptr) - at : text.n_bytes - at;
        strbuf_cut(&h->last, 0);
        history_unescape((struct bn_str){text.ptr + at, n}, &h->last);
        if (h->last.n_bytes > 0)
            each(ud, strbuf_text(&h->last));
        at += n + 1;
    }
}

/* Write the file in place, because other chats may have it open and wait for the lock. */
static bool rewrite(int fd, struct bn_str text)
{
    return ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 &&
           write(fd, text.ptr, text.n_bytes) == (ssize_t)text.n_bytes;
}

static bool read_fd(int fd, struct strbuf *out)
{
    char block[65536];
    for (ssize_t n; (n = read(fd, block, sizeof(block))) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || out->n_bytes > MAX_BYTES)
            return false;
        strbuf_add(out, block, (size_t)n);
    }
    return !out->failed;
}

bool history_load(struct history *h, void (*each)(void *ud, const char *entry), void *ud,
                  struct bn_error *err)
{
    struct strbuf text = {0};
    if (!h->path[0])
        return true;
    const int fd = open(h->path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ||
               bn_fail(err, BN_EIO, "cannot open '%s': %s", h->path, strerror(errno));
    bool ok = flock(fd, LOCK_EX) == 0 && read_fd(fd, &text);
    if (ok) {
        struct bn_str rest = strbuf_str(&text);
        const size_t n_cut = trim_offset(rest);
        rest = (struct bn_str){rest.ptr + n_cut, rest.n_bytes - n_cut};
        call_each_entry(h, rest, each, ud);
        ok = n_cut == 0 || rewrite(fd, rest);
    }
    if (!ok)
        (void)bn_fail(err, BN_EIO, "cannot read the history '%s'", h->path);
    strbuf_finish(&text);
    (void)close(fd); /* this also releases the lock */
    return ok;
}

bool history_add(struct history *h, struct bn_str entry, bool *added, struct bn_error *err)
{
    *added = entry.n_bytes > 0 && entry.ptr[0] != ' ' && entry.ptr[0] != '\n' &&
             !bn_str_equal(entry, strbuf_str(&h->last));
    if (!*added)
        return true;
    strbuf_cut(&h->last, 0);
    strbuf_add_str(&h->last, entry);
    if (!h->path[0])
        return true;
    struct strbuf line = {0};
    history_escape(entry, &line);
    strbuf_add_char(&line, '\n');
    bool ok = path_make_parents(h->path, err);
    if (ok) {
        const int fd = open(h->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        /* The lock is needed because a chat that trims the file rewrites it. */
        ok = fd >= 0 && flock(fd, LOCK_EX) == 0 &&
             write(fd, line.ptr, line.n_bytes) == (ssize_t)line.n_bytes;
        if (!ok)
            (void)bn_fail(err, BN_EIO, "cannot write '%s': %s", h->path, strerror(errno));
        if (fd >= 0)
            (void)close(fd); /* this also releases the lock */
    }
    strbuf_finish(&line);
    return ok;
}

void history_finish(struct history *h)
{
    strbuf_finish(&h->last);
}
