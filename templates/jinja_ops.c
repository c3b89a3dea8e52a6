/*
 * Truth, equality, order, containment and hashing. Arithmetic is in jinja_arith.c.
 */
#include "templates/jinja_ops.h"

#include "engine/base/hash.h"
#include "templates/jinja_iter.h"
#include "templates/jinja_number.h"
#include "templates/jinja_text.h"

#include <math.h>

bool jval_truth(struct jval v)
{
    switch (v.kind) {
    case J_MISSING:
    case J_UNDEF:
    case J_NONE:
        return false;
    case J_BOOL:
        return v.u.b;
    case J_INT:
        return v.u.i != 0;
    case J_FLOAT:
        return v.u.f != 0;
    case J_STR:
        return v.u.s->n_bytes > 0;
    case J_LIST:
    case J_TUPLE:
        return v.u.list->n > 0;
    case J_DICT:
        return v.u.dict->n > 0;
    case J_RANGE:
        return v.u.range->n > 0;
    case J_VIEW:
        return v.u.view->dict->n > 0;
    default:
        return true;
    }
}

struct jval jrange_item(const struct jrange *r, size_t i)
{
    return jint((int64_t)((uint64_t)r->start + (uint64_t)r->step * i)); /* fits: range checked */
}

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
    case J_INT: /* Python shares small integers */
        return a.u.i == b.u.i && a.u.i >= -5 && a.u.i <= 256;
    case J_FLOAT:
        return false;
    default:
        return a.u.s == b.u.s;
    }
}

static bool equal_numbers(struct jval a, struct jval b)
{
    if (a.kind == J_FLOAT && b.kind == J_FLOAT)
        return a.u.f == b.u.f;
    if (a.kind == J_FLOAT)
        return int_compare_float(jval_int(b), a.u.f) == 0;
    if (b.kind == J_FLOAT)
        return int_compare_float(jval_int(a), b.u.f) == 0;
    return jval_int(a) == jval_int(b);
}

static bool equal_dicts(struct jvm *vm, const struct jdict *a, const struct jdict *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++) {
        struct jval *other;
        if (!jdict_find(vm, b, a->items[i].key, &other))
            return false;
        *out = other != NULL;
        if (other && !jval_equal(vm, a->items[i].val, *other, out))
            return false;
    }
    return true;
}

static bool equal_lists(struct jvm *vm, const struct jlist *a, const struct jlist *b, bool *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; i < a->n && *out; i++)
        if (!jval_equal(vm, a->items[i], b->items[i], out))
            return false;
    return true;
}

/* keys() and items() are sets: equal if as long and each is in the other. */
static bool equal_views(struct jvm *vm, const struct jview *a, const struct jview *b, bool *out)
{
    *out = a == b;
    if (*out || a->kind == VIEW_VALUES || a->kind != b->kind)
        return true;
    *out = a->dict->n == b->dict->n;
    for (size_t i = 0; i < a->dict->n && *out; i++) {
        struct jval *other;
        if (!jdict_find(vm, b->dict, a->dict->items[i].key, &other))
            return false;
        *out = other != NULL;
        if (other && a->kind == VIEW_ITEMS && !jval_equal(vm, a->dict->items[i].val, *other, out))
            return false;
    }
    return true;
}

static bool equal_ranges(const struct jrange *a, const struct jrange *b)
{
    return a->n == b->n &&
           (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

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
        *out = equal_numbers(a, b);
        return true;
    }
    *out = false;
    if (a.kind != b.kind)
        return true;
    const bool ok = jvm_steps(vm, 1) && jvm_enter(vm) && equal_inside(vm, a, b, out);
    jvm_leave(vm);
    return ok;
}

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
        if (!jval_hash(vm, l->items[i], &item))
            return false;
        h = fnv1a_add(h, item);
    }
    *out = h;
    return true;
}

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
        return true;
    case J_TUPLE: {
        const bool ok = jvm_enter(vm) && hash_tuple(vm, v.u.list, out);
        jvm_leave(vm);
        return ok;
    }
    case J_LIST:
    case J_DICT:
        return jvm_fail(vm, "unhashable type: '%s'", jkind_name(v));
    case J_VIEW:
        if (v.u.view->kind != VIEW_VALUES) /* the others are sets */
            return jvm_fail(vm, "unhashable type: '%s'", jkind_name(v));
        *out = (uint64_t)(uintptr_t)v.u.view >> 4;
        return true;
    default:
        *out = (uint64_t)(uintptr_t)v.u.s >> 4;
        return true;
    }
}

static bool decide(enum jop op, int order)
{
    return op == OP_LT   ? order < 0
           : op == OP_LE ? order <= 0
           : op == OP_GT ? order > 0
                         : order >= 0;
}

static bool order_numbers(enum jop op, struct jval a, struct jval b)
{
    if (a.kind == J_FLOAT && b.kind == J_FLOAT)
        return op == OP_LT   ? a.u.f < b.u.f
               : op == OP_LE ? a.u.f <= b.u.f
               : op == OP_GT ? a.u.f > b.u.f
                             : a.u.f >= b.u.f;
    if (a.kind == J_FLOAT || b.kind == J_FLOAT) {
        const bool swap = a.kind == J_FLOAT;
        const int order =
            swap ? int_compare_float(jval_int(b), a.u.f) : int_compare_float(jval_int(a), b.u.f);
        return order != -2 && decide(op, swap ? -order : order);
    }
    return decide(op, (jval_int(a) > jval_int(b)) - (jval_int(a) < jval_int(b)));
}

static bool order_lists(struct jvm *vm, enum jop op, const struct jval v[2], bool *out)
{
    const struct jlist *const a = v[0].u.list, *const b = v[1].u.list;
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool same;
        if (!jval_equal(vm, a->items[i], b->items[i], &same))
            return false;
        if (!same)
            return jval_order(vm, op, a->items[i], b->items[i], out);
    }
    *out = decide(op, (a->n > b->n) - (a->n < b->n));
    return true;
}

bool jval_order(struct jvm *vm, enum jop op, struct jval a, struct jval b, bool *out)
{
    static const char *const signs[] = {
        [OP_LT] = "<", [OP_LE] = "<=", [OP_GT] = ">", [OP_GE] = ">="};
    if (jval_is_number(a) && jval_is_number(b)) {
        *out = order_numbers(op, a, b);
        return true;
    }
    if (a.kind == J_STR && b.kind == J_STR) {
        *out = decide(op, jstr_compare(a.u.s, b.u.s));
        return true;
    }
    if (a.kind == b.kind && (a.kind == J_LIST || a.kind == J_TUPLE)) {
        const struct jval both[2] = {a, b};
        const bool ok = jvm_steps(vm, 1) && jvm_enter(vm) && order_lists(vm, op, both, out);
        jvm_leave(vm);
        return ok;
    }
    if (a.kind == J_UNDEF || b.kind == J_UNDEF)
        return jundef_fail(vm, a.kind == J_UNDEF ? a : b);
    return jvm_fail(vm, "'%s' is not supported between '%s' and '%s'", signs[op], jkind_name(a),
                    jkind_name(b));
}

static bool range_has(struct jvm *vm, struct jval item, const struct jrange *r, bool *out)
{
    for (size_t i = 0; i < r->n && !*out; i++)
        if (!jvm_steps(vm, 1) || !jval_equal(vm, jrange_item(r, i), item, out))
            return false;
    return true;
}

bool jval_contains(struct jvm *vm, struct jval item, struct jval seq, bool *out)
{
    struct jval *found;
    struct jiter it;
    *out = false;
    switch (seq.kind) {
    case J_STR:
        if (item.kind != J_STR)
            return jvm_fail(vm, "'in <string>' requires string as left operand, not %s",
                            jkind_name(item));
        *out = text_find(jstr_text(seq.u.s), jstr_text(item.u.s), 0, seq.u.s->n_bytes) != SIZE_MAX;
        return jvm_steps(vm, seq.u.s->n_bytes / 32);
    case J_DICT:
        if (!jdict_find(vm, seq.u.dict, item, &found))
            return false;
        *out = found != NULL;
        return true;
    case J_RANGE:
        return range_has(vm, item, seq.u.range, out);
    case J_VIEW:
        if (seq.u.view->kind == VIEW_KEYS) {
            if (!jdict_find(vm, seq.u.view->dict, item, &found))
                return false;
            *out = found != NULL;
            return true;
        }
        break;
    default:
        break;
    }
    if (!jiter_open(vm, seq, &it))
        return false;
    for (bool more = true; !*out;) {
        struct jval v;
        if (!jiter_next(vm, &it, &v, &more))
            return false;
        if (!more)
            break;
        if (jval_same(v, item)) {
            *out = true;
            break;
        }
        if (!jval_equal(vm, v, item, out))
            return false;
    }
    return true;
}

bool jval_compare(struct jvm *vm, enum jop op, struct jval a, struct jval b, bool *out)
{
    bool result = false;
    bool ok;
    if (op == OP_EQ || op == OP_NE)
        ok = jval_equal(vm, a, b, &result);
    else if (op == OP_IN || op == OP_NOTIN)
        ok = jval_contains(vm, a, b, &result);
    else
        ok = jval_order(vm, op, a, b, &result);
    *out = (op == OP_NE || op == OP_NOTIN) ? !result : result;
    return ok;
}

bool jval_length(struct jvm *vm, struct jval v, size_t *out)
{
    switch (v.kind) {
    case J_UNDEF:
        *out = 0;
        return true;
    case J_STR:
        *out = jstr_chars(v.u.s);
        return true;
    case J_LIST:
    case J_TUPLE:
        *out = v.u.list->n;
        return true;
    case J_DICT:
        *out = v.u.dict->n;
        return true;
    case J_RANGE:
        *out = v.u.range->n;
        return true;
    case J_VIEW:
        *out = v.u.view->dict->n;
        return true;
    case J_LOOP:
        return jloop_length(vm, v.u.loop, out);
    default:
        *out = SIZE_MAX;
        return true;
    }
}
