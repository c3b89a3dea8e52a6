/*
 * A file that takes the place of another when it is whole: a reader sees the old or the new one,
 * never a part. Any thread.
 */
#ifndef APP_NEW_FILE_H
#define APP_NEW_FILE_H

#include "app/common/paths.h"

#include <stdio.h>

struct new_file {
    FILE *f;
    char path[PATH_BYTES], beside[PATH_BYTES + 8];
};

enum new_file_end {
    NEW_FILE_DROP, /* it is removed; the old one stays */
    NEW_FILE_KEEP,
    NEW_FILE_SYNC, /* keep, and on the disk before the old one is gone */
};

/* Opens n->f for writing, mode 0600; directories above it are made. Whoever opens it closes it.
 * BN_EIO. */
bool new_file_open(struct new_file *n, const char *path, struct bn_error *err);
/* False after NEW_FILE_DROP too, with err as it was. BN_EIO: dropped. */
bool new_file_close(struct new_file *n, enum new_file_end end, struct bn_error *err);
/* "cannot write 'PATH': " and what errno says; false. */
bool new_file_fail(const struct new_file *n, struct bn_error *err);

#endif
