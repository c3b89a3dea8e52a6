/*
 * Finds the names that a scope hides. jinja2 decides before a template runs in which scope it looks
 * up each name. A name that a scope sets is undefined until it is set, unless an outer scope reads
 * or sets the name, or the scope itself has read it before. The rule also applies in inner blocks,
 * and if the caller passes a variable of that name. A name that only some branches of an if set is
 * looked up as if no branch set it. In these examples the caller passes x = "caller":
 *
 *     {% macro m() %}[{{ x }}]{% endmacro %}
 *     {{ m() }}{% set x = 1 %}{{ m() }}         [][1]: x is hidden until the set
 *     {{ x }}{{ m() }}{% set x = 1 %}           caller[caller]: x was read before the set
 *     {{ m() }}{% if a %}{% set x = 1 %}{% endif %}    [caller]: only one branch sets x
 *
 * The pass walks the tree as jinja2's symbol tables do. It stores the numbers of the hidden names
 * in each node that opens a scope. All other scope rules are applied at run time.
 */
#include "templates/jinja/parse/jinja_parser.h"

/* NONE: the scope does not use the name, or an outer scope decides. VISIBLE: outer scopes are
 * searched. HIDDEN: the name is undefined until the scope sets it. */
enum { REF_NONE, REF_VISIBLE, REF_HIDDEN };

struct symbols {
    struct jvm *vm;
    const struct symbols *parent;
    size_t n_names;
    uint8_t *refs;   /* (n_names) REF_: how this scope refers to the name */
    uint8_t *stores; /* (n_names) whether this scope sets the name */
};

static bool symbols_new(struct symbols *s, const struct symbols *parent)
{
    *s = (struct symbols){.vm = parent->vm, .parent = parent, .n_names = parent->n_names};
    s->refs = jvm_alloc(s->vm, s->n_names, 2); /* one block for refs and stores */
    if (!s->refs || !jvm_steps(s->vm, s->n_names / 8))
        return false;
    memset(s->refs, 0, s->n_names * 2);
    s->stores = s->refs + s->n_names;
    return true;
}

static bool in_outer_scope(const struct symbols *s, uint32_t id)
{
    /* The parent of the outermost scope has no refs: see jinja_hide_names. */
    for (s = s->parent; s && s->refs; s = s->parent)
        if (s->refs[id] != REF_NONE)
            return true;
    return false;
}

/* The scope reads a name. */
static void load(struct symbols *s, uint32_t id)
{
    if (s->refs[id] == REF_NONE && !in_outer_scope(s, id))
        s->refs[id] = REF_VISIBLE;
}

/* The scope sets a name. */
static void store(struct symbols *s, uint32_t id)
{
    s->stores[id] = true;
    if (s->refs[id] == REF_NONE)
        s->refs[id] = in_outer_scope(s, id) ? REF_VISIBLE : REF_HIDDEN;
}

/* The name has a value when the scope begins. */
static void parameter(struct symbols *s, uint32_t id)
{
    s->stores[id] = true;
    s->refs[id] = REF_VISIBLE;
}

/* Load every name that an expression reads. */
static void visit_expr(struct symbols *s, const struct jnode *n)
{
    if (!n)
        return;
    if (n->kind == N_NAME)
        load(s, n->id);
    visit_expr(s, n->a);
    visit_expr(s, n->b);
    visit_expr(s, n->c);
    for (size_t i = 0; i < n->n_items; i++)
        visit_expr(s, n->items[i]);
    for (size_t i = 0; i < n->n_other; i++)
        visit_expr(s, n->other[i]);
    visit_expr(s, n->star);
    visit_expr(s, n->star2);
}

static void visit_target(struct symbols *s, const struct jnode *n, bool as_parameter)
{
    if (n->kind == N_NSREF)
        load(s, n->id);
    else if (n->kind == N_NAME && as_parameter)
        parameter(s, n->id);
    else if (n->kind == N_NAME)
        store(s, n->id);
    for (size_t i = 0; i < n->n_items; i++)
        visit_target(s, n->items[i], as_parameter);
}

static bool visit_body(struct symbols *s, struct jnode *const *items, size_t n);

static bool copy_symbols(struct symbols *s, struct symbols *copy)
{
    if (!symbols_new(copy, s))
        return false;
    copy->parent = s->parent;
    memcpy(copy->refs, s->refs, s->n_names * 2);
    return true;
}

/* Merge the three branches of an if: its body, its elifs and its else. A name that the scope has
 * not set before the if becomes VISIBLE if some of the three set it, but not all. */
static void merge_branches(struct symbols *s, const struct symbols branch[3])
{
    for (uint32_t id = 0; id < s->n_names; id++) {
        const bool before = s->stores[id];
        int n_stores = 0;
        for (size_t k = 0; k < 3; k++) {
            if (branch[k].refs[id] != REF_NONE)
                s->refs[id] = branch[k].refs[id];
            n_stores += branch[k].stores[id];
            s->stores[id] = s->stores[id] || branch[k].stores[id];
        }
        if (!before && n_stores > 0 && n_stores < 3)
            s->refs[id] = REF_VISIBLE;
    }
}

/* `first`: the branch with the condition; `all`: the if node, NULL in an elif; `last`: the else
 * branch or NULL. */
static bool visit_branches(struct symbols *s, const struct jnode *first, const struct jnode *all,
                           const struct jnode *last)
{
    struct symbols branch[3];
    visit_expr(s, first->a);
    for (size_t k = 0; k < 3; k++)
        if (!copy_symbols(s, &branch[k]))
            return false;
    if (!visit_body(&branch[0], first->items, first->n_items))
        return false;
    for (size_t i = 1; all && i < all->n_items; i++)
        if (all->items[i] != last && !visit_branches(&branch[1], all->items[i], NULL, NULL))
            return false;
    if (last && !visit_body(&branch[2], last->items, last->n_items))
        return false;
    merge_branches(s, branch);
    return true;
}

static bool visit_if(struct symbols *s, const struct jnode *n)
{
    const struct jnode *const end = n->items[n->n_items - 1];
    return visit_branches(s, n->items[0], n, n->n_items > 1 && !end->a ? end : NULL);
}

static bool visit_stmt(struct symbols *s, const struct jnode *n)
{
    switch (n->kind) {
    case N_OUTPUT:
    case N_CALLBLOCK:
        visit_expr(s, n->a);
        return true;
    case N_IF:
        return visit_if(s, n);
    case N_FILTERBLOCK:
    case N_FOR: /* the filters or the iterable belong to this scope, the bodies to inner scopes */
        visit_expr(s, n->b);
        return true;
    case N_SET:
        visit_expr(s, n->b);
        visit_target(s, n->a, false);
        return true;
    case N_SETBLOCK: /* like jinja2, without the names in its filters */
        visit_target(s, n->a, false);
        return true;
    case N_MACRO:
        store(s, n->id);
        return true;
    case N_WITH:
        for (size_t i = 1; i < n->n_other; i += 2)
            visit_expr(s, n->other[i]);
        return true;
    default:
        return true;
    }
}

static bool visit_body(struct symbols *s, struct jnode *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!jvm_steps(s->vm, 1) || !visit_stmt(s, items[i]))
            return false;
    return true;
}

static bool collect(const struct symbols *s, struct jhidden *out)
{
    size_t n = 0;
    for (uint32_t id = 0; id < s->n_names; id++)
        n += s->refs[id] == REF_HIDDEN;
    *out = (struct jhidden){0};
    if (n == 0)
        return true;
    uint32_t *const ids = jvm_alloc(s->vm, n, sizeof *ids);
    if (!ids)
        return false;
    for (uint32_t id = 0; id < s->n_names; id++)
        if (s->refs[id] == REF_HIDDEN)
            ids[out->n++] = id;
    out->ids = ids;
    return true;
}

static bool descend(const struct symbols *s, struct jnode *const *items, size_t n);

/* Visit the body of a scope, whose parameters are in `s` already, then the scopes inside it. */
static bool visit_scope(struct symbols *s, struct jnode *const *items, size_t n,
                        struct jhidden *out)
{
    return visit_body(s, items, n) && collect(s, out) && descend(s, items, n);
}

/* The filter is not visited: it runs in a scope of its own, which sets only the targets. */
static bool descend_for(const struct symbols *s, struct jnode *n)
{
    struct symbols body, other;
    if (!symbols_new(&body, s) || !symbols_new(&other, s))
        return false;
    parameter(&body, NAME_LOOP);
    visit_target(&body, n->a, true);
    return visit_scope(&body, n->items, n->n_items, &n->hidden) &&
           visit_scope(&other, n->other, n->n_other, &n->hidden_else);
}

static bool descend_macro(const struct symbols *s, struct jnode *n)
{
    struct symbols body;
    if (!symbols_new(&body, s))
        return false;
    for (size_t i = 0; i < n->n_other; i++)
        parameter(&body, n->other[i]->id);
    if (n->op & MACRO_CALLER)
        parameter(&body, NAME_CALLER);
    if (n->op & MACRO_KWARGS)
        parameter(&body, NAME_KWARGS);
    if (n->op & MACRO_VARARGS)
        parameter(&body, NAME_VARARGS);
    for (size_t i = 0; i < n->n_other; i++)
        visit_expr(&body, n->other[i]->a);
    return visit_scope(&body, n->items, n->n_items, &n->hidden);
}

static bool descend_one(const struct symbols *s, struct jnode *n)
{
    struct symbols body;
    switch (n->kind) {
    case N_IF:
        for (size_t i = 0; i < n->n_items; i++)
            if (!descend(s, n->items[i]->items, n->items[i]->n_items))
                return false;
        return true;
    case N_FOR:
        return descend_for(s, n);
    case N_MACRO:
        return descend_macro(s, n);
    case N_CALLBLOCK:
        return descend_macro(s, n->b);
    case N_SETBLOCK:
    case N_FILTERBLOCK:
    case N_WITH:
    case N_GENERATION:
        if (!symbols_new(&body, s))
            return false;
        for (size_t i = 0; n->kind == N_WITH && i < n->n_other; i += 2)
            visit_target(&body, n->other[i], true);
        return visit_scope(&body, n->items, n->n_items, &n->hidden);
    default:
        return true;
    }
}

static bool descend(const struct symbols *s, struct jnode *const *items, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!descend_one(s, items[i]))
            return false;
    return true;
}

bool jinja_hide_names(struct jvm *vm, struct jprogram *program)
{
    const struct symbols nothing = {.vm = vm, .n_names = program->n_names};
    struct symbols root;
    return symbols_new(&root, &nothing) &&
           visit_scope(&root, program->body, program->n_body, &program->hidden);
}
