/*
 * Values as text: Python's str() and repr().
 */
#ifndef TEMPLATES_JINJA_PRINT_H
#define TEMPLATES_JINJA_PRINT_H

#include "templates/jinja/value/jinja_text.h"

bool print_str(struct jbuf *b, struct jval v);  /* str(v) */
bool print_repr(struct jbuf *b, struct jval v); /* repr(v) */
/* str(v); a string is returned unchanged. */
bool jval_to_str(struct jvm *vm, struct jval v, struct jval *out);

#endif
