/*
 * The state of one rendering or parsing with its bounds, and arenas, which provide its memory.
 */
#ifndef TEMPLATES_JINJA_VM_H
#define TEMPLATES_JINJA_VM_H

#include "engine/base/error.h"
#include "templates/jinja/value/jinja_value.h"

#include <time.h>

struct template_arena;
struct jvm_ops;

/* A position in the source. */
struct jplace {
    uint32_t line, col; /* from 1; columns count code points */
};

struct jvm {
    struct template_arena *arena;
    struct bn_error *err;
    const struct jvm_ops *ops; /* functions of the evaluator, see jinja_ops.h */
    const struct jplace *at;   /* of the current node, for error messages; may be NULL */
    size_t n_steps;            /* executed so far; may pass the limit until jvm_steps checks it */
    size_t max_bytes; /* limit of jvm_alloc for arena_bytes; 0: none. The last chunk may pass it */
    size_t depth;     /* nesting of evaluation and of walks through values, see jvm_enter */
    struct jscope *scope; /* the innermost scope; NULL before jinja_run, invalid after it */
    const struct jprogram *program; /* the parsed template that runs; NULL before jinja_run */
    struct jbuf *out;               /* receives the output: the result, or the buffer of a block */
    struct jval piped;              /* input of the filters of a block: its captured text */
    time_t now;                     /* for strftime_now */
};

#define JVM_MAX_DEPTH 1000 /* close to the depth at which Python's recursion limit stops */
/* About one second in the worst case; a long conversation takes 1e5 steps. */
#define JVM_MAX_STEPS ((size_t)5 << 20)
#define JVM_MAX_BYTES ((size_t)256 << 20) /* that one rendering may add to the arena */

/* ---- arena ---- */

struct template_arena *arena_open(void);            /* NULL: out of memory */
void arena_close(struct template_arena *a);         /* NULL is fine */
size_t arena_bytes(const struct template_arena *a); /* size of all its chunks, used or not */
/* 16-byte aligned, contents unspecified. NULL: out of memory. n_bytes may be 0. */
void *arena_alloc(struct template_arena *a, size_t n_bytes);

/* ---- state ---- */

/* Write a BN_EFORMAT error with the place vm->at. Always false. */
bool jvm_fail(struct jvm *vm, const char *fmt, ...) BN_PRINTF(2, 3);
/* Count work; fails if the sum exceeds JVM_MAX_STEPS. One step is about the evaluation of one node.
 * A loop counts a fraction for each byte or item by its speed: about n_bytes / 64 for a copy, / 32
 * or / 16 for a search, / 8 or / 4 for work on each character. The work on one string may be
 * counted after it is done, because the limit of memory bounds its length. */
bool jvm_steps(struct jvm *vm, size_t n);
/* One level deeper; fails beyond JVM_MAX_DEPTH. Call jvm_leave also if jvm_enter fails. A jvm_leave
 * without jvm_enter, after the failure of an earlier condition, does no harm: a failure ends the
 * rendering. */
bool jvm_enter(struct jvm *vm);
void jvm_leave(struct jvm *vm);
void *jvm_alloc(struct jvm *vm, size_t n, size_t unit_bytes); /* NULL: failed, error is written */
/* Make space for `need` items in an array that holds n, by a new allocation and a copy; the old
 * items stay in the arena. `array` is the address of its pointer; *cap is the number of items that
 * fit. jvm_grow does nothing if there is space already. */
bool jvm_regrow(struct jvm *vm, void *array, size_t n, size_t *cap, size_t need, size_t unit_bytes);
static inline bool jvm_grow(struct jvm *vm, void *array, size_t n, size_t *cap, size_t need,
                            size_t unit_bytes)
{
    return need <= *cap || jvm_regrow(vm, array, n, cap, need, unit_bytes);
}

#endif
