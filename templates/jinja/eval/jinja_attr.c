/*
 * x.name and x[key] as in jinja2's sandbox. x.name finds methods and fields before items, x[key]
 * with a string as key the reverse; other keys find only items. A method that changes a list or
 * dict is undefined, and calling it is an error.
 */
#include "templates/jinja/eval/jinja_eval.h"
#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_text.h"

static bool bind_method(struct jvm *vm, struct jval self, const struct jbuiltin *f,
                        struct jval *out)
{
    struct jmethod *const m = jvm_alloc(vm, 1, sizeof *m);
    if (!m)
        return false;
    *m = (struct jmethod){.self = self, .func = f};
    *out = (struct jval){.kind = J_METHOD, .u.method = m};
    return true;
}

static bool loop_attr(struct jvm *vm, struct jloop *loop, struct bn_str name, struct jval *out)
{
    static const char *const of_length[] = {"length", "revindex", "revindex0"};
    for (size_t i = 0; i < 3; i++) {
        size_t length;
        if (!bn_str_is(name, of_length[i]))
            continue;
        if (!jloop_length(vm, loop, &length))
            return false;
        *out = jint((int64_t)(i == 0 ? length : length - loop->index0 - (i == 2)));
        return true;
    }
    if (bn_str_is(name, "index")) {
        *out = jint((int64_t)loop->index0 + 1);
    } else if (bn_str_is(name, "index0")) {
        *out = jint((int64_t)loop->index0);
    } else if (bn_str_is(name, "first")) {
        *out = jbool(loop->index0 == 0);
    } else if (bn_str_is(name, "last") || bn_str_is(name, "nextitem")) {
        if (!jloop_peek(vm, loop))
            return false;
        const bool none = loop->ahead.kind == J_MISSING;
        if (name.ptr[0] == 'l') /* "last" */
            *out = jbool(none);
        else
            *out = none ? jundef_hint(vm, "there is no next item") : loop->ahead;
    } else if (bn_str_is(name, "previtem")) {
        *out = loop->index0 == 0 ? jundef_hint(vm, "there is no previous item") : loop->prev;
    } else if (bn_str_is(name, "depth")) { /* constant: the parser rejects recursive loops */
        *out = jint(1);
    } else if (bn_str_is(name, "depth0")) {
        *out = jint(0);
    }
    return true;
}

static bool macro_attr(struct jvm *vm, const struct jnode *n, struct bn_str name, struct jval *out)
{
    if (bn_str_is(name, "name")) {
        *out = n->name ? jstring(n->name) : jnone();
    } else if (bn_str_is(name, "catch_kwargs")) {
        *out = jbool(n->op & MACRO_KWARGS);
    } else if (bn_str_is(name, "catch_varargs")) {
        *out = jbool(n->op & MACRO_VARARGS);
    } else if (bn_str_is(name, "caller")) {
        *out = jbool(n->op & MACRO_CALLER);
    } else if (bn_str_is(name, "arguments")) {
        if (!jlist_new(vm, J_TUPLE, n->n_other, out))
            return false;
        for (size_t i = 0; i < n->n_other; i++)
            if (!jlist_push(vm, *out, jstring(n->other[i]->name)))
                return false;
    }
    return true;
}

/* Fields of built-in objects. *out stays J_MISSING if there is no such field. */
static bool field(struct jvm *vm, struct jval obj, struct bn_str name, struct jval *out)
{
    switch (obj.kind) {
    case J_LOOP:
        return loop_attr(vm, obj.u.loop, name, out);
    case J_MACRO:
        return macro_attr(vm, obj.u.macro->node, name, out);
    case J_RANGE:
        if (bn_str_is(name, "start"))
            *out = jint(obj.u.range->start);
        else if (bn_str_is(name, "stop"))
            *out = jint(obj.u.range->stop);
        else if (bn_str_is(name, "step"))
            *out = jint(obj.u.range->step);
        return true;
    case J_CYCLER:
        if (bn_str_is(name, "current"))
            *out = obj.u.cycle->items[obj.u.cycle->pos];
        else if (bn_str_is(name, "pos"))
            *out = jint((int64_t)obj.u.cycle->pos);
        return true;
    case J_JOINER:
        if (bn_str_is(name, "sep"))
            *out = obj.u.cycle->items[0];
        else if (bn_str_is(name, "used"))
            *out = jbool(obj.u.cycle->pos > 0);
        return true;
    case J_TUPLE:
        if (obj.u.list->is_group && bn_str_is(name, "grouper"))
            *out = obj.u.list->items[0];
        else if (obj.u.list->is_group && bn_str_is(name, "list"))
            *out = obj.u.list->items[1];
        return true;
    default:
        return true;
    }
}

static bool in_list(const char *const *list, struct bn_str name)
{
    for (; *list; list++)
        if (bn_str_is(name, *list))
            return true;
    return false;
}

/* A method that the sandbox forbids. */
static bool is_mutator(struct jval self, struct bn_str name)
{
    static const char *const of_list[] = {"append", "clear",  "pop",    "reverse", "insert",
                                          "sort",   "extend", "remove", NULL};
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    return (self.kind == J_LIST && in_list(of_list, name)) ||
           (self.kind == J_DICT && in_list(of_dict, name));
}

/* getattr(obj, name) in the sandbox. *out is J_MISSING if there is no such attribute. */
static bool attribute(struct jvm *vm, struct jval obj, struct jval name, struct jval *out)
{
    const struct bn_str text = jstr_text(name.u.s);
    *out = (struct jval){.kind = J_MISSING};
    if (obj.kind == J_NAMESPACE) {
        struct jval *found;
        if (!jdict_find(vm, obj.u.dict, name, &found))
            return false;
        if (found && text.n_bytes && text.ptr[0] == '_')
            *out = jundef_hint(vm, "access to a private attribute of a Namespace is unsafe");
        else if (found)
            *out = *found;
        return true;
    }
    if (!field(vm, obj, text, out))
        return false;
    if (out->kind != J_MISSING)
        return true;
    if (is_mutator(obj, text)) {
        *out = jundef_hint(vm, obj.kind == J_DICT
                                   ? "methods that change a dict are not allowed in a template"
                                   : "methods that change a list are not allowed in a template");
        return true;
    }
    const struct jbuiltin *const f = builtin_method(obj, text);
    return !f || bind_method(vm, obj, f, out);
}

/* *out: whether v can be a key. Tuples nested more than `depth` deep cannot, to bound the
 * recursion: item() passes 50, more than templates need. Each item counts a step, because a tuple
 * may occur in another one many times. */
static bool check_hashable(struct jvm *vm, struct jval v, int depth, bool *out)
{
    *out = v.kind == J_VIEW ? v.u.view->kind == VIEW_VALUES : v.kind != J_LIST && v.kind != J_DICT;
    if (v.kind != J_TUPLE)
        return true;
    for (size_t i = 0; i < v.u.list->n && *out; i++) {
        *out = depth > 0;
        if (*out && (!jvm_steps(vm, 1) || !check_hashable(vm, v.u.list->items[i], depth - 1, out)))
            return false;
    }
    return true;
}

/* The index in n items that `key` selects; negative keys count from the end, where -(i + 1) is the
 * distance to the last item and cannot overflow. False: none. */
static bool index_of(struct jval key, size_t n, size_t *out)
{
    if (!jval_is_integer(key))
        return false;
    const int64_t i = jval_int(key);
    if (i < 0 ? (uint64_t) - (i + 1) >= n : (uint64_t)i >= n)
        return false;
    *out = i < 0 ? n - (size_t)(-(i + 1)) - 1 : (size_t)i;
    return true;
}

/* obj[key]. *out is J_MISSING where Python raises an error that the sandbox catches, for example if
 * there is no such item. */
static bool item(struct jvm *vm, struct jval obj, struct jval key, struct jval *out)
{
    struct jval *found;
    bool hashable;
    size_t i;
    *out = (struct jval){.kind = J_MISSING};
    switch (obj.kind) {
    case J_UNDEF:
        return jundef_fail(vm, obj);
    case J_DICT:
        if (!check_hashable(vm, key, 50, &hashable))
            return false;
        if (!hashable)
            return true;
        if (!jdict_find(vm, obj.u.dict, key, &found))
            return false;
        if (found)
            *out = *found;
        return true;
    case J_LIST:
    case J_TUPLE:
        if (index_of(key, obj.u.list->n, &i))
            *out = obj.u.list->items[i];
        return true;
    case J_RANGE:
        if (index_of(key, obj.u.range->n, &i))
            *out = jrange_item(obj.u.range, i);
        return true;
    case J_STR: {
        struct jstr *const s = obj.u.s;
        if (!index_of(key, jstr_chars(s), &i))
            return true;
        const size_t at = jstr_offset(s, i);
        uint32_t cp;
        return jvm_steps(vm, at / 64) &&
               jstr_slice(vm, s, at, at + text_next(jstr_text(s), at, &cp), out);
    }
    default:
        return true;
    }
}

bool eval_getattr(struct jvm *vm, struct jval obj, struct jval name, struct jval *out)
{
    if (obj.kind == J_UNDEF)
        return jundef_fail(vm, obj);
    if (!attribute(vm, obj, name, out))
        return false;
    if (out->kind == J_MISSING && !item(vm, obj, name, out))
        return false;
    if (out->kind == J_MISSING)
        *out = jundef_attr(vm, obj, name);
    return true;
}

bool eval_getitem(struct jvm *vm, struct jval obj, struct jval key, struct jval *out)
{
    if (!item(vm, obj, key, out))
        return false;
    if (out->kind == J_MISSING && key.kind == J_STR && !attribute(vm, obj, key, out))
        return false;
    if (out->kind == J_MISSING)
        *out = jundef_attr(vm, obj, key);
    return true;
}
