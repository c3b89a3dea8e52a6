/*
 * Making undefined values, lists and dicts. A dict is a list of entries in order and, once it has
 * more than a few, a hash index beside it; nothing is ever removed.
 */
#include "templates/jinja_value.h"

#include "templates/jinja_ops.h"
#include "templates/jinja_text.h"

#define SMALL_DICT 8

const char *jkind_name(struct jval v)
{
    static const char *const names[] = {
        [J_MISSING] = "missing", [J_UNDEF] = "Undefined", [J_NONE] = "NoneType",
        [J_BOOL] = "bool",       [J_INT] = "int",         [J_FLOAT] = "float",
        [J_STR] = "str",         [J_LIST] = "list",       [J_TUPLE] = "tuple",
        [J_DICT] = "dict",       [J_SPACE] = "Namespace", [J_RANGE] = "range",
        [J_VIEW] = "dict view",  [J_ITER] = "generator",  [J_MACRO] = "Macro",
        [J_FUNC] = "function",   [J_METHOD] = "method",   [J_LOOP] = "LoopContext",
        [J_JOINER] = "Joiner",   [J_CYCLER] = "Cycler",
    };
    return names[v.kind];
}

struct jval jundef_attr(struct jvm *vm, struct jval owner, struct jval name)
{
    struct jval v = {.kind = J_UNDEF};
    struct jundef *const u = arena_alloc(vm->arena, sizeof *u);
    if (u)
        *u = (struct jundef){.owner = owner.kind, .name = name};
    v.u.undef = u;
    return v;
}

struct jval jundef_hint(struct jvm *vm, const char *hint)
{
    struct jval v = {.kind = J_UNDEF};
    struct jundef *const u = arena_alloc(vm->arena, sizeof *u);
    if (u)
        *u = (struct jundef){.hint = hint};
    v.u.undef = u;
    return v;
}

bool jundef_fail(struct jvm *vm, struct jval v)
{
    const struct jundef *const u = v.u.undef;
    if (!u)
        return jvm_fail(vm, "an undefined value was used");
    if (u->hint)
        return jvm_fail(vm, "%s", u->hint);
    const struct jval owner = {.kind = u->owner};
    const struct jstr *const s = u->name.kind == J_STR ? u->name.u.s : NULL;
    const int n = s ? (int)(s->n_bytes < 60 ? s->n_bytes : 60) : 0;
    if (!s)
        return jvm_fail(vm, "a %s has no such element", jkind_name(owner));
    if (u->owner == J_MISSING)
        return jvm_fail(vm, "'%.*s' is undefined", n, s->ptr);
    return jvm_fail(vm, "a %s has no attribute '%.*s'", jkind_name(owner), n, s->ptr);
}

bool jlist_new(struct jvm *vm, enum jkind kind, size_t cap, struct jval *out)
{
    struct jlist *const l = jvm_alloc(vm, 1, sizeof *l);
    if (!l)
        return false;
    *l = (struct jlist){.cap = cap};
    if (cap && !(l->items = jvm_alloc(vm, cap, sizeof *l->items)))
        return false;
    *out = (struct jval){.kind = kind, .u.list = l};
    return true;
}

bool jlist_push(struct jvm *vm, struct jval list, struct jval item)
{
    struct jlist *const l = list.u.list;
    if (l->n == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 8;
        struct jval *const items = jvm_alloc(vm, cap, sizeof *items);
        if (!items)
            return false;
        if (l->n)
            memcpy(items, l->items, l->n * sizeof *items);
        l->items = items;
        l->cap = cap;
    }
    l->items[l->n++] = item;
    return true;
}

bool jlist_pair(struct jvm *vm, struct jval a, struct jval b, struct jval *out)
{
    return jlist_new(vm, J_TUPLE, 2, out) && jlist_push(vm, *out, a) && jlist_push(vm, *out, b);
}

bool jdict_new(struct jvm *vm, enum jkind kind, struct jval *out)
{
    struct jdict *const d = jvm_alloc(vm, 1, sizeof *d);
    if (!d)
        return false;
    *d = (struct jdict){0};
    *out = (struct jval){.kind = kind, .u.dict = d};
    return true;
}

static bool same_key(struct jvm *vm, const struct jentry *e, struct jval key, uint64_t hash,
                     bool *same)
{
    *same = false;
    if (e->hash != hash)
        return true;
    if (key.kind == J_STR && e->key.kind == J_STR) {
        *same = jstr_equal(key.u.s, e->key.u.s);
        return jvm_steps(vm, 1 + key.u.s->n_bytes / 64);
    }
    return jval_equal(vm, e->key, key, same);
}

static bool find_hash(struct jvm *vm, const struct jdict *d, struct jval key, uint64_t hash,
                      struct jentry **out)
{
    bool same = false;
    *out = NULL;
    if (!d->index) {
        for (size_t i = 0; i < d->n; i++) {
            if (!same_key(vm, &d->items[i], key, hash, &same))
                return false;
            if (same) {
                *out = &d->items[i];
                return true;
            }
        }
        return true;
    }
    for (size_t at = hash & (d->n_index - 1); d->index[at]; at = (at + 1) & (d->n_index - 1)) {
        struct jentry *const e = &d->items[d->index[at] - 1];
        if (!jvm_steps(vm, 1) || !same_key(vm, e, key, hash, &same))
            return false;
        if (same) {
            *out = e;
            return true;
        }
    }
    return true;
}

static bool build_index(struct jvm *vm, struct jdict *d)
{
    if (d->n <= SMALL_DICT || d->n * 2 <= d->n_index)
        return true;
    const size_t n_index = d->n_index ? d->n_index * 2 : 4 * SMALL_DICT;
    uint32_t *const index = jvm_alloc(vm, n_index, sizeof *index);
    if (!index)
        return false;
    memset(index, 0, n_index * sizeof *index);
    for (size_t i = 0; i < d->n; i++) {
        size_t at = d->items[i].hash & (n_index - 1);
        while (index[at]) {
            if (!jvm_steps(vm, 1))
                return false;
            at = (at + 1) & (n_index - 1);
        }
        index[at] = (uint32_t)(i + 1);
    }
    d->index = index;
    d->n_index = n_index;
    return true;
}

bool jdict_set(struct jvm *vm, struct jdict *d, struct jval key, struct jval val)
{
    struct jentry *found;
    uint64_t hash;
    if (!jval_hash(vm, key, &hash) || !find_hash(vm, d, key, hash, &found))
        return false;
    if (found) {
        found->val = val;
        return true;
    }
    if (d->n == d->cap) {
        const size_t cap = d->cap ? d->cap * 2 : 4;
        struct jentry *const items = jvm_alloc(vm, cap, sizeof *items);
        if (!items)
            return false;
        if (d->n)
            memcpy(items, d->items, d->n * sizeof *items);
        d->items = items;
        d->cap = cap;
    }
    d->items[d->n++] = (struct jentry){.key = key, .val = val, .hash = hash};
    if (d->index && d->n * 2 <= d->n_index) {
        size_t at = hash & (d->n_index - 1);
        while (d->index[at])
            at = (at + 1) & (d->n_index - 1);
        d->index[at] = (uint32_t)d->n;
        return true;
    }
    return build_index(vm, d);
}

bool jdict_find(struct jvm *vm, const struct jdict *d, struct jval key, struct jval **found)
{
    struct jentry *e;
    uint64_t hash;
    *found = NULL;
    if (!jval_hash(vm, key, &hash) || !find_hash(vm, d, key, hash, &e))
        return false;
    if (e)
        *found = &e->val;
    return true;
}

struct jval *jdict_text(const struct jdict *d, const char *key)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->items[i].key.kind == J_STR && jstr_is(d->items[i].key.u.s, key))
            return &d->items[i].val;
    return NULL;
}
