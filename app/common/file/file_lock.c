/*
 * Lock files: see file_lock.h.
 *
 * The holder removes the file before it releases the lock. Another program may have opened the file
 * just before. So a lock counts only if the locked file is still the one with this name.
 */
#define _GNU_SOURCE /* flock */
#include "app/common/file/file_lock.h"

#include "app/common/strbuf.h"
#include "app/common/term_text.h"
#include "engine/base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A text of so many ASCII characters fits into FILE_LOCK_HOLDER_BYTES. A text with other characters
 * may be cut. */
#define HOLDER_COLUMNS 150
#define HOLDER_BEGIN "process "

/* Write who holds the lock. The text is only for messages, so a failure does not matter. */
static void write_holder(int fd)
{
    /* 65: HOST_NAME_MAX of Linux and a 0. A terminal with a longer name is left out. */
    char host[65] = "", when[40] = "", text[FILE_LOCK_HOLDER_BYTES];
    char tty[65] = "";
    struct tm local;
    const time_t now = time(NULL);
    if (localtime_r(&now, &local))
        (void)strftime(when, sizeof(when), ", since %Y-%m-%d %H:%M", &local);
    if (gethostname(host, sizeof(host)) != 0)
        host[0] = 0;
    if (ttyname_r(STDIN_FILENO, tty, sizeof(tty)) != 0)
        tty[0] = 0;
    const char *name = strncmp(tty, "/dev/", 5) == 0 ? tty + 5 : tty;
    const int n = snprintf(text, sizeof(text), HOLDER_BEGIN "%ld on %s%s%s%s\n", (long)getpid(),
                           host, name[0] ? ", " : "", name, when);
    if (n > 0 && ftruncate(fd, 0) == 0) /* with "!", gcc accepts that the result is ignored */
        (void)!pwrite(fd, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1, 0);
}

/* Read the first line of the lock file, or use "another process". */
static void read_holder(int fd, char holder[FILE_LOCK_HOLDER_BYTES])
{
    char text[FILE_LOCK_HOLDER_BYTES];
    struct strbuf clean = {0};
    const ssize_t n = pread(fd, text, sizeof(text), 0);
    if (n > 0) {
        const char *end = memchr(text, '\n', (size_t)n);
        const size_t n_line = end ? (size_t)(end - text) : (size_t)n;
        term_text_brief((struct bn_str){text, n_line}, HOLDER_COLUMNS, &clean);
    }
    if (clean.n_bytes >= FILE_LOCK_HOLDER_BYTES)
        strbuf_cut(&clean, utf8_valid_bytes(clean.ptr, FILE_LOCK_HOLDER_BYTES - 1));
    (void)snprintf(holder, FILE_LOCK_HOLDER_BYTES, "%s",
                   clean.n_bytes > 0 ? strbuf_text(&clean) : "another process");
    strbuf_finish(&clean);
}

/* Whether the file can be a lock file: it is empty or begins as write_holder writes it. A file of
 * this name may belong to another program, such as Pipfile.lock beside Pipfile. */
static bool is_ours(int fd)
{
    char text[sizeof(HOLDER_BEGIN) - 1];
    const ssize_t n = pread(fd, text, sizeof(text), 0);
    return n == 0 || (n == (ssize_t)sizeof(text) && memcmp(text, HOLDER_BEGIN, sizeof(text)) == 0);
}

/* Whether the open file is still the one with this name. */
static bool is_current(int fd, const char *path)
{
    struct stat open_file, named;
    return fstat(fd, &open_file) == 0 && stat(path, &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

enum file_lock_result file_lock_take(struct file_lock *lock, const char *path,
                                     char holder[FILE_LOCK_HOLDER_BYTES])
{
    char name[sizeof(lock->path)], target[PATH_BYTES];
    struct stat st;
    *lock = (struct file_lock){0};
    path_follow(path, target); /* so that a symbolic link and its target have one lock */
    (void)snprintf(name, sizeof(name), "%s.lock", target); /* 5 more bytes fit */
    for (;;) { /* again if the holder has removed the file between open and flock */
        /* O_NONBLOCK: opening a FIFO must not wait. O_NOFOLLOW: write_holder must not overwrite the
         * target of a link. */
        const int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
        if (fd < 0)
            return FILE_LOCK_NONE;
        const bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
        const bool taken = is_file && flock(fd, LOCK_EX | LOCK_NB) == 0;
        const bool is_busy = is_file && !taken && errno == EWOULDBLOCK;
        const bool is_foreign = taken && !is_ours(fd);
        if (taken && !is_foreign && is_current(fd, name)) {
            write_holder(fd);
            memcpy(lock->path, name, sizeof(name));
            lock->fd = fd;
            return FILE_LOCK_TAKEN;
        }
        if (is_busy && holder)
            read_holder(fd, holder);
        (void)close(fd); /* nothing was written that an error could lose */
        if (!taken || is_foreign)
            return is_busy ? FILE_LOCK_BUSY : FILE_LOCK_NONE;
    }
}

void file_lock_release(struct file_lock *lock)
{
    if (!lock->path[0])
        return;
    (void)unlink(lock->path); /* if it stays, the next lock uses it */
    (void)close(lock->fd);
    *lock = (struct file_lock){0};
}
