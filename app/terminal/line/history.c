/*
 * The history file: see history.h. Readline's own file format is not used, because it would read
 * "#12" in a message as a time stamp.
 */
#include "app/terminal/line/history.h"

#include "app/common/file/file_lock.h"
#include "app/common/file/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_BYTES (16 << 20) /* only this much of the file's end is read: 1000 entries of 16 KiB */

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
        if (line.ptr[i] == '\\' && i + 1 < line.n_bytes && line.ptr[i + 1] != 0)
            strbuf_add_char(out, line.ptr[++i] == 'n' ? '\n' : line.ptr[i]);
        else if (line.ptr[i] != 0)
            strbuf_add_char(out, line.ptr[i]);
    }
}

/* The offset where the last HISTORY_MAX_ENTRIES lines begin. An incomplete line at the end, without
 * a newline, is not counted. */
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
    struct bn_str line;
    for (size_t at = 0; bn_str_next_line(text, &at, &line);) {
        strbuf_cut(&h->last, 0);
        history_unescape(line, &h->last);
        if (h->last.n_bytes > 0)
            each(ud, strbuf_text(&h->last));
    }
}

/* Open the file if it is a regular file. O_NONBLOCK: open must not wait for the other end of a
 * FIFO. Returns the descriptor, or -1 after setting *err. */
static int open_regular(const char *path, int flags, struct stat *st, struct bn_error *err)
{
    const int fd = open(path, flags | O_NONBLOCK | O_CLOEXEC, 0600);
    const int why = errno;
    if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode))
        return fd;
    if (fd < 0 && why != ENXIO) /* ENXIO: a FIFO that nobody reads, or a socket */
        (void)bn_fail(err, BN_EIO, "cannot open '%s': %s", path, strerror(why));
    else
        (void)bn_fail(err, BN_EIO, "cannot use '%s': it is not a regular file", path);
    if (fd >= 0)
        (void)close(fd); /* nothing was written */
    return -1;
}

/* Append the last MAX_BYTES bytes of the file to `out`, from the beginning of a line on. n_bytes is
 * the size of the file. */
static bool read_end(int fd, off_t n_bytes, struct strbuf *out)
{
    char block[65536];
    const bool is_cut = n_bytes > MAX_BYTES;
    if (is_cut && lseek(fd, n_bytes - MAX_BYTES, SEEK_SET) < 0)
        return false;
    /* 2 * MAX_BYTES: another program may append lines at the same time, but this loop must end. */
    for (ssize_t n; (n = read(fd, block, sizeof(block))) != 0 && out->n_bytes < 2 * MAX_BYTES;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        strbuf_add(out, block, (size_t)n);
    }
    const char *newline = is_cut ? memchr(strbuf_text(out), '\n', out->n_bytes) : NULL;
    if (is_cut)
        strbuf_drop(out, newline ? (size_t)(newline - out->ptr) + 1 : out->n_bytes);
    return !out->failed;
}

/* Replace the file. If that fails, the old file stays, and the next start of a chat tries again. */
static void rewrite(const char *path, struct bn_str text)
{
    struct new_file n;
    struct bn_error ignored; /* the old file has all entries */
    if (!new_file_open(&n, path, &ignored))
        return;
    const bool ok = fwrite(text.ptr, 1, text.n_bytes, n.f) == text.n_bytes;
    (void)new_file_close(&n, ok ? NEW_FILE_SYNC : NEW_FILE_DROP, &ignored);
}

bool history_load(struct history *h, void (*each)(void *ud, const char *entry), void *ud,
                  struct bn_error *err)
{
    struct strbuf text = {0};
    struct stat st;
    struct file_lock lock;
    if (!h->path[0] || access(h->path, F_OK) != 0)
        return true;
    /* Take the lock before reading: the rewrite would lose an entry that is added in between. */
    const bool locked = file_lock_take(&lock, h->path, NULL) == FILE_LOCK_TAKEN;
    const int fd = open_regular(h->path, O_RDONLY, &st, err);
    bool ok = fd >= 0;
    if (ok && !read_end(fd, st.st_size, &text))
        ok = bn_fail(err, BN_EIO, "cannot read the history '%s'", h->path);
    if (ok) {
        struct bn_str rest = strbuf_str(&text);
        const size_t n_cut = trim_offset(rest);
        rest = (struct bn_str){rest.ptr + n_cut, rest.n_bytes - n_cut};
        call_each_entry(h, rest, each, ud);
        if (locked && rest.n_bytes < (size_t)st.st_size)
            rewrite(h->path, rest);
    }
    strbuf_finish(&text);
    if (fd >= 0)
        (void)close(fd); /* opened for reading: nothing can be lost */
    file_lock_release(&lock);
    return ok;
}

/* Append the lines. After an error, remove what was written of them. */
static bool append(const char *path, struct bn_str lines, struct bn_error *err)
{
    struct stat st;
    const int fd = open_regular(path, O_WRONLY | O_APPEND | O_CREAT, &st, err);
    if (fd < 0)
        return false;
    const bool ok = fd_write_all(fd, lines.ptr, lines.n_bytes);
    if (!ok) {
        (void)bn_fail(err, BN_EIO, "cannot write '%s': %s", path, strerror(errno));
        /* If the file cannot be shortened either, a part of the lines stays. `!`: gcc warns about
         * an ignored result even after a cast to void. */
        (void)!ftruncate(fd, st.st_size);
    }
    (void)close(fd); /* local file systems report errors in write, not in close */
    return ok;
}

/* Append the waiting lines under the lock. If another program holds the lock, the lines stay in
 * h->waiting, and the result is true. Where no lock is possible, they are appended without one. */
static bool append_waiting(struct history *h, struct bn_error *err)
{
    struct file_lock lock;
    if (!path_make_parents(h->path, err))
        return false;
    if (file_lock_take(&lock, h->path, NULL) == FILE_LOCK_BUSY)
        return true;
    const bool ok = append(h->path, strbuf_str(&h->waiting), err);
    file_lock_release(&lock);
    strbuf_cut(&h->waiting, 0);
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
    if (!h->path[0] || h->is_off || entry.n_bytes > HISTORY_ENTRY_BYTES)
        return true;
    const size_t n_before = h->waiting.n_bytes;
    history_escape(entry, &h->waiting);
    strbuf_add_char(&h->waiting, '\n');
    if (h->waiting.failed) { /* drop the part of this line: the next line would continue it */
        strbuf_cut(&h->waiting, n_before);
        h->waiting.failed = false;
        return bn_fail(err, BN_ENOMEM, "out of memory for the history");
    }
    return append_waiting(h, err);
}

void history_finish(struct history *h)
{
    struct bn_error ignored; /* the program ends, and the message would not be shown */
    if (h->path[0] && h->waiting.n_bytes > 0 && append_waiting(h, &ignored) &&
        h->waiting.n_bytes > 0)
        /* Without the lock: if the other program rewrites the file just now, these lines are lost.
         * It probably only appends a line. */
        (void)append(h->path, strbuf_str(&h->waiting), &ignored);
    strbuf_finish(&h->last);
    strbuf_finish(&h->waiting);
}
