/*
 * The public file handle: a read-only mapping of each part of a file, or memory of the caller, and
 * the parsed file.
 *
 * Mappings are private and never written. If another process truncates the file while it is
 * mapped, an access beyond its new end raises SIGBUS. Only a copy of the file could prevent that.
 */
#include "engine/file_gguf.h"

#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"
#include "engine/gguf/refusal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct bn_file {
    struct mem_map *maps; /* (n_maps) one for each part of a split model, else one; none for a
                           * file in memory */
    size_t n_maps;
    struct gguf *gguf;
    char *path; /* NULL for a file in memory */
};

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0;
}

/* Fail, because `path` is a directory. The message names the first GGUF file in it in alphabetical
 * order. If it has no GGUF files, but files of other formats, as many repositories of Hugging Face,
 * the message refers to docs/models.md. */
static bool refuse_directory(const char *path, struct bn_error *err)
{
    char gguf[NAME_MAX + 1] = "";
    bool has_other_format = false;
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        const char *name = entry->d_name;
        if (ends_with(name, ".gguf") && (!gguf[0] || strcmp(name, gguf) < 0))
            (void)snprintf(gguf, sizeof(gguf), "%s", name);
        has_other_format |= ends_with(name, ".safetensors") || ends_with(name, ".bin");
    }
    if (dir)
        (void)closedir(dir);
    if (gguf[0])
        return bn_fail(err, BN_EIO, "'%s' is a directory; name a file in it, for example %s", path,
                       gguf);
    if (has_other_format) {
        return refusal_fail(err, REFUSED_SAFETENSORS, BN_EIO,
                            "'%s' is a directory without GGUF files", path);
    }
    return bn_fail(err, BN_EIO, "'%s' is a directory, not a model file", path);
}

/* Files of the kernel, such as those in /proc, have contents but the size 0, or cannot be read. */
static bool refuse_empty(int fd, const char *path, struct bn_error *err)
{
    char byte;
    const ssize_t n_read = read(fd, &byte, 1);
    if (n_read < 0)
        return bn_fail(err, BN_EIO, "'%s': %s", path, strerror(errno));
    if (n_read > 0)
        return bn_fail(err, BN_EIO, "'%s' is a file of the system without a size, not a model file",
                       path);
    return bn_fail(err, BN_EFORMAT, "'%s' is empty", path);
}

static bool map_descriptor(struct mem_map *map, int fd, const char *path, struct bn_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return bn_fail(err, BN_EIO, "'%s': %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return refuse_directory(path, err);
    if (!S_ISREG(st.st_mode))
        return bn_fail(err, BN_EIO, "'%s' is a pipe or device, not a regular file", path);
    if (st.st_size == 0)
        return refuse_empty(fd, path, err);
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
    (void)close(fd); /* the mapping remains valid; nothing was written that could be lost */
    return ok;
}

bool bn_file_open_memory(const void *bytes, size_t n_bytes, struct bn_file **out,
                         struct bn_error *err)
{
    size_t number, count;
    struct bn_file *file = mem_alloc(1, sizeof(*file));
    if (!file)
        return bn_fail(err, BN_ENOMEM, "no memory to open a file");
    bool ok = gguf_parse(bytes, n_bytes, &file->gguf, err) &&
              gguf_split_of(file->gguf, &number, &count, err);
    if (ok && count > 1)
        ok = bn_fail(err, BN_EUNSUPPORTED, "part %zu of a split model cannot be opened alone",
                     number + 1);
    if (!ok) {
        bn_file_close(file);
        return false;
    }
    *out = file;
    return true;
}

/* ---- split models ---- */

/* The end of the name of a part: "-00001-of-00003.gguf". Numbers have at most five digits
 * (GGUF_MAX_PARTS). */
#define PART_FORMAT "-%05zu-of-%05zu.gguf"
#define PART_BYTES 20 /* length of such an end */

/* Change `path`, which is the path of any part, to the path of part `number` (from 0). */
static void set_part(char *path, size_t number, size_t count)
{
    char end[64];
    (void)snprintf(end, sizeof(end), PART_FORMAT, number + 1, count);
    memcpy(path + strlen(path) - PART_BYTES, end, PART_BYTES);
}

/* Check that `path`, the path of part `number` (from 0), ends in PART_FORMAT. */
static bool check_part_name(const char *path, size_t number, size_t count, struct bn_error *err)
{
    char end[64];
    (void)snprintf(end, sizeof(end), PART_FORMAT, number + 1, count);
    const size_t n = strlen(path);
    return (n >= PART_BYTES && strcmp(path + n - PART_BYTES, end) == 0) ||
           bn_fail(err, BN_EFORMAT,
                   "'%s' is part %zu of %zu of a split model, but its name does not end in %s, "
                   "so the other parts cannot be found",
                   path, number + 1, count, end);
}

static bool open_part(const char *path, struct mem_map *map, struct gguf **out,
                      struct bn_error *err)
{
    return map_open(map, path, err) &&
           (gguf_parse(map->ptr, map->n_bytes, out, err) || bn_fail_prefix(err, "%s", path));
}

/* Map and parse all parts of a split model. `path` is the path of any part; it is changed. The
 * caller closes parts and maps, also after a failure. */
static bool open_parts(char *path, size_t count, struct mem_map *maps, struct gguf **parts,
                       struct bn_error *err)
{
    for (size_t i = 0; i < count; i++) {
        set_part(path, i, count);
        if (!open_part(path, &maps[i], &parts[i], err))
            return bn_fail_prefix(err, "part %zu of %zu", i + 1, count);
    }
    return true;
}

/* Replace the single part that `file` has opened, which is part `number` (from 0), by all parts. */
static bool open_split(struct bn_file *file, size_t number, size_t count, struct bn_error *err)
{
    if (!check_part_name(file->path, number, count, err))
        return false;
    struct mem_map *maps = mem_alloc(count, sizeof(*maps));
    struct gguf **parts = mem_alloc(count, sizeof(struct gguf *));
    char *path = mem_alloc(strlen(file->path) + 1, 1);
    bool ok = (maps && parts && path) || bn_fail(err, BN_ENOMEM, "no memory for %zu parts", count);
    if (ok) {
        memcpy(path, file->path, strlen(file->path) + 1);
        ok = open_parts(path, count, maps, parts, err) &&
             (gguf_join(parts, count, err) || bn_fail_prefix(err, "%s", file->path));
        /* gguf_join has put the tensors of all parts into parts[0]. */
        for (size_t i = ok ? 1 : 0; i < count; i++)
            gguf_close(parts[i]);
        for (size_t i = 0; !ok && i < count; i++)
            mem_map_close(&maps[i]);
    }
    mem_free(path);
    if (ok) {
        gguf_close(file->gguf);
        mem_map_close(&file->maps[0]);
        mem_free(file->maps);
        file->gguf = parts[0];
        file->maps = maps;
        file->n_maps = count;
    } else {
        mem_free(maps);
    }
    mem_free(parts);
    return ok;
}

static bool open_mapped(struct bn_file *file, const char *path, struct bn_error *err)
{
    size_t number, count;
    file->maps = mem_alloc(1, sizeof(*file->maps));
    file->path = mem_alloc(strlen(path) + 1, 1);
    if (!file->maps || !file->path)
        return bn_fail(err, BN_ENOMEM, "no memory to open '%s'", path);
    memcpy(file->path, path, strlen(path) + 1);
    file->n_maps = 1;
    if (!open_part(path, &file->maps[0], &file->gguf, err))
        return false;
    if (!gguf_split_of(file->gguf, &number, &count, err))
        return bn_fail_prefix(err, "%s", path);
    return count == 1 || open_split(file, number, count, err);
}

bool bn_file_open(const char *path, struct bn_file **out, struct bn_error *err)
{
    struct bn_file *file = mem_alloc(1, sizeof(*file));
    if (!file)
        return bn_fail(err, BN_ENOMEM, "no memory to open '%s'", path);
    if (!open_mapped(file, path, err)) {
        bn_file_close(file);
        return false;
    }
    *out = file;
    return true;
}

void bn_file_close(struct bn_file *file)
{
    if (!file)
        return;
    gguf_close(file->gguf);
    for (size_t i = 0; i < file->n_maps; i++)
        mem_map_close(&file->maps[i]);
    mem_free(file->maps);
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

size_t bn_file_n_parts(const struct bn_file *file)
{
    return file->n_maps > 1 ? file->n_maps : 1;
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
    *out = gguf_next_str(&walk->at);
    walk->n_left--;
    return true;
}

#define FINGERPRINT_TENSOR_BYTES 4096 /* hashing whole tensors would take seconds */

void bn_file_fingerprint(const struct bn_file *file, uint8_t out[BN_FINGERPRINT_BYTES])
{
    const struct gguf *g = file->gguf;
    struct sha256 sum;
    sha256_init(&sum);
    sha256_add(&sum, g->bytes, g->header_bytes);
    for (size_t i = 0; i < g->n_tensors; i++)
        sha256_add(&sum, g->tensors[i].bytes,
                   size_min(g->tensors[i].n_bytes, FINGERPRINT_TENSOR_BYTES));
    sha256_end(&sum, out);
}
