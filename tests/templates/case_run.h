/*
 * Renders one case, for the recorded cases and for the comparison with jinja2.
 *
 * In: {"template": text, "messages": [...], "args": {...}, "generation": bool, "now": seconds,
 * "choice": name, "model_template": text, "bos_token": text, "eos_token": text}. All keys are
 * optional. Out: {"text", "segments": [[kind, message, text] ...], "thought"}, or {"error":
 * sentence, "code": number}, as a new reference.
 */
#ifndef TESTS_TEMPLATES_CASE_RUN_H
#define TESTS_TEMPLATES_CASE_RUN_H

#include <jansson.h>

json_t *case_run(json_t *in);

#endif
