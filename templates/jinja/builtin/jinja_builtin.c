/*
 * Finding built-ins by name, and binding arguments to their parameters.
 */
#include "templates/jinja/builtin/jinja_builtin.h"

#include "templates/jinja/value/jinja_compare.h"

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
            return jvm_fail(vm, "%s() misses its argument '%.*s'", f->name, (int)name.n_bytes,
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

const struct jbuiltin *builtin_method(struct jval v, struct bn_str name)
{
    const struct jbuiltin *f;
    switch (v.kind) {
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
