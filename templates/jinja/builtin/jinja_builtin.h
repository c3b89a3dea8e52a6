/*
 * Calling: arguments, and the tables of built-in filters, tests, methods and functions, which all
 * have one form.
 */
#ifndef TEMPLATES_JINJA_BUILTIN_H
#define TEMPLATES_JINJA_BUILTIN_H

#include "templates/jinja/value/jinja_ops.h"

#define BUILTIN_MAX_PARAMS 6

struct jcall {
    const struct jval *arg;  /* by the order of the parameters; J_MISSING: not given */
    const struct jargs *all; /* as they were given */
};

typedef bool (*jcall_fn)(struct jvm *vm, struct jval self, const struct jcall *c, struct jval *out);

/* Parameters: names with commas, '?' after the optional ones; "!" in front: by position only; "*":
 * any, read from `all`. For filters and tests `self` is the value and not a parameter. */
struct jbuiltin {
    const char *name;
    const char *params;
    jcall_fn fn;
};

const struct jbuiltin *builtin_filter(struct bn_str name); /* NULL: there is none */
const struct jbuiltin *builtin_test(struct bn_str name);
const struct jbuiltin *builtin_function(struct bn_str name);
const struct jbuiltin *builtin_method(struct jval self, struct bn_str name);

bool builtin_call(struct jvm *vm, const struct jbuiltin *f, struct jval self,
                  const struct jargs *args, struct jval *out);

/* The tables, each ended by a NULL name. */
extern const struct jbuiltin filters_text[], filters_number[], filters_seq[], filters_lazy[];
extern const struct jbuiltin tests_table[], functions_table[];
extern const struct jbuiltin methods_text[], methods_find[], methods_list[], methods_dict[];
extern const struct jbuiltin methods_loop[], methods_cycler[];

/* ---- reading arguments ---- */

static inline bool arg_given(struct jval v)
{
    return v.kind != J_MISSING;
}
bool arg_int(struct jvm *vm, struct jval v, int64_t fallback, int64_t *out);
bool arg_string(struct jvm *vm, struct jval v, struct jval *out); /* fails if it is no string */
bool arg_flag(struct jval v, bool fallback);

#endif
