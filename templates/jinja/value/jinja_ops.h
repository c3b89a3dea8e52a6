/*
 * A table of functions, and the arguments of calls. The folders value, parse and builtin call
 * functions of higher folders through the table: value and parse may not include eval or builtin,
 * and builtin may not include eval. The evaluator defines the table (jinja_ops in
 * eval/jinja_eval.h). Every member is set.
 */
#ifndef TEMPLATES_JINJA_OPS_H
#define TEMPLATES_JINJA_OPS_H

#include "templates/jinja/value/jinja_text.h"

struct jvm_ops {
    /* {% for ... if filter %}: set *pass to whether *item passes the filter. If it does, *item
     * is replaced by the value that the loop target got from it: with several names a tuple, even
     * if the item was a list. */
    bool (*loop_filter)(struct jvm *vm, struct jloop *loop, struct jval *item, bool *pass);
    /* obj.name and obj[key]: see eval_getattr in eval/jinja_eval.h. */
    bool (*get_attr)(struct jvm *vm, struct jval obj, struct jval name, struct jval *out);
    bool (*get_item)(struct jvm *vm, struct jval obj, struct jval key, struct jval *out);
    /* NULL: unknown name. */
    const struct jbuiltin *(*find_filter)(struct bn_str name);
    const struct jbuiltin *(*find_test)(struct bn_str name);
};

/* The arguments of a call. */
struct jkeyword {
    struct jstr *name;
    struct jval v;
};

struct jargs {
    struct jval *pos; /* (n_pos) */
    size_t n_pos;
    struct jkeyword *kw; /* (n_kw) */
    size_t n_kw;
};

/* The keyword argument of this name; NULL: not given. */
static inline const struct jkeyword *jargs_find(const struct jargs *args, struct bn_str name)
{
    for (size_t i = 0; i < args->n_kw; i++)
        if (bn_str_equal(jstr_text(args->kw[i].name), name))
            return &args->kw[i];
    return NULL;
}

#endif
