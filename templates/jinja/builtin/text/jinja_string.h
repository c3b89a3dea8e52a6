/*
 * String operations for filters and methods. Characters keep their origin. Parts of a string and
 * padded strings stay markup; results of the other functions are never markup.
 */
#ifndef TEMPLATES_JINJA_STRING_H
#define TEMPLATES_JINJA_STRING_H

#include "templates/jinja/value/jinja_text.h"

enum string_case { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL, CASE_SWAP };

/* str.upper and so on. */
bool string_case(struct jvm *vm, struct jstr *s, enum string_case how, struct jval *out);
/* Append string_case of the bytes [b0, b1); the whole string is the context of a final sigma. */
bool string_case_into(struct jbuf *b, const struct jstr *s, size_t b0, size_t b1,
                      enum string_case how);

/* str.islower and str.isupper: at least one character of the class, and none of another case. */
bool string_is_one_case(struct jvm *vm, const struct jstr *s, unsigned uni_class, struct jval *out);

enum { STRIP_LEFT = 1, STRIP_RIGHT = 2 };
/* chars: J_STR, or J_NONE or J_MISSING for white space; fails for other kinds. */
bool string_strip(struct jvm *vm, struct jstr *s, struct jval chars, int sides, struct jval *out);
/* Replace pair[0] by pair[1], at most `count` times; a negative count means all. An empty pair[0]
 * matches before each character and at the end, as in Python. */
bool string_replace(struct jvm *vm, struct jstr *s, const struct jstr *const pair[2], int64_t count,
                    struct jval *out);
/* *out is a list of the parts. sep: J_STR, or J_NONE or J_MISSING to split at runs of white space.
 * Fails if sep is empty or of another kind. At most `max` cuts, from the left (split) or right
 * (rsplit); a negative max means all. */
bool string_split(struct jvm *vm, struct jstr *s, struct jval sep, int64_t max, struct jval *out);
bool string_rsplit(struct jvm *vm, struct jstr *s, struct jval sep, int64_t max, struct jval *out);
/* *out is a list of the lines, with their line ends if keep_ends. A line end at the end of the text
 * is not followed by an empty line. */
bool string_splitlines(struct jvm *vm, struct jstr *s, bool keep_ends, struct jval *out);
enum string_pad { PAD_LEFT, PAD_RIGHT, PAD_CENTER }; /* where the text is in the field */
/* width: in characters; s itself is the result if it is not shorter. The characters `fill` have the
 * origin ORIGIN_TEMPLATE. */
bool string_pad(struct jvm *vm, struct jstr *s, enum string_pad how, int64_t width, uint32_t fill,
                struct jval *out);
/* Join the items of seq. Fails if it is not iterable. convert: apply str() to each item; else an
 * item that is not a string is an error. */
bool string_join(struct jvm *vm, const struct jstr *sep, struct jval seq, bool convert,
                 struct jval *out);

#endif
