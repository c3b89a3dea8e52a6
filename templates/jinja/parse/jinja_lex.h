/*
 * Converts template text to tokens as jinja2 does with trim_blocks (the newline after a block tag
 * or comment is removed, but not after {% raw %}) and lstrip_blocks (white space between the start
 * of a line and a block tag or comment is removed). A '+' in a tag switches these off on its side.
 */
#ifndef TEMPLATES_JINJA_LEX_H
#define TEMPLATES_JINJA_LEX_H

#include "templates/jinja/value/jinja_vm.h"

enum jtok_kind {
    T_EOF,
    T_DATA,        /* val: text between tags */
    T_BLOCK_BEGIN, /* {% */
    T_BLOCK_END,
    T_VAR_BEGIN, /* {{ */
    T_VAR_END,
    T_NAME,   /* text */
    T_STRING, /* val */
    T_INTEGER,
    T_FLOAT,
    T_ADD,
    T_SUB,
    T_MUL,
    T_DIV,
    T_FLOORDIV,
    T_MOD,
    T_POW,
    T_TILDE,
    T_LBRACKET,
    T_RBRACKET,
    T_LPAREN,
    T_RPAREN,
    T_LBRACE,
    T_RBRACE,
    T_EQ,
    T_NE,
    T_LT,
    T_LE,
    T_GT,
    T_GE,
    T_ASSIGN,
    T_DOT,
    T_COLON,
    T_PIPE,
    T_COMMA,
    T_SEMICOLON,
};

struct jtok {
    enum jtok_kind kind;
    struct jplace place;
    struct bn_str text; /* in the source, of which the lexer keeps a copy in the arena */
    struct jval val;    /* DATA, STRING, INTEGER, FLOAT */
};

struct jtoks {
    struct jtok *items; /* (n), in the arena; the last is T_EOF */
    size_t n, cap;
};

/* `source` is valid UTF-8; it may be freed afterwards. BN_EFORMAT: a syntax error with line and
 * column, or the source is too long or exceeds a bound of `vm`. BN_ENOMEM. */
bool jinja_lex(struct jvm *vm, struct bn_str source, struct jtoks *out);

/* ---- literals, for the lexer ---- */

/* `inside`: the text between the quotes. False: *problem is an error message, or NULL if vm->err
 * has one (memory, limits). */
bool literal_string(struct jvm *vm, struct bn_str inside, struct jval *out, const char **problem);

/* Reads the number at the start of `text`, which starts with a digit. Returns the number of its
 * bytes. *out is J_NONE if an integer does not fit 64 bits. after_dot: read no fraction and no
 * exponent, because x.1.2 selects two elements. */
size_t literal_number(struct bn_str text, bool after_dot, struct jval *out);

#endif
