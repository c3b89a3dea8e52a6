/*
 * The directories of the program, names of files, and reading and writing whole files.
 *
 * Directories follow the XDG base directory specification: $XDG_CONFIG_HOME, else $HOME/.config,
 * and so on. As it requires, a relative value of an XDG variable is ignored, and so is one of
 * HOME.
 */
#ifndef APP_PATHS_H
#define APP_PATHS_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define PATH_BYTES 4096 /* PATH_MAX of Linux */

/* The directories of XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_DATA_HOME and XDG_CACHE_HOME. */
enum path_dir { PATH_CONFIG, PATH_STATE, PATH_DATA, PATH_CACHE };

/* Write the path of `name` in the program's folder of this directory to `out`, for example
 * "/home/anna/.config/bitnet-chat/config". No file is created. BN_EIO: neither the variable of the
 * directory nor HOME has an absolute path, or the path is too long; then `out` may hold a part. */
bool path_of(enum path_dir dir, const char *name, char out[PATH_BYTES], struct bn_error *err);

/* The home directory that "~" stands for, if `path` begins with "~/" and HOME is an absolute path;
 * else NULL. */
const char *path_home(struct bn_str path);

/* Copy the path, with the home directory in place of the "~" of path_home. A result of PATH_BYTES
 * or more is cut; no file can have such a path. */
void path_expand_home(const char *path, char out[PATH_BYTES]);

/* Create the missing directories above `path`, with mode 0700. BN_EIO, also if `path` has
 * PATH_BYTES bytes or more. */
bool path_make_parents(const char *path, struct bn_error *err);

/* The last part of `path`, which follows its last slash; "" if the path ends with a slash. Points
 * into `path`. */
const char *path_name(const char *path);
/* The directory of `path`, with a slash at the end; "." if the path has no slash. */
void path_parent(const char *path, char out[PATH_BYTES]);

/* Wait until the names in the directory of `path` are on disk: after a power failure, a file that
 * was created or renamed there still has its name. Does nothing on file systems that cannot do
 * this. */
void path_sync_parent(const char *path);

/* Write the path of the file that `path` names to `out`: the link's target if it is a symbolic
 * link to an existing file, else `path` itself, cut to PATH_BYTES - 1 bytes. */
void path_follow(const char *path, char out[PATH_BYTES]);
/* The absolute path of an existing file, without symbolic links. "": there is no such file, or its
 * path is too long. */
void path_canonical(const char *path, char out[PATH_BYTES]);

/* Whether the path ends with `suffix`, and has more than that. */
bool path_ends_with(const char *path, const char *suffix);

/* Whether both paths name the same existing file, or are the same text. */
bool path_is_same(const char *a, const char *b);

bool path_is_regular(const char *path); /* an existing file, not a directory, FIFO or device */

/* Read a whole file, or stdin for "-". *out has a 0 after *n_bytes bytes; free it with mem_free.
 * BN_EIO: not readable, a directory, or more than max_bytes. BN_ENOMEM. */
bool path_read_all(const char *path, size_t max_bytes, char **out, size_t *n_bytes,
                   struct bn_error *err);

/* Write all bytes to a blocking descriptor. False: errno says why; a part may be written. */
bool fd_write_all(int fd, const char *bytes, size_t n_bytes);

#endif
