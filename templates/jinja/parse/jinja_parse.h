/*
 * Entry point of the parser.
 */
#ifndef TEMPLATES_JINJA_PARSE_H
#define TEMPLATES_JINJA_PARSE_H

#include "templates/jinja/parse/jinja_ast.h"

/* Parse `source`; the result lives in the arena of `vm`. BN_EFORMAT: a syntax error, invalid UTF-8
 * or a bound exceeded; BN_EUNSUPPORTED: jinja2 accepts the template, this interpreter does not. */
bool jinja_parse(struct jvm *vm, struct bn_str source, struct jprogram *out);

#endif
