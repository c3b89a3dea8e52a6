/*
 * Values of the template language and the state of one rendering.
 *
 * A value is a small struct passed by copy; what it points to lives in an arena and is never freed
 * alone. A string knows for each of its bytes whose words they are (its origin): 0 for the
 * template's own text, else what origin_of packs. Strings are valid UTF-8 always.
 *
 * Every function that can fail takes the rendering state first, returns false after writing one
 * sentence into vm->err, and checks the bounds on depth, steps and memory.
 */
#ifndef TEMPLATES_JINJA_VALUE_H
#define TEMPLATES_JINJA_VALUE_H

#include "engine/base/error.h"
#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct template_arena;
struct jnode;
struct jvm_ops;
struct jscope;
struct jgen;
struct jbuiltin;

enum jkind {
    J_MISSING, /* no value at all: an argument that was not given */
    J_UNDEF,   /* jinja2's Undefined: prints as nothing, fails in most operations */
    J_NONE,
    J_BOOL,
    J_INT,
    J_FLOAT,
    J_STR,
    J_LIST,
    J_TUPLE,
    J_DICT,
    J_SPACE, /* namespace(...) */
    J_RANGE,
    J_VIEW,   /* dict.keys(), .values(), .items() */
    J_ITER,   /* a generator: yields its items once */
    J_MACRO,  /* also the caller of a call block */
    J_FUNC,   /* a global function */
    J_METHOD, /* a method bound to its value */
    J_LOOP,   /* the loop variable */
    J_JOINER,
    J_CYCLER,
};

struct jrun {
    size_t end; /* first byte after the run */
    uint32_t origin;
};

struct jstr {
    const char *ptr; /* (n_bytes) */
    size_t n_bytes;
    size_t n_chars; /* code points; SIZE_MAX: not counted yet */
    const struct jrun
        *runs; /* (n_runs), the last ends at n_bytes; NULL: all bytes are of `origin` */
    size_t n_runs;
    uint32_t origin;
    bool is_markup; /* HTML that is already escaped: the result of |safe and |escape */
};

struct jval {
    enum jkind kind;
    union {
        bool b;
        int64_t i;
        double f;
        struct jstr *s;
        struct jlist *list; /* J_LIST, J_TUPLE */
        struct jdict *dict; /* J_DICT, J_SPACE */
        struct jrange *range;
        struct jview *view;
        struct jgen *gen;
        struct jmacro *macro;
        const struct jbuiltin *func;
        struct jmethod *method;
        struct jloop *loop;
        struct jcycle *cycle;       /* J_JOINER, J_CYCLER */
        const struct jundef *undef; /* NULL: nothing to say about it */
    } u;
};

struct jlist {
    struct jval *items; /* (n) */
    size_t n, cap;
    bool is_group; /* a pair of |groupby: its items are also .grouper and .list */
};

struct jentry {
    struct jval key, val;
    uint64_t hash;
};

struct jdict {            /* insertion order; equal numbers are one key, as in Python */
    struct jentry *items; /* (n) */
    size_t n, cap;
    uint32_t *index; /* (n_index) open addressing, entry number + 1; NULL while the dict is small */
    size_t n_index;  /* a power of two, at least twice n */
};

struct jrange {
    int64_t start, stop, step; /* as written; step is not 0 */
    size_t n;
};

enum jview_kind { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS };

struct jview {
    enum jview_kind kind;
    struct jdict *dict;
};

struct jmethod {
    struct jval self;
    const struct jbuiltin *func;
};

struct jmacro {
    struct jstr *name; /* NULL: the body of a call block */
    const struct jnode *node;
    struct jscope *scope; /* where it was defined */
};

struct jcycle {
    struct jval *items; /* (n) */
    size_t n, pos;
};

struct jundef {       /* for the sentence when it is used */
    enum jkind owner; /* kind of the value that lacks it, J_MISSING: a variable */
    struct jval name;
    const char *hint; /* a whole sentence instead, or NULL */
};

struct jplace {
    uint32_t line, col; /* from 1; columns count code points */
};

/* The state of one rendering, and of one parsing. */
struct jvm {
    struct template_arena *arena;
    struct bn_error *err;
    const struct jvm_ops *ops;
    const struct jplace *at; /* of the node that runs, for errors; NULL: none */
    size_t n_steps;          /* done so far */
    size_t max_bytes;        /* the arena may grow to this */
    size_t depth;            /* nesting of evaluation, printing and comparing */
    struct jscope *scope;
    const struct jprogram *program;
    struct jbuf *out;  /* where output goes now */
    struct jval piped; /* captured text for the filters of a block */
    time_t now;
};

#define JVM_MAX_DEPTH 1000 /* Python's own limit stops templates at about this depth */
#define JVM_MAX_STEPS                                                                              \
    ((size_t)5                                                                                     \
     << 20) /* about a second at worst; a long conversation takes 1e5                    \
                       */
#define JVM_MAX_BYTES ((size_t)256 << 20)

/* ---- arena ---- */

struct template_arena *arena_open(void);
void arena_close(struct template_arena *a);
size_t arena_bytes(const struct template_arena *a);
void *arena_alloc(struct template_arena *a, size_t n_bytes); /* 16-aligned, not cleared; or NULL */

/* ---- state ---- */

bool jvm_fail(struct jvm *vm, const char *fmt, ...) BN_PRINTF(2, 3); /* always false */
bool jvm_steps(struct jvm *vm, size_t n); /* count work; false when the bound is reached */
bool jvm_enter(struct jvm *vm);           /* one level deeper; jvm_leave also after a failure */
void jvm_leave(struct jvm *vm);
void *jvm_alloc(struct jvm *vm, size_t n, size_t unit_bytes); /* NULL after writing the error */
/* Make room for `need` items in an array of which n are used. `array` points to the pointer. */
bool jvm_grow(struct jvm *vm, void *array, size_t n, size_t *cap, size_t need, size_t unit_bytes);

/* ---- making values ---- */

static inline struct jval jnone(void)
{
    return (struct jval){.kind = J_NONE};
}
static inline struct jval jbool(bool b)
{
    return (struct jval){.kind = J_BOOL, .u.b = b};
}
static inline struct jval jint(int64_t i)
{
    return (struct jval){.kind = J_INT, .u.i = i};
}
static inline struct jval jfloat(double f)
{
    return (struct jval){.kind = J_FLOAT, .u.f = f};
}
static inline struct jval jstring(struct jstr *s)
{
    return (struct jval){.kind = J_STR, .u.s = s};
}

/* Undefined, with what to say when it is used. Out of memory only loses the sentence. */
struct jval jundef_attr(struct jvm *vm, struct jval owner, struct jval name);
struct jval jundef_hint(struct jvm *vm, const char *hint); /* `hint` is static text */
bool jundef_fail(struct jvm *vm, struct jval v);           /* always false */

bool jlist_new(struct jvm *vm, enum jkind kind, size_t cap, struct jval *out);
bool jlist_push(struct jvm *vm, struct jval list, struct jval item);
/* A list or tuple of copies of items (n). */
bool jlist_of(struct jvm *vm, enum jkind kind, const struct jval *items, size_t n,
              struct jval *out);
bool jlist_pair(struct jvm *vm, struct jval a, struct jval b, struct jval *out); /* a tuple */

bool jdict_new(struct jvm *vm, enum jkind kind, struct jval *out);
bool jdict_set(struct jvm *vm, struct jdict *d, struct jval key, struct jval val);
bool jdict_update(struct jvm *vm, struct jdict *d, const struct jdict *from); /* d.update(from) */
/* A list of (key, value) tuples. */
bool jdict_pairs(struct jvm *vm, const struct jdict *d, struct jval *out);
bool jview_new(struct jvm *vm, struct jdict *d, enum jview_kind kind, struct jval *out);
/* *found is NULL when there is no such key; false: the key cannot be hashed. */
bool jdict_find(struct jvm *vm, const struct jdict *d, struct jval key, struct jval **found);
/* A key that is plain text; NULL when there is none. */
struct jval *jdict_text(const struct jdict *d, const char *key);

struct jval jrange_item(const struct jrange *r, size_t i);

bool jval_truth(struct jval v);
const char *jkind_name(struct jval v); /* Python's name of the type, for messages */

#endif
