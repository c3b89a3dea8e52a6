/*
 * Aligned heap blocks and anonymous mappings.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, madvise */
#include "engine/base/memory.h"

#include "engine/base/proc_number.h"
#include "engine/base/size.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
    memcpy(&old, items, sizeof(old));
    const size_t doubled = *cap > SIZE_MAX / 2 ? need : *cap * 2;
    const size_t new_cap = size_max(size_max(doubled, need), 16);
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
    const size_t huge = (size_t)2 << 20;
    if (n_bytes == 0 || n_bytes > SIZE_MAX - huge)
        return false;
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
        (void)munmap(map->ptr, map->n_bytes); /* fails only on our own mistake */
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

/* A line of /proc/self/status in bytes. Not getrusage, whose highest may be the parent's. */
static size_t status_bytes(const char *name)
{
    uint64_t kilobytes;
    return proc_number("/proc/self/status", name, &kilobytes) ? (size_t)kilobytes * 1024 : 0;
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
