/*
 * Operands of expressions: names, literals and brackets; after them calls, attributes, subscripts,
 * filters and tests; before them signs.
 */
#include "templates/jinja/parse/jinja_parser.h"
#include "templates/jinja/value/jinja_ops.h"

static bool parse_list(struct parser *p, struct jnode **out)
{
    struct jnodes items = {0};
    struct jnode *const n = parser_node(p, N_LIST, parser_next(p));
    if (!n)
        return false;
    while (!parser_is(p, T_RBRACKET)) {
        struct jnode *item;
        if (items.n && !parser_expect(p, T_COMMA))
            return false;
        if (parser_is(p, T_RBRACKET))
            break;
        if (!parse_expr(p, &item) || !parser_push(p, &items, item))
            return false;
    }
    *out = n;
    return parser_expect(p, T_RBRACKET) && parser_seal_items(p, n, &items);
}

static bool parse_dict(struct parser *p, struct jnode **out)
{
    struct jnodes items = {0};
    struct jnode *const n = parser_node(p, N_DICT, parser_next(p));
    if (!n)
        return false;
    while (!parser_is(p, T_RBRACE)) {
        struct jnode *key, *val;
        if (items.n && !parser_expect(p, T_COMMA))
            return false;
        if (parser_is(p, T_RBRACE))
            break;
        if (!parse_expr(p, &key) || !parser_expect(p, T_COLON) || !parse_expr(p, &val) ||
            !parser_push(p, &items, key) || !parser_push(p, &items, val))
            return false;
    }
    *out = n;
    return parser_expect(p, T_RBRACE) && parser_seal_items(p, n, &items);
}

static bool parse_string(struct parser *p, struct jnode **out)
{
    struct jnode *const n = parser_node(p, N_CONST, parser_tok(p));
    if (!n)
        return false;
    n->val = parser_next(p)->val;
    if (parser_is(p, T_STRING)) { /* adjacent strings are one string */
        struct jbuf b = {.vm = p->vm};
        if (!jbuf_str(&b, n->val.u.s))
            return false;
        while (parser_is(p, T_STRING))
            if (!jbuf_str(&b, parser_next(p)->val.u.s))
                return false;
        if (!jbuf_done(&b, &n->val))
            return false;
        jstr_chars(n->val.u.s); /* caches the count: the tree is read-only later */
    }
    *out = n;
    return parser_seal(p, n);
}

static bool parse_const(struct parser *p, struct jval v, struct jnode **out)
{
    struct jnode *const n = parser_node(p, N_CONST, parser_next(p));
    if (!n)
        return false;
    n->val = v;
    *out = n;
    return parser_seal(p, n);
}

static bool parse_name(struct parser *p, bool with_namespace, struct jnode **out)
{
    struct jtok *const tok = parser_tok(p);
    if (bn_str_is(tok->text, "true") || bn_str_is(tok->text, "True"))
        return parse_const(p, jbool(true), out);
    if (bn_str_is(tok->text, "false") || bn_str_is(tok->text, "False"))
        return parse_const(p, jbool(false), out);
    if (bn_str_is(tok->text, "none") || bn_str_is(tok->text, "None"))
        return parse_const(p, jnone(), out);
    struct jnode *const n = parser_node(p, N_NAME, parser_next(p));
    if (!n || !parser_name(p, tok->text, n))
        return false;
    if (with_namespace && parser_skip(p, T_DOT)) {
        n->kind = N_NSREF;
        const struct jtok *const attr = parser_tok(p);
        if (!parser_expect(p, T_NAME) || !parser_string(p, attr->text, &n->val))
            return false;
    }
    if (n->id >= NAME_CALLER && n->id <= NAME_VARARGS)
        p->macro_reads |= n->id == NAME_CALLER   ? MACRO_CALLER
                          : n->id == NAME_KWARGS ? MACRO_KWARGS
                                                 : MACRO_VARARGS;
    *out = n;
    return parser_seal(p, n);
}

bool parse_primary(struct parser *p, bool with_namespace, struct jnode **out)
{
    const struct jtok *const tok = parser_tok(p);
    bool ok;
    if (!parser_enter(p))
        return false;
    switch (tok->kind) {
    case T_NAME:
        ok = parse_name(p, with_namespace, out);
        break;
    case T_STRING:
        ok = parse_string(p, out);
        break;
    case T_INTEGER:
    case T_FLOAT:
        ok = parse_const(p, tok->val, out);
        break;
    case T_LPAREN:
        parser_next(p);
        ok = parse_tuple(p, TUPLE_PARENS, NULL, out) && parser_expect(p, T_RPAREN);
        break;
    case T_LBRACKET:
        ok = parse_list(p, out);
        break;
    case T_LBRACE:
        ok = parse_dict(p, out);
        break;
    default:
        ok = parser_fail(p, tok, "unexpected '%.*s'", bn_str_shown(tok->text, 40), tok->text.ptr);
    }
    parser_leave(p);
    return ok;
}

static bool fail_order(struct parser *p, const struct jtok *tok)
{
    return parser_fail(p, tok, "invalid syntax for function call expression");
}

/* An argument of a call: *x, **x, name=x or x. lists: positional and keyword arguments. */
static bool parse_argument(struct parser *p, struct jnode *call, struct jnodes lists[2])
{
    const struct jtok *const tok = parser_tok(p);
    const bool is_keyword = /* a token follows each name, because the last token is T_EOF */
        p->toks.items[p->at].kind == T_NAME && p->toks.items[p->at + 1].kind == T_ASSIGN;
    struct jnode *value;
    if (parser_skip(p, T_MUL))
        return call->star || call->star2 ? fail_order(p, tok) : parse_expr(p, &call->star);
    if (parser_skip(p, T_POW))
        return call->star2 ? fail_order(p, tok) : parse_expr(p, &call->star2);
    if (is_keyword && !call->star2) {
        struct jnode *const keyword = parser_node(p, N_KEYWORD, tok);
        p->at += 2;
        if (!keyword || !parser_string(p, tok->text, &keyword->val) ||
            !parse_expr(p, &keyword->a) || !parser_seal(p, keyword))
            return false;
        return parser_push(p, &lists[1], keyword);
    }
    if (call->star || call->star2 || lists[1].n > 0)
        return fail_order(p, tok);
    return parse_expr(p, &value) && parser_push(p, &lists[0], value);
}

static bool parse_arguments(struct parser *p, struct jnode *call)
{
    struct jnodes lists[2] = {{0}, {0}};
    bool first = true;
    if (!parser_expect(p, T_LPAREN))
        return false;
    for (; !parser_is(p, T_RPAREN); first = false) {
        if (!first && !parser_expect(p, T_COMMA))
            return false;
        if (parser_is(p, T_RPAREN))
            break;
        if (!parse_argument(p, call, lists))
            return false;
    }
    for (size_t i = 0; i < lists[1].n; i++) {
        if (!jvm_steps(p->vm, i / 8)) /* for the comparisons */
            return false;
        for (size_t k = 0; k < i; k++)
            if (jstr_equal(lists[1].items[i]->val.u.s, lists[1].items[k]->val.u.s))
                return parser_fail(p, parser_tok(p), "keyword argument repeated");
    }
    call->items = lists[0].items;
    call->n_items = lists[0].n;
    call->other = lists[1].items;
    call->n_other = lists[1].n;
    return parser_expect(p, T_RPAREN);
}

static bool parse_call(struct parser *p, struct jnode *callee, struct jnode **out)
{
    struct jnode *const n = parser_node(p, N_CALL, parser_tok(p));
    if (!n || !parse_arguments(p, n))
        return false;
    n->a = callee;
    *out = n;
    return parser_seal(p, n);
}

static bool parse_slice_bound(struct parser *p, struct jnode **out)
{
    if (parser_is(p, T_COLON) || parser_is(p, T_RBRACKET) || parser_is(p, T_COMMA))
        return true;
    return parse_expr(p, out);
}

static bool parse_subscript_item(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_tok(p);
    struct jnode *first = NULL;
    if (!parser_is(p, T_COLON)) {
        if (!parse_expr(p, &first))
            return false;
        if (!parser_is(p, T_COLON)) {
            *out = first;
            return true;
        }
    }
    parser_next(p);
    struct jnode *const n = parser_node(p, N_SLICE, tok);
    if (!n)
        return false;
    n->a = first;
    if (!parse_slice_bound(p, &n->b))
        return false;
    if (parser_skip(p, T_COLON) && !parse_slice_bound(p, &n->c))
        return false;
    *out = n;
    return parser_seal(p, n);
}

static bool parse_bracket(struct parser *p, const struct jtok *tok, struct jnode *operand,
                          struct jnode **out)
{
    struct jnodes items = {0};
    while (!parser_is(p, T_RBRACKET)) {
        struct jnode *item;
        if (items.n && !parser_expect(p, T_COMMA))
            return false;
        if (!parse_subscript_item(p, &item) || !parser_push(p, &items, item))
            return false;
    }
    parser_next(p);
    struct jnode *arg = items.n == 1 ? items.items[0] : NULL;
    if (!arg) {
        arg = parser_node(p, N_TUPLE, tok);
        if (!arg)
            return false;
        for (size_t i = 0; i < items.n; i++)
            if (items.items[i]->kind == N_SLICE)
                return parser_fail(p, tok, "a slice among several subscripts");
        if (!parser_seal_items(p, arg, &items))
            return false;
    }
    struct jnode *const ab[2] = {operand, arg};
    *out = parser_pair(p, N_GETITEM, tok, ab);
    return *out != NULL;
}

static bool parse_subscript(struct parser *p, struct jnode *operand, struct jnode **out)
{
    const struct jtok *const tok = parser_next(p);
    if (tok->kind == T_LBRACKET)
        return parse_bracket(p, tok, operand, out);
    const struct jtok *const attr = parser_next(p);
    if (attr->kind == T_INTEGER) {
        struct jnode *const index = parser_node(p, N_CONST, attr);
        if (!index)
            return false;
        index->val = attr->val;
        struct jnode *const ab[2] = {operand, index};
        *out = parser_seal(p, index) ? parser_pair(p, N_GETITEM, tok, ab) : NULL;
        return *out != NULL;
    }
    if (attr->kind != T_NAME)
        return parser_fail(p, attr, "expected name or number");
    struct jnode *const n = parser_node(p, N_GETATTR, tok);
    if (!n || !parser_string(p, attr->text, &n->val))
        return false;
    n->a = operand;
    *out = n;
    return parser_seal(p, n);
}

static bool parse_postfix(struct parser *p, struct jnode **node)
{
    for (;;) {
        bool ok;
        if (parser_is(p, T_DOT) || parser_is(p, T_LBRACKET))
            ok = parse_subscript(p, *node, node);
        else if (parser_is(p, T_LPAREN))
            ok = parse_call(p, *node, node);
        else
            return true;
        if (!ok)
            return false;
    }
}

/* ---- filters, tests and signs ---- */

/* The name of a filter or test: one or more names with dots between them. */
static bool parse_dotted(struct parser *p, struct jnode *n)
{
    const struct jtok *const first = parser_tok(p);
    if (!parser_expect(p, T_NAME))
        return false;
    struct bn_str text = first->text;
    while (parser_skip(p, T_DOT)) {
        const struct jtok *const more = parser_tok(p);
        if (!parser_expect(p, T_NAME))
            return false;
        text.n_bytes = (size_t)(more->text.ptr - text.ptr) + more->text.n_bytes;
    }
    struct jval v;
    if (!jstr_new(p->vm, text, ORIGIN_TEMPLATE, &v))
        return false;
    n->name = v.u.s;
    return true;
}

/* A filter of jinja2 that this interpreter does not have. */
static bool is_unsupported(struct bn_str name)
{
    static const char *const names[] = {"pprint",    "random",         "urlize", "wordwrap",
                                        "striptags", "filesizeformat", "xmlattr"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (bn_str_is(name, names[i]))
            return true;
    return false;
}

/* Find the built-in of a filter or test. As in jinja2, an unknown name is an error of parsing, but
 * inside an if it is an error only when the filter or test runs. */
static bool resolve(struct parser *p, const struct jtok *tok, struct jnode *n)
{
    const bool is_filter = n->kind == N_FILTER;
    const struct bn_str name = jstr_text(n->name);
    n->func = is_filter ? p->vm->ops->find_filter(name) : p->vm->ops->find_test(name);
    if (n->func)
        return true;
    if (is_filter && is_unsupported(name)) {
        (void)parser_fail(p, tok, "the filter '%.*s' is not supported", (int)name.n_bytes,
                          name.ptr);
        p->vm->err->code = BN_EUNSUPPORTED;
        return false;
    }
    if (p->n_ifs == 0 && !p->unknown)
        p->unknown = tok; /* parser_check_names reports it unless an inline if encloses it */
    return true;
}

bool parse_filters(struct parser *p, struct jnode *operand, bool start_inline, struct jnode **out)
{
    *out = operand;
    while (start_inline || parser_is(p, T_PIPE)) {
        if (!start_inline)
            parser_next(p);
        start_inline = false;
        const struct jtok *const tok = parser_tok(p);
        struct jnode *const n = parser_node(p, N_FILTER, tok);
        if (!n || !parse_dotted(p, n))
            return false;
        if (parser_is(p, T_LPAREN) && !parse_arguments(p, n))
            return false;
        n->a = *out;
        if (!resolve(p, tok, n) || !parser_seal(p, n))
            return false;
        *out = n;
    }
    return true;
}

/* As in jinja2: whether a test has an argument without parentheses, as in "is divisibleby 3". */
static bool starts_argument(struct parser *p)
{
    switch (parser_tok(p)->kind) {
    case T_NAME:
        return !parser_is_name(p, "else") && !parser_is_name(p, "or") && !parser_is_name(p, "and");
    case T_STRING:
    case T_INTEGER:
    case T_FLOAT:
    case T_LBRACKET:
    case T_LBRACE:
        return true;
    default:
        return false;
    }
}

static bool parse_test(struct parser *p, struct jnode **node)
{
    const struct jtok *const tok = parser_next(p);
    struct jnode *const n = parser_node(p, N_TEST, tok);
    const bool negated = parser_skip_name(p, "not");
    const struct jtok *const name = parser_tok(p);
    if (!n || !parse_dotted(p, n))
        return false;
    n->a = *node;
    if (parser_is(p, T_LPAREN)) {
        if (!parse_arguments(p, n))
            return false;
    } else if (starts_argument(p)) {
        struct jnodes args = {0};
        struct jnode *arg;
        if (parser_is_name(p, "is"))
            return parser_fail(p, tok, "You cannot chain multiple tests with is");
        if (!parse_primary(p, false, &arg) || !parse_postfix(p, &arg) ||
            !parser_push(p, &args, arg))
            return false;
        n->items = args.items;
        n->n_items = args.n;
    }
    if (!resolve(p, name, n) || !parser_seal(p, n))
        return false;
    struct jnode *const ab[2] = {n, NULL};
    *node = negated ? parser_pair(p, N_NOT, tok, ab) : n;
    return *node != NULL;
}

bool parse_unary(struct parser *p, bool with_filter, struct jnode **out)
{
    const struct jtok *const tok = parser_tok(p);
    bool ok;
    if (!parser_enter(p))
        return false;
    if (parser_is(p, T_SUB) || parser_is(p, T_ADD)) {
        struct jnode *ab[2] = {NULL, NULL};
        parser_next(p);
        ok = parse_unary(p, false, &ab[0]);
        *out = ok ? parser_pair(p, tok->kind == T_SUB ? N_NEG : N_POS, tok, ab) : NULL;
        ok = *out != NULL;
    } else {
        ok = parse_primary(p, false, out);
    }
    ok = ok && parse_postfix(p, out);
    while (ok && with_filter) {
        if (parser_is(p, T_PIPE))
            ok = parse_filters(p, *out, false, out);
        else if (parser_is_name(p, "is"))
            ok = parse_test(p, out);
        else if (parser_is(p, T_LPAREN))
            ok = parse_call(p, *out, out);
        else
            break;
    }
    parser_leave(p);
    return ok;
}
