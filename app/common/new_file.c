/*
 * Writes a temporary file in the same directory and renames it: see new_file.h.
 */
#include "app/common/new_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool new_file_fail(const struct new_file *n, struct bn_error *err)
{
    return bn_fail(err, BN_EIO, "cannot write '%s': %s", n->path, strerror(errno));
}

bool new_file_open(struct new_file *n, const char *path, struct bn_error *err)
{
    if (!path_make_parents(path, err)) /* refuses a path of PATH_BYTES or more */
        return false;
    (void)snprintf(n->path, sizeof(n->path), "%s", path);
    (void)snprintf(n->temp_path, sizeof(n->temp_path), "%s.XXXXXX", path); /* 7 more bytes fit */
    const int fd = mkstemp(n->temp_path);                                  /* mode 0600 */
    if (fd < 0)
        return new_file_fail(n, err);
    n->f = fdopen(fd, "wb");
    if (n->f)
        return true;
    (void)new_file_fail(n, err);
    (void)close(fd);            /* nothing was written */
    (void)unlink(n->temp_path); /* mkstemp has just created it */
    return false;
}

bool new_file_close(struct new_file *n, enum new_file_end end, struct bn_error *err)
{
    bool ok = end != NEW_FILE_DROP;
    if (ok && (fflush(n->f) != 0 || (end == NEW_FILE_SYNC && fsync(fileno(n->f)) != 0)))
        ok = new_file_fail(n, err);
    if (fclose(n->f) != 0 && ok)
        ok = new_file_fail(n, err);
    if (ok && rename(n->temp_path, n->path) != 0)
        ok = bn_fail(err, BN_EIO, "cannot replace '%s': %s", n->path, strerror(errno));
    if (!ok)
        (void)unlink(n->temp_path); /* if this fails, an unused file remains */
    return ok;
}
