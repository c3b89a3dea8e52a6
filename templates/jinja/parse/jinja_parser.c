/*
 * The token stream of the parser, and making nodes.
 */
#include "templates/jinja/parse/jinja_parser.h"

#include "templates/jinja/value/jinja_text.h"

#include <stdarg.h>
#include <stdio.h>

struct jtok *parser_tok(struct parser *p)
{
    return &p->toks.items[p->at];
}

bool parser_is(struct parser *p, enum jtok_kind kind)
{
    return parser_tok(p)->kind == kind;
}

bool parser_is_name(struct parser *p, const char *name)
{
    return parser_is(p, T_NAME) && bn_str_is(parser_tok(p)->text, name);
}

struct jtok *parser_next(struct parser *p)
{
    struct jtok *const tok = parser_tok(p);
    if (tok->kind != T_EOF) /* never move past the last token */
        p->at++;
    return tok;
}

bool parser_skip(struct parser *p, enum jtok_kind kind)
{
    if (!parser_is(p, kind))
        return false;
    parser_next(p);
    return true;
}

bool parser_skip_name(struct parser *p, const char *name)
{
    if (!parser_is_name(p, name))
        return false;
    parser_next(p);
    return true;
}

static const char *const kind_names[] = {
    [T_EOF] = "end of template",
    [T_DATA] = "text",
    [T_BLOCK_BEGIN] = "{%",
    [T_BLOCK_END] = "%}",
    [T_VAR_BEGIN] = "{{",
    [T_VAR_END] = "}}",
    [T_NAME] = "name",
    [T_STRING] = "string",
    [T_INTEGER] = "integer",
    [T_FLOAT] = "float",
    [T_ADD] = "+",
    [T_SUB] = "-",
    [T_MUL] = "*",
    [T_DIV] = "/",
    [T_FLOORDIV] = "//",
    [T_MOD] = "%",
    [T_POW] = "**",
    [T_TILDE] = "~",
    [T_LBRACKET] = "[",
    [T_RBRACKET] = "]",
    [T_LPAREN] = "(",
    [T_RPAREN] = ")",
    [T_LBRACE] = "{",
    [T_RBRACE] = "}",
    [T_EQ] = "==",
    [T_NE] = "!=",
    [T_LT] = "<",
    [T_LE] = "<=",
    [T_GT] = ">",
    [T_GE] = ">=",
    [T_ASSIGN] = "=",
    [T_DOT] = ".",
    [T_COLON] = ":",
    [T_PIPE] = "|",
    [T_COMMA] = ",",
    [T_SEMICOLON] = ";",
};

static bool fail_expected(struct parser *p, const char *what)
{
    const struct jtok *const tok = parser_tok(p);
    return parser_fail(p, tok, "expected '%s', got '%.*s'", what, bn_str_shown(tok->text, 40),
                       tok->text.ptr);
}

bool parser_expect(struct parser *p, enum jtok_kind kind)
{
    return parser_skip(p, kind) || fail_expected(p, kind_names[kind]);
}

bool parser_expect_name(struct parser *p, const char *name)
{
    return parser_skip_name(p, name) || fail_expected(p, name);
}

bool parser_fail(struct parser *p, const struct jtok *tok, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap); /* cut if too long, see bn_fail */
    va_end(ap);
    p->vm->at = &tok->place;
    (void)jvm_fail(p->vm, "%s", text);
    p->vm->at = NULL;
    return false;
}

bool parser_check_names(struct parser *p)
{
    return !p->unknown || parser_fail(p, p->unknown, "No filter or test named '%.*s'",
                                      bn_str_shown(p->unknown->text, 40), p->unknown->text.ptr);
}

bool parser_enter(struct parser *p)
{
    if (++p->depth <= PARSE_MAX_DEPTH)
        return true;
    return parser_fail(p, parser_tok(p), "nested more than %d levels deep", PARSE_MAX_DEPTH);
}

void parser_leave(struct parser *p)
{
    p->depth--;
}

struct jnode *parser_node(struct parser *p, enum jnode_kind kind, const struct jtok *tok)
{
    struct jnode *const n = jvm_alloc(p->vm, 1, sizeof *n);
    if (n)
        *n = (struct jnode){.kind = kind, .place = tok->place};
    return n;
}

bool parser_push(struct parser *p, struct jnodes *list, struct jnode *node)
{
    if (!jvm_grow(p->vm, &list->items, list->n, &list->cap, list->n + 1, sizeof(struct jnode *)))
        return false;
    list->items[list->n++] = node;
    return true;
}

static uint32_t deeper(uint32_t depth, const struct jnode *child)
{
    return child && child->depth > depth ? child->depth : depth;
}

bool parser_seal(struct parser *p, struct jnode *node)
{
    uint32_t depth = deeper(deeper(deeper(0, node->a), node->b), node->c);
    depth = deeper(deeper(depth, node->star), node->star2);
    for (size_t i = 0; i < node->n_items; i++)
        depth = deeper(depth, node->items[i]);
    for (size_t i = 0; i < node->n_other; i++)
        depth = deeper(depth, node->other[i]);
    node->depth = depth + 1;
    if (node->depth <= TREE_MAX_DEPTH)
        return true;
    return parser_fail(p, parser_tok(p), "an expression with more than %d levels", TREE_MAX_DEPTH);
}

bool parser_seal_items(struct parser *p, struct jnode *node, const struct jnodes *list)
{
    node->items = list->items;
    node->n_items = list->n;
    return parser_seal(p, node);
}

struct jnode *parser_pair(struct parser *p, enum jnode_kind kind, const struct jtok *tok,
                          struct jnode *const ab[2])
{
    struct jnode *const n = parser_node(p, kind, tok);
    if (!n)
        return NULL;
    n->a = ab[0];
    n->b = ab[1];
    return parser_seal(p, n) ? n : NULL;
}

bool parser_string(struct parser *p, struct bn_str text, struct jval *out)
{
    if (!jstr_new(p->vm, text, ORIGIN_TEMPLATE, out))
        return false;
    jstr_chars(out->u.s); /* caches the count: the tree is read-only later */
    return true;
}

bool parser_name(struct parser *p, struct bn_str text, struct jnode *node)
{
    struct jprogram *const prog = p->program;
    struct jval v;
    size_t id = 0;
    while (id < prog->n_names && !bn_str_equal(jstr_text(prog->names[id]), text))
        id++;
    if (!jvm_steps(p->vm, id))
        return false;
    if (id == prog->n_names) {
        if (!parser_string(p, text, &v))
            return false;
        if (!jvm_grow(p->vm, &prog->names, id, &p->cap_names, id + 1, sizeof(struct jstr *)))
            return false;
        prog->names[prog->n_names++] = v.u.s;
    }
    node->id = (uint32_t)id;
    node->name = prog->names[id];
    return true;
}
