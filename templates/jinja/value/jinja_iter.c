/*
 * Iteration, lengths, generators and the iterator of the loop variable.
 */
#include "templates/jinja/value/jinja_iter.h"

#include "templates/jinja/value/jinja_ops.h"
#include "templates/jinja/value/jinja_text.h"

bool jval_is_iterable(struct jval v)
{
    switch (v.kind) {
    case J_UNDEF:
    case J_STR:
    case J_LIST:
    case J_TUPLE:
    case J_DICT:
    case J_RANGE:
    case J_VIEW:
    case J_GENERATOR:
    case J_LOOP:
        return true;
    default:
        return false;
    }
}

bool jiter_open(struct jvm *vm, struct jval v, struct jiter *it)
{
    if (!jval_is_iterable(v))
        return jvm_fail(vm, "'%s' object is not iterable", jkind_name(v));
    *it = (struct jiter){.src = v};
    return true;
}

static bool view_item(struct jvm *vm, const struct jview *view, size_t i, struct jval *out)
{
    const struct jentry *const e = &view->dict->items[i];
    if (view->kind == VIEW_ITEMS)
        return jlist_pair(vm, e->key, e->val, out);
    *out = view->kind == VIEW_KEYS ? e->key : e->val;
    return true;
}

static bool gen_next(struct jvm *vm, struct jgen *gen, struct jval *out, bool *more)
{
    if (gen->ended) {
        *more = false;
        return true;
    }
    if (gen->running)
        return jvm_fail(vm, "generator already executing");
    gen->running = true;
    const bool ok = jvm_enter(vm) && gen->next(vm, gen, out, more);
    jvm_leave(vm);
    gen->running = false;
    gen->started = true;
    gen->ended = !ok || !*more;
    return ok;
}

bool jiter_next(struct jvm *vm, struct jiter *it, struct jval *out, bool *more)
{
    const struct jval v = it->src;
    if (!jvm_steps(vm, 1))
        return false;
    *more = true;
    switch (v.kind) {
    case J_STR: {
        const struct jstr *const s = v.u.s;
        uint32_t cp;
        if (it->pos >= s->n_bytes)
            break;
        const size_t n = text_next(jstr_text(s), it->pos, &cp);
        it->pos += n;
        if (!jstr_slice(vm, s, it->pos - n, it->pos, out))
            return false;
        out->u.s->is_markup = false; /* characters of markup are plain */
        return true;
    }
    case J_LIST:
    case J_TUPLE:
        if (it->pos >= v.u.list->n)
            break;
        *out = v.u.list->items[it->pos++];
        return true;
    case J_DICT:
        if (it->pos >= v.u.dict->n)
            break;
        *out = v.u.dict->items[it->pos++].key;
        return true;
    case J_RANGE:
        if (it->pos >= v.u.range->n)
            break;
        *out = jrange_item(v.u.range, it->pos++);
        return true;
    case J_VIEW:
        if (it->pos >= v.u.view->dict->n)
            break;
        return view_item(vm, v.u.view, it->pos++, out);
    case J_GENERATOR:
        return gen_next(vm, v.u.gen, out, more);
    case J_LOOP: /* as in jinja2: advances the loop and yields (item, loop) */
        if (!jloop_advance(vm, v.u.loop, more))
            return false;
        return !*more || jlist_pair(vm, v.u.loop->item, v, out);
    default:
        break;
    }
    *more = false;
    return true;
}

bool jval_to_list(struct jvm *vm, struct jval v, struct jval *out)
{
    struct jiter it;
    if (!jiter_open(vm, v, &it) || !jlist_new(vm, J_LIST, 0, out))
        return false;
    for (bool more = true;;) {
        struct jval item;
        if (!jiter_next(vm, &it, &item, &more))
            return false;
        if (!more)
            return true;
        if (!jlist_push(vm, *out, item))
            return false;
    }
}

bool jval_reversed(struct jvm *vm, struct jval v, struct jval *out, bool *can)
{
    *can = v.kind == J_STR || v.kind == J_LIST || v.kind == J_TUPLE || v.kind == J_DICT ||
           v.kind == J_RANGE || v.kind == J_VIEW || v.kind == J_UNDEF;
    if (!*can)
        return true;
    if (!jval_to_list(vm, v, out))
        return false;
    jlist_reverse(out->u.list);
    return true;
}

bool jgen_new(struct jvm *vm, jgen_next_fn next, struct jval src, void *self, struct jval *out)
{
    struct jgen *const gen = jvm_alloc(vm, 1, sizeof *gen);
    if (!gen)
        return false;
    *gen = (struct jgen){.next = next, .src = src, .self = self};
    *out = (struct jval){.kind = J_GENERATOR, .u.gen = gen};
    return true;
}

/* The next item that passes the filter of the loop. */
static bool filtered_next(struct jvm *vm, struct jloop *loop, struct jval *out, bool *more)
{
    for (;;) {
        bool pass = true;
        if (!jiter_next(vm, &loop->it, out, more))
            return false;
        if (!*more || !loop->filter)
            return true;
        if (!vm->ops->loop_filter(vm, loop, out, &pass))
            return false;
        if (pass)
            return true;
    }
}

bool jloop_peek(struct jvm *vm, struct jloop *loop)
{
    bool more = true;
    if (loop->has_ahead)
        return true;
    if (!filtered_next(vm, loop, &loop->ahead, &more))
        return false;
    if (!more)
        loop->ahead.kind = J_MISSING;
    loop->has_ahead = true;
    return true;
}

bool jloop_advance(struct jvm *vm, struct jloop *loop, bool *more)
{
    if (!jloop_peek(vm, loop))
        return false;
    *more = loop->ahead.kind != J_MISSING;
    if (!*more)
        return true;
    loop->index0++; /* starts at SIZE_MAX */
    loop->prev = loop->item;
    loop->item = loop->ahead;
    loop->has_ahead = false;
    return true;
}

bool jloop_length(struct jvm *vm, struct jloop *loop, size_t *out)
{
    if (loop->length == SIZE_MAX && !loop->filter && !jval_length(vm, loop->it.src, &loop->length))
        return false;
    if (loop->length == SIZE_MAX) {
        /* Read the remaining items to a list, which then replaces the iterator. */
        struct jval rest;
        if (!jlist_new(vm, J_LIST, 0, &rest))
            return false;
        for (bool more = true;;) {
            struct jval item;
            if (!filtered_next(vm, loop, &item, &more))
                return false;
            if (!more)
                break;
            if (!jlist_push(vm, rest, item))
                return false;
        }
        loop->it = (struct jiter){.src = rest};
        loop->filter = NULL;
        loop->length =
            rest.u.list->n + loop->index0 + 1 + (loop->has_ahead && loop->ahead.kind != J_MISSING);
    }
    *out = loop->length;
    return true;
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
