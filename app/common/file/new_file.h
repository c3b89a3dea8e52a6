/*
 * Atomic replacement of a file: a reader sees the old file or the complete new file. Any thread.
 *
 * The new file has a temporary name, and a lock while it is written. A temporary file that this
 * module can lock was left by a killed program. new_file_open and new_file_clean remove such files.
 */
#ifndef APP_NEW_FILE_H
#define APP_NEW_FILE_H

#include "app/common/file/paths.h"

#include <stdio.h>

struct new_file {
    FILE *f;                         /* the caller writes the contents to it */
    char path[PATH_BYTES];           /* the file to replace, the result of path_follow */
    char temp_path[PATH_BYTES + 16]; /* of the new file. 16: for ".tmp-XXXXXX" */
};

enum new_file_end {
    NEW_FILE_DROP, /* remove the new file; the old one stays */
    NEW_FILE_KEEP, /* replace the old file */
    NEW_FILE_SYNC, /* replace the old file after the new one is on disk (fsync) */
};

/* Whether new_file_open may replace the file. BN_EIO: it exists and is not a regular file, or is
 * write-protected (nobody may write). */
bool new_file_may_replace(const char *path, struct bn_error *err);

/* Open n->f for writing, with mode 0600, and create missing directories. A symbolic link to an
 * existing file stays, and its target is replaced; a link to nothing is replaced itself. Removes
 * temporary files that killed programs of this user left for this path. After success, call
 * new_file_close. BN_EIO, also if `path` is too long or new_file_may_replace is false. */
bool new_file_open(struct new_file *n, const char *path, struct bn_error *err);
/* Close n->f, and end as `end` says. NEW_FILE_DROP returns false and leaves err unchanged. BN_EIO:
 * the new file has been removed, and the old one stays. */
bool new_file_close(struct new_file *n, enum new_file_end end, struct bn_error *err);
/* For a failed write to n->f: sets err to BN_EIO with "cannot write 'PATH': " and the text of
 * errno. Returns false. */
bool new_file_fail(const struct new_file *n, struct bn_error *err);

/* Remove the temporary files in this directory that killed programs of this user left, for any
 * path. Files and directories that cannot be opened are passed over. */
void new_file_clean(const char *directory);

#endif
