/*
 * Arenas: chunks of memory of growing size that are freed together. This file also checks the
 * counters that bound a hostile template: steps, depth and bytes.
 */
#include "templates/jinja/value/jinja_vm.h"
#include "engine/base/memory.h"

#include <stdarg.h>
#include <stdio.h>

#define CHUNK_FIRST ((size_t)32 << 10) /* bytes; the size doubles with each chunk up to CHUNK_MAX */
#define CHUNK_MAX ((size_t)4 << 20)    /* bytes; only a chunk for one larger object has more */
#define ARENA_ALIGN ((size_t)16)

struct chunk {
    struct chunk *prev;
    size_t n_bytes, used; /* without this header */
};

#define CHUNK_HEADER ((sizeof(struct chunk) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN)

struct template_arena {
    struct chunk *last;
    size_t n_bytes; /* total of all chunks */
    size_t next_bytes;
};

struct template_arena *arena_open(void)
{
    struct template_arena *const a = mem_alloc(1, sizeof *a);
    if (a)
        a->next_bytes = CHUNK_FIRST;
    return a;
}

void arena_close(struct template_arena *a)
{
    if (!a)
        return;
    while (a->last) {
        struct chunk *const prev = a->last->prev;
        mem_free(a->last);
        a->last = prev;
    }
    mem_free(a);
}

size_t arena_bytes(const struct template_arena *a)
{
    return a->n_bytes;
}

void *arena_alloc(struct template_arena *a, size_t n_bytes)
{
    if (n_bytes > SIZE_MAX / 4)
        return NULL;
    const size_t need = (n_bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (!a->last || need > a->last->n_bytes - a->last->used) {
        const size_t n_new = need > a->next_bytes ? need : a->next_bytes;
        struct chunk *const c = mem_alloc(1, CHUNK_HEADER + n_new);
        if (!c)
            return NULL;
        c->prev = a->last;
        c->n_bytes = n_new;
        a->last = c;
        a->n_bytes += n_new;
        if (a->next_bytes < CHUNK_MAX)
            a->next_bytes *= 2;
    }
    char *const p = (char *)a->last + CHUNK_HEADER + a->last->used;
    a->last->used += need;
    return p;
}

bool jvm_fail(struct jvm *vm, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap); /* cut if too long, see bn_fail */
    va_end(ap);
    if (!vm->at)
        return bn_fail(vm->err, BN_EFORMAT, "template: %s", text);
    return bn_fail(vm->err, BN_EFORMAT, "template line %u, column %u: %s", vm->at->line,
                   vm->at->col, text);
}

bool jvm_steps(struct jvm *vm, size_t n)
{
    if (vm->n_steps > JVM_MAX_STEPS || n > JVM_MAX_STEPS - vm->n_steps) {
        vm->n_steps = JVM_MAX_STEPS; /* slice_string tests for this value */
        return jvm_fail(vm, "the template takes more than %zu steps", (size_t)JVM_MAX_STEPS);
    }
    vm->n_steps += n;
    return true;
}

bool jvm_enter(struct jvm *vm)
{
    if (++vm->depth > JVM_MAX_DEPTH)
        return jvm_fail(vm, "nested more than %d levels deep", JVM_MAX_DEPTH);
    return true;
}

void jvm_leave(struct jvm *vm)
{
    vm->depth--;
}

void *jvm_alloc(struct jvm *vm, size_t n, size_t unit_bytes)
{
    /* No 64-bit machine has SIZE_MAX / 8 bytes. The limits SIZE_MAX / 4 and SIZE_MAX / 8 only
     * prevent an overflow of the sums and products below and in arena_alloc. */
    const size_t max = vm->max_bytes ? vm->max_bytes : SIZE_MAX / 4;
    const size_t used = arena_bytes(vm->arena);
    if (unit_bytes && n > SIZE_MAX / 8 / unit_bytes) {
        (void)jvm_fail(vm, "the template needs more memory than the machine has");
        return NULL;
    }
    if (used > max || n * unit_bytes > max - used) {
        (void)jvm_fail(vm, "the template takes more than %zu MiB of memory", max >> 20);
        return NULL;
    }
    void *const p = arena_alloc(vm->arena, n * unit_bytes);
    if (!p)
        (void)bn_fail(vm->err, BN_ENOMEM, "out of memory in the chat template");
    return p;
}

bool jvm_regrow(struct jvm *vm, void *array, size_t n, size_t *cap, size_t need, size_t unit_bytes)
{
    /* Twice as much as before or, if that is too little, `need` and some spare items: 32 if an item
     * is a byte of text, else 4. */
    const size_t n_spare = unit_bytes < 8 ? 32 : 4;
    const size_t new_cap = need > *cap * 2 ? need + n_spare : *cap * 2;
    void *const p = jvm_alloc(vm, new_cap, unit_bytes);
    void *old;
    if (!p)
        return false;
    memcpy(&old, array, sizeof old); /* *array is a pointer, but not a void pointer */
    if (n)
        memcpy(p, old, n * unit_bytes);
    memcpy(array, &p, sizeof p);
    *cap = new_cap;
    return true;
}
