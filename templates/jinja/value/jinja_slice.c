/*
 * v[a:b:c] of strings, lists, tuples and ranges, as in Python.
 */
#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_text.h"

struct slice {
    int64_t start, stop, step;
    size_t n;
};

static bool slice_bound(struct jvm *vm, struct jval v, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (v.kind == J_NONE || v.kind == J_MISSING)
        return true;
    if (!jval_is_integer(v))
        return jvm_fail(vm, "slice indices must be integers or None, not '%s'", jkind_name(v));
    *out = jval_int(v);
    return true;
}

/* A bound as an index in [lo, hi]. A negative bound counts from the end of n items. */
static int64_t clip(int64_t v, int64_t n, int64_t lo, int64_t hi)
{
    if (v < 0)
        v += n;
    return v < lo ? lo : v > hi ? hi : v;
}

/* Python's slice.indices(n_items). */
static bool slice_indices(struct jvm *vm, const struct jval bound[3], size_t n_items,
                          struct slice *s)
{
    const int64_t n = (int64_t)n_items;
    if (!slice_bound(vm, bound[2], 1, &s->step))
        return false;
    if (s->step == 0)
        return jvm_fail(vm, "slice step cannot be zero");
    if (s->step < -INT64_MAX) /* -step must not overflow */
        s->step = -INT64_MAX;
    /* The lowest and highest value of start and stop. */
    const int64_t lo = s->step < 0 ? -1 : 0, hi = s->step < 0 ? n - 1 : n;
    /* The fallback 0 is not used: has_start and has_stop select the default of a missing bound. */
    if (!slice_bound(vm, bound[0], 0, &s->start) || !slice_bound(vm, bound[1], 0, &s->stop))
        return false;
    const bool has_start = bound[0].kind != J_NONE && bound[0].kind != J_MISSING;
    const bool has_stop = bound[1].kind != J_NONE && bound[1].kind != J_MISSING;
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
    struct jbuf b = {.vm = vm};
    if (!jvm_steps(vm, s->n + str->n_bytes / 64))
        return false;
    if (s->step == 1) {
        const size_t b0 = jstr_offset(str, (size_t)s->start);
        const size_t b1 = s->n ? jstr_offset(str, (size_t)s->stop) : b0;
        return jstr_slice(vm, str, b0, b1, out);
    }
    size_t at = s->n ? jstr_offset(str, (size_t)s->start) : 0;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t cp;
        if (!jbuf_slice(&b, str, at, at + text_next(jstr_text(str), at, &cp)))
            return false;
        if (i + 1 == s->n)
            break;
        for (int64_t k = 0; k < s->step && jvm_steps(vm, 1); k++)
            at += text_next(jstr_text(str), at, &cp);
        for (int64_t k = 0; k > s->step && jvm_steps(vm, 1); k--)
            at = text_back(jstr_text(str), at);
        if (vm->n_steps == JVM_MAX_STEPS) /* the limit may have ended a loop above: fail */
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
    struct jrange *const range = jvm_alloc(vm, 1, sizeof *range);
    if (!range)
        return false;
    /* Unsigned arithmetic wraps. All items are items of r and fit, and jrange_item computes them
     * with unsigned arithmetic too, so they are right even where `stop` or `step` does not fit. */
    range->start = (int64_t)((uint64_t)r->start + (uint64_t)s->start * (uint64_t)r->step);
    range->stop = (int64_t)((uint64_t)r->start + (uint64_t)s->stop * (uint64_t)r->step);
    range->step = (int64_t)((uint64_t)r->step * (uint64_t)s->step);
    range->n = s->n;
    *out = (struct jval){.kind = J_RANGE, .u.range = range};
    return true;
}

bool jval_slice(struct jvm *vm, struct jval obj, const struct jval bound[3], struct jval *out)
{
    struct slice s = {0};
    size_t n;
    if (obj.kind == J_UNDEF)
        return jundef_fail(vm, obj);
    if (obj.kind != J_STR && obj.kind != J_LIST && obj.kind != J_TUPLE && obj.kind != J_RANGE)
        return jvm_fail(vm, "'%s' object cannot be sliced", jkind_name(obj));
    if (!jval_length(vm, obj, &n) || !slice_indices(vm, bound, n, &s))
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
