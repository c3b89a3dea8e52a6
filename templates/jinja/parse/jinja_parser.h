/*
 * Shared by the files of the parser: the token stream, making nodes, and parsing expressions.
 */
#ifndef TEMPLATES_JINJA_PARSER_H
#define TEMPLATES_JINJA_PARSER_H

#include "templates/jinja/parse/jinja_ast.h"
#include "templates/jinja/parse/jinja_lex.h"

/* Nested calls of the parser, which use the stack. A block, a sign or `not` is one level, an
 * argument or a subscript two, an operand in brackets three: up to 39 parentheses may be nested.
 * jinja2 fails near 90, with Python 3.11 near 70. */
#define PARSE_MAX_DEPTH 120
#define TREE_MAX_DEPTH 400 /* of the tree: a long chain of + is a deep tree */

struct parser {
    struct jvm *vm;
    struct jtoks toks;
    size_t at;      /* index of the current token */
    size_t depth;   /* see PARSE_MAX_DEPTH */
    size_t n_loops; /* loops around the statement, in the innermost macro or {% generation %} */
    size_t n_ifs;   /* ifs in the innermost scope, where unknown filters are no errors of parsing */
    const struct jtok *unknown; /* the first unknown filter or test outside of an if, or NULL */
    int macro_reads;            /* MACRO_ flags: names that the innermost macro reads, so far */
    struct jprogram *program;
    size_t cap_names; /* of program->names */
};

/* A growing list of nodes. */
struct jnodes {
    struct jnode **items;
    size_t n, cap;
};

/* ---- tokens ---- */

struct jtok *parser_tok(struct parser *p);  /* the current token */
struct jtok *parser_next(struct parser *p); /* the current token; then advances, not past T_EOF */
bool parser_is(struct parser *p, enum jtok_kind kind);
bool parser_is_name(struct parser *p, const char *name);
/* Advance if the current token is of this kind or name. If it is not, parser_expect writes an
 * error; parser_skip only returns false. */
bool parser_skip(struct parser *p, enum jtok_kind kind);
bool parser_skip_name(struct parser *p, const char *name);
bool parser_expect(struct parser *p, enum jtok_kind kind);
bool parser_expect_name(struct parser *p, const char *name);

/* BN_EFORMAT with the place of `tok`; always false. */
bool parser_fail(struct parser *p, const struct jtok *tok, const char *fmt, ...) BN_PRINTF(3, 4);
bool parser_check_names(struct parser *p); /* fails if `unknown` is set */
/* One level deeper; fails beyond PARSE_MAX_DEPTH. A failure ends the parsing, so it does not matter
 * whether parser_leave is called after it. */
bool parser_enter(struct parser *p);
void parser_leave(struct parser *p);

/* ---- nodes ---- */

/* NULL on failure. */
struct jnode *parser_node(struct parser *p, enum jnode_kind kind, const struct jtok *tok);
bool parser_push(struct parser *p, struct jnodes *list, struct jnode *node);
/* Move the list to the items of the node and seal it. */
bool parser_seal_items(struct parser *p, struct jnode *node, const struct jnodes *list);
/* Compute the depth of a node and check TREE_MAX_DEPTH. Call it when all children are set. */
bool parser_seal(struct parser *p, struct jnode *node);
/* Set id and name of the node; a new name shares `text`. */
bool parser_name(struct parser *p, struct bn_str text, struct jnode *node);
bool parser_string(struct parser *p, struct bn_str text, struct jval *out); /* shares `text` */
/* A sealed node with the operands a = ab[0] and b = ab[1], which may be NULL; NULL on failure. */
struct jnode *parser_pair(struct parser *p, enum jnode_kind kind, const struct jtok *tok,
                          struct jnode *const ab[2]);

/* ---- expressions ---- */

enum tuple_flags {
    TUPLE_SIMPLE = 1,    /* items are operands without operators */
    TUPLE_NO_COND = 2,   /* items are expressions without an inline if */
    TUPLE_PARENS = 4,    /* the tuple is in parentheses, so it may be empty */
    TUPLE_NAMESPACE = 8, /* an item may be ns.name, the target of {% set %} */
};

bool parse_expr(struct parser *p, struct jnode **out);
/* An expression, or a tuple; the caller reads the parentheses around it, if any. end_name: a name
 * that ends it, or NULL. */
bool parse_tuple(struct parser *p, int flags, const char *end_name, struct jnode **out);
/* An operand with its signs, calls, attributes and subscripts. with_filter: filters and tests may
 * follow. */
bool parse_unary(struct parser *p, bool with_filter, struct jnode **out);
/* A name, literal or expression in brackets. with_namespace: see TUPLE_NAMESPACE. */
bool parse_primary(struct parser *p, bool with_namespace, struct jnode **out);
/* The filters after `operand`, which is NULL in a block; *out is `operand` if there are none.
 * start_inline: the first filter follows without '|'. */
bool parse_filters(struct parser *p, struct jnode *operand, bool start_inline, struct jnode **out);

/* The last step: set `hidden` and `hidden_else` of the nodes that open a scope, and `hidden` of the
 * program. */
bool jinja_hide_names(struct jvm *vm, struct jprogram *program);

#endif
