/*
 * The syntax tree, and the function that makes it from a template. Nodes live in the arena of the
 * template and do not change after parsing, so one tree serves any number of renderings.
 *
 * One struct serves all kinds. The comment of each kind lists the fields that it uses besides kind,
 * place and depth. "arguments" are items, other, star and star2. "scope" means that the body is a
 * scope of its own and uses hidden.
 */
#ifndef TEMPLATES_JINJA_AST_H
#define TEMPLATES_JINJA_AST_H

#include "templates/jinja/value/jinja_compare.h"

enum jnode_kind {
    /* expressions */
    N_CONST,   /* val */
    N_NAME,    /* id, name */
    N_LIST,    /* items */
    N_TUPLE,   /* items */
    N_DICT,    /* items: key, value, key, value ... */
    N_NOT,     /* a */
    N_NEG,     /* a */
    N_POS,     /* a */
    N_AND,     /* a, b */
    N_OR,      /* a, b */
    N_BINARY,  /* op: enum jop, a, b */
    N_CONCAT,  /* items */
    N_COMPARE, /* a, items: N_OPERAND */
    N_OPERAND, /* op: enum jop, a */
    N_COND,    /* a: test, b: then, c: else or NULL */
    N_GETATTR, /* a, val: the name */
    N_GETITEM, /* a, b: an expression or N_SLICE */
    N_SLICE,   /* a, b, c: start, stop, step, each may be NULL */
    N_CALL,    /* a: callee; arguments */
    N_FILTER,  /* a: operand, NULL: the text of a block (vm->piped); name, func; arguments */
    N_TEST,    /* a; name, func; arguments */
    N_KEYWORD, /* val: name, a: value */
    /* statements */
    N_DATA,        /* val: text */
    N_OUTPUT,      /* a */
    N_FOR,         /* a: target, b: iterable, c: filter or NULL, items: body, other: else; scope;
                      hidden_else */
    N_IF,          /* items: N_BRANCH */
    N_BRANCH,      /* a: test, items: body. a is NULL if the body always runs: {% else %}, and
                      {% print a, b %}, which becomes an N_IF with this one branch */
    N_SET,         /* a: target, b: value */
    N_SETBLOCK,    /* a: target, b: a chain of N_FILTER or NULL, items: body; scope */
    N_NSREF,       /* id, name, val: attribute; the target ns.x of {% set ns.x = 1 %} */
    N_MACRO,       /* id, name (NULL: call block), other: N_PARAM, items: body, op: MACRO_ flags;
                      scope */
    N_PARAM,       /* id, name, a: default or NULL */
    N_CALLBLOCK,   /* a: N_CALL, b: N_MACRO */
    N_FILTERBLOCK, /* b: a chain of N_FILTER, items: body; scope */
    N_WITH,        /* other: target, value, target, value ...; items: body; scope */
    N_GENERATION,  /* {% generation %}, the text of an answer: items: body; scope */
    N_BREAK,
    N_CONTINUE,
};

/* The body, or a macro inside it, reads these names. kwargs and varargs count only if no parameter
 * of the macro has the name. */
enum { MACRO_CALLER = 1, MACRO_KWARGS = 2, MACRO_VARARGS = 4 };

/* Names that a scope sets before it reads them and that no outer scope of the template reads or
 * sets. Names that only some branches of an if set do not count. Until the scope sets them they
 * are undefined, even if the caller of the template passes a variable of that name: a rule of
 * jinja2, see jinja_scope.c. */
struct jhidden {
    const uint32_t *ids; /* (n) */
    size_t n;
};

struct jnode {
    enum jnode_kind kind;
    int op; /* enum jop or MACRO_ flags: see the kinds */
    struct jplace place;
    uint32_t depth; /* levels of the tree below and including this node, at most TREE_MAX_DEPTH (see
                       jinja_parser.h); 1 without children. N_DATA has 0 */
    uint32_t id;    /* number of the name: its index in jprogram.names */
    struct jnode *a, *b, *c;
    struct jnode **items; /* (n_items); positional arguments of a call, filter or test */
    struct jnode **other; /* (n_other); N_KEYWORDs of a call, filter or test */
    size_t n_items, n_other;
    struct jstr *name;
    const struct jbuiltin *func; /* NULL: unknown filter or test inside an if: an error when it
                                    runs. Elsewhere the parser refuses it. */
    struct jval val;
    struct jhidden hidden, hidden_else; /* hidden_else: for the else of a loop */
    struct jnode *star, *star2; /* *args and **kwargs of a call, filter or test; may be NULL */
};

/* Names have numbers, so that scopes compare numbers. These numbers are the same in every program;
 * NAME_FIXED is how many there are. */
enum { NAME_LOOP, NAME_CALLER, NAME_KWARGS, NAME_VARARGS, NAME_FIXED };

/* A parsed template. */
struct jprogram {
    struct jnode **body; /* (n_body) */
    size_t n_body;
    struct jstr **names; /* (n_names) by number */
    size_t n_names;
    struct jhidden hidden; /* in the outermost scope */
};

/* Parse `source`. The result lives in the arena of `vm` and shares no bytes with `source`. vm->ops
 * must be set. Errors are written to vm->err.
 * BN_EUNSUPPORTED: a tag, a filter or a recursive loop of jinja2 that this interpreter lacks.
 * BN_EFORMAT: any other fault of the source, or a bound of `vm` is exceeded. BN_ENOMEM. */
bool jinja_parse(struct jvm *vm, struct bn_str source, struct jprogram *out);

#endif
