/*
 * Values as text, as Python's str() and repr() write them. str() of an undefined value is empty, as
 * in jinja2. The functions return false, with the message written, if memory or a limit of the
 * interpreter is exceeded. The text of `loop` shows the number of its items, so it may be necessary
 * to read the rest of them, and an error there is reported too.
 */
#ifndef TEMPLATES_JINJA_PRINT_H
#define TEMPLATES_JINJA_PRINT_H

#include "templates/jinja/value/jinja_text.h"

bool print_str(struct jbuf *b, struct jval v);  /* append str(v) */
bool print_repr(struct jbuf *b, struct jval v); /* append repr(v) */
/* Append ascii(v): repr(v) with escapes instead of characters that are not ASCII. */
bool print_ascii(struct jbuf *b, struct jval v);
/* str(v); a string is returned unchanged. */
bool jval_to_str(struct jvm *vm, struct jval v, struct jval *out);

#endif
