/*
 * Runs a parsed template (jinja_ast.h): statements in jinja_exec.c, expressions in jinja_eval.c,
 * attributes and items in jinja_attr.c, calls in jinja_call.c.
 */
#ifndef TEMPLATES_JINJA_EVAL_H
#define TEMPLATES_JINJA_EVAL_H

#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/parse/jinja_ast.h"
#include "templates/jinja/value/jinja_iter.h"

struct jbinding {
    uint32_t id;   /* index of the name in jprogram.names */
    struct jval v; /* J_MISSING: no value yet, see scope_new */
};

/* A scope of variables: of the template, a loop, a macro or another inner body. The outermost scope
 * has `globals` instead of `vars`. */
struct jscope {
    struct jscope *parent;
    struct jbinding *vars; /* (n) */
    size_t n, cap;
    struct jval *globals; /* (n_names) by id; J_MISSING: not set. NULL in inner scopes */
};

/* How a statement ended. FLOW_GO: the next one follows. */
enum jflow { FLOW_FAIL, FLOW_GO, FLOW_BREAK, FLOW_CONTINUE };

/* Make a scope inside `parent`; the caller sets vm->scope. `hidden` are names that the scope sets
 * later: until then they are undefined, even if the caller of the template passes such variables.
 * NULL: none. */
bool scope_new(struct jvm *vm, struct jscope *parent, const struct jhidden *hidden,
               struct jscope **out);
bool scope_set(struct jvm *vm, uint32_t id, struct jval v); /* in the innermost scope */
/* False: not set, or hidden. This is no error: vm->err is not written. */
bool scope_get(struct jvm *vm, uint32_t id, struct jval *out);

bool eval_expr(struct jvm *vm, const struct jnode *n, struct jval *out);
/* obj.name (`name` is J_STR) and obj[key]; J_UNDEF if there is no such attribute or item. Fail if
 * obj is undefined. */
bool eval_getattr(struct jvm *vm, struct jval obj, struct jval name, struct jval *out);
bool eval_getitem(struct jvm *vm, struct jval obj, struct jval key, struct jval *out);
/* The arguments of a call, filter or test n. */
bool eval_args(struct jvm *vm, const struct jnode *n, struct jargs *out);
/* The filters n of {% filter %} or of a {% set %} block, with `text` as their input. */
bool eval_filters(struct jvm *vm, const struct jnode *n, struct jval text, struct jval *out);
/* The condition of {% for ... if ... %}. *pass: whether the item passes; then *item is the value
 * that the loop target got from it. */
bool eval_loop_filter(struct jvm *vm, struct jloop *loop, struct jval *item, bool *pass);
/* callee(args). Fails if `callee` is undefined or cannot be called. */
bool call_value(struct jvm *vm, struct jval callee, const struct jargs *args, struct jval *out);

/* Run statements until the end, a break, a continue or an error. */
enum jflow exec_body(struct jvm *vm, struct jnode *const *items, size_t n);

extern const struct jvm_ops jinja_ops; /* the functions of the evaluator, for jvm.ops */

/* Run the program with these variables (the keys are strings) and append the output to `out`, a
 * builder of this vm. The caller has set arena, err, ops, max_bytes and now of vm. */
bool jinja_run(struct jvm *vm, const struct jprogram *program, const struct jdict *vars,
               struct jbuf *out);

#endif
