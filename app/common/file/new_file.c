/*
 * Writes a temporary file in the same directory and renames it: see new_file.h.
 *
 * Temporary names are NAME.tmp-XXXXXX.
 */
#define _GNU_SOURCE /* flock */
#include "app/common/file/new_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define RANDOM_BYTES 6 /* characters that mkstemp puts in place of XXXXXX */
#define MARK ".tmp-"

bool new_file_fail(const struct new_file *n, struct bn_error *err)
{
    return bn_fail(err, BN_EIO, "cannot write '%s': %s", n->path, strerror(errno));
}

/* ---- temporary files of killed programs ---- */

/* Whether the first n_bytes of `name` end with `end` and have at least one byte before it. */
static bool has_end(const char *name, size_t n_bytes, const char *end)
{
    const size_t n = strlen(end);
    return n_bytes > n && memcmp(name + n_bytes - n, end, n) == 0;
}

/* The length of NAME, the file that a temporary file was to replace; 0: not a temporary file. */
static size_t target_bytes(const char *name)
{
    const size_t n = strlen(name), n_mark = strlen(MARK);
    if (n <= RANDOM_BYTES)
        return 0;
    const size_t n_stem = n - RANDOM_BYTES;
    return has_end(name, n_stem, MARK) ? n_stem - n_mark : 0;
}

/* Remove a regular file unless a program is writing it or another user owns it. On a file system
 * without locks it stays. O_NONBLOCK: opening a FIFO of this name must not wait. */
static void remove_unlocked(int directory, const char *name)
{
    struct stat st;
    const int fd = openat(directory, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(directory, name, 0); /* if it stays, the next call tries again */
    (void)close(fd);
}

/* Remove the temporary files of killed programs: those of the file name `target`, or all if it is
 * NULL. */
static void clean(const char *directory, const char *target)
{
    DIR *dir = opendir(directory);
    if (!dir)
        return;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        const size_t n = target_bytes(e->d_name);
        if (n > 0 && (!target || (n == strlen(target) && memcmp(e->d_name, target, n) == 0)))
            remove_unlocked(dirfd(dir), e->d_name);
    }
    (void)closedir(dir); /* opened for reading: nothing can be lost */
}

void new_file_clean(const char *directory)
{
    clean(directory, NULL);
}

/* Remove the temporary files of killed programs for this path. */
static void clean_for(const char *path)
{
    char directory[PATH_BYTES];
    path_parent(path, directory);
    clean(directory, path_name(path));
}

/* ---- writing ---- */

/* Create a temporary file and lock it. Before it is locked, another program may regard it as one of
 * a killed program, lock it and remove it; then try again. On a file system without locks the file
 * has none. Returns a descriptor, or -1 with errno. */
static int open_temporary(struct new_file *n)
{
    for (;;) {
        (void)snprintf(n->temp_path, sizeof(n->temp_path), "%s" MARK "XXXXXX", n->path); /* fits */
        struct stat st;
        const int fd = mkstemp(n->temp_path); /* mode 0600 */
        if (fd < 0)
            return -1;
        const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
        const bool is_taken = !locked && errno == EWOULDBLOCK;
        if (!is_taken && fstat(fd, &st) == 0 && st.st_nlink > 0) {
            (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* cannot fail with this argument */
            return fd;
        }
        (void)close(fd); /* nothing was written */
    }
}

bool new_file_may_replace(const char *path, struct bn_error *err)
{
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode))
        return bn_fail(err, BN_EIO, "cannot write '%s': it is not a regular file", path);
    /* Renaming would replace it, because that needs only the permission of the directory. */
    if (exists && (st.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0)
        return bn_fail(err, BN_EIO, "cannot write '%s': it is write-protected", path);
    return true;
}

bool new_file_open(struct new_file *n, const char *path, struct bn_error *err)
{
    if (!path_make_parents(path, err)) /* refuses a path of PATH_BYTES or more */
        return false;
    path_follow(path, n->path);
    if (!new_file_may_replace(n->path, err))
        return false;
    clean_for(n->path);
    const int fd = open_temporary(n);
    if (fd < 0)
        return new_file_fail(n, err);
    n->f = fdopen(fd, "wb");
    if (n->f)
        return true;
    (void)new_file_fail(n, err);
    (void)unlink(n->temp_path); /* mkstemp has just created it */
    (void)close(fd);            /* nothing was written */
    return false;
}

bool new_file_close(struct new_file *n, enum new_file_end end, struct bn_error *err)
{
    const int lock = dup(fileno(n->f)); /* keeps the lock until the file has its name */
    bool ok = end != NEW_FILE_DROP;
    if (ok && (fflush(n->f) != 0 || (end == NEW_FILE_SYNC && fsync(fileno(n->f)) != 0)))
        ok = new_file_fail(n, err);
    if (fclose(n->f) != 0 && ok)
        ok = new_file_fail(n, err);
    if (ok && rename(n->temp_path, n->path) != 0)
        ok = bn_fail(err, BN_EIO, "cannot replace '%s': %s", n->path, strerror(errno));
    if (ok && end == NEW_FILE_SYNC)
        path_sync_parent(n->path);
    if (!ok)
        (void)unlink(n->temp_path); /* if this fails, the next new_file_open removes it */
    if (lock >= 0)
        (void)close(lock); /* only ends the lock: fclose has reported any error of writing */
    return ok;
}
