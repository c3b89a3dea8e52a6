/*
 * Atomic replacement of a file: a reader sees the old file or the complete new file. Any thread.
 */
#ifndef APP_NEW_FILE_H
#define APP_NEW_FILE_H

#include "app/common/paths.h"

#include <stdio.h>

struct new_file {
    FILE *f;
    char path[PATH_BYTES], temp_path[PATH_BYTES + 8];
};

enum new_file_end {
    NEW_FILE_DROP, /* remove the new file; the old one stays */
    NEW_FILE_KEEP, /* replace the old file */
    NEW_FILE_SYNC, /* replace it after the new file is on disk */
};

/* Open n->f for writing, with mode 0600, and create missing directories. After success, call
 * new_file_close. BN_EIO. */
bool new_file_open(struct new_file *n, const char *path, struct bn_error *err);
/* Returns false and leaves err unchanged if `end` is NEW_FILE_DROP. BN_EIO: the new file has been
 * removed, and the old one stays. */
bool new_file_close(struct new_file *n, enum new_file_end end, struct bn_error *err);
/* Sets err to "cannot write 'PATH': " and the text of errno. Returns false. */
bool new_file_fail(const struct new_file *n, struct bn_error *err);

#endif
