/*
 * Values of the template language.
 *
 * A value is a small struct that is passed by copy. Its data lives in an arena and is freed with
 * the arena. Strings are always valid UTF-8. Each byte of a string has an origin: 0 for text of the
 * template, else a value of origin_of (jinja_text.h).
 *
 * A function that can fail takes the state (jinja_vm.h) first, or an object with it such as a
 * builder. On failure it writes one sentence to vm->err and returns false, NULL or J_MISSING, and
 * its outputs must not be used. Failures include the bounds on depth, steps and memory.
 */
#ifndef TEMPLATES_JINJA_VALUE_H
#define TEMPLATES_JINJA_VALUE_H

#include "engine/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jvm;
struct jnode;
struct jscope;
struct jgen;
struct jbuiltin;

enum jkind {
    J_MISSING, /* no value, for example an argument that was not given */
    J_UNDEF,   /* jinja2's Undefined: prints as "", most operations fail */
    J_NONE,
    J_BOOL,
    J_INT,
    J_FLOAT,
    J_STR,
    J_LIST,
    J_TUPLE,
    J_DICT,
    J_NAMESPACE, /* namespace(...) */
    J_RANGE,
    J_VIEW,      /* dict.keys(), .values(), .items() */
    J_GENERATOR, /* a generator: can be iterated once */
    J_MACRO,     /* also the body of a call block */
    J_FUNC,      /* a global function */
    J_METHOD,    /* a method bound to its value */
    J_LOOP,      /* the loop variable */
    J_JOINER,    /* joiner(...) */
    J_CYCLER,    /* cycler(...) */
};

/* Consecutive bytes of a string with the same origin. */
struct jrun {
    size_t end; /* offset of the first byte after the run */
    uint32_t origin;
};

struct jstr {
    const char *ptr; /* (n_bytes) */
    size_t n_bytes;
    size_t n_chars;          /* number of code points; SIZE_MAX: not counted yet */
    const struct jrun *runs; /* (n_runs), the last ends at n_bytes; NULL: `origin` for all bytes */
    size_t n_runs;
    uint32_t origin;
    bool is_markup; /* safe HTML, which |escape keeps: see builtin/text/jinja_markup.h */
};

struct jval {
    enum jkind kind;
    union {
        bool b;
        int64_t i;
        double f;
        struct jstr *s;
        struct jlist *list; /* J_LIST, J_TUPLE */
        struct jdict *dict; /* J_DICT, J_NAMESPACE */
        struct jrange *range;
        struct jview *view;
        struct jgen *gen;
        struct jmacro *macro;
        const struct jbuiltin *func;
        struct jmethod *method;
        struct jloop *loop;
        struct jcycle *cycle;       /* J_JOINER, J_CYCLER */
        const struct jundef *undef; /* NULL: no details for the error message */
    } u;
};

struct jlist {
    struct jval *items; /* (n) */
    size_t n, cap;
    bool is_group; /* a tuple made by |groupby: has the attributes grouper and list */
};

struct jentry {
    struct jval key, val;
    uint64_t hash;
};

/* Equal numbers of different kinds are one key, as in Python. */
struct jdict {
    struct jentry *items; /* (n) in insertion order */
    size_t n, cap;
    uint32_t *index; /* (n_index) open addressing: entry number + 1, 0 for free; NULL: small dict */
    size_t n_index;  /* a power of two, at least twice n; 0 without an index */
};

struct jrange {
    int64_t start, stop, step; /* arguments of range(), or made from them by slice_range */
    size_t n;                  /* number of items */
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
    struct jscope *scope; /* of the definition */
};

struct jcycle {
    struct jval *items; /* (n); of a joiner: one, the separator */
    size_t n, pos; /* pos: index of a cycler's current item; number of calls of a joiner so far */
};

/* Details for the error message when the undefined value is used. */
struct jundef {
    enum jkind owner; /* kind of the object that lacks the name; J_MISSING: a variable */
    struct jval name; /* the attribute or variable; of an item the key, which may be any value */
    const char *hint; /* the whole message, or NULL to make it from the other fields */
};

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

/* Undefined values with details for the error message. The details are lost if memory runs out. */
struct jval jundef_attr(struct jvm *vm, struct jval owner, struct jval name);
struct jval jundef_hint(struct jvm *vm, const char *hint); /* `hint` is static text */
bool jundef_fail(struct jvm *vm, struct jval v);           /* the error for using v; always false */

/* An empty J_LIST or J_TUPLE with space for `cap` items. */
bool jlist_new(struct jvm *vm, enum jkind kind, size_t cap, struct jval *out);
bool jlist_push(struct jvm *vm, struct jval list, struct jval item); /* append */
/* A list or tuple with copies of items (n). */
bool jlist_of(struct jvm *vm, enum jkind kind, const struct jval *items, size_t n,
              struct jval *out);
bool jlist_pair(struct jvm *vm, struct jval a, struct jval b, struct jval *out); /* a tuple */
void jlist_reverse(struct jlist *l);

bool jdict_new(struct jvm *vm, enum jkind kind, struct jval *out); /* J_DICT or J_NAMESPACE */
/* Add an entry, or replace the value of an equal key. Fails if the key is not hashable. */
bool jdict_set(struct jvm *vm, struct jdict *d, struct jval key, struct jval val);
bool jdict_update(struct jvm *vm, struct jdict *d, const struct jdict *from); /* d.update(from) */
/* A list of (key, value) tuples. */
bool jdict_pairs(struct jvm *vm, const struct jdict *d, struct jval *out);
bool jview_new(struct jvm *vm, struct jdict *d, enum jview_kind kind, struct jval *out);
/* *found is NULL if there is no such key, else it is valid until a key is added. Fails if the key
 * is not hashable. */
bool jdict_find(struct jvm *vm, const struct jdict *d, struct jval key, struct jval **found);
/* The value of a string key, valid as for jdict_find; NULL: no such key. */
struct jval *jdict_text(const struct jdict *d, const char *key);

struct jval jrange_item(const struct jrange *r, size_t i); /* i is below r->n */

bool jval_truth(struct jval v);
const char *jkind_name(struct jval v); /* for messages: the name of the type, mostly Python's */

#endif
