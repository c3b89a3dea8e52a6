/*
 * Evaluates expressions. A table has a function for each kind of expression, except N_OPERAND,
 * N_SLICE and N_KEYWORD, which the function of the node around them reads.
 */
#include "templates/jinja/eval/jinja_eval.h"
#include "templates/jinja/value/jinja_print.h"

static bool eval_const(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    *out = n->val;
    return true;
}

static bool eval_name(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    if (!scope_get(vm, n->id, out))
        *out = jundef_attr(vm, (struct jval){.kind = J_MISSING}, jstring(n->name));
    return true;
}

static bool eval_sequence(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    if (!jlist_new(vm, n->kind == N_TUPLE ? J_TUPLE : J_LIST, n->n_items, out))
        return false;
    for (size_t i = 0; i < n->n_items; i++) {
        struct jval v;
        if (!eval_expr(vm, n->items[i], &v) || !jlist_push(vm, *out, v))
            return false;
    }
    return true;
}

static bool eval_dict(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    if (!jdict_new(vm, J_DICT, out))
        return false;
    for (size_t i = 0; i < n->n_items; i += 2) {
        struct jval key, val;
        if (!eval_expr(vm, n->items[i], &key) || !eval_expr(vm, n->items[i + 1], &val))
            return false;
        vm->at = &n->place;
        if (!jdict_set(vm, out->u.dict, key, val))
            return false;
    }
    return true;
}

static bool eval_unary(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jval v;
    if (!eval_expr(vm, n->a, &v))
        return false;
    vm->at = &n->place;
    if (n->kind == N_NOT) {
        *out = jbool(!jval_truth(v));
        return true;
    }
    return jval_negate(vm, v, n->kind == N_NEG, out);
}

static bool eval_logic(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    if (!eval_expr(vm, n->a, out))
        return false;
    if (jval_truth(*out) == (n->kind == N_OR))
        return true;
    return eval_expr(vm, n->b, out);
}

static bool eval_binary(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jval a, b;
    if (!eval_expr(vm, n->a, &a) || !eval_expr(vm, n->b, &b))
        return false;
    vm->at = &n->place;
    return jval_binary(vm, (enum jop)n->op, a, b, out);
}

static bool eval_concat(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jbuf b = {.vm = vm};
    for (size_t i = 0; i < n->n_items; i++) {
        struct jval v;
        if (!eval_expr(vm, n->items[i], &v) || !print_str(&b, v))
            return false;
    }
    return jbuf_done(&b, out);
}

static bool eval_compare(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jval left;
    bool result = true;
    if (!eval_expr(vm, n->a, &left))
        return false;
    for (size_t i = 0; i < n->n_items && result; i++) {
        const struct jnode *const operand = n->items[i];
        struct jval right;
        if (!eval_expr(vm, operand->a, &right))
            return false;
        vm->at = &operand->place;
        if (!jval_compare(vm, (enum jop)operand->op, left, right, &result))
            return false;
        left = right;
    }
    *out = jbool(result);
    return true;
}

static bool eval_cond(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jval test;
    if (!eval_expr(vm, n->a, &test))
        return false;
    if (jval_truth(test))
        return eval_expr(vm, n->b, out);
    if (n->c)
        return eval_expr(vm, n->c, out);
    *out = jundef_hint(
        vm, "the inline if-expression evaluated to false and no else section was defined");
    return true;
}

static bool eval_attr_node(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jval obj;
    if (!eval_expr(vm, n->a, &obj))
        return false;
    vm->at = &n->place;
    return eval_getattr(vm, obj, n->val, out);
}

static bool eval_item_node(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jval obj, key, bound[3];
    if (!eval_expr(vm, n->a, &obj))
        return false;
    if (n->b->kind != N_SLICE) {
        if (!eval_expr(vm, n->b, &key))
            return false;
        vm->at = &n->place;
        return eval_getitem(vm, obj, key, out);
    }
    const struct jnode *const nodes[3] = {n->b->a, n->b->b, n->b->c};
    for (size_t i = 0; i < 3; i++) {
        bound[i] = jnone();
        if (nodes[i] && !eval_expr(vm, nodes[i], &bound[i]))
            return false;
    }
    vm->at = &n->place;
    return jval_slice(vm, obj, bound, out);
}

/* *n in a call: append the items of the value to the positional arguments. */
static bool add_star(struct jvm *vm, const struct jnode *n, struct jargs *args)
{
    struct jval v, list;
    if (!eval_expr(vm, n, &v))
        return false;
    vm->at = &n->place;
    if (!jval_to_list(vm, v, &list))
        return false;
    const size_t n_pos = args->n_pos + list.u.list->n;
    struct jval *const pos = jvm_alloc(vm, n_pos, sizeof *pos);
    if (!pos)
        return false;
    for (size_t i = 0; i < n_pos; i++)
        pos[i] = i < args->n_pos ? args->pos[i] : list.u.list->items[i - args->n_pos];
    args->pos = pos;
    args->n_pos = n_pos;
    return true;
}

/* **n in a call: append the entries of the dict to the keyword arguments. */
static bool add_star2(struct jvm *vm, const struct jnode *n, struct jargs *args)
{
    struct jval v;
    if (!eval_expr(vm, n, &v))
        return false;
    vm->at = &n->place;
    if (v.kind != J_DICT)
        return jvm_fail(vm, "argument after ** must be a mapping, not %s", jkind_name(v));
    const size_t n_kw = args->n_kw + v.u.dict->n;
    struct jkeyword *const kw = jvm_alloc(vm, n_kw, sizeof *kw);
    /* An upper bound: each key of the dict is compared with the names before **. */
    if (!kw || !jvm_steps(vm, n_kw * (args->n_kw + 1) / 8))
        return false;
    for (size_t i = 0; i < args->n_kw; i++)
        kw[i] = args->kw[i];
    for (size_t i = args->n_kw; i < n_kw; i++) {
        const struct jentry *const e = &v.u.dict->items[i - args->n_kw];
        if (e->key.kind != J_STR)
            return jvm_fail(vm, "keywords must be strings");
        for (size_t k = 0; k < args->n_kw; k++)
            if (jstr_equal(args->kw[k].name, e->key.u.s))
                return jvm_fail(vm, "multiple values for a keyword argument");
        kw[i] = (struct jkeyword){.name = e->key.u.s, .v = e->val};
    }
    args->kw = kw;
    args->n_kw = n_kw;
    return true;
}

bool eval_args(struct jvm *vm, const struct jnode *n, struct jargs *out)
{
    struct jargs args = {.n_pos = n->n_items, .n_kw = n->n_other};
    args.pos = args.n_pos ? jvm_alloc(vm, args.n_pos, sizeof *args.pos) : NULL;
    args.kw = args.n_kw ? jvm_alloc(vm, args.n_kw, sizeof *args.kw) : NULL;
    if ((args.n_pos && !args.pos) || (args.n_kw && !args.kw))
        return false;
    for (size_t i = 0; i < args.n_pos; i++)
        if (!eval_expr(vm, n->items[i], &args.pos[i]))
            return false;
    for (size_t i = 0; i < args.n_kw; i++) {
        args.kw[i].name = n->other[i]->val.u.s;
        if (!eval_expr(vm, n->other[i]->a, &args.kw[i].v))
            return false;
    }
    if ((n->star && !add_star(vm, n->star, &args)) || (n->star2 && !add_star2(vm, n->star2, &args)))
        return false;
    *out = args;
    return true;
}

static bool eval_call(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jval callee;
    struct jargs args;
    if (!eval_expr(vm, n->a, &callee) || !eval_args(vm, n, &args))
        return false;
    vm->at = &n->place;
    return call_value(vm, callee, &args, out);
}

static bool eval_builtin(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jval self = vm->piped;
    struct jargs args;
    if (!n->func) {
        vm->at = &n->place;
        return jvm_fail(vm, "No %s named '%.*s'", n->kind == N_FILTER ? "filter" : "test",
                        bn_str_shown(jstr_text(n->name), 60), n->name->ptr);
    }
    if ((n->a && !eval_expr(vm, n->a, &self)) || !eval_args(vm, n, &args))
        return false;
    vm->at = &n->place;
    return builtin_call(vm, n->func, self, &args, out);
}

typedef bool (*eval_fn)(struct jvm *vm, const struct jnode *n, struct jval *out);

static const eval_fn evaluators[] = {
    [N_CONST] = eval_const,       [N_NAME] = eval_name,     [N_LIST] = eval_sequence,
    [N_TUPLE] = eval_sequence,    [N_DICT] = eval_dict,     [N_NOT] = eval_unary,
    [N_NEG] = eval_unary,         [N_POS] = eval_unary,     [N_AND] = eval_logic,
    [N_OR] = eval_logic,          [N_BINARY] = eval_binary, [N_CONCAT] = eval_concat,
    [N_COMPARE] = eval_compare,   [N_COND] = eval_cond,     [N_GETATTR] = eval_attr_node,
    [N_GETITEM] = eval_item_node, [N_CALL] = eval_call,     [N_FILTER] = eval_builtin,
    [N_TEST] = eval_builtin,
};

bool eval_expr(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    vm->at = &n->place;
    const bool ok = jvm_steps(vm, 1) && jvm_enter(vm) && evaluators[n->kind](vm, n, out);
    jvm_leave(vm);
    return ok;
}

bool eval_filters(struct jvm *vm, const struct jnode *n, struct jval text, struct jval *out)
{
    const struct jval piped = vm->piped;
    vm->piped = text;
    const bool ok = eval_expr(vm, n, out);
    vm->piped = piped;
    return ok;
}

const struct jvm_ops jinja_ops = {
    .loop_filter = eval_loop_filter,
    .get_attr = eval_getattr,
    .get_item = eval_getitem,
    .find_filter = builtin_filter,
    .find_test = builtin_test,
};
