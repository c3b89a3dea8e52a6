/*
 * A library for LD_PRELOAD that makes one allocation of a program fail.
 *
 * It counts the allocations by the program itself and by jansson; those of the C library, of the
 * dynamic linker and of other libraries always succeed. FAIL_ALLOC=N makes allocation number N
 * fail (1 is the first), and FAIL_ALLOC=N+ also all that follow. When the program ends, the numbers
 * of counted allocations, and of those that were not freed, are appended to FAIL_ALLOC_REPORT.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Names that glibc exports for this purpose. */
void *__libc_malloc(size_t n_bytes);
void *__libc_calloc(size_t n, size_t unit_bytes);
void *__libc_realloc(void *p, size_t n_bytes);
void *__libc_memalign(size_t align, size_t n_bytes);
void __libc_free(void *p);

#define MAX_RANGES 16
static struct range {
    uintptr_t begin, end;
} ranges[MAX_RANGES]; /* code whose allocations count */
static size_t n_ranges;
static unsigned long fail_at; /* 0: none fails */
static int fails_after;
static atomic_ulong n_calls;

/* Counted blocks that are not freed: open addressing, and a removed entry becomes REMOVED. */
#define N_SLOTS ((size_t)1 << 18)
#define REMOVED 1
static uintptr_t slots[N_SLOTS];
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void take_lock(void)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire))
        ;
}

static size_t slot_of(uintptr_t block)
{
    return (size_t)(block >> 4) * 0x9e3779b9u % N_SLOTS;
}

static void *note(void *p)
{
    const uintptr_t block = (uintptr_t)p;
    take_lock();
    for (size_t i = slot_of(block), n = 0; p && n < N_SLOTS; i = (i + 1) % N_SLOTS, n++) {
        if (slots[i] <= REMOVED) {
            slots[i] = block;
            break;
        }
    }
    atomic_flag_clear_explicit(&lock, memory_order_release);
    return p;
}

static void forget(void *p)
{
    const uintptr_t block = (uintptr_t)p;
    take_lock();
    for (size_t i = slot_of(block), n = 0; slots[i] != 0 && n < N_SLOTS;
         i = (i + 1) % N_SLOTS, n++) {
        if (slots[i] == block) {
            slots[i] = REMOVED;
            break;
        }
    }
    atomic_flag_clear_explicit(&lock, memory_order_release);
}

static int add_ranges(struct dl_phdr_info *info, size_t n_bytes, void *ud)
{
    int *is_first = ud; /* the first object is the program */
    (void)n_bytes;
    const int counts = *is_first || strstr(info->dlpi_name, "jansson");
    *is_first = 0;
    for (size_t i = 0; counts && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || n_ranges == MAX_RANGES)
            continue;
        const uintptr_t begin = info->dlpi_addr + p->p_vaddr;
        ranges[n_ranges++] = (struct range){begin, begin + p->p_memsz};
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("FAIL_ALLOC");
    char *end = NULL;
    int is_first = 1;
    (void)dl_iterate_phdr(add_ranges, &is_first);
    if (text)
        fail_at = strtoul(text, &end, 10);
    fails_after = end && *end == '+';
}

__attribute__((destructor)) static void finish(void)
{
    const char *path = getenv("FAIL_ALLOC_REPORT");
    char text[64];
    unsigned long n_left = 0;
    const int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd < 0)
        return;
    for (size_t i = 0; i < N_SLOTS; i++)
        n_left += slots[i] > REMOVED;
    const int n = snprintf(text, sizeof(text), "%lu %lu\n", atomic_load(&n_calls), n_left);
    (void)!write(fd, text, (size_t)n);
    (void)close(fd);
}

enum verdict { UNCOUNTED, COUNTED, FAILS };

static enum verdict judge(const void *caller)
{
    const uintptr_t at = (uintptr_t)caller;
    for (size_t i = 0; i < n_ranges; i++) {
        if (at < ranges[i].begin || at >= ranges[i].end)
            continue;
        const unsigned long n = atomic_fetch_add(&n_calls, 1) + 1;
        if (fail_at == 0 || (n != fail_at && !(fails_after && n > fail_at)))
            return COUNTED;
        errno = ENOMEM;
        return FAILS;
    }
    return UNCOUNTED;
}

static void *finish_call(enum verdict v, void *p)
{
    return v == COUNTED ? note(p) : p;
}

void *malloc(size_t n_bytes)
{
    const enum verdict v = judge(__builtin_return_address(0));
    return v == FAILS ? NULL : finish_call(v, __libc_malloc(n_bytes));
}

void *calloc(size_t n, size_t unit_bytes)
{
    const enum verdict v = judge(__builtin_return_address(0));
    return v == FAILS ? NULL : finish_call(v, __libc_calloc(n, unit_bytes));
}

void *realloc(void *p, size_t n_bytes)
{
    const enum verdict v = judge(__builtin_return_address(0));
    if (v == FAILS)
        return NULL;
    if (p)
        forget(p);
    return finish_call(v, __libc_realloc(p, n_bytes));
}

void *aligned_alloc(size_t align, size_t n_bytes)
{
    const enum verdict v = judge(__builtin_return_address(0));
    return v == FAILS ? NULL : finish_call(v, __libc_memalign(align, n_bytes));
}

void free(void *p)
{
    if (p)
        forget(p);
    __libc_free(p);
}
