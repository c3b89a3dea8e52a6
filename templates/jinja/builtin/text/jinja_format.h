/*
 * Python's formatting: "..." % args, "...".format(args), and the field layout that both use.
 */
#ifndef TEMPLATES_JINJA_FORMAT_H
#define TEMPLATES_JINJA_FORMAT_H

#include "templates/jinja/value/jinja_ops.h"

/* text % args. text: J_STR. args: a J_TUPLE or J_DICT of arguments, or a single argument. The
 * result of both functions is markup if `text` is. */
bool format_percent(struct jvm *vm, struct jval text, struct jval args, struct jval *out);
/* text.format(args) */
bool format_method(struct jvm *vm, struct jval text, const struct jargs *args, struct jval *out);

/* The format of one field, as in Python's format specs. */
struct layout {
    uint32_t fill;  /* 0: not given, a space; always of ORIGIN_TEMPLATE */
    char align;     /* '<' '>' '^' '=' or 0: '<' for text, '>' for numbers */
    char sign;      /* '+' ' ' '-' or 0 */
    bool alternate; /* '#' */
    char group;     /* ',' '_' or 0 */
    size_t width;
    int precision; /* -1: not given */
    char type;     /* 0: not given */
};

/* Characters. format_percent and format_method reject a larger width; the functions below do not
 * check it. */
#define LAYOUT_MAX_WIDTH ((size_t)1 << 20)

/* Append the value. A number becomes text of ORIGIN_TEMPLATE. layout_float fails if the precision
 * exceeds NUMBER_MAX_PRECISION (jinja_number.h). */
bool layout_text(struct jbuf *b, const struct jstr *s,
                 const struct layout *how); /* uses fill, align, width, precision */
bool layout_int(struct jbuf *b, int64_t v, const struct layout *how); /* type: d b o x X n or 0 */
bool layout_float(struct jbuf *b, double v,
                  const struct layout *how); /* type: e E f F g G % n or 0 */

#endif
