/*
 * What the two halves of the parser share: the token stream and making nodes. Private to
 * jinja_parse_expr.c, jinja_parse_operand.c and jinja_parse.c.
 */
#ifndef TEMPLATES_JINJA_PARSER_H
#define TEMPLATES_JINJA_PARSER_H

#include "templates/jinja/parse/jinja_ast.h"
#include "templates/jinja/parse/jinja_lex.h"

#define PARSE_MAX_DEPTH 120 /* nested brackets and blocks; jinja2 itself ends near 90 brackets */
#define TREE_MAX_DEPTH 400  /* of the whole tree: long chains of + lean to the left */

struct parser {
    struct jvm *vm;
    struct jtoks toks;
    size_t at;
    size_t depth;
    size_t n_loops; /* loops around this statement, inside of the innermost macro */
    size_t n_soft;  /* if blocks and inline ifs around: unknown filters wait until they run */
    const struct jtok *unknown; /* name of an unknown filter or test outside of those, or NULL */
    int macro_reads;            /* MACRO_ flags of the names read since the innermost macro began */
    struct jprogram *program;
    size_t cap_names;
};

struct jnodes {
    struct jnode **items;
    size_t n, cap;
};

struct jtok *parser_tok(struct parser *p);
bool parser_is(struct parser *p, enum jtok_kind kind);
bool parser_is_name(struct parser *p, const char *name);
struct jtok *parser_next(struct parser *p); /* the current token; then on to the next one */
bool parser_skip(struct parser *p, enum jtok_kind kind);
bool parser_skip_name(struct parser *p, const char *name);
bool parser_expect(struct parser *p, enum jtok_kind kind);
bool parser_expect_name(struct parser *p, const char *name);
bool parser_fail(struct parser *p, const struct jtok *tok, const char *fmt, ...) BN_PRINTF(3, 4);
bool parser_known(struct parser *p); /* fails if there is an unknown filter or test */
static inline size_t size_of_text(const struct jtok *tok) /* what a message quotes of it */
{
    return tok->text.n_bytes < 40 ? tok->text.n_bytes : 40;
}
bool parser_enter(struct parser *p);
void parser_leave(struct parser *p);

struct jnode *parser_node(struct parser *p, enum jnode_kind kind,
                          const struct jtok *tok); /* or NULL */
bool parser_push(struct parser *p, struct jnodes *list, struct jnode *node);
bool parser_seal(struct parser *p, struct jnode *node); /* fields are set: measure its depth */
bool parser_name(struct parser *p, struct bn_str text, struct jnode *node); /* sets id and name */

/* A node of two operands, sealed; NULL on failure. */
struct jnode *parser_pair(struct parser *p, enum jnode_kind kind, const struct jtok *tok,
                          struct jnode *const ab[2]);

bool parse_expr(struct parser *p, struct jnode **out);
bool parse_expr_no_cond(struct parser *p, struct jnode **out);
enum tuple_flags { TUPLE_SIMPLE = 1, TUPLE_NO_COND = 2, TUPLE_PARENS = 4, TUPLE_SPACE = 8 };
/* `end_name`: a name that ends the tuple, or NULL. */
bool parse_tuple(struct parser *p, int flags, const char *end_name, struct jnode **out);
bool parse_unary(struct parser *p, bool with_filter, struct jnode **out);
bool parse_primary(struct parser *p, bool with_space, struct jnode **out);
bool parse_postfix(struct parser *p, struct jnode **node);
bool parse_call(struct parser *p, struct jnode *callee, struct jnode **out);
bool parse_arguments(struct parser *p, struct jnode *call);
bool parse_filters(struct parser *p, struct jnode *operand, bool start_inline, struct jnode **out);
bool parse_target(struct parser *p, int flags, const char *end_name, struct jnode **out);

/* Statements up to one of the end tags (a name each, NULL ends), which is left current. With no end
 * tags up to the end of the template. */
bool parse_body(struct parser *p, const char *const *ends, struct jnode *node);

/* The last step: fill in all `hidden`. */
bool jinja_hide_names(struct jvm *vm, struct jprogram *program);

#endif
