/*
 * Methods of list, tuple, range and dict.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/value/jinja_iter.h"

BUILTIN(list_count)
{
    struct jval list;
    int64_t n = 0;
    if (!jval_to_list(vm, v, &list))
        return false;
    for (size_t i = 0; i < list.u.list->n; i++) {
        bool same;
        if (!jval_same_or_equal(vm, list.u.list->items[i], c->arg[0], &same))
            return false;
        n += same;
    }
    *out = jint(n);
    return true;
}

BUILTIN(list_index)
{
    struct jval list;
    int64_t start, stop;
    if (v.kind == J_RANGE && arg_given(c->arg[1]))
        return jvm_fail(vm, "index() of a range takes only the value");
    if (!jval_to_list(vm, v, &list))
        return false;
    const int64_t n = (int64_t)list.u.list->n;
    if (!arg_int(vm, c->arg[1], 0, &start) || !arg_int(vm, c->arg[2], n, &stop))
        return false;
    /* As in Python, a negative index counts from the end. */
    start = start < 0 && (start += n) < 0 ? 0 : start;
    stop = stop < 0 ? stop + n : stop > n ? n : stop;
    for (int64_t i = start; i < stop; i++) {
        bool same;
        if (!jval_same_or_equal(vm, list.u.list->items[i], c->arg[0], &same))
            return false;
        if (same) {
            *out = jint(i);
            return true;
        }
    }
    return jvm_fail(vm, "the value is not in the list");
}

BUILTIN(list_copy)
{
    return jval_to_list(vm, v, out);
}

const struct jbuiltin methods_list[] = {
    {"count", "!value", list_count, 0},
    {"index", "!value,start?,stop?", list_index, 0},
    {"copy", "!", list_copy, 0},
    {0},
};

/* ---- dict ---- */

BUILTIN(dict_view)
{
    return jview_new(vm, v.u.dict, (enum jview_kind)c->variant, out);
}

BUILTIN(dict_get)
{
    struct jval *found;
    if (!jdict_find(vm, v.u.dict, c->arg[0], &found))
        return false;
    *out = found ? *found : arg_given(c->arg[1]) ? c->arg[1] : jnone();
    return true;
}

BUILTIN(dict_copy)
{
    return jdict_new(vm, J_DICT, out) && jdict_update(vm, out->u.dict, v.u.dict);
}

const struct jbuiltin methods_dict[] = {
    {"items", "!", dict_view, VIEW_ITEMS},
    {"keys", "!", dict_view, VIEW_KEYS},
    {"values", "!", dict_view, VIEW_VALUES},
    {"get", "!key,default?", dict_get, 0},
    {"copy", "!", dict_copy, 0},
    {0},
};
