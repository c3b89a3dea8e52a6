/*
 * Parsing a template.
 */
#ifndef TEMPLATES_JINJA_PARSE_H
#define TEMPLATES_JINJA_PARSE_H

#include "templates/jinja/parse/jinja_ast.h"

/* Parse `source` (valid UTF-8) into the arena of `vm`. BN_EFORMAT: not a template, or
 * beyond a bound, with line and column; BN_EUNSUPPORTED: jinja2 would run it, this interpreter
 * does not. */
bool jinja_parse(struct jvm *vm, struct bn_str source, struct jprogram *out);

#endif
