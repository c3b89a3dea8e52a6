/*
 * Dicts, and identity, equality and hashing of values. A dict is a list of entries in insertion
 * order. A dict with more than SMALL_DICT entries also has a hash index. Entries are never removed.
 */
#include "engine/base/hash.h"
#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_text.h"

#include <math.h>

#define SMALL_DICT 8 /* up to this size the hashes of all entries are compared */

bool jval_same(struct jval a, struct jval b)
{
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case J_MISSING:
    case J_NONE:
        return true;
    case J_BOOL:
        return a.u.b == b.u.b;
    case J_INT:
        return a.u.i == b.u.i;
    case J_FLOAT: /* the bits: a variable is the same as itself, also if it is NaN */
        return memcmp(&a.u.f, &b.u.f, sizeof a.u.f) == 0;
    default: /* all other members of the union are pointers */
        return a.u.s == b.u.s;
    }
}

int jval_compare_numbers(struct jval a, struct jval b)
{
    if (a.kind == J_FLOAT && b.kind == J_FLOAT)
        return isnan(a.u.f) || isnan(b.u.f) ? JNUM_UNORDERED : (a.u.f > b.u.f) - (a.u.f < b.u.f);
    if (b.kind == J_FLOAT)
        return int_compare_float(jval_int(a), b.u.f);
    if (a.kind == J_FLOAT)
        return isnan(a.u.f) ? JNUM_UNORDERED : -int_compare_float(jval_int(b), a.u.f);
    return (jval_int(a) > jval_int(b)) - (jval_int(a) < jval_int(b));
}

bool jval_same_or_equal(struct jvm *vm, struct jval a, struct jval b, bool *out)
{
    *out = jval_same(a, b);
    return *out || jval_equal(vm, a, b, out);
}

static bool equal_dicts(struct jvm *vm, const struct jdict *a, const struct jdict *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        struct jval *other;
        if (!jdict_find(vm, b, a->items[i].key, &other))
            return false;
        *out = other != NULL;
        if (other && !jval_same_or_equal(vm, a->items[i].val, *other, out))
            return false;
    }
    return true;
}

static bool equal_lists(struct jvm *vm, const struct jlist *a, const struct jlist *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++)
        if (!jval_same_or_equal(vm, a->items[i], b->items[i], out))
            return false;
    return true;
}

/* Whether keys() or items() has this item. */
static bool view_has(struct jvm *vm, const struct jview *view, struct jval item, bool *out)
{
    const bool by_pair = view->kind == VIEW_ITEMS;
    struct jval *found;
    *out = false;
    if (by_pair && !(item.kind == J_TUPLE && item.u.list->n == 2))
        return true;
    if (!jdict_find(vm, view->dict, by_pair ? item.u.list->items[0] : item, &found))
        return false;
    *out = found != NULL;
    return !found || !by_pair || jval_same_or_equal(vm, item.u.list->items[1], *found, out);
}

/* keys() and items() are sets: equal if they have the same size and one contains the other. */
static bool equal_views(struct jvm *vm, const struct jview *a, const struct jview *b, bool *out)
{
    *out = a == b;
    if (*out || a->kind == VIEW_VALUES || b->kind == VIEW_VALUES)
        return true;
    *out = a->dict->n == b->dict->n;
    for (size_t i = 0; i < a->dict->n && *out; i++) {
        const struct jentry *const e = &a->dict->items[i];
        struct jval item = e->key;
        if ((a->kind == VIEW_ITEMS && !jlist_pair(vm, e->key, e->val, &item)) ||
            !view_has(vm, b, item, out))
            return false;
    }
    return true;
}

static bool equal_ranges(const struct jrange *a, const struct jrange *b)
{
    return a->n == b->n &&
           (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

/* The kinds of a and b are equal. */
static bool equal_inside(struct jvm *vm, struct jval a, struct jval b, bool *out)
{
    switch (a.kind) {
    case J_LIST:
    case J_TUPLE:
        return equal_lists(vm, a.u.list, b.u.list, out);
    case J_DICT:
        return equal_dicts(vm, a.u.dict, b.u.dict, out);
    case J_VIEW:
        return equal_views(vm, a.u.view, b.u.view, out);
    case J_RANGE:
        *out = equal_ranges(a.u.range, b.u.range);
        return true;
    case J_STR:
        *out = jstr_equal(a.u.s, b.u.s);
        return jvm_steps(vm, a.u.s->n_bytes / 64);
    case J_UNDEF:
        *out = true;
        return true;
    default:
        *out = jval_same(a, b);
        return true;
    }
}

bool jval_equal(struct jvm *vm, struct jval a, struct jval b, bool *out)
{
    if (jval_is_number(a) && jval_is_number(b)) {
        *out = jval_compare_numbers(a, b) == 0;
        return true;
    }
    *out = false;
    if (a.kind != b.kind)
        return true;
    const bool ok = jvm_steps(vm, 1) && jvm_enter(vm) && equal_inside(vm, a, b, out);
    jvm_leave(vm);
    return ok;
}

/* In FNV-1a, bit k of the hash depends only on bits 0 to k of the bytes. The index uses the low
 * bits, so the shift adds high bits to them. */
static uint64_t hash_bytes(const char *p, size_t n)
{
    const uint64_t h = fnv1a_add_bytes(FNV1A_START, p, n);
    return h ^ h >> 29;
}

static bool hash_tuple(struct jvm *vm, const struct jlist *l, uint64_t *out)
{
    uint64_t h = l->n;
    for (size_t i = 0; i < l->n; i++) {
        uint64_t item;
        if (!jvm_steps(vm, 1) || !jval_hash(vm, l->items[i], &item))
            return false;
        h = fnv1a_add(h, item);
    }
    *out = h;
    return true;
}

/* Ranges with the same items are equal (see equal_ranges), so they need the same hash. */
static uint64_t hash_range(const struct jrange *r)
{
    uint64_t h = r->n;
    if (r->n > 0)
        h = fnv1a_add(h, (uint64_t)r->start);
    if (r->n > 1)
        h = fnv1a_add(h, (uint64_t)r->step);
    return h;
}

/* The hashes of numbers and pointers are weak. Collisions cost only steps: see
 * find_hash. */
bool jval_hash(struct jvm *vm, struct jval v, uint64_t *out)
{
    switch (v.kind) {
    case J_NONE:
    case J_UNDEF:
        *out = v.kind;
        return true;
    case J_BOOL:
    case J_INT:
        *out = fnv1a_add(0, (uint64_t)jval_int(v));
        return true;
    case J_FLOAT: /* equal numbers hash alike */
        if (v.u.f >= -0x1p63 && v.u.f < 0x1p63 && v.u.f == floor(v.u.f))
            *out = fnv1a_add(0, (uint64_t)(int64_t)v.u.f);
        else
            memcpy(out, &v.u.f, sizeof *out);
        return true;
    case J_STR:
        *out = hash_bytes(v.u.s->ptr, v.u.s->n_bytes);
        return jvm_steps(vm, v.u.s->n_bytes / 16);
    case J_TUPLE: {
        const bool ok = jvm_enter(vm) && hash_tuple(vm, v.u.list, out);
        jvm_leave(vm);
        return ok;
    }
    case J_LIST:
    case J_DICT:
        return jvm_fail(vm, "unhashable type: '%s'", jkind_name(v));
    case J_VIEW:
        if (v.u.view->kind != VIEW_VALUES) /* keys() and items() are sets */
            return jvm_fail(vm, "unhashable type: '%s'", jkind_name(v));
        *out = (uint64_t)(uintptr_t)v.u.view >> 4; /* the arena aligns to 16 bytes */
        return true;
    case J_RANGE:
        *out = hash_range(v.u.range);
        return true;
    default:
        *out = (uint64_t)(uintptr_t)v.u.s >> 4;
        return true;
    }
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

/* Make the first index when the dict outgrows SMALL_DICT, or one of twice the size when the present
 * one is more than half full. */
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
        index[at] = (uint32_t)(i + 1); /* fits: 2^32 entries would need more than 100 GiB */
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
    if (!jvm_grow(vm, &d->items, d->n, &d->cap, d->n + 1, sizeof *d->items))
        return false;
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

bool jdict_update(struct jvm *vm, struct jdict *d, const struct jdict *from)
{
    for (size_t i = 0; i < from->n; i++)
        if (!jvm_steps(vm, 1) || !jdict_set(vm, d, from->items[i].key, from->items[i].val))
            return false;
    return true;
}

bool jdict_pairs(struct jvm *vm, const struct jdict *d, struct jval *out)
{
    if (!jlist_new(vm, J_LIST, d->n, out))
        return false;
    for (size_t i = 0; i < d->n; i++) {
        struct jval pair;
        if (!jlist_pair(vm, d->items[i].key, d->items[i].val, &pair) || !jlist_push(vm, *out, pair))
            return false;
    }
    return true;
}

bool jview_new(struct jvm *vm, struct jdict *d, enum jview_kind kind, struct jval *out)
{
    struct jview *const view = jvm_alloc(vm, 1, sizeof *view);
    if (!view)
        return false;
    *view = (struct jview){.kind = kind, .dict = d};
    *out = (struct jval){.kind = J_VIEW, .u.view = view};
    return true;
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
