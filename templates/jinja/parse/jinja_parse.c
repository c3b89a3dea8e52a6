/*
 * The entry point of the parser, and statements: a table maps each tag to its parsing function.
 *
 * The tags of jinja2 for inheritance, other templates and autoescape are rejected as unsupported,
 * so that a caller can use another template and report the reason.
 */
#include "templates/jinja/parse/jinja_parser.h"
#include "templates/jinja/value/jinja_text.h"

static bool end_of_body(struct parser *p, const char *const *ends)
{
    for (; ends && *ends; ends++)
        if (parser_is_name(p, *ends))
            return true;
    return false;
}

/* Text, outputs and statements up to a tag whose name is in `ends`, or up to the end of the
 * template, which is no error here. This name or T_EOF becomes the current token. `ends` ends with
 * NULL; it may be NULL if there are no names. */
static bool parse_body(struct parser *p, const char *const *ends, struct jnode *node);

/* Parse an optional colon, the end of the tag, and the body up to one of the end tags. The last of
 * these is the one that every block needs. */
static bool tag_body(struct parser *p, const char *const *ends, struct jnode *node)
{
    const struct jtok *const tok = parser_tok(p);
    parser_skip(p, T_COLON);
    if (!parser_check_names(p) || !parser_expect(p, T_BLOCK_END))
        return false;
    const bool ok = parser_enter(p) && parse_body(p, ends, node);
    parser_leave(p);
    if (ok && parser_is(p, T_EOF)) {
        while (ends[1])
            ends++;
        return parser_fail(p, tok, "this block has no '%s'", *ends);
    }
    return ok;
}

/* tag_body for a tag with one end tag, whose name is skipped. The token after the name becomes the
 * current one; the caller of the statement expects T_BLOCK_END there. */
static bool whole_body(struct parser *p, const char *end, struct jnode *node)
{
    const char *const ends[] = {end, NULL};
    if (!tag_body(p, ends, node))
        return false;
    parser_next(p);
    return true;
}

/* The whole body of a block that is a scope. As in jinja2, an unknown filter in it is an error of
 * parsing, even if an `if` encloses the block. Seals the node. */
static bool scope_body(struct parser *p, const char *end, struct jnode *node)
{
    const size_t ifs = p->n_ifs;
    p->n_ifs = 0;
    const bool ok = whole_body(p, end, node) && parser_seal(p, node);
    p->n_ifs = ifs;
    return ok;
}

/* Fails if n cannot be the target of an assignment. `flags`: TUPLE_NAMESPACE or 0. */
static bool assignable(struct parser *p, struct jnode *n, int flags)
{
    const struct jtok at = {.place = n->place};
    if (n->kind == N_TUPLE) {
        for (size_t i = 0; i < n->n_items; i++)
            if (!assignable(p, n->items[i], flags))
                return false;
        return true;
    }
    if (n->kind == N_NSREF && (flags & TUPLE_NAMESPACE))
        return true;
    if (n->kind != N_NAME)
        return parser_fail(p, &at, "can't assign to this");
    return true;
}

static bool parse_target(struct parser *p, int flags, const char *end_name, struct jnode **out)
{
    const int reads = p->macro_reads; /* assigning to a name does not read it */
    if (!parse_tuple(p, TUPLE_SIMPLE | flags, end_name, out) || !assignable(p, *out, flags))
        return false;
    p->macro_reads = reads;
    return true;
}

static bool name_target(struct parser *p, struct jnode *node)
{
    const struct jtok *const tok = parser_tok(p);
    if (!parser_expect(p, T_NAME) || !parser_name(p, tok->text, node))
        return false;
    if (bn_str_is(tok->text, "true") || bn_str_is(tok->text, "false") ||
        bn_str_is(tok->text, "none") || bn_str_is(tok->text, "True") ||
        bn_str_is(tok->text, "False") || bn_str_is(tok->text, "None"))
        return parser_fail(p, tok, "can't assign to this");
    return true;
}

static bool parse_set(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_next(p);
    struct jnode *const n = parser_node(p, N_SET, tok);
    if (!n || !parse_target(p, TUPLE_NAMESPACE, NULL, &n->a))
        return false;
    *out = n;
    if (parser_skip(p, T_ASSIGN))
        return parse_tuple(p, 0, NULL, &n->b) && parser_seal(p, n);
    n->kind = N_SETBLOCK;
    return parse_filters(p, NULL, false, &n->b) && parser_check_names(p) &&
           scope_body(p, "endset", n);
}

/* Whether the target of a loop contains the name `loop`. */
static bool has_loop_target(const struct jnode *n)
{
    if (n->kind == N_NAME)
        return n->id == NAME_LOOP;
    for (size_t i = 0; i < n->n_items; i++)
        if (has_loop_target(n->items[i]))
            return true;
    return false;
}

static bool parse_for_body(struct parser *p, struct jnode *n)
{
    static const char *const ends[] = {"else", "endfor", NULL};
    struct jnode holder = {.kind = N_FOR}; /* receives the body of the else */
    p->n_loops++;
    const bool ok = tag_body(p, ends, n);
    p->n_loops--;
    if (!ok)
        return false;
    if (parser_skip_name(p, "else")) {
        if (!whole_body(p, "endfor", &holder))
            return false;
        n->other = holder.items;
        n->n_other = holder.n_items;
    } else {
        parser_next(p);
    }
    return parser_seal(p, n);
}

static bool parse_for(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_next(p);
    struct jnode *const n = parser_node(p, N_FOR, tok);
    if (!n || !parse_target(p, 0, "in", &n->a) || !parser_expect_name(p, "in") ||
        !parse_tuple(p, TUPLE_NO_COND, "recursive", &n->b))
        return false;
    if (has_loop_target(n->a))
        return parser_fail(p, tok, "Can't assign to special loop variable in for-loop target");
    if (parser_skip_name(p, "if") && !parse_expr(p, &n->c))
        return false;
    if (parser_is_name(p, "recursive")) {
        (void)parser_fail(p, parser_tok(p), "recursive loops are not supported");
        p->vm->err->code = BN_EUNSUPPORTED;
        return false;
    }
    const size_t ifs = p->n_ifs;
    *out = n;
    if (!parser_check_names(p))
        return false;
    p->n_ifs = 0; /* as in scope_body */
    const bool ok = parse_for_body(p, n);
    p->n_ifs = ifs;
    return ok;
}

static bool parse_branches(struct parser *p, struct jnodes *branches)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    for (;;) {
        const struct jtok *const tok = parser_next(p); /* if, elif or else */
        struct jnode *const n = parser_node(p, N_BRANCH, tok);
        const bool is_else = bn_str_is(tok->text, "else");
        if (!n || (!is_else && !parse_tuple(p, TUPLE_NO_COND, NULL, &n->a)))
            return false;
        if (is_else ? !whole_body(p, "endif", n) : !tag_body(p, ends, n))
            return false;
        if (!parser_seal(p, n) || !parser_push(p, branches, n))
            return false;
        if (is_else)
            return true;
        if (parser_skip_name(p, "endif"))
            return true;
    }
}

static bool parse_if(struct parser *p, struct jnode **out)
{
    struct jnodes branches = {0};
    struct jnode *const n = parser_node(p, N_IF, parser_tok(p));
    if (!n)
        return false;
    p->n_ifs++;
    const bool ok = parse_branches(p, &branches);
    p->n_ifs--;
    *out = n;
    return ok && parser_seal_items(p, n, &branches);
}

/* The parameters of a macro or call block, such as (a, b=1). */
static bool parse_signature(struct parser *p, struct jnode *macro)
{
    struct jnodes params = {0};
    if (!parser_expect(p, T_LPAREN))
        return false;
    while (!parser_is(p, T_RPAREN)) {
        if (params.n && !parser_expect(p, T_COMMA))
            return false;
        struct jnode *const n = parser_node(p, N_PARAM, parser_tok(p));
        if (!n || !name_target(p, n) || !jvm_steps(p->vm, params.n / 8)) /* for the comparisons */
            return false;
        for (size_t i = 0; i < params.n; i++)
            if (params.items[i]->id == n->id)
                return parser_fail(p, parser_tok(p), "duplicate parameter");
        if (parser_skip(p, T_ASSIGN)) {
            if (!parse_expr(p, &n->a))
                return false;
        } else if (params.n && params.items[params.n - 1]->a) {
            return parser_fail(p, parser_tok(p), "non-default argument follows default argument");
        }
        if (!parser_seal(p, n) || !parser_push(p, &params, n))
            return false;
    }
    macro->other = params.items;
    macro->n_other = params.n;
    return parser_expect(p, T_RPAREN);
}

/* As in jinja2, a parameter named kwargs or varargs is an ordinary one, and one named caller needs
 * a default if the body reads it. */
static bool check_special(struct parser *p, struct jnode *macro)
{
    const struct jtok at = {.place = macro->place};
    for (size_t i = 0; i < macro->n_other; i++) {
        const struct jnode *const param = macro->other[i];
        if (param->id == NAME_KWARGS)
            macro->op &= ~MACRO_KWARGS;
        if (param->id == NAME_VARARGS)
            macro->op &= ~MACRO_VARARGS;
        if (param->id == NAME_CALLER && (macro->op & MACRO_CALLER) && !param->a)
            return parser_fail(p, &at,
                               "the special \"caller\" argument must be omitted or have a default");
    }
    return true;
}

/* The body of a macro or call block is a function, so break cannot end a loop around it. */
static bool macro_body(struct parser *p, const char *end, struct jnode *macro)
{
    const size_t loops = p->n_loops, ifs = p->n_ifs;
    const int reads = p->macro_reads;
    p->n_loops = p->n_ifs = 0;
    p->macro_reads = 0;
    const bool ok = whole_body(p, end, macro);
    macro->op = p->macro_reads;
    p->macro_reads |= reads; /* reads in an inner macro count for the outer one too */
    p->n_loops = loops;
    p->n_ifs = ifs;
    return ok && check_special(p, macro) && parser_seal(p, macro);
}

static bool parse_macro(struct parser *p, struct jnode **out)
{
    struct jnode *const n = parser_node(p, N_MACRO, parser_next(p));
    *out = n;
    return n && name_target(p, n) && parse_signature(p, n) && macro_body(p, "endmacro", n);
}

static bool parse_call_block(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_next(p);
    struct jnode *const n = parser_node(p, N_CALLBLOCK, tok);
    struct jnode *const body = parser_node(p, N_MACRO, tok);
    if (!n || !body)
        return false;
    n->b = body;
    *out = n;
    if (parser_is(p, T_LPAREN) && !parse_signature(p, body))
        return false;
    if (!parse_expr(p, &n->a))
        return false;
    if (n->a->kind != N_CALL)
        return parser_fail(p, tok, "expected call");
    return parser_check_names(p) && macro_body(p, "endcall", body) && parser_seal(p, n);
}

static bool parse_filter_block(struct parser *p, struct jnode **out)
{
    struct jnode *const n = parser_node(p, N_FILTERBLOCK, parser_next(p));
    *out = n;
    return n && parse_filters(p, NULL, true, &n->b) && parser_check_names(p) &&
           scope_body(p, "endfilter", n);
}

static bool parse_with(struct parser *p, struct jnode **out)
{
    struct jnode *const n = parser_node(p, N_WITH, parser_next(p));
    struct jnodes pairs = {0};
    if (!n)
        return false;
    while (!parser_is(p, T_BLOCK_END)) {
        struct jnode *target, *value;
        if (pairs.n && !parser_expect(p, T_COMMA))
            return false;
        if (!parse_target(p, 0, NULL, &target) || !parser_expect(p, T_ASSIGN) ||
            !parse_expr(p, &value) || !parser_push(p, &pairs, target) ||
            !parser_push(p, &pairs, value))
            return false;
    }
    n->other = pairs.items;
    n->n_other = pairs.n;
    *out = n;
    return parser_check_names(p) && scope_body(p, "endwith", n);
}

/* {% generation %} of the transformers library encloses the text of an answer. It is a scope, and
 * break cannot end a loop around it. */
static bool parse_generation(struct parser *p, struct jnode **out)
{
    struct jnode *const n = parser_node(p, N_GENERATION, parser_next(p));
    const size_t loops = p->n_loops;
    *out = n;
    p->n_loops = 0;
    const bool ok = n && scope_body(p, "endgeneration", n);
    p->n_loops = loops;
    return ok;
}

static bool parse_jump(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_next(p);
    *out = parser_node(p, bn_str_is(tok->text, "break") ? N_BREAK : N_CONTINUE, tok);
    if (p->n_loops == 0)
        return parser_fail(p, tok, "'%.*s' outside of a loop", bn_str_shown(tok->text, 40),
                           tok->text.ptr);
    return *out && parser_seal(p, *out);
}

static bool parse_print(struct parser *p, struct jnode **out)
{
    struct jnode *const n = parser_node(p, N_BRANCH, parser_next(p));
    struct jnodes items = {0};
    if (!n)
        return false;
    while (!parser_is(p, T_BLOCK_END)) {
        struct jnode *const item = parser_node(p, N_OUTPUT, parser_tok(p));
        if (items.n && !parser_expect(p, T_COMMA))
            return false;
        if (!item || !parse_expr(p, &item->a) || !parser_seal(p, item) ||
            !parser_push(p, &items, item))
            return false;
    }
    /* The outputs are the body of an if with one branch that has no condition. */
    struct jnodes branches = {0};
    struct jnode *const all = parser_node(p, N_IF, parser_tok(p));
    *out = all;
    return all && parser_seal_items(p, n, &items) && parser_push(p, &branches, n) &&
           parser_seal_items(p, all, &branches);
}

static const struct {
    const char *name;
    bool (*parse)(struct parser *p, struct jnode **out); /* NULL: unsupported tag */
} tags[] = {
    {"if", parse_if},           {"for", parse_for},
    {"set", parse_set},         {"macro", parse_macro},
    {"call", parse_call_block}, {"filter", parse_filter_block},
    {"with", parse_with},       {"generation", parse_generation},
    {"break", parse_jump},      {"continue", parse_jump},
    {"print", parse_print},     {"block", NULL},
    {"extends", NULL},          {"include", NULL},
    {"import", NULL},           {"from", NULL},
    {"autoescape", NULL},
};

static bool parse_statement(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_tok(p);
    if (tok->kind != T_NAME)
        return parser_fail(p, tok, "tag name expected");
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!bn_str_is(tok->text, tags[i].name))
            continue;
        if (tags[i].parse)
            return tags[i].parse(p, out);
        (void)parser_fail(p, tok, "the tag '%s' is not supported", tags[i].name);
        p->vm->err->code = BN_EUNSUPPORTED;
        return false;
    }
    return parser_fail(p, tok, "unknown tag '%.*s'", bn_str_shown(tok->text, 40), tok->text.ptr);
}

/* The current token is T_DATA or T_VAR_BEGIN: outside of tags the lexer makes no other tokens
 * except T_BLOCK_BEGIN and T_EOF. */
static bool parse_text_or_output(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_next(p);
    struct jnode *const n = parser_node(p, tok->kind == T_DATA ? N_DATA : N_OUTPUT, tok);
    if (!n)
        return false;
    *out = n;
    if (tok->kind == T_DATA) {
        n->val = tok->val;
        return true;
    }
    return parse_tuple(p, 0, NULL, &n->a) && parser_check_names(p) && parser_expect(p, T_VAR_END) &&
           parser_seal(p, n);
}

static bool parse_body(struct parser *p, const char *const *ends, struct jnode *node)
{
    struct jnodes body = {0};
    while (!parser_is(p, T_EOF)) {
        struct jnode *n = NULL;
        if (parser_skip(p, T_BLOCK_BEGIN)) {
            if (end_of_body(p, ends))
                break;
            if (!parse_statement(p, &n) || !parser_check_names(p) || !parser_expect(p, T_BLOCK_END))
                return false;
        } else if (!parse_text_or_output(p, &n)) {
            return false;
        }
        if (!parser_push(p, &body, n))
            return false;
    }
    node->items = body.items;
    node->n_items = body.n;
    return true;
}

bool jinja_parse(struct jvm *vm, struct bn_str source, struct jprogram *out)
{
    static const char *const fixed[NAME_FIXED] = {
        [NAME_LOOP] = "loop",
        [NAME_CALLER] = "caller",
        [NAME_KWARGS] = "kwargs",
        [NAME_VARARGS] = "varargs",
    };
    struct jprogram program = {0};
    struct parser p = {.vm = vm, .program = &program};
    struct jnode top = {.kind = N_BRANCH};
    if (!text_valid(source))
        return bn_fail(vm->err, BN_EFORMAT, "template: the text is not UTF-8");
    if (!jinja_lex(vm, source, &p.toks))
        return false;
    p.toks.items[p.toks.n - 1].text = bn_str_of("end of template"); /* for error messages */
    for (size_t i = 0; i < NAME_FIXED; i++) {
        struct jnode name = {.kind = N_NAME};
        if (!parser_name(&p, bn_str_of(fixed[i]), &name))
            return false;
    }
    if (!parse_body(&p, NULL, &top))
        return false;
    program.body = top.items;
    program.n_body = top.n_items;
    if (!jinja_hide_names(vm, &program))
        return false;
    *out = program;
    return true;
}
