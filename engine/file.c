/*
 * The public file handle: a read-only mapping, or memory of the caller, and the parsed file.
 *
 * The mapping is private and never written. If another process truncates the file while it is
 * mapped, the system ends this process; only a copy of the file could prevent that.
 */
#include "engine/file_gguf.h"

#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct bn_file {
    struct mem_map map; /* all zero for a file in memory */
    struct gguf *gguf;
    char *path;
};

static bool map_descriptor(struct mem_map *map, int fd, const char *path, struct bn_error *err)
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
    *map = (struct mem_map){p, n_bytes};
    return true;
}

static bool map_open(struct mem_map *map, const char *path, struct bn_error *err)
{
    /* O_NONBLOCK, so that a pipe without a writer does not block. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return bn_fail(err, BN_EIO, "cannot open '%s': %s", path, strerror(errno));
    const bool ok = map_descriptor(map, fd, path, err);
    (void)close(fd); /* only read; the mapping remains valid */
    return ok;
}

/* One file of a split model lacks most of the metadata or tensors and cannot be used alone. */
static bool refuse_shard(const struct gguf *g, struct bn_error *err)
{
    uint64_t n_shards;
    if (!gguf_get_u64(g, "split.count", &n_shards) || n_shards <= 1)
        return true;
    return bn_fail(err, BN_EUNSUPPORTED,
                   "this is one of %llu files of a split model: join them into one file first",
                   (unsigned long long)n_shards);
}

bool bn_file_open_memory(const void *bytes, size_t n_bytes, struct bn_file **out,
                         struct bn_error *err)
{
    struct bn_file *file = mem_alloc(1, sizeof(*file));
    if (!file)
        return bn_fail(err, BN_ENOMEM, "no memory to open a file");
    if (!gguf_parse(bytes, n_bytes, &file->gguf, err) || !refuse_shard(file->gguf, err)) {
        bn_file_close(file);
        return false;
    }
    *out = file;
    return true;
}

bool bn_file_open(const char *path, struct bn_file **out, struct bn_error *err)
{
    struct mem_map map = {0};
    if (!map_open(&map, path, err))
        return false;
    struct bn_file *file = NULL;
    if (!bn_file_open_memory(map.ptr, map.n_bytes, &file, err)) {
        mem_map_close(&map);
        return bn_fail_prefix(err, "%s", path);
    }
    file->map = map;
    file->path = mem_alloc(strlen(path) + 1, 1);
    if (!file->path) {
        bn_file_close(file);
        return bn_fail(err, BN_ENOMEM, "no memory to open '%s'", path);
    }
    memcpy(file->path, path, strlen(path) + 1);
    *out = file;
    return true;
}

void bn_file_close(struct bn_file *file)
{
    if (!file)
        return;
    gguf_close(file->gguf);
    mem_map_close(&file->map);
    mem_free(file->path);
    mem_free(file);
}

const struct gguf *bn_file_gguf(const struct bn_file *file)
{
    return file->gguf;
}

const char *bn_file_path(const struct bn_file *file)
{
    return file->path ? file->path : "";
}

size_t bn_file_bytes(const struct bn_file *file)
{
    return file->gguf->n_bytes;
}

bool bn_file_has(const struct bn_file *file, const char *key)
{
    return gguf_find_kv(file->gguf, key) != NULL;
}

bool bn_file_get_str(const struct bn_file *file, const char *key, struct bn_str *out)
{
    return gguf_get_str(file->gguf, key, out);
}

bool bn_file_get_u64(const struct bn_file *file, const char *key, uint64_t *out)
{
    return gguf_get_u64(file->gguf, key, out);
}

bool bn_file_get_f64(const struct bn_file *file, const char *key, double *out)
{
    return gguf_get_f64(file->gguf, key, out);
}

bool bn_file_get_bool(const struct bn_file *file, const char *key, bool *out)
{
    return gguf_get_bool(file->gguf, key, out);
}

static const struct gguf_kv *find_array(const struct bn_file *file, const char *key)
{
    const struct gguf_kv *kv = gguf_find_kv(file->gguf, key);
    return kv && kv->kind == GGUF_ARRAY ? kv : NULL;
}

bool bn_file_get_array(const struct bn_file *file, const char *key, size_t *n_items)
{
    const struct gguf_kv *kv = find_array(file, key);
    if (!kv)
        return false;
    *n_items = (size_t)kv->n_items; /* gguf_parse has checked that they are in the file */
    return true;
}

bool bn_file_array_f32(const struct bn_file *file, const char *key, float *out, size_t n_items)
{
    const struct gguf_kv *kv = find_array(file, key);
    if (!kv || kv->n_items < n_items)
        return false;
    for (size_t i = 0; i < n_items; i++) {
        double v;
        if (!gguf_item_f64(kv, i, &v))
            return false;
        out[i] = (float)v;
    }
    return true;
}

bool bn_file_array_i32(const struct bn_file *file, const char *key, int32_t *out, size_t n_items)
{
    const struct gguf_kv *kv = find_array(file, key);
    if (!kv || kv->n_items < n_items)
        return false;
    for (size_t i = 0; i < n_items; i++) {
        int64_t v;
        if (!gguf_item_i64(kv, i, &v) || v < INT32_MIN || v > INT32_MAX)
            return false;
        out[i] = (int32_t)v;
    }
    return true;
}

bool bn_file_walk_strs(const struct bn_file *file, const char *key, struct bn_str_walk *walk,
                       size_t *n_items)
{
    const struct gguf_kv *kv = find_array(file, key);
    if (!kv || kv->item_kind != GGUF_STR)
        return false;
    *walk = (struct bn_str_walk){kv->value, (size_t)kv->n_items};
    *n_items = (size_t)kv->n_items;
    return true;
}

bool bn_str_walk_next(struct bn_str_walk *walk, struct bn_str *out)
{
    if (walk->n_left == 0)
        return false;
    const size_t n_bytes = (size_t)le_u64(walk->at); /* checked by gguf_parse */
    *out = (struct bn_str){(const char *)walk->at + 8, n_bytes};
    walk->at += 8 + n_bytes;
    walk->n_left--;
    return true;
}

#define FINGERPRINT_TENSOR_BYTES 4096 /* hashing whole tensors would take seconds */

void bn_file_fingerprint(const struct bn_file *file, uint8_t out[BN_FINGERPRINT_BYTES])
{
    const struct gguf *g = file->gguf;
    struct sha256 sum;
    sha256_init(&sum);
    sha256_add(&sum, g->bytes, size_min(g->data_start, g->n_bytes));
    for (size_t i = 0; i < g->n_tensors; i++)
        sha256_add(&sum, g->bytes + g->tensors[i].offset,
                   size_min(g->tensors[i].n_bytes, FINGERPRINT_TENSOR_BYTES));
    sha256_end(&sum, out);
}
