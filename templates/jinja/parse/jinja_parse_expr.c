/*
 * Expressions by recursive descent. The precedence is that of jinja2. It differs from Python in
 * four ways: ~ is between + and *, filters and tests bind tighter than any binary operator, a sign
 * binds tighter than filters and **, and ** is left-associative. Operands are parsed in
 * jinja_parse_operand.c.
 */
#include "templates/jinja/parse/jinja_parser.h"

struct binary_op {
    enum jtok_kind tok;
    enum jop op;
};

/* Operators of one precedence. Each list ends with T_EOF, whose operator is not used. */
static const struct binary_op pow_ops[] = {{T_POW, OP_POW}, {T_EOF, OP_ADD}};
static const struct binary_op mul_ops[] = {
    {T_MUL, OP_MUL}, {T_DIV, OP_DIV}, {T_FLOORDIV, OP_FLOORDIV}, {T_MOD, OP_MOD}, {T_EOF, OP_ADD}};
static const struct binary_op add_ops[] = {{T_ADD, OP_ADD}, {T_SUB, OP_SUB}, {T_EOF, OP_ADD}};
static const struct binary_op compare_ops[] = {{T_EQ, OP_EQ},  {T_NE, OP_NE}, {T_LT, OP_LT},
                                               {T_LE, OP_LE},  {T_GT, OP_GT}, {T_GE, OP_GE},
                                               {T_EOF, OP_ADD}};

static const struct binary_op *find_op(struct parser *p, const struct binary_op *ops)
{
    for (; ops->tok != T_EOF; ops++)
        if (parser_is(p, ops->tok))
            return ops;
    return NULL;
}

typedef bool (*parse_fn)(struct parser *p, struct jnode **out);

/* Operands joined by left-associative operators. */
static bool parse_left(struct parser *p, const struct binary_op *ops, parse_fn operand,
                       struct jnode **out)
{
    const struct binary_op *op;
    if (!operand(p, out))
        return false;
    while ((op = find_op(p, ops))) {
        struct jnode *ab[2] = {*out, NULL};
        const struct jtok *const tok = parser_next(p);
        if (!operand(p, &ab[1]))
            return false;
        struct jnode *const n = parser_pair(p, N_BINARY, tok, ab);
        if (!n)
            return false;
        n->op = op->op;
        *out = n;
    }
    return true;
}

static bool parse_operand(struct parser *p, struct jnode **out)
{
    return parse_unary(p, true, out);
}

static bool parse_pow(struct parser *p, struct jnode **out)
{
    return parse_left(p, pow_ops, parse_operand, out);
}

static bool parse_mul(struct parser *p, struct jnode **out)
{
    return parse_left(p, mul_ops, parse_pow, out);
}

static bool parse_concat(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_tok(p);
    struct jnodes items = {0};
    if (!parse_mul(p, out))
        return false;
    if (!parser_is(p, T_TILDE))
        return true;
    struct jnode *const n = parser_node(p, N_CONCAT, tok);
    if (!n || !parser_push(p, &items, *out))
        return false;
    while (parser_skip(p, T_TILDE))
        if (!parse_mul(p, out) || !parser_push(p, &items, *out))
            return false;
    *out = n;
    return parser_seal_items(p, n, &items);
}

static bool parse_add(struct parser *p, struct jnode **out)
{
    return parse_left(p, add_ops, parse_concat, out);
}

static bool parse_compare(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_tok(p);
    struct jnodes operands = {0};
    if (!parse_add(p, out))
        return false;
    for (;;) {
        const struct binary_op *const op = find_op(p, compare_ops);
        const struct jtok *const at = parser_tok(p);
        enum jop kind = OP_IN;
        /* [p->at + 1] exists after a name, because the last token is T_EOF. */
        if (op) {
            parser_next(p);
            kind = op->op;
        } else if (parser_is_name(p, "not") && p->toks.items[p->at + 1].kind == T_NAME &&
                   bn_str_is(p->toks.items[p->at + 1].text, "in")) {
            p->at += 2;
            kind = OP_NOTIN;
        } else if (!parser_skip_name(p, "in")) {
            break;
        }
        struct jnode *const n = parser_node(p, N_OPERAND, at);
        if (!n || !parse_add(p, &n->a) || !parser_seal(p, n) || !parser_push(p, &operands, n))
            return false;
        n->op = kind;
    }
    if (operands.n == 0)
        return true;
    struct jnode *const n = parser_node(p, N_COMPARE, tok);
    if (!n)
        return false;
    n->a = *out;
    *out = n;
    return parser_seal_items(p, n, &operands);
}

static bool parse_not(struct parser *p, struct jnode **out)
{
    const struct jtok *const tok = parser_tok(p);
    if (!parser_skip_name(p, "not"))
        return parse_compare(p, out);
    struct jnode *ab[2] = {NULL, NULL};
    const bool ok = parser_enter(p) && parse_not(p, &ab[0]);
    parser_leave(p);
    *out = ok ? parser_pair(p, N_NOT, tok, ab) : NULL;
    return *out != NULL;
}

static bool parse_logic(struct parser *p, const char *word, parse_fn operand, struct jnode **out)
{
    const enum jnode_kind kind = word[0] == 'a' ? N_AND : N_OR;
    if (!operand(p, out))
        return false;
    for (;;) {
        const struct jtok *const tok = parser_tok(p);
        struct jnode *ab[2] = {*out, NULL};
        if (!parser_skip_name(p, word))
            return true;
        if (!operand(p, &ab[1]))
            return false;
        *out = parser_pair(p, kind, tok, ab);
        if (!*out)
            return false;
    }
}

static bool parse_and(struct parser *p, struct jnode **out)
{
    return parse_logic(p, "and", parse_not, out);
}

static bool parse_expr_no_cond(struct parser *p, struct jnode **out)
{
    return parse_logic(p, "or", parse_and, out);
}

/* As in jinja2, an unknown filter inside an inline if is an error only when it runs. */
static bool parse_cond(struct parser *p, struct jnode **out)
{
    const struct jtok *const unknown = p->unknown;
    if (!parse_expr_no_cond(p, out))
        return false;
    for (;;) {
        const struct jtok *const tok = parser_tok(p);
        if (!parser_skip_name(p, "if"))
            return true;
        struct jnode *const n = parser_node(p, N_COND, tok);
        if (!n)
            return false;
        n->b = *out;
        if (!parse_expr_no_cond(p, &n->a) ||
            (parser_skip_name(p, "else") && !parse_expr(p, &n->c)) || !parser_seal(p, n))
            return false;
        p->unknown = unknown;
        *out = n;
    }
}

bool parse_expr(struct parser *p, struct jnode **out)
{
    const bool ok = parser_enter(p) && parse_cond(p, out);
    parser_leave(p);
    return ok;
}

static bool tuple_ends(struct parser *p, const char *end_name)
{
    return parser_is(p, T_VAR_END) || parser_is(p, T_BLOCK_END) || parser_is(p, T_RPAREN) ||
           (end_name && parser_is_name(p, end_name));
}

bool parse_tuple(struct parser *p, int flags, const char *end_name, struct jnode **out)
{
    const struct jtok *const tok = parser_tok(p);
    struct jnodes items = {0};
    bool is_tuple = false;
    for (;;) {
        struct jnode *item;
        if (items.n && !parser_expect(p, T_COMMA))
            return false;
        if (tuple_ends(p, end_name))
            break;
        const bool ok = flags & TUPLE_SIMPLE    ? parse_primary(p, flags & TUPLE_NAMESPACE, &item)
                        : flags & TUPLE_NO_COND ? parse_expr_no_cond(p, &item)
                                                : parse_expr(p, &item);
        if (!ok || !parser_push(p, &items, item))
            return false;
        if (!parser_is(p, T_COMMA))
            break;
        is_tuple = true;
    }
    if (!is_tuple && items.n) {
        *out = items.items[0];
        return true;
    }
    if (!is_tuple && !(flags & TUPLE_PARENS))
        return parser_fail(p, tok, "Expected an expression, got '%.*s'",
                           bn_str_shown(tok->text, 40), tok->text.ptr);
    struct jnode *const n = parser_node(p, N_TUPLE, tok);
    if (!n)
        return false;
    *out = n;
    return parser_seal_items(p, n, &items);
}
