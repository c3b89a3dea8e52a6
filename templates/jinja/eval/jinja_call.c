/*
 * Calls of values, and binding arguments to the parameters of macros.
 */
#include "templates/jinja/eval/jinja_eval.h"

/* ---- macros ---- */

/* Set the parameters and, if the body reads it, `caller` from the arguments; a parameter without an
 * argument becomes J_MISSING. *used has a bit for each keyword argument that was used. call_macro
 * rejects calls with more than 60, so 64 bits suffice. */
static bool bind_macro(struct jvm *vm, const struct jnode *n, const struct jargs *args,
                       uint64_t *used)
{
    bool found_caller = false;
    *used = 0;
    for (size_t i = 0; i < n->n_other; i++) {
        const struct jnode *const param = n->other[i];
        const struct jkeyword *const kw =
            i < args->n_pos ? NULL : jargs_find(args, jstr_text(param->name));
        struct jval v = {.kind = J_MISSING};
        if (i < args->n_pos)
            v = args->pos[i];
        else if (kw)
            v = kw->v;
        if (kw)
            *used |= (uint64_t)1 << (kw - args->kw);
        if (param->id == NAME_CALLER)
            found_caller = true;
        if (!scope_set(vm, param->id, v))
            return false;
    }
    if (!(n->op & MACRO_CALLER) || found_caller)
        return true;
    const struct jkeyword *const kw = jargs_find(args, bn_str_of("caller"));
    if (kw)
        *used |= (uint64_t)1 << (kw - args->kw);
    const bool given = kw && kw->v.kind != J_NONE;
    return scope_set(vm, NAME_CALLER, given ? kw->v : jundef_hint(vm, "No caller defined"));
}

/* Set kwargs and varargs to the remaining arguments. Fails if there are some and the body does not
 * read them. */
static bool bind_rest(struct jvm *vm, const struct jnode *n, const struct jargs *args,
                      uint64_t used)
{
    struct jval rest;
    if (!jdict_new(vm, J_DICT, &rest))
        return false;
    for (size_t i = 0; i < args->n_kw; i++) {
        if (used >> i & 1)
            continue;
        if (!(n->op & MACRO_KWARGS))
            return jvm_fail(vm, "the macro takes no keyword argument '%.*s'",
                            bn_str_shown(jstr_text(args->kw[i].name), 60), args->kw[i].name->ptr);
        if (!jdict_set(vm, rest.u.dict, jstring(args->kw[i].name), args->kw[i].v))
            return false;
    }
    if ((n->op & MACRO_KWARGS) && !scope_set(vm, NAME_KWARGS, rest))
        return false;
    if (args->n_pos > n->n_other && !(n->op & MACRO_VARARGS))
        return jvm_fail(vm, "the macro takes at most %zu arguments", n->n_other);
    if (!(n->op & MACRO_VARARGS))
        return true;
    const size_t n_used = args->n_pos < n->n_other ? args->n_pos : n->n_other;
    return jlist_of(vm, J_TUPLE, args->pos + n_used, args->n_pos - n_used, &rest) &&
           scope_set(vm, NAME_VARARGS, rest);
}

/* A default may read the parameters before it. */
static bool bind_defaults(struct jvm *vm, const struct jnode *n)
{
    for (size_t i = 0; i < n->n_other; i++) {
        const struct jnode *const param = n->other[i];
        struct jval v;
        if (scope_get(vm, param->id, &v) && v.kind != J_MISSING)
            continue;
        if (!param->a)
            v = jundef_hint(vm, "a parameter of the macro was not provided");
        else if (!eval_expr(vm, param->a, &v))
            return false;
        if (!scope_set(vm, param->id, v))
            return false;
    }
    return true;
}

static bool call_macro(struct jvm *vm, const struct jmacro *macro, const struct jargs *args,
                       struct jval *out)
{
    const struct jnode *const n = macro->node;
    struct jscope *const scope = vm->scope, *inner;
    struct jbuf *const outer = vm->out;
    const struct jplace *const at = vm->at;
    struct jbuf b = {.vm = vm};
    uint64_t used;
    if (args->n_kw > 60)
        return jvm_fail(vm, "a call with %zu keyword arguments, more than 60", args->n_kw);
    if (!scope_new(vm, macro->scope, &n->hidden, &inner))
        return false;
    vm->scope = inner;
    vm->out = &b;
    const bool ok = bind_macro(vm, n, args, &used) && bind_rest(vm, n, args, used) &&
                    bind_defaults(vm, n) && exec_body(vm, n->items, n->n_items) == FLOW_GO &&
                    jbuf_done(&b, out);
    vm->scope = scope;
    vm->out = outer;
    if (ok) /* after a failure the place is not used any more */
        vm->at = at;
    return ok;
}

/* ---- any value ---- */

bool call_value(struct jvm *vm, struct jval callee, const struct jargs *args, struct jval *out)
{
    switch (callee.kind) {
    case J_UNDEF:
        return jundef_fail(vm, callee);
    case J_FUNC:
        return builtin_call(vm, callee.u.func, callee, args, out);
    case J_METHOD:
        return builtin_call(vm, callee.u.method->func, callee.u.method->self, args, out);
    case J_MACRO: {
        const bool ok = jvm_enter(vm) && call_macro(vm, callee.u.macro, args, out);
        jvm_leave(vm);
        return ok;
    }
    case J_JOINER:
        if (args->n_pos || args->n_kw)
            return jvm_fail(vm, "a joiner takes no arguments");
        *out = callee.u.cycle->items[0];
        if (callee.u.cycle->pos++ == 0)
            *out = jstr_lit(vm, "");
        return out->kind != J_MISSING;
    default:
        return jvm_fail(vm, "'%s' object is not callable", jkind_name(callee));
    }
}
