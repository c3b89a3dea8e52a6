/*
 * Memory in two sizes. Small things: aligned to 64 bytes, zeroed. Large things (weights, KV cache):
 * anonymous pages, zeroed by the kernel when first touched, huge pages asked for on request.
 *
 * Every size is checked against overflow here, so callers pass counts. NULL means out of memory;
 * the caller writes the sentence.
 */
#ifndef ENGINE_BASE_MEMORY_H
#define ENGINE_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#define MEM_ALIGN 64 /* one cache line, one AVX-512 register */

/* n * unit_bytes zeroed bytes, aligned to MEM_ALIGN; free with mem_free. n = 0 gives a valid
 * pointer. */
void *mem_alloc(size_t n, size_t unit_bytes);
void mem_free(void *p); /* NULL is fine */

/* Grow an array of `*cap` units to hold at least `need`: doubling, contents kept, new part zeroed.
 * `items` is the address of the array pointer. False, and nothing changed, when out of memory. */
bool mem_grow(void *items, size_t *cap, size_t need, size_t unit_bytes);

enum mem_pages { MEM_PAGES_NORMAL, MEM_PAGES_HUGE };

struct mem_map {
    void *ptr;
    size_t n_bytes;
};

/* Reserve zeroed pages; they cost memory when first written. False when the system refuses. */
bool mem_map_open(struct mem_map *map, size_t n_bytes, enum mem_pages pages);
void mem_map_close(struct mem_map *map); /* an all-zero map is fine */

/* The pages that hold these bytes of a read-only file mapping are not needed for now: they leave
 * this process (not the page cache) and come back when read again. Never for anonymous memory,
 * which would turn to zeros. */
void mem_file_drop(const void *bytes, size_t n_bytes);

/* Bytes of this process resident in memory now, of these its own (anonymous) and of files, whose
 * pages the system takes back when it needs them; and all at the highest. 0 where the system does
 * not say. */
size_t mem_resident_bytes(void);
size_t mem_anon_bytes(void);
size_t mem_file_bytes(void);
size_t mem_peak_bytes(void);

/* Bytes that this process may still take before memory gets short, files' pages given up; SIZE_MAX
 * where the system does not say. */
size_t mem_free_bytes(void);

#endif
