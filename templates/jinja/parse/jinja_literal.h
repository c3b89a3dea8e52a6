/*
 * String and number literals of a template, with the syntax of Python.
 */
#ifndef TEMPLATES_JINJA_LITERAL_H
#define TEMPLATES_JINJA_LITERAL_H

#include "templates/jinja/value/jinja_value.h"

/* `inside`: the text between the quotes. False: *problem is an error message, or NULL if memory
 * ran out. */
bool literal_string(struct jvm *vm, struct bn_str inside, struct jval *out, const char **problem);

/* Reads the number at the start of `text`, which starts with a digit. Returns the number of its
 * bytes. *out is J_NONE if an integer does not fit 64 bits. after_dot: read no fraction, because
 * x.1.2 selects two elements. */
size_t literal_number(struct bn_str text, bool after_dot, struct jval *out);

#endif
