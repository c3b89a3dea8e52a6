/*
 * Filters and tests after an operand, and the signs before it.
 */
#include "templates/jinja_call.h"
#include "templates/jinja_parser.h"
#include "templates/jinja_text.h"

/* name or name.name: what follows | and is. */
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

/* Find the built-in of a filter or test. Unknown to jinja2 too: an error now, or when it is reached
 * inside of an if, as there. Known there and not here: an error that says so. */
static bool resolve(struct parser *p, const struct jtok *tok, struct jnode *n)
{
    const bool is_filter = n->kind == N_FILTER;
    const struct bn_str name = jstr_text(n->name);
    n->func = is_filter ? builtin_filter(name) : builtin_test(name);
    if (n->func)
        return true;
    if (is_filter && builtin_is_unsupported(name)) {
        (void)parser_fail(p, tok, "the filter '%.*s' is not supported", (int)name.n_bytes,
                          name.ptr);
        p->vm->err->code = BN_EUNSUPPORTED;
        return false;
    }
    if (p->n_soft == 0 && !p->unknown)
        p->unknown = tok; /* parser_known complains, unless an inline if turns up around it */
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
    if (!resolve(p, tok, n) || !parser_seal(p, n))
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
