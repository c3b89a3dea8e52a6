/*
 * Undefined values, lists and ranges, and the truth and the type name of any value.
 */
#include "templates/jinja/value/jinja_value.h"

#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_text.h"

const char *jkind_name(struct jval v)
{
    static const char *const names[] = {
        [J_MISSING] = "missing",
        [J_UNDEF] = "Undefined",
        [J_NONE] = "NoneType",
        [J_BOOL] = "bool",
        [J_INT] = "int",
        [J_FLOAT] = "float",
        [J_STR] = "str",
        [J_LIST] = "list",
        [J_TUPLE] = "tuple",
        [J_DICT] = "dict",
        [J_NAMESPACE] = "Namespace",
        [J_RANGE] = "range",
        [J_VIEW] = "dict view",
        [J_GENERATOR] = "generator",
        [J_MACRO] = "Macro",
        [J_FUNC] = "function",
        [J_METHOD] = "method",
        [J_LOOP] = "LoopContext",
        [J_JOINER] = "Joiner",
        [J_CYCLER] = "Cycler",
    };
    return names[v.kind];
}

static struct jval undef_with(struct jvm *vm, struct jundef details)
{
    /* Not jvm_alloc, which would write an error: this function does not fail. So max_bytes does not
     * apply; the limit of steps bounds the number of details. */
    struct jundef *const u = arena_alloc(vm->arena, sizeof *u);
    if (u)
        *u = details;
    return (struct jval){.kind = J_UNDEF, .u.undef = u};
}

struct jval jundef_attr(struct jvm *vm, struct jval owner, struct jval name)
{
    return undef_with(vm, (struct jundef){.owner = owner.kind, .name = name});
}

struct jval jundef_hint(struct jvm *vm, const char *hint)
{
    return undef_with(vm, (struct jundef){.hint = hint});
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
    if (!s)
        return jvm_fail(vm, "a %s has no such element", jkind_name(owner));
    const int n = bn_str_shown(jstr_text(s), 60);
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
    if (!jvm_grow(vm, &l->items, l->n, &l->cap, l->n + 1, sizeof *l->items))
        return false;
    l->items[l->n++] = item;
    return true;
}

bool jlist_of(struct jvm *vm, enum jkind kind, const struct jval *items, size_t n, struct jval *out)
{
    if (!jlist_new(vm, kind, n, out))
        return false;
    if (n)
        memcpy(out->u.list->items, items, n * sizeof *items);
    out->u.list->n = n;
    return true;
}

void jlist_reverse(struct jlist *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        const struct jval swap = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = swap;
    }
}

bool jlist_pair(struct jvm *vm, struct jval a, struct jval b, struct jval *out)
{
    const struct jval both[2] = {a, b};
    return jlist_of(vm, J_TUPLE, both, 2, out);
}

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
    /* Unsigned arithmetic wraps, also if step * i does not fit. The item fits: it is between start
     * and stop, or, after a slice, an item of the sliced range. */
    return jint((int64_t)((uint64_t)r->start + (uint64_t)r->step * i));
}
