/*
 * Finds built-ins by name in their tables.
 */
#include "templates/jinja/builtin/jinja_builtin.h"

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
                                                    filters_lazy, filters_json};
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
    case J_TUPLE:
    case J_RANGE: /* of these three kinds, only a list has the method copy */
        f = find_builtin(methods_list, name);
        return v.kind == J_LIST || !f || strcmp(f->name, "copy") != 0 ? f : NULL;
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
