/*
 * Binds arguments to the parameters of a built-in and calls it; reads single arguments.
 */
#include "templates/jinja/builtin/jinja_builtin.h"

/* Reads the next name of a parameter list. Skips the ',' before it, or the '!' at the beginning of
 * the list. False: no more names. */
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

/* slots (BUILTIN_MAX_PARAMS): the argument of each parameter, J_MISSING where it is omitted. */
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
        const struct jkeyword *const kw = jargs_find(args, name);
        slots[n] = n < args->n_pos ? args->pos[n] : (struct jval){.kind = J_MISSING};
        if (kw && n < args->n_pos)
            return jvm_fail(vm, "%s() got multiple values for argument '%.*s'", f->name,
                            (int)name.n_bytes, name.ptr);
        if (kw) {
            slots[n] = kw->v;
            n_used++;
        }
        if (slots[n].kind == J_MISSING && !is_optional)
            return jvm_fail(vm, "%s() is missing the argument '%.*s'", f->name, (int)name.n_bytes,
                            name.ptr);
    }
    if (args->n_pos > n)
        return jvm_fail(vm, "%s() takes at most %zu arguments, got %zu", f->name, n, args->n_pos);
    if (n_used < args->n_kw)
        return jvm_fail(vm, "%s() got an unexpected keyword argument", f->name);
    return true;
}

bool builtin_call(struct jvm *vm, const struct jbuiltin *f, struct jval v, const struct jargs *args,
                  struct jval *out)
{
    struct jval slots[BUILTIN_MAX_PARAMS];
    const struct jcall call = {.arg = slots, .all = args, .variant = f->variant};
    if (f->params[0] != '*' && !bind(vm, f, args, slots))
        return false;
    return f->fn(vm, v, &call, out);
}

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
