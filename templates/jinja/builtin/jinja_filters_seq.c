/*
 * Filters of sequences that return a value or a whole list; `reverse` can also return an iterator
 * over a list. Filters that compute their items on demand are in jinja_filters_lazy.c.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/builtin/jinja_getter.h"
#include "templates/jinja/builtin/text/jinja_string.h"
#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_print.h"

BUILTIN(do_length)
{
    size_t n;
    if (!jval_length(vm, v, &n))
        return false;
    if (n == SIZE_MAX)
        return jvm_fail(vm, "object of type '%s' has no len()", jkind_name(v));
    *out = jint((int64_t)n);
    return true;
}

BUILTIN(do_first)
{
    struct jiter it;
    bool more;
    if (!jiter_open(vm, v, &it) || !jiter_next(vm, &it, out, &more))
        return false;
    if (!more)
        *out = jundef_hint(vm, "No first item, sequence was empty.");
    return true;
}

BUILTIN(do_last)
{
    struct jval list;
    bool can;
    if ((v.kind == J_LIST || v.kind == J_TUPLE) && v.u.list->n) { /* frequent, needs no copy */
        *out = v.u.list->items[v.u.list->n - 1];
        return true;
    }
    if (!jval_reversed(vm, v, &list, &can))
        return false;
    if (!can)
        return jvm_fail(vm, "'%s' object is not reversible", jkind_name(v));
    *out = list.u.list->n ? list.u.list->items[0]
                          : jundef_hint(vm, "No last item, sequence was empty.");
    return true;
}

/* A list with the attribute of each item, or with the items themselves if `attribute` is missing
 * or none. With ignore_case, strings in it are in lower case. */
static bool mapped(struct jvm *vm, struct jval v, struct jval attribute, bool ignore_case,
                   struct jval *out)
{
    struct getter g;
    if (!getter_init(vm, attribute, ignore_case, &g) || !jval_to_list(vm, v, out))
        return false;
    struct jlist *const l = out->u.list;
    for (size_t i = 0; i < l->n; i++)
        if (!jvm_steps(vm, 1) || !getter_get(vm, &g, l->items[i], &l->items[i]))
            return false;
    return true;
}

BUILTIN(do_join)
{
    struct jval sep = c->arg[0], items = v;
    if (!arg_given(sep))
        sep = jstr_lit(vm, "");
    if (sep.kind == J_MISSING || !jval_to_str(vm, sep, &sep))
        return false;
    if (arg_given(c->arg[1]) && c->arg[1].kind != J_NONE &&
        !mapped(vm, v, c->arg[1], false, &items))
        return false;
    return string_join(vm, sep.u.s, items, true, out);
}

BUILTIN(do_list)
{
    return jval_to_list(vm, v, out);
}

static bool list_generator(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more)
{
    if (!gen->started && !jiter_open(vm, gen->src, &gen->it))
        return false;
    return jiter_next(vm, &gen->it, out, more);
}

/* As in jinja2, the result is a string for a string, an iterator for any other value that Python's
 * reversed() accepts, and else a list. */
BUILTIN(do_reverse)
{
    struct jval list, part[3] = {jnone(), jnone(), jint(-1)};
    bool can;
    if (v.kind == J_STR)
        return jval_slice(vm, v, part, out);
    if (!jval_reversed(vm, v, &list, &can))
        return false;
    if (can)
        return jgen_new(vm, list_generator, list, NULL, out);
    if (!jval_is_iterable(v))
        return jvm_fail(vm, "argument must be iterable");
    return jval_to_list(vm, v, &list) && jval_reversed(vm, list, out, &can);
}

/* The sort keys of the items: each is a list with one value for each name in an attribute such as
 * "a,b". Without an attribute, the only value is the item itself. */
static bool sort_keys(struct jvm *vm, struct jval items, struct jval attribute, bool ignore_case,
                      struct jval *out)
{
    struct jval names, comma = jstr_lit(vm, ",");
    const size_t n = items.u.list->n;
    if (comma.kind == J_MISSING || !jlist_new(vm, J_LIST, n, out))
        return false;
    if (attribute.kind == J_STR) {
        if (!string_split(vm, attribute.u.s, comma, -1, &names))
            return false;
    } else if (!jlist_new(vm, J_LIST, 1, &names) || !jlist_push(vm, names, attribute)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct jval key;
        if (!jlist_new(vm, J_LIST, names.u.list->n, &key) || !jlist_push(vm, *out, key))
            return false;
    }
    for (size_t k = 0; k < names.u.list->n; k++) {
        struct getter g;
        if (!getter_init(vm, names.u.list->items[k], ignore_case, &g))
            return false;
        for (size_t i = 0; i < n; i++) {
            struct jval part;
            if (!jvm_steps(vm, 1) || !getter_get(vm, &g, items.u.list->items[i], &part) ||
                !jlist_push(vm, out->u.list->items[i], part))
                return false;
        }
    }
    return true;
}

BUILTIN(do_sort)
{
    struct jval keys;
    const bool reverse = arg_flag(c->arg[0]);
    return jval_to_list(vm, v, out) &&
           sort_keys(vm, *out, c->arg[2], !arg_flag(c->arg[1]), &keys) &&
           sort_values(vm, out->u.list->items, keys.u.list->items, out->u.list->n, reverse);
}

BUILTIN(do_dictsort)
{
    struct jval keys, by = c->arg[1];
    size_t pos = 0;
    if (arg_given(by)) {
        pos = by.kind == J_STR && jstr_is(by.u.s, "value");
        if (pos == 0 && !(by.kind == J_STR && jstr_is(by.u.s, "key")))
            return jvm_fail(vm, "You can only sort by either \"key\" or \"value\"");
    }
    if (v.kind != J_DICT)
        return v.kind == J_UNDEF ? jundef_fail(vm, v)
                                 : jvm_fail(vm, "dictsort needs a dict, not a %s", jkind_name(v));
    return jdict_pairs(vm, v.u.dict, out) &&
           mapped(vm, *out, jint((int64_t)pos), !arg_flag(c->arg[0]), &keys) &&
           sort_values(vm, out->u.list->items, keys.u.list->items, out->u.list->n,
                       arg_flag(c->arg[2]));
}

/* Append the pair (name, items), an item of |groupby. */
static bool push_group(struct jvm *vm, struct jval name, struct jval items, struct jval groups)
{
    struct jval pair;
    if (!jlist_pair(vm, name, items, &pair) || !jlist_push(vm, groups, pair))
        return false;
    pair.u.list->is_group = true;
    return true;
}

/* Items are sorted and compared by key_of, which may ignore case. name_of keeps the case for the
 * name of a group. */
BUILTIN(do_groupby)
{
    struct getter key_of, name_of;
    struct jval items, keys, name, group;
    const bool ignore_case = !arg_flag(c->arg[2]);
    if (!getter_init(vm, c->arg[0], ignore_case, &key_of) ||
        !getter_init(vm, c->arg[0], false, &name_of) || !jval_to_list(vm, v, &items))
        return false;
    key_of.fallback = name_of.fallback = c->arg[1];
    const size_t n = items.u.list->n;
    if (!jlist_new(vm, J_LIST, n, &keys) || !jlist_new(vm, J_LIST, 0, out))
        return false;
    for (size_t i = 0; i < n; i++) {
        struct jval key;
        if (!getter_get(vm, &key_of, items.u.list->items[i], &key) || !jlist_push(vm, keys, key))
            return false;
    }
    if (!sort_values(vm, items.u.list->items, keys.u.list->items, n, false))
        return false;
    for (size_t i = 0; i < n;) {
        bool same = true;
        if (!jlist_new(vm, J_LIST, 0, &group) ||
            !getter_get(vm, &name_of, items.u.list->items[i], &name) ||
            !push_group(vm, name, group, *out))
            return false;
        const struct jval key = keys.u.list->items[i];
        for (; i < n && same; i += same) {
            if (!jval_same_or_equal(vm, key, keys.u.list->items[i], &same) ||
                (same && !jlist_push(vm, group, items.u.list->items[i])))
                return false;
        }
    }
    return true;
}

BUILTIN(do_sum)
{
    struct jval items;
    struct jval total = arg_given(c->arg[1]) ? c->arg[1] : jint(0);
    if (!mapped(vm, v, c->arg[0], false, &items))
        return false;
    if (total.kind == J_STR)
        return jvm_fail(vm, "sum() can't sum strings");
    for (size_t i = 0; i < items.u.list->n; i++)
        if (!jval_binary(vm, OP_ADD, total, items.u.list->items[i], &total))
            return false;
    *out = total;
    return true;
}

/* The variant is OP_LT for min and OP_GT for max. */
BUILTIN(do_extreme)
{
    struct jval items, keys;
    size_t best = 0;
    if (!jval_to_list(vm, v, &items) || !mapped(vm, items, c->arg[1], !arg_flag(c->arg[0]), &keys))
        return false;
    if (items.u.list->n == 0) {
        *out = jundef_hint(vm, "No aggregated item, sequence was empty.");
        return true;
    }
    for (size_t i = 1; i < items.u.list->n; i++) {
        bool better;
        if (!jval_order(vm, (enum jop)c->variant, keys.u.list->items[i], keys.u.list->items[best],
                        &better))
            return false;
        best = better ? i : best;
    }
    *out = items.u.list->items[best];
    return true;
}

const struct jbuiltin filters_seq[] = {
    {"length", "!", do_length, 0},
    {"count", "!", do_length, 0},
    {"first", "", do_first, 0},
    {"last", "", do_last, 0},
    {"join", "d?,attribute?", do_join, 0},
    {"list", "", do_list, 0},
    {"reverse", "", do_reverse, 0},
    {"sort", "reverse?,case_sensitive?,attribute?", do_sort, 0},
    {"dictsort", "case_sensitive?,by?,reverse?", do_dictsort, 0},
    {"groupby", "attribute,default?,case_sensitive?", do_groupby, 0},
    {"sum", "attribute?,start?", do_sum, 0},
    {"min", "case_sensitive?,attribute?", do_extreme, OP_LT},
    {"max", "case_sensitive?,attribute?", do_extreme, OP_GT},
    {0},
};
