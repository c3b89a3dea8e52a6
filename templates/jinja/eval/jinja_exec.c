/*
 * Executes statements and manages the scopes of names. jinja2 compiles names to Python variables,
 * with these rules: the body of for, the else of for, macro, call, set block, filter block, with
 * and generation open a scope; if does not. The scope of the body of for is emptied before each
 * iteration. An assignment to a name writes to the innermost scope. A read searches outwards.
 */
#include "templates/jinja/eval/jinja_eval.h"

#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_print.h"

/* Remove all names, then add the hidden names without a value. */
static bool scope_reset(struct jvm *vm, struct jscope *s, const struct jhidden *hidden)
{
    s->n = 0;
    if (!hidden || hidden->n == 0)
        return true;
    if (s->cap < hidden->n) { /* with space for a few more names */
        s->vars = jvm_alloc(vm, hidden->n + 4, sizeof *s->vars);
        if (!s->vars)
            return false;
        s->cap = hidden->n + 4;
    }
    for (; s->n < hidden->n; s->n++)
        s->vars[s->n] = (struct jbinding){.id = hidden->ids[s->n], .v = {.kind = J_MISSING}};
    return jvm_steps(vm, s->n / 8);
}

bool scope_new(struct jvm *vm, struct jscope *parent, const struct jhidden *hidden,
               struct jscope **out)
{
    struct jscope *const s = jvm_alloc(vm, 1, sizeof *s);
    if (!s)
        return false;
    *s = (struct jscope){.parent = parent};
    *out = s;
    return scope_reset(vm, s, hidden);
}

bool scope_set(struct jvm *vm, uint32_t id, struct jval v)
{
    struct jscope *const s = vm->scope;
    if (s->globals) {
        s->globals[id] = v;
        return true;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->vars[i].id == id) {
            s->vars[i].v = v;
            return jvm_steps(vm, i / 8);
        }
    }
    if (!jvm_grow(vm, &s->vars, s->n, &s->cap, s->n + 1, sizeof *s->vars))
        return false;
    s->vars[s->n++] = (struct jbinding){.id = id, .v = v};
    return jvm_steps(vm, s->n / 8);
}

bool scope_get(struct jvm *vm, uint32_t id, struct jval *out)
{
    for (const struct jscope *s = vm->scope; s; s = s->parent) {
        if (s->globals) {
            *out = s->globals[id];
            return out->kind != J_MISSING;
        }
        for (size_t i = 0; i < s->n; i++) {
            if (s->vars[i].id == id) {
                vm->n_steps += i / 8; /* the next jvm_steps checks the sum, here and below */
                *out = s->vars[i].v;
                return out->kind != J_MISSING;
            }
        }
        vm->n_steps += s->n / 8;
    }
    return false;
}

static bool exec_assign(struct jvm *vm, const struct jnode *target, struct jval v);

static bool assign_tuple(struct jvm *vm, const struct jnode *target, struct jval v)
{
    struct jval list;
    if (!jval_to_list(vm, v, &list))
        return false;
    if (list.u.list->n != target->n_items)
        return jvm_fail(vm, "%s values to unpack (expected %zu, got %zu)",
                        list.u.list->n > target->n_items ? "too many" : "not enough",
                        target->n_items, list.u.list->n);
    for (size_t i = 0; i < target->n_items; i++)
        if (!exec_assign(vm, target->items[i], list.u.list->items[i]))
            return false;
    return true;
}

static bool exec_assign(struct jvm *vm, const struct jnode *target, struct jval v)
{
    struct jval space;
    vm->at = &target->place;
    if (target->kind == N_NAME)
        return scope_set(vm, target->id, v);
    if (target->kind == N_TUPLE)
        return assign_tuple(vm, target, v);
    /* N_NSREF: ns.x */
    if (!scope_get(vm, target->id, &space) || space.kind != J_NAMESPACE)
        return jvm_fail(vm, "cannot assign attribute on non-namespace object");
    return jdict_set(vm, space.u.dict, target->val, v);
}

/* A loop with a filter yields the values of its targets instead of its items: a list that was
 * unpacked becomes a tuple. */
static bool target_value(struct jvm *vm, const struct jnode *target, struct jval *out)
{
    if (target->kind == N_NAME)
        return scope_get(vm, target->id, out);
    if (!jlist_new(vm, J_TUPLE, target->n_items, out))
        return false;
    for (size_t i = 0; i < target->n_items; i++) {
        struct jval v;
        if (!target_value(vm, target->items[i], &v) || !jlist_push(vm, *out, v))
            return false;
    }
    return true;
}

bool eval_loop_filter(struct jvm *vm, struct jloop *loop, struct jval *item, bool *pass)
{
    struct jscope *const scope = vm->scope, *inner;
    struct jval v;
    if (!scope_new(vm, loop->outer, NULL, &inner))
        return false;
    vm->scope = inner;
    bool ok = exec_assign(vm, loop->target, *item) && eval_expr(vm, loop->filter, &v);
    *pass = ok && jval_truth(v);
    ok = ok && (!*pass || target_value(vm, loop->target, item));
    vm->scope = scope;
    return ok;
}

static enum jflow exec_data(struct jvm *vm, const struct jnode *n)
{
    return jbuf_str(vm->out, n->val.u.s) ? FLOW_GO : FLOW_FAIL;
}

static enum jflow exec_output(struct jvm *vm, const struct jnode *n)
{
    struct jval v;
    if (!eval_expr(vm, n->a, &v))
        return FLOW_FAIL;
    vm->at = &n->place;
    return print_str(vm->out, v) ? FLOW_GO : FLOW_FAIL;
}

/* Run a body in the scope `inner`. */
static enum jflow exec_inner(struct jvm *vm, const struct jnode *n, struct jscope *inner)
{
    struct jscope *const scope = vm->scope;
    vm->scope = inner;
    const enum jflow flow = exec_body(vm, n->items, n->n_items);
    vm->scope = scope;
    return flow;
}

static bool loop_start(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jloop *const loop = jvm_alloc(vm, 1, sizeof *loop);
    struct jval seq;
    if (!loop || !eval_expr(vm, n->b, &seq))
        return false;
    *loop = (struct jloop){.prev = {.kind = J_MISSING},
                           .item = {.kind = J_MISSING},
                           .ahead = {.kind = J_MISSING},
                           .changed = {.kind = J_MISSING},
                           .index0 = SIZE_MAX,
                           .length = SIZE_MAX,
                           .filter = n->c,
                           .target = n->a,
                           .outer = vm->scope};
    vm->at = &n->place;
    *out = (struct jval){.kind = J_LOOP, .u.loop = loop};
    return jiter_open(vm, seq, &loop->it);
}

/* *ran becomes true if the else of the loop must not run. */
static enum jflow exec_loop(struct jvm *vm, const struct jnode *n, struct jval loop, bool *ran)
{
    struct jscope *const scope = vm->scope, *inner;
    enum jflow flow = FLOW_GO;
    if (!scope_new(vm, scope, NULL, &inner))
        return FLOW_FAIL;
    while (flow != FLOW_FAIL && flow != FLOW_BREAK) {
        bool more;
        vm->at = &n->place;
        if (!jloop_advance(vm, loop.u.loop, &more))
            return FLOW_FAIL;
        if (!more)
            break;
        vm->scope = inner;
        flow = FLOW_FAIL;
        if (scope_reset(vm, inner, &n->hidden) && exec_assign(vm, n->a, loop.u.loop->item) &&
            scope_set(vm, NAME_LOOP, loop))
            flow = exec_body(vm, n->items, n->n_items);
        vm->scope = scope;
        /* As in jinja2, iterations that break or continue ended do not count. */
        if (flow == FLOW_GO)
            *ran = true;
    }
    return flow == FLOW_FAIL ? FLOW_FAIL : FLOW_GO;
}

static enum jflow exec_for(struct jvm *vm, const struct jnode *n)
{
    struct jval loop;
    struct jscope *inner;
    bool ran = false;
    if (!loop_start(vm, n, &loop) || exec_loop(vm, n, loop, &ran) == FLOW_FAIL)
        return FLOW_FAIL;
    if (ran || n->n_other == 0)
        return FLOW_GO;
    if (!scope_new(vm, vm->scope, &n->hidden_else, &inner))
        return FLOW_FAIL;
    const struct jnode body = {.items = n->other, .n_items = n->n_other};
    return exec_inner(vm, &body, inner);
}

static enum jflow exec_if(struct jvm *vm, const struct jnode *n)
{
    for (size_t i = 0; i < n->n_items; i++) {
        const struct jnode *const branch = n->items[i];
        struct jval test = jbool(true);
        if (branch->a && !eval_expr(vm, branch->a, &test))
            return FLOW_FAIL;
        if (jval_truth(test))
            return exec_body(vm, branch->items, branch->n_items);
    }
    return FLOW_GO;
}

static enum jflow exec_set(struct jvm *vm, const struct jnode *n)
{
    struct jval v;
    return eval_expr(vm, n->b, &v) && exec_assign(vm, n->a, v) ? FLOW_GO : FLOW_FAIL;
}

/* Filter and call blocks output their value without str(), so it must be a string. */
static enum jflow write_block(struct jvm *vm, const struct jnode *n, struct jval v)
{
    vm->at = &n->place;
    const bool ok = v.kind == J_STR
                        ? jbuf_str(vm->out, v.u.s)
                        : jvm_fail(vm, "expected str instance, %s found", jkind_name(v));
    return ok ? FLOW_GO : FLOW_FAIL;
}

/* Run the body, capture its output and apply the filters of the block. */
static enum jflow capture(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jscope *const scope = vm->scope, *inner;
    struct jbuf *const outer = vm->out;
    struct jbuf b = {.vm = vm};
    if (!scope_new(vm, scope, &n->hidden, &inner))
        return FLOW_FAIL;
    vm->scope = inner;
    vm->out = &b;
    enum jflow flow = exec_body(vm, n->items, n->n_items);
    vm->out = outer;
    if (flow == FLOW_GO && (!jbuf_done(&b, out) || (n->b && !eval_filters(vm, n->b, *out, out))))
        flow = FLOW_FAIL;
    vm->scope = scope;
    return flow;
}

static enum jflow exec_setblock(struct jvm *vm, const struct jnode *n)
{
    struct jval text;
    const enum jflow flow = capture(vm, n, &text);
    if (flow != FLOW_GO)
        return flow;
    return exec_assign(vm, n->a, text) ? FLOW_GO : FLOW_FAIL;
}

static enum jflow exec_filterblock(struct jvm *vm, const struct jnode *n)
{
    struct jval v;
    const enum jflow flow = capture(vm, n, &v);
    if (flow != FLOW_GO)
        return flow;
    return write_block(vm, n, v);
}

static bool macro_new(struct jvm *vm, const struct jnode *n, struct jval *out)
{
    struct jmacro *const m = jvm_alloc(vm, 1, sizeof *m);
    if (!m)
        return false;
    *m = (struct jmacro){.name = n->name, .node = n, .scope = vm->scope};
    *out = (struct jval){.kind = J_MACRO, .u.macro = m};
    return true;
}

static enum jflow exec_macro(struct jvm *vm, const struct jnode *n)
{
    struct jval v;
    return macro_new(vm, n, &v) && scope_set(vm, n->id, v) ? FLOW_GO : FLOW_FAIL;
}

static enum jflow exec_callblock(struct jvm *vm, const struct jnode *n)
{
    struct jval caller, callee, v;
    struct jargs args;
    if (!macro_new(vm, n->b, &caller) || !eval_expr(vm, n->a->a, &callee) ||
        !eval_args(vm, n->a, &args))
        return FLOW_FAIL;
    struct jkeyword *const kw = jvm_alloc(vm, args.n_kw + 1, sizeof *kw);
    if (!kw)
        return FLOW_FAIL;
    for (size_t i = 0; i < args.n_kw; i++)
        kw[i] = args.kw[i];
    kw[args.n_kw++] = (struct jkeyword){.name = vm->program->names[NAME_CALLER], .v = caller};
    args.kw = kw;
    vm->at = &n->place;
    return call_value(vm, callee, &args, &v) ? write_block(vm, n, v) : FLOW_FAIL;
}

static enum jflow exec_with(struct jvm *vm, const struct jnode *n)
{
    struct jscope *const scope = vm->scope, *inner;
    if (!scope_new(vm, scope, &n->hidden, &inner))
        return FLOW_FAIL;
    /* As in jinja2, the values are computed in the outer scope: they do not see the targets. */
    for (size_t i = 0; i < n->n_other; i += 2) {
        struct jval v;
        if (!eval_expr(vm, n->other[i + 1], &v))
            return FLOW_FAIL;
        vm->scope = inner;
        const bool ok = exec_assign(vm, n->other[i], v);
        vm->scope = scope;
        if (!ok)
            return FLOW_FAIL;
    }
    return exec_inner(vm, n, inner);
}

static enum jflow exec_generation(struct jvm *vm, const struct jnode *n)
{
    struct jscope *inner;
    return scope_new(vm, vm->scope, &n->hidden, &inner) ? exec_inner(vm, n, inner) : FLOW_FAIL;
}

static enum jflow exec_jump(struct jvm *vm, const struct jnode *n)
{
    return n->kind == N_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
}

typedef enum jflow (*exec_fn)(struct jvm *vm, const struct jnode *n);

static const exec_fn executors[] = {
    [N_DATA] = exec_data,
    [N_OUTPUT] = exec_output,
    [N_FOR] = exec_for,
    [N_IF] = exec_if,
    [N_SET] = exec_set,
    [N_SETBLOCK] = exec_setblock,
    [N_MACRO] = exec_macro,
    [N_CALLBLOCK] = exec_callblock,
    [N_FILTERBLOCK] = exec_filterblock,
    [N_WITH] = exec_with,
    [N_GENERATION] = exec_generation,
    [N_BREAK] = exec_jump,
    [N_CONTINUE] = exec_jump,
};

enum jflow exec_body(struct jvm *vm, struct jnode *const *items, size_t n)
{
    enum jflow flow = jvm_enter(vm) ? FLOW_GO : FLOW_FAIL;
    for (size_t i = 0; i < n && flow == FLOW_GO; i++) {
        vm->at = &items[i]->place;
        flow = jvm_steps(vm, 1) ? executors[items[i]->kind](vm, items[i]) : FLOW_FAIL;
    }
    jvm_leave(vm);
    return flow;
}

bool jinja_run(struct jvm *vm, const struct jprogram *program, const struct jdict *vars,
               struct jbuf *out)
{
    struct jscope root = {.parent = NULL};
    root.globals = jvm_alloc(vm, program->n_names, sizeof *root.globals);
    if (!root.globals)
        return false;
    for (size_t i = 0; i < program->n_names; i++) {
        struct jval *found;
        const struct jbuiltin *const f = builtin_function(jstr_text(program->names[i]));
        root.globals[i] = (struct jval){.kind = f ? J_FUNC : J_MISSING, .u.func = f};
        if (!jdict_find(vm, vars, jstring(program->names[i]), &found))
            return false;
        if (found)
            root.globals[i] = *found;
    }
    for (size_t i = 0; i < program->hidden.n; i++)
        root.globals[program->hidden.ids[i]] = (struct jval){.kind = J_MISSING};
    vm->program = program;
    vm->scope = &root;
    vm->out = out;
    vm->piped = (struct jval){.kind = J_UNDEF};
    /* The result is no jump, because the parser rejects jumps outside of loops. */
    return exec_body(vm, program->body, program->n_body) != FLOW_FAIL;
}
