/*
 * String and number literals of a template, as Python reads them.
 */
#ifndef TEMPLATES_JINJA_LITERAL_H
#define TEMPLATES_JINJA_LITERAL_H

#include "templates/jinja/value/jinja_value.h"

/* `inside`: between the quotes. False: out of memory, or *problem says what is wrong with it. */
bool literal_string(struct jvm *vm, struct bn_str inside, struct jval *out, const char **problem);

/* Bytes of the number at the start of `text`, which starts with a digit. `out` stays J_NONE if it
 * is an integer that does not fit 64 bits. After a dot there is no fraction: x.1.2 takes two
 * elements. */
size_t literal_number(struct bn_str text, bool after_dot, struct jval *out);

#endif
