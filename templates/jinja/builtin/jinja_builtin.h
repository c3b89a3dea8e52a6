/*
 * Built-in filters, tests, methods and functions. All of them have one signature, are listed in
 * tables, are found by name and are called through builtin_call.
 */
#ifndef TEMPLATES_JINJA_BUILTIN_H
#define TEMPLATES_JINJA_BUILTIN_H

#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_ops.h"

#define BUILTIN_MAX_PARAMS 6 /* no built-in has more */

struct jcall {
    /* (number of parameters), J_MISSING: omitted. The items are not set if params is "*". */
    const struct jval *arg;
    const struct jargs *all; /* the arguments of the call, not yet bound to parameters */
    int variant;             /* jbuiltin.variant of the called function */
};

/* `v` is the filtered or tested value, the object of a method, or the function itself. Fails as
 * jinja_value.h describes. */
typedef bool (*jcall_fn)(struct jvm *vm, struct jval v, const struct jcall *c, struct jval *out);

/* The signature of a function of type jcall_fn. */
#define BUILTIN(name)                                                                              \
    static bool name(struct jvm *vm, struct jval v, const struct jcall *c, struct jval *out)

struct jbuiltin {
    const char *name;
    /* Parameter names separated by commas, each optional one followed by '?'. A '!' in front of the
     * list: no keyword arguments. "*": any arguments, which the function reads from jcall.all. "":
     * no arguments. */
    const char *params;
    jcall_fn fn;
    int variant; /* selects the behaviour of a function that serves several names */
};

/* NULL: unknown name. builtin_method finds the methods of the kind of v. */
const struct jbuiltin *builtin_filter(struct bn_str name);
const struct jbuiltin *builtin_test(struct bn_str name);
const struct jbuiltin *builtin_function(struct bn_str name);
const struct jbuiltin *builtin_method(struct jval v, struct bn_str name);

/* Bind the arguments to the parameters of f and call it. v: see jcall_fn. */
bool builtin_call(struct jvm *vm, const struct jbuiltin *f, struct jval v, const struct jargs *args,
                  struct jval *out);

/* The tables. Each ends with a NULL name. */
extern const struct jbuiltin filters_text[], filters_number[], filters_seq[], filters_lazy[];
extern const struct jbuiltin filters_json[];
extern const struct jbuiltin tests_table[], functions_table[];
extern const struct jbuiltin methods_text[], methods_find[], methods_list[], methods_dict[];
extern const struct jbuiltin methods_loop[], methods_cycler[];

/* ---- operators and sorting ---- */

/* a op b for OP_ADD to OP_POW. Fails where Python does, if an integer does not fit 64 bits, for
 * powers that are complex numbers and for operations of sets, such as keys() - b. */
bool jval_binary(struct jvm *vm, enum jop op, struct jval a, struct jval b, struct jval *out);
bool jval_negate(struct jvm *vm, struct jval v, bool minus, struct jval *out); /* -v or +v */
/* Sort items (n) by keys (n). Both arrays are permuted; they may be the same array. Items with
 * equal keys keep their order, also with `reverse`. Fails where jval_order fails. */
bool sort_values(struct jvm *vm, struct jval *items, struct jval *keys, size_t n, bool reverse);

/* ---- reading arguments ---- */

static inline bool arg_given(struct jval v)
{
    return v.kind != J_MISSING;
}
static inline bool arg_flag(struct jval v) /* false if the argument is missing */
{
    return jval_truth(v);
}
/* *out is `fallback` if the argument is missing. Fails if it is neither an integer nor a bool. */
bool arg_int(struct jvm *vm, struct jval v, int64_t fallback, int64_t *out);
/* Fails if the argument is missing or not a string. */
bool arg_string(struct jvm *vm, struct jval v, struct jval *out);

#endif
