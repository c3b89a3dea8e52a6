/*
 * x.name, x[key] and x[a:b:c], as jinja2's sandbox looks them up: attributes are methods and a few
 * fields, then items; what would change a list or dict is undefined and fails when called.
 */
#include "templates/jinja_eval.h"
#include "templates/jinja_ops.h"
#include "templates/jinja_text.h"

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
        if (name.ptr[0] == 'l')
            *out = jbool(none);
        else
            *out = none ? jundef_hint(vm, "there is no next item") : loop->ahead;
    } else if (bn_str_is(name, "previtem")) {
        *out = loop->index0 == 0 ? jundef_hint(vm, "there is no previous item") : loop->prev;
    } else if (bn_str_is(name, "depth")) {
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

/* Fields that are values. *out stays J_MISSING if there is none of that name. */
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

/* getattr(obj, name) in the sandbox; J_MISSING: it has no such attribute. */
static bool attribute(struct jvm *vm, struct jval obj, struct jval name, struct jval *out)
{
    const struct bn_str text = jstr_text(name.u.s);
    *out = (struct jval){.kind = J_MISSING};
    if (obj.kind == J_SPACE) {
        struct jval *found;
        if (!jdict_find(vm, obj.u.dict, name, &found))
            return false;
        if (found && text.n_bytes && text.ptr[0] == '_')
            *out = jundef_hint(vm, "access to a private attribute of a Namespace is unsafe");
        else if (found)
            *out = *found;
        return true;
    }
    if (!field(vm, obj, text, out) || out->kind != J_MISSING)
        return out->kind != J_MISSING;
    if (builtin_is_mutator(obj, text)) {
        *out = jundef_hint(vm, obj.kind == J_DICT
                                   ? "methods that change a dict are not allowed in a template"
                                   : "methods that change a list are not allowed in a template");
        return true;
    }
    const struct jbuiltin *const f = builtin_method(obj, text);
    return !f || bind_method(vm, obj, f, out);
}

static bool is_hashable(struct jval v, int depth)
{
    if (v.kind == J_VIEW)
        return v.u.view->kind == VIEW_VALUES;
    if (v.kind == J_LIST || v.kind == J_DICT)
        return false;
    if (v.kind != J_TUPLE)
        return true;
    for (size_t i = 0; i < v.u.list->n; i++)
        if (depth == 0 || !is_hashable(v.u.list->items[i], depth - 1))
            return false;
    return true;
}

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

/* obj[key]; J_MISSING: Python would raise what the sandbox catches. */
static bool item(struct jvm *vm, struct jval obj, struct jval key, struct jval *out)
{
    struct jval *found;
    size_t i;
    *out = (struct jval){.kind = J_MISSING};
    switch (obj.kind) {
    case J_UNDEF:
        return jundef_fail(vm, obj);
    case J_DICT:
        if (!is_hashable(key, 50))
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
               jstr_part(vm, s, at, at + utf8_next(s->ptr + at, s->n_bytes - at, &cp), out);
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

/* ---- slices ---- */

struct slice {
    int64_t start, stop, step;
    size_t n;
};

static bool slice_part(struct jvm *vm, struct jval v, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (v.kind == J_NONE || v.kind == J_MISSING)
        return true;
    if (!jval_is_integer(v))
        return jvm_fail(vm, "slice indices must be integers or None, not '%s'", jkind_name(v));
    *out = jval_int(v);
    return true;
}

static int64_t clip(int64_t v, int64_t n, int64_t lo, int64_t hi)
{
    if (v < 0)
        v += n;
    return v < lo ? lo : v > hi ? hi : v;
}

/* Python's slice.indices over n items. */
static bool slice_indices(struct jvm *vm, const struct jval part[3], size_t n_items,
                          struct slice *s)
{
    const int64_t n = (int64_t)n_items;
    if (!slice_part(vm, part[2], 1, &s->step))
        return false;
    if (s->step == 0)
        return jvm_fail(vm, "slice step cannot be zero");
    if (s->step < -INT64_MAX)
        s->step = -INT64_MAX;
    const int64_t lo = s->step < 0 ? -1 : 0, hi = s->step < 0 ? n - 1 : n;
    if (!slice_part(vm, part[0], INT64_MIN, &s->start) ||
        !slice_part(vm, part[1], INT64_MIN, &s->stop))
        return false;
    const bool has_start = part[0].kind != J_NONE && part[0].kind != J_MISSING;
    const bool has_stop = part[1].kind != J_NONE && part[1].kind != J_MISSING;
    s->start = has_start ? clip(s->start, n, lo, hi) : s->step < 0 ? hi : lo;
    s->stop = has_stop ? clip(s->stop, n, lo, hi) : s->step < 0 ? lo : hi;
    s->n = 0;
    if (s->step > 0 && s->start < s->stop)
        s->n = (size_t)((s->stop - s->start - 1) / s->step + 1);
    if (s->step < 0 && s->stop < s->start)
        s->n = (size_t)((s->start - s->stop - 1) / -s->step + 1);
    return true;
}

static bool slice_string(struct jvm *vm, struct jstr *str, const struct slice *s, struct jval *out)
{
    struct jbuf b;
    if (!jvm_steps(vm, s->n + str->n_bytes / 64))
        return false;
    if (s->step == 1) {
        const size_t b0 = jstr_offset(str, (size_t)s->start);
        const size_t b1 = s->n ? jstr_offset(str, (size_t)s->stop) : b0;
        return jstr_part(vm, str, b0, b1, out);
    }
    jbuf_init(&b, vm);
    size_t at = s->n ? jstr_offset(str, (size_t)s->start) : 0;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t cp;
        if (!jbuf_part(&b, str, at, at + utf8_next(str->ptr + at, str->n_bytes - at, &cp)))
            return false;
        if (i + 1 == s->n)
            break;
        for (int64_t k = 0; k < s->step && jvm_steps(vm, 1); k++)
            at += utf8_next(str->ptr + at, str->n_bytes - at, &cp);
        for (int64_t k = 0; k > s->step && jvm_steps(vm, 1); k--)
            at = utf8_back(str->ptr, at);
        if (vm->n_steps == JVM_MAX_STEPS)
            return jvm_steps(vm, 1);
    }
    if (!jbuf_done(&b, out))
        return false;
    out->u.s->is_markup = str->is_markup;
    return true;
}

static bool slice_range(struct jvm *vm, const struct jrange *r, const struct slice *s,
                        struct jval *out)
{
    struct jrange *const part = jvm_alloc(vm, 1, sizeof *part);
    if (!part)
        return false;
    /* No overflow: a range has at most a hundred thousand items between its int64 ends. */
    part->start = (int64_t)((uint64_t)r->start + (uint64_t)s->start * (uint64_t)r->step);
    part->stop = (int64_t)((uint64_t)r->start + (uint64_t)s->stop * (uint64_t)r->step);
    part->step = (int64_t)((uint64_t)r->step * (uint64_t)s->step);
    part->n = s->n;
    *out = (struct jval){.kind = J_RANGE, .u.range = part};
    return true;
}

bool eval_slice(struct jvm *vm, struct jval obj, const struct jval part[3], struct jval *out)
{
    struct slice s = {0};
    size_t n;
    if (obj.kind == J_UNDEF)
        return jundef_fail(vm, obj);
    if (obj.kind != J_STR && obj.kind != J_LIST && obj.kind != J_TUPLE && obj.kind != J_RANGE)
        return jvm_fail(vm, "'%s' object cannot be sliced", jkind_name(obj));
    if (!jval_length(vm, obj, &n) || !slice_indices(vm, part, n, &s))
        return false;
    if (obj.kind == J_STR)
        return slice_string(vm, obj.u.s, &s, out);
    if (obj.kind == J_RANGE)
        return slice_range(vm, obj.u.range, &s, out);
    if (!jvm_steps(vm, s.n / 4) || !jlist_new(vm, obj.kind, s.n, out))
        return false;
    for (size_t i = 0; i < s.n; i++)
        out->u.list->items[i] = obj.u.list->items[s.start + (int64_t)i * s.step];
    out->u.list->n = s.n;
    return true;
}
