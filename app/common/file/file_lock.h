/*
 * A lock between programs: the file PATH.lock, locked with flock. The lock ends with the program,
 * however it ends. The file contains a text about the holder, for messages. Any thread.
 */
#ifndef APP_FILE_LOCK_H
#define APP_FILE_LOCK_H

#include "app/common/file/paths.h"

struct file_lock {
    char path[PATH_BYTES + 8]; /* of the lock file; "" if the lock is not held. 8: for ".lock" */
    int fd;                    /* the open lock file, while the lock is held */
};

enum file_lock_result {
    FILE_LOCK_TAKEN,
    FILE_LOCK_BUSY, /* another program holds it, or another struct file_lock of this program */
    FILE_LOCK_NONE, /* the lock file cannot be opened or locked: for example the directory is
                       missing or read-only, the file system has no locks, or the file belongs to
                       another program */
};

#define FILE_LOCK_HOLDER_BYTES 160 /* a longer text about the holder is cut */

/* Try to take the lock for `path`, without waiting. `path` need not exist; for a symbolic link, the
 * lock is that of its target (path_follow). *lock is overwritten, and all zero if the lock is not
 * taken. FILE_LOCK_BUSY writes a phrase such as "process 123 on host, pts/4, since ..." to `holder`
 * (may be NULL). The phrase is safe for a terminal. The other results leave `holder` unchanged. */
enum file_lock_result file_lock_take(struct file_lock *lock, const char *path,
                                     char holder[FILE_LOCK_HOLDER_BYTES]);
/* Release the lock if it is held, and remove its file. */
void file_lock_release(struct file_lock *lock);

#endif
