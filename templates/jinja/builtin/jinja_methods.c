/*
 * Methods of list, tuple, range and dict.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_iter.h"

#define METHOD(name)                                                                               \
    static bool name(struct jvm *vm, struct jval self, const struct jcall *c, struct jval *out)

/* ---- list, tuple, range ---- */

METHOD(list_count)
{
    struct jiter it;
    int64_t n = 0;
    if (!jiter_open(vm, self, &it))
        return false;
    for (;;) {
        struct jval v;
        bool more, same;
        if (!jiter_next(vm, &it, &v, &more))
            return false;
        if (!more)
            break;
        if (!jval_equal(vm, v, c->arg[0], &same))
            return false;
        n += same;
    }
    *out = jint(n);
    return true;
}

METHOD(list_index)
{
    struct jval list;
    int64_t start, stop;
    if (!jval_to_list(vm, self, &list))
        return false;
    const int64_t n = (int64_t)list.u.list->n;
    if (!arg_int(vm, c->arg[1], 0, &start) || !arg_int(vm, c->arg[2], n, &stop))
        return false;
    start = start < 0 && (start += n) < 0 ? 0 : start;
    stop = stop < 0 ? stop + n : stop > n ? n : stop;
    for (int64_t i = start; i < stop; i++) {
        bool same;
        if (!jval_equal(vm, list.u.list->items[i], c->arg[0], &same))
            return false;
        if (same) {
            *out = jint(i);
            return true;
        }
    }
    return jvm_fail(vm, "the value is not in the list");
}

METHOD(list_copy)
{
    (void)c; /* no arguments */
    return jval_to_list(vm, self, out);
}

const struct jbuiltin methods_list[] = {
    {"count", "!value", list_count},
    {"index", "!value,start?,stop?", list_index},
    {"copy", "!", list_copy},
    {NULL, NULL, NULL},
};

/* ---- dict ---- */

static bool new_view(struct jvm *vm, struct jval self, enum jview_kind kind, struct jval *out)
{
    struct jview *const view = jvm_alloc(vm, 1, sizeof *view);
    if (!view)
        return false;
    *view = (struct jview){.kind = kind, .dict = self.u.dict};
    *out = (struct jval){.kind = J_VIEW, .u.view = view};
    return true;
}

#define VIEW_METHOD(name, kind)                                                                    \
    METHOD(name)                                                                                   \
    {                                                                                              \
        (void)c;                                                                                   \
        return new_view(vm, self, kind, out);                                                      \
    }

VIEW_METHOD(dict_keys, VIEW_KEYS)
VIEW_METHOD(dict_values, VIEW_VALUES)
VIEW_METHOD(dict_items, VIEW_ITEMS)

METHOD(dict_get)
{
    struct jval *found;
    if (!jdict_find(vm, self.u.dict, c->arg[0], &found))
        return false;
    *out = found ? *found : arg_given(c->arg[1]) ? c->arg[1] : jnone();
    return true;
}

METHOD(dict_copy)
{
    (void)c; /* no arguments */
    if (!jdict_new(vm, J_DICT, out))
        return false;
    for (size_t i = 0; i < self.u.dict->n; i++)
        if (!jvm_steps(vm, 1) ||
            !jdict_set(vm, out->u.dict, self.u.dict->items[i].key, self.u.dict->items[i].val))
            return false;
    return true;
}

const struct jbuiltin methods_dict[] = {
    {"items", "!", dict_items},         {"keys", "!", dict_keys}, {"values", "!", dict_values},
    {"get", "!key,default?", dict_get}, {"copy", "!", dict_copy}, {NULL, NULL, NULL},
};
