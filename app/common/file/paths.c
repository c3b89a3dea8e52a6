/*
 * Directories of the program, names of files, reading and writing whole files: see paths.h.
 */
#define _GNU_SOURCE /* realpath */
#include "app/common/file/paths.h"

#include "app/common/env.h"
#include "engine/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    enum env_var var;
    const char *below_home;
} dirs[] = {
    [PATH_CONFIG] = {ENV_XDG_CONFIG_HOME, ".config"},
    [PATH_STATE] = {ENV_XDG_STATE_HOME, ".local/state"},
    [PATH_DATA] = {ENV_XDG_DATA_HOME, ".local/share"},
    [PATH_CACHE] = {ENV_XDG_CACHE_HOME, ".cache"},
};

/* HOME, or NULL if it is not an absolute path. With a relative one, the files would be at another
 * place in each working directory. */
static const char *home_dir(void)
{
    const char *home = env_get(ENV_HOME);
    return home && home[0] == '/' ? home : NULL;
}

bool path_of(enum path_dir dir, const char *name, char out[PATH_BYTES], struct bn_error *err)
{
    const char *base = env_get(dirs[dir].var), *home = home_dir();
    int n;
    if (base && base[0] == '/')
        n = snprintf(out, PATH_BYTES, "%s/bitnet-chat/%s", base, name);
    else if (home)
        n = snprintf(out, PATH_BYTES, "%s/%s/bitnet-chat/%s", home, dirs[dir].below_home, name);
    else if (env_get(ENV_HOME))
        return bn_fail(err, BN_EIO, "HOME is not an absolute path: '%.60s'", env_get(ENV_HOME));
    else
        return bn_fail(err, BN_EIO, "neither %s nor HOME is set", env_name(dirs[dir].var));
    if (n < 0 || n >= PATH_BYTES)
        return bn_fail(err, BN_EIO, "the path of '%s' is longer than %d bytes", name,
                       PATH_BYTES - 1);
    return true;
}

const char *path_home(struct bn_str path)
{
    const bool has_tilde = path.n_bytes >= 2 && path.ptr[0] == '~' && path.ptr[1] == '/';
    return has_tilde ? home_dir() : NULL;
}

void path_expand_home(const char *path, char out[PATH_BYTES])
{
    const char *home = path_home(bn_str_of(path));
    (void)snprintf(out, PATH_BYTES, "%s%s", home ? home : "", home ? path + 1 : path);
}

bool path_make_parents(const char *path, struct bn_error *err)
{
    char dir[PATH_BYTES];
    const size_t n = strlen(path);
    if (n >= sizeof(dir))
        return bn_fail(err, BN_EIO, "a path of %zu bytes is too long", n);
    memcpy(dir, path, n + 1);
    /* From the second character on: a slash at the start is the root directory, which exists. */
    for (char *slash = strchr(dir + (n > 0), '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(dir, 0700) != 0 && errno != EEXIST)
            return bn_fail(err, BN_EIO, "cannot make the directory '%s': %s", dir, strerror(errno));
        *slash = '/';
    }
    return true;
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

void path_parent(const char *path, char out[PATH_BYTES])
{
    /* The slash stays, because alone it is the name of the root directory. */
    const int n_parent = (int)(path_name(path) - path);
    (void)snprintf(out, PATH_BYTES, "%.*s", n_parent ? n_parent : 1, n_parent ? path : ".");
}

void path_sync_parent(const char *path)
{
    char dir[PATH_BYTES];
    path_parent(path, dir);
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd); /* EINVAL: this file system cannot do it */
    (void)close(fd);
}

void path_follow(const char *path, char out[PATH_BYTES])
{
    struct stat st;
    char *target = lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : NULL;
    const char *chosen = target && strlen(target) < PATH_BYTES ? target : path;
    (void)snprintf(out, PATH_BYTES, "%s", chosen);
    free(target);
}

void path_canonical(const char *path, char out[PATH_BYTES])
{
    char *whole = realpath(path, NULL);
    (void)snprintf(out, PATH_BYTES, "%s", whole && strlen(whole) < PATH_BYTES ? whole : "");
    free(whole);
}

bool path_ends_with(const char *path, const char *suffix)
{
    const size_t n = strlen(path), n_suffix = strlen(suffix);
    return n > n_suffix && strcmp(path + n - n_suffix, suffix) == 0;
}

bool path_is_same(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return strcmp(a, b) == 0 || (stat(a, &of_a) == 0 && stat(b, &of_b) == 0 &&
                                 of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino);
}

bool path_is_regular(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Read f to its end, in steps of at least 4095 bytes. The size is not known in advance: stdin may
 * be a pipe. `path` is for messages. */
static bool read_stream(FILE *f, const char *path, size_t max_bytes, char **out, size_t *n_bytes,
                        struct bn_error *err)
{
    char *text = NULL;
    size_t n = 0, cap = 0;
    for (;;) {
        if (!mem_grow(&text, &cap, n + 4096, 1)) {
            mem_free(text);
            return bn_fail(err, BN_ENOMEM, "out of memory for '%s' (%zu bytes so far)", path, n);
        }
        const size_t got = fread(text + n, 1, cap - n - 1, f);
        n += got;
        if (got == 0 || n > max_bytes)
            break;
    }
    if (ferror(f) || n > max_bytes) {
        mem_free(text);
        if (n > max_bytes)
            return bn_fail(err, BN_EIO, "'%s' is larger than %zu bytes", path, max_bytes);
        return bn_fail(err, BN_EIO, "cannot read '%s': %s", path, strerror(errno));
    }
    text[n] = '\0';
    *out = text;
    *n_bytes = n;
    return true;
}

bool path_read_all(const char *path, size_t max_bytes, char **out, size_t *n_bytes,
                   struct bn_error *err)
{
    if (strcmp(path, "-") == 0)
        return read_stream(stdin, "standard input", max_bytes, out, n_bytes, err);
    FILE *f = fopen(path, "rb");
    if (!f)
        return bn_fail(err, BN_EIO, "cannot open '%s': %s", path, strerror(errno));
    const bool ok = read_stream(f, path, max_bytes, out, n_bytes, err);
    (void)fclose(f); /* only read */
    return ok;
}

bool fd_write_all(int fd, const char *bytes, size_t n_bytes)
{
    /* On a full disk, the first write is short and sets no errno; the next one does. */
    for (size_t at = 0; at < n_bytes;) {
        const ssize_t n = write(fd, bytes + at, n_bytes - at);
        if (n > 0)
            at += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return false;
    }
    return true;
}
