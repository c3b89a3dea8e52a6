/*
 * Opening and mapping a file. Directories, pipes and devices are refused by name before mmap gets
 * to say something less helpful about them.
 */
#include "engine/gguf/gguf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool map_descriptor(struct gguf_map *map, int fd, const char *path, struct bn_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return bn_fail(err, BN_EIO, "'%s': %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return bn_fail(err, BN_EIO, "'%s' is a directory, not a model file", path);
    if (!S_ISREG(st.st_mode))
        return bn_fail(err, BN_EIO, "'%s' is a pipe or device, not a regular file", path);
    if (st.st_size == 0)
        return bn_fail(err, BN_EFORMAT, "'%s' is empty", path);
    if ((uintmax_t)st.st_size > SIZE_MAX)
        return bn_fail(err, BN_EIO, "'%s' is too large for this machine to map", path);
    const size_t n_bytes = (size_t)st.st_size;
    void *p = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return bn_fail(err, BN_EIO, "'%s' cannot be mapped: %s", path, strerror(errno));
    *map = (struct gguf_map){p, n_bytes};
    return true;
}

bool gguf_map_open(struct gguf_map *map, const char *path, struct bn_error *err)
{
    /* O_NONBLOCK: a pipe without a writer must not hang; regular files do not care. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return bn_fail(err, BN_EIO, "cannot open '%s': %s", path, strerror(errno));
    const bool ok = map_descriptor(map, fd, path, err);
    (void)close(fd); /* only read; the mapping keeps the file */
    return ok;
}

void gguf_map_close(struct gguf_map *map)
{
    union {
        const uint8_t *shared;
        void *own;
    } p = {map->bytes}; /* munmap takes no const */
    if (p.own)
        (void)munmap(p.own, map->n_bytes); /* fails only on our own mistake */
    *map = (struct gguf_map){0};
}
