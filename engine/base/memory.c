/*
 * Aligned heap blocks, anonymous mappings, and the memory numbers that the system reports.
 *
 * The numbers are read from Linux' /proc and control-group files. A missing file means no limit or
 * an unknown number.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise */
#include "engine/base/memory.h"

#include "engine/base/cgroup.h"
#include "engine/base/size.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024 /* lines with the keys below are shorter; others are read in parts */

void *mem_alloc(size_t n, size_t unit_bytes)
{
    size_t n_bytes;
    if (!size_mul(&n_bytes, n, unit_bytes) || n_bytes > SIZE_MAX - MEM_ALIGN)
        return NULL;
    n_bytes = size_round_up(size_max(n_bytes, 1), MEM_ALIGN);
    void *p = aligned_alloc(MEM_ALIGN, n_bytes);
    if (p)
        memset(p, 0, n_bytes);
    return p;
}

void mem_free(void *p)
{
    free(p);
}

bool mem_grow(void *items, size_t *cap, size_t need, size_t unit_bytes)
{
    if (need <= *cap)
        return true;
    void *old;
    /* memcpy: `items` may point to a pointer of any type, which must not be read as void *. */
    memcpy(&old, items, sizeof(old));
    const size_t doubled = *cap > SIZE_MAX / 2 ? need : *cap * 2;
    const size_t new_cap = size_max(size_max(doubled, need), 16); /* a small array grows rarely */
    void *grown = mem_alloc(new_cap, unit_bytes);
    if (!grown)
        return false;
    if (old)
        memcpy(grown, old, *cap * unit_bytes);
    mem_free(old);
    memcpy(items, &grown, sizeof(grown));
    *cap = new_cap;
    return true;
}

bool mem_map_open(struct mem_map *map, size_t n_bytes, enum mem_pages pages)
{
    const size_t huge = (size_t)2 << 20; /* bytes of a huge page on x86-64 */
    if (n_bytes == 0 || n_bytes > SIZE_MAX - huge)
        return false;
    /* 4096: the usual page. Where pages are larger, mmap and munmap round up by themselves. */
    n_bytes = size_round_up(n_bytes, pages == MEM_PAGES_HUGE ? huge : 4096);
    void *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return false;
#ifdef MADV_HUGEPAGE
    if (pages == MEM_PAGES_HUGE)
        (void)madvise(p, n_bytes, MADV_HUGEPAGE); /* a hint: ordinary pages work as well */
#endif
    *map = (struct mem_map){p, n_bytes};
    return true;
}

void mem_map_close(struct mem_map *map)
{
    if (map->ptr)
        (void)munmap(map->ptr, map->n_bytes); /* fails only for a wrong address */
    *map = (struct mem_map){0};
}

void mem_file_drop(const void *bytes, size_t n_bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)bytes & ~(uintptr_t)(page - 1);
    const uintptr_t end = (uintptr_t)bytes + n_bytes;
    if (n_bytes > 0)
        (void)madvise((void *)begin, end - begin, MADV_DONTNEED); /* a hint about memory use */
}

/* Read the number after `key` ("" for none) in a file under /proc or /sys, from the first line that
 * begins with `key` and has a number there. Returns false if there is no such file or line. */
static bool read_number(const char *path, const char *key, uint64_t *out)
{
    char line[LINE_MAX_BYTES];
    bool is_found = false;
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (!is_found && fgets(line, sizeof line, f))
        is_found = strncmp(line, key, strlen(key)) == 0 &&
                   sscanf(line + strlen(key), "%" SCNu64, out) == 1;
    (void)fclose(f); /* only read */
    return is_found;
}

/* A line of /proc/self/status in bytes. getrusage is not used because the maximum that it reports
 * can be the parent's. */
static size_t status_bytes(const char *name)
{
    uint64_t kilobytes;
    return read_number("/proc/self/status", name, &kilobytes) ? (size_t)kilobytes * 1024 : 0;
}

size_t mem_resident_bytes(void)
{
    return status_bytes("VmRSS:");
}

size_t mem_anon_bytes(void)
{
    return status_bytes("RssAnon:");
}

size_t mem_file_bytes(void)
{
    return status_bytes("RssFile:");
}

size_t mem_peak_bytes(void)
{
    return status_bytes("VmHWM:");
}

/* A group's limit minus its anonymous memory, which memory.stat lists after `key`. Pages of files
 * do not count, because the system reclaims them when memory gets short. SIZE_MAX: no limit, or one
 * of the two files or its number is missing. */
static size_t free_in_group(const char *dir, const char *limit_name, const char *key)
{
    char path[CGROUP_DIR_BYTES + 64];
    uint64_t limit, used;
    (void)snprintf(path, sizeof path, "%s/%s", dir, limit_name);
    if (!read_number(path, "", &limit)) /* "max" means no limit */
        return SIZE_MAX;
    (void)snprintf(path, sizeof path, "%s/memory.stat", dir);
    if (!read_number(path, key, &used))
        return SIZE_MAX;
    return used < limit ? (size_t)(limit - used) : 0;
}

static size_t free_of_v1(const char *dir)
{
    return free_in_group(dir, "memory.limit_in_bytes", "total_rss ");
}

static size_t free_of_v2(const char *dir)
{
    return free_in_group(dir, "memory.max", "anon ");
}

static const struct cgroup_limit memory_limit = {"memory", "/sys/fs/cgroup/memory", free_of_v1,
                                                 free_of_v2};

/* Bytes left below the limit of the address space (ulimit -v). statm begins with its used pages. */
static size_t address_space_free(void)
{
    struct rlimit limit;
    uint64_t pages;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        !read_number("/proc/self/statm", "", &pages))
        return SIZE_MAX;
    const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return used < limit.rlim_cur ? (size_t)(limit.rlim_cur - used) : 0;
}

size_t mem_free_bytes(void)
{
    uint64_t kilobytes;
    size_t n = SIZE_MAX;
    if (read_number("/proc/meminfo", "MemAvailable:", &kilobytes))
        n = (size_t)kilobytes * 1024;
    return size_min(n, size_min(cgroup_lowest_limit("", &memory_limit), address_space_free()));
}
