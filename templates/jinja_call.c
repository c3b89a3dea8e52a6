/*
 * Calling values, and binding arguments to the parameters of built-ins and macros.
 */
#include "templates/jinja_call.h"

#include "templates/jinja_eval.h"
#include "templates/jinja_ops.h"
#include "templates/jinja_print.h"

/* ---- built-ins ---- */

/* The next name of a parameter list; false at its end. */
static bool next_param(const char **list, struct bn_str *name, bool *is_optional)
{
    const char *const p = **list == ',' || **list == '!' ? *list + 1 : *list;
    const size_t n = strcspn(p, ",?");
    if (n == 0)
        return false;
    *name = (struct bn_str){p, n};
    *is_optional = p[n] == '?';
    *list = p + n + *is_optional;
    return true;
}

static const struct jkeyword *find_keyword(const struct jargs *args, struct bn_str name)
{
    for (size_t i = 0; i < args->n_kw; i++)
        if (bn_str_equal(jstr_text(args->kw[i].name), name))
            return &args->kw[i];
    return NULL;
}

static bool bind(struct jvm *vm, const struct jbuiltin *f, const struct jargs *args,
                 struct jval *slots)
{
    const char *list = f->params;
    const bool by_position = *list == '!';
    struct bn_str name;
    bool is_optional = true;
    size_t n = 0, n_used = 0;
    if (by_position && args->n_kw)
        return jvm_fail(vm, "%s() takes no keyword arguments", f->name);
    for (; next_param(&list, &name, &is_optional); n++) {
        const struct jkeyword *const kw = find_keyword(args, name);
        slots[n] = n < args->n_pos ? args->pos[n] : (struct jval){.kind = J_MISSING};
        if (kw && n < args->n_pos)
            return jvm_fail(vm, "%s() got multiple values for argument '%.*s'", f->name,
                            (int)name.n_bytes, name.ptr);
        if (kw) {
            slots[n] = kw->v;
            n_used++;
        }
        if (slots[n].kind == J_MISSING && !is_optional)
            return jvm_fail(vm, "%s() misses its argument '%.*s'", f->name, (int)name.n_bytes,
                            name.ptr);
    }
    if (args->n_pos > n)
        return jvm_fail(vm, "%s() takes at most %zu arguments, got %zu", f->name, n, args->n_pos);
    if (n_used < args->n_kw)
        return jvm_fail(vm, "%s() got an unexpected keyword argument", f->name);
    return true;
}

bool builtin_call(struct jvm *vm, const struct jbuiltin *f, struct jval self,
                  const struct jargs *args, struct jval *out)
{
    struct jval slots[BUILTIN_MAX_PARAMS];
    const struct jcall call = {.arg = slots, .all = args};
    if (f->params[0] != '*' && !bind(vm, f, args, slots))
        return false;
    return f->fn(vm, self, &call, out);
}

static const struct jbuiltin *find_builtin(const struct jbuiltin *table, struct bn_str name)
{
    for (; table->name; table++)
        if (bn_str_is(name, table->name))
            return table;
    return NULL;
}

const struct jbuiltin *builtin_filter(struct bn_str name)
{
    static const struct jbuiltin *const tables[] = {filters_text, filters_number, filters_seq,
                                                    filters_lazy};
    const struct jbuiltin *f = NULL;
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] && !f; i++)
        f = find_builtin(tables[i], name);
    return f;
}

const struct jbuiltin *builtin_test(struct bn_str name)
{
    return find_builtin(tests_table, name);
}

const struct jbuiltin *builtin_function(struct bn_str name)
{
    return find_builtin(functions_table, name);
}

const struct jbuiltin *builtin_method(struct jval self, struct bn_str name)
{
    const struct jbuiltin *f;
    switch (self.kind) {
    case J_STR:
        f = find_builtin(methods_text, name);
        return f ? f : find_builtin(methods_find, name);
    case J_LIST:
        f = find_builtin(methods_list, name);
        return f;
    case J_TUPLE:
    case J_RANGE:
        f = find_builtin(methods_list, name);
        return f && strcmp(f->name, "copy") != 0 ? f : NULL;
    case J_DICT:
        return find_builtin(methods_dict, name);
    case J_LOOP:
        return find_builtin(methods_loop, name);
    case J_CYCLER:
        return find_builtin(methods_cycler, name);
    default:
        return NULL;
    }
}

static bool in_list(const char *const *list, struct bn_str name)
{
    for (; *list; list++)
        if (bn_str_is(name, *list))
            return true;
    return false;
}

bool builtin_is_unsupported(struct bn_str name)
{
    static const char *const names[] = {"pprint",    "random",         "urlize",  "wordwrap",
                                        "striptags", "filesizeformat", "xmlattr", NULL};
    return in_list(names, name);
}

bool builtin_is_mutator(struct jval self, struct bn_str name)
{
    static const char *const of_list[] = {"append", "clear",  "pop",    "reverse", "insert",
                                          "sort",   "extend", "remove", NULL};
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    return (self.kind == J_LIST && in_list(of_list, name)) ||
           (self.kind == J_DICT && in_list(of_dict, name));
}

/* ---- macros ---- */

/* Which keywords were taken by parameters, in a bit each; more than 64 are refused before. */
static bool bind_macro(struct jvm *vm, const struct jnode *n, const struct jargs *args,
                       uint64_t *taken)
{
    bool found_caller = false;
    *taken = 0;
    for (size_t i = 0; i < n->n_other; i++) {
        const struct jnode *const param = n->other[i];
        const struct jkeyword *const kw =
            i < args->n_pos ? NULL : find_keyword(args, jstr_text(param->name));
        struct jval v = {.kind = J_MISSING};
        if (i < args->n_pos)
            v = args->pos[i];
        else if (kw)
            v = kw->v;
        if (kw)
            *taken |= (uint64_t)1 << (kw - args->kw);
        if (param->id == NAME_CALLER)
            found_caller = true;
        if (!scope_set(vm, param->id, v))
            return false;
    }
    if (!(n->op & MACRO_CALLER) || found_caller)
        return true;
    const struct jkeyword *const kw = find_keyword(args, bn_str_of("caller"));
    if (kw)
        *taken |= (uint64_t)1 << (kw - args->kw);
    const bool given = kw && kw->v.kind != J_NONE;
    return scope_set(vm, NAME_CALLER, given ? kw->v : jundef_hint(vm, "No caller defined"));
}

static bool bind_rest(struct jvm *vm, const struct jnode *n, const struct jargs *args,
                      uint64_t taken)
{
    struct jval rest;
    if (!jdict_new(vm, J_DICT, &rest))
        return false;
    for (size_t i = 0; i < args->n_kw; i++) {
        if (taken >> i & 1)
            continue;
        if (!(n->op & MACRO_KWARGS))
            return jvm_fail(vm, "the macro takes no keyword argument '%.*s'",
                            (int)(args->kw[i].name->n_bytes < 60 ? args->kw[i].name->n_bytes : 60),
                            args->kw[i].name->ptr);
        if (!jdict_set(vm, rest.u.dict, jstring(args->kw[i].name), args->kw[i].v))
            return false;
    }
    if ((n->op & MACRO_KWARGS) && !scope_set(vm, NAME_KWARGS, rest))
        return false;
    if (args->n_pos > n->n_other && !(n->op & MACRO_VARARGS))
        return jvm_fail(vm, "the macro takes not more than %zu arguments", n->n_other);
    if (!(n->op & MACRO_VARARGS))
        return true;
    if (!jlist_new(vm, J_TUPLE, 0, &rest))
        return false;
    for (size_t i = n->n_other; i < args->n_pos; i++)
        if (!jlist_push(vm, rest, args->pos[i]))
            return false;
    return scope_set(vm, NAME_VARARGS, rest);
}

/* Defaults may name the parameters before them. */
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

bool macro_call(struct jvm *vm, const struct jmacro *macro, const struct jargs *args,
                struct jval *out)
{
    const struct jnode *const n = macro->node;
    struct jscope *const scope = vm->scope, *inner;
    struct jbuf *const outer = vm->out;
    const struct jnode *const at = vm->at;
    struct jbuf b;
    uint64_t taken;
    if (args->n_kw > 60)
        return jvm_fail(vm, "a call with %zu keyword arguments", args->n_kw);
    if (!scope_new(vm, macro->scope, &n->hidden, &inner))
        return false;
    jbuf_init(&b, vm);
    vm->scope = inner;
    vm->out = &b;
    const bool ok = bind_macro(vm, n, args, &taken) && bind_rest(vm, n, args, taken) &&
                    bind_defaults(vm, n) && exec_body(vm, n->items, n->n_items) == FLOW_GO &&
                    jbuf_done(&b, out);
    vm->scope = scope;
    vm->out = outer;
    if (ok)
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
        const bool ok = jvm_enter(vm) && macro_call(vm, callee.u.macro, args, out);
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

/* ---- reading arguments ---- */

bool arg_int(struct jvm *vm, struct jval v, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (v.kind == J_MISSING)
        return true;
    if (!jval_is_integer(v))
        return jvm_fail(vm, "'%s' object cannot be interpreted as an integer", jkind_name(v));
    *out = jval_int(v);
    return true;
}

bool arg_string(struct jvm *vm, struct jval v, struct jval *out)
{
    if (v.kind != J_STR)
        return jvm_fail(vm, "a string is needed, not '%s'", jkind_name(v));
    *out = v;
    return true;
}

bool arg_flag(struct jval v, bool fallback)
{
    return v.kind == J_MISSING ? fallback : jval_truth(v);
}
