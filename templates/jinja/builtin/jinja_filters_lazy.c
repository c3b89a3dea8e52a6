/*
 * Filters that return a generator: map, select and reject and their attr forms, unique, batch,
 * slice and items. The values of arguments are not checked before the first item is read, as in
 * Python's generator functions.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/builtin/jinja_getter.h"
#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_print.h"

enum { BY_ATTR = 1, REJECT = 2 }; /* bits of the variant of do_select */

/* State of a generator: its arguments, what the first call derives from them, and its progress. */
struct lazy {
    struct jargs args;
    const struct jbuiltin *func; /* filter of map, test of select; NULL: the getter alone */
    struct getter getter;
    bool by_attr, keep_if; /* select: test an attribute; the result with which an item is kept */
    struct jval arg[2];    /* of unique, batch and slice */
    struct jval keys;      /* unique: a dict with the keys so far */
    struct jval items;     /* slice: a list of all items */
    struct jval next;      /* batch: first item of the next batch; J_MISSING: none was read */
    size_t pos, offset;    /* slice: index of the next slice; extra items in the slices before it */
};

static bool new_lazy(struct jvm *vm, jgen_next_fn next, struct jval src, const struct lazy *init,
                     struct jval *out)
{
    struct lazy *const self = jvm_alloc(vm, 1, sizeof *self);
    if (!self)
        return false;
    *self = *init;
    return jgen_new(vm, next, src, self, out);
}

/* Look up the filter or test that positional argument `at` names. It and the positional arguments
 * before it are removed from self->args. */
static bool find_func(struct jvm *vm, struct lazy *self, size_t at, bool is_filter)
{
    const struct jval name = self->args.pos[at];
    const char *const what = is_filter ? "filter" : "test";
    const struct bn_str text = name.kind == J_STR ? jstr_text(name.u.s) : (struct bn_str){0};
    self->func = is_filter ? vm->ops->find_filter(text) : vm->ops->find_test(text);
    if (!self->func)
        return jvm_fail(vm, "No %s named '%.*s'", what, bn_str_shown(text, 60),
                        text.n_bytes ? text.ptr : "");
    self->args.pos += at + 1;
    self->args.n_pos -= at + 1;
    return true;
}

static bool start_map(struct jvm *vm, struct lazy *self)
{
    struct jval attribute = {.kind = J_MISSING}, fallback = {.kind = J_MISSING};
    for (size_t i = 0; i < self->args.n_kw && self->args.n_pos == 0; i++) {
        const struct jkeyword *const kw = &self->args.kw[i];
        if (jstr_is(kw->name, "attribute"))
            attribute = kw->v;
        else if (jstr_is(kw->name, "default"))
            fallback = kw->v;
    }
    if (attribute.kind == J_MISSING) {
        if (self->args.n_pos == 0)
            return jvm_fail(vm, "map requires a filter argument");
        return find_func(vm, self, 0, true);
    }
    if (self->args.n_kw > (size_t)1 + (fallback.kind != J_MISSING))
        return jvm_fail(vm, "Unexpected keyword argument of map");
    if (!getter_init(vm, attribute, false, &self->getter))
        return false;
    self->getter.fallback = fallback;
    return true;
}

static bool next_map(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more)
{
    struct lazy *const self = gen->self;
    struct jval item;
    /* For a false source (empty, undefined, none, 0) gen->it stays zero, an iterator without items.
     * So the generator ends before its arguments are checked. */
    if (!gen->started && jval_truth(gen->src) &&
        (!jiter_open(vm, gen->src, &gen->it) || !start_map(vm, self)))
        return false;
    if (!jiter_next(vm, &gen->it, &item, more))
        return false;
    if (!*more)
        return true;
    return self->func ? builtin_call(vm, self->func, item, &self->args, out)
                      : getter_get(vm, &self->getter, item, out);
}

BUILTIN(do_map)
{
    const struct lazy init = {.args = *c->all};
    return new_lazy(vm, next_map, v, &init, out);
}

static bool start_select(struct jvm *vm, struct lazy *self)
{
    struct jval attribute = {.kind = J_MISSING};
    if (self->by_attr && self->args.n_pos == 0)
        return jvm_fail(vm, "Missing parameter for attribute name");
    if (self->by_attr)
        attribute = self->args.pos[0];
    if (!getter_init(vm, attribute, false, &self->getter))
        return false;
    /* The name of the test is argument 0, or argument 1 after the attribute. */
    return self->args.n_pos <= (size_t)self->by_attr || find_func(vm, self, self->by_attr, false);
}

static bool next_select(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more)
{
    struct lazy *const self = gen->self;
    if (!gen->started && jval_truth(gen->src) && /* as in next_map */
        (!jiter_open(vm, gen->src, &gen->it) || !start_select(vm, self)))
        return false;
    for (;;) {
        struct jval result;
        if (!jiter_next(vm, &gen->it, out, more))
            return false;
        if (!*more)
            return true;
        if (!getter_get(vm, &self->getter, *out, &result))
            return false;
        if (self->func && !builtin_call(vm, self->func, result, &self->args, &result))
            return false;
        if (jval_truth(result) == self->keep_if)
            return true;
    }
}

BUILTIN(do_select)
{
    const struct lazy init = {
        .args = *c->all, .by_attr = c->variant & BY_ATTR, .keep_if = !(c->variant & REJECT)};
    return new_lazy(vm, next_select, v, &init, out);
}

static bool next_unique(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more)
{
    struct lazy *const self = gen->self;
    if (!gen->started &&
        (!getter_init(vm, self->arg[1], !arg_flag(self->arg[0]), &self->getter) ||
         !jdict_new(vm, J_DICT, &self->keys) || !jiter_open(vm, gen->src, &gen->it)))
        return false;
    for (;;) {
        struct jval key, *found;
        if (!jiter_next(vm, &gen->it, out, more))
            return false;
        if (!*more)
            return true;
        if (!getter_get(vm, &self->getter, *out, &key) ||
            !jdict_find(vm, self->keys.u.dict, key, &found))
            return false;
        if (!found)
            return jdict_set(vm, self->keys.u.dict, key, jnone());
    }
}

BUILTIN(do_unique)
{
    const struct lazy init = {.arg = {c->arg[0], c->arg[1]}};
    return new_lazy(vm, next_unique, v, &init, out);
}

/* As in jinja2, the number of items in the batch is compared with the first argument before each
 * item. So a batch takes all remaining items if no count equals that argument, for example if it is
 * negative or no number, and with 0 the first batch is empty. Only filling needs an integer. */
static bool next_batch(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more)
{
    struct lazy *const self = gen->self;
    struct jval item;
    int64_t count;
    if (!gen->started) {
        self->next.kind = J_MISSING;
        if (!jiter_open(vm, gen->src, &gen->it))
            return false;
    }
    if (!jlist_new(vm, J_LIST, 0, out))
        return false;
    struct jlist *const l = out->u.list;
    if (self->next.kind != J_MISSING && !jlist_push(vm, *out, self->next))
        return false;
    self->next.kind = J_MISSING;
    for (;;) {
        bool same = false;
        if (!jiter_next(vm, &gen->it, &item, more))
            return false;
        if (!*more)
            break;
        if (!jval_equal(vm, jint((int64_t)l->n), self->arg[0], &same))
            return false;
        if (same) {
            self->next = item;
            return true;
        }
        if (!jlist_push(vm, *out, item))
            return false;
    }
    *more = l->n > 0;
    if (!*more || self->arg[1].kind == J_MISSING || self->arg[1].kind == J_NONE)
        return true;
    bool is_full = false;
    if (!jval_equal(vm, jint((int64_t)l->n), self->arg[0], &is_full))
        return false;
    if (is_full)
        return true;
    if (!arg_int(vm, self->arg[0], 0, &count))
        return false;
    while ((int64_t)l->n < count)
        if (!jvm_steps(vm, 1) || !jlist_push(vm, *out, self->arg[1]))
            return false;
    return true;
}

BUILTIN(do_batch)
{
    const struct lazy init = {.arg = {c->arg[0], c->arg[1]}};
    return new_lazy(vm, next_batch, v, &init, out);
}

/* The first slices, as many as the remainder of (number of items) / n_slices, have one item more
 * than the others. With a fill value, the others get it as an additional item, also if the
 * remainder is 0. */
static bool next_slice(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more)
{
    struct lazy *const self = gen->self;
    int64_t n_slices;
    if (!gen->started && !jval_to_list(vm, gen->src, &self->items))
        return false;
    if (!arg_int(vm, self->arg[0], 0, &n_slices))
        return false;
    if (n_slices == 0)
        return jvm_fail(vm, "integer division or modulo by zero");
    *more = (int64_t)self->pos < n_slices;
    if (!*more)
        return true;
    const struct jlist *const l = self->items.u.list;
    const size_t each = l->n / (size_t)n_slices, extra = l->n % (size_t)n_slices;
    const size_t start = self->offset + self->pos * each;
    self->offset += self->pos < extra;
    const size_t end = self->offset + (self->pos + 1) * each;
    if (!jlist_new(vm, J_LIST, end - start + 1, out))
        return false;
    for (size_t i = start; i < end; i++)
        if (!jvm_steps(vm, 1) || !jlist_push(vm, *out, l->items[i]))
            return false;
    const bool fill = self->arg[1].kind != J_MISSING && self->arg[1].kind != J_NONE;
    if (fill && self->pos >= extra && !jlist_push(vm, *out, self->arg[1]))
        return false;
    self->pos++;
    return true;
}

BUILTIN(do_slice)
{
    const struct lazy init = {.arg = {c->arg[0], c->arg[1]}};
    return new_lazy(vm, next_slice, v, &init, out);
}

static bool next_item(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more)
{
    if (!gen->started) {
        if (gen->src.kind == J_UNDEF) {
            *more = false;
            return true;
        }
        if (gen->src.kind != J_DICT)
            return jvm_fail(vm, "Can only get item pairs from a mapping.");
    }
    const struct jdict *const d = gen->src.u.dict;
    *more = gen->it.pos < d->n;
    if (!*more)
        return true;
    const struct jentry *const e = &d->items[gen->it.pos++];
    return jlist_pair(vm, e->key, e->val, out);
}

BUILTIN(do_items)
{
    return jgen_new(vm, next_item, v, NULL, out);
}

const struct jbuiltin filters_lazy[] = {
    {"map", "*", do_map, 0},
    {"select", "*", do_select, 0},
    {"reject", "*", do_select, REJECT},
    {"selectattr", "*", do_select, BY_ATTR},
    {"rejectattr", "*", do_select, BY_ATTR | REJECT},
    {"unique", "case_sensitive?,attribute?", do_unique, 0},
    {"batch", "linecount,fill_with?", do_batch, 0},
    {"slice", "slices,fill_with?", do_slice, 0},
    {"items", "", do_items, 0},
    {0},
};
