/*
 * Memory for small and large objects, and the memory use of the process.
 *
 * Small: heap blocks, zeroed and aligned to 64 bytes. Large (weights, KV cache): anonymous pages
 * that the system zeroes at the first access, on request as huge pages. mem_alloc and mem_grow take
 * counts and check that the number of bytes does not overflow. NULL or false means out of memory;
 * the caller writes the message.
 */
#ifndef ENGINE_BASE_MEMORY_H
#define ENGINE_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#define MEM_ALIGN 64 /* one cache line, one AVX-512 register */

/* Allocate n * unit_bytes zeroed bytes, aligned to MEM_ALIGN; free with mem_free. n = 0 returns a
 * valid pointer. */
void *mem_alloc(size_t n, size_t unit_bytes);
void mem_free(void *p); /* accepts NULL */

/* Grow an array of `*cap` units to at least `need` units; does nothing if it has them already. Else
 * the capacity at least doubles, the contents are kept and the new units are zeroed. `items` is the
 * address of the array pointer, which is NULL or from mem_alloc and changes. Returns false and
 * changes nothing if there is no memory. */
bool mem_grow(void *items, size_t *cap, size_t need, size_t unit_bytes);

enum mem_pages { MEM_PAGES_NORMAL, MEM_PAGES_HUGE }; /* HUGE: a request, not a guarantee */

struct mem_map {
    void *ptr;
    size_t n_bytes; /* of an anonymous mapping: rounded up, so it can be more than requested */
};

/* Reserve n_bytes of zeroed pages, which use memory only after they are written. So success does
 * not mean that there is enough memory; mem_free_bytes tells that. False if n_bytes is 0 or the
 * system refuses. */
bool mem_map_open(struct mem_map *map, size_t n_bytes, enum mem_pages pages);
void mem_map_close(struct mem_map *map); /* also for mapped files; accepts a struct of zeros */

/* Unmap the pages of a read-only file mapping that hold these bytes. They no longer count as memory
 * of this process but stay in the page cache, and the next access maps them again. Never call it
 * for anonymous memory, which would lose its contents. */
void mem_file_drop(const void *bytes, size_t n_bytes);

/* Resident memory of this process in bytes: total, anonymous, mapped from files (the system
 * can reclaim these pages), and the highest total so far. 0 if the system does not report it. */
size_t mem_resident_bytes(void);
size_t mem_anon_bytes(void);
size_t mem_file_bytes(void);
size_t mem_peak_bytes(void);

/* Bytes that this process can still allocate before memory gets short. It is the lowest of three
 * numbers: the available memory of the machine, and what is left below the limits of its control
 * groups and of its address space. Pages of files count as available, but mapped files use address
 * space. SIZE_MAX if the system reports none of the three. */
size_t mem_free_bytes(void);

#endif
