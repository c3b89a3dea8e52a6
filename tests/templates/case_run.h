/*
 * Renders one test case: a recorded one, or one for the comparison with jinja2.
 *
 * In: {"template": text, "messages": [...], "args": {...}, "generation": bool, "now": Unix time,
 * "choice": name, "model_template": text, "bos_token": text, "eos_token": text}. All keys are
 * optional. Result, which the caller owns: {"text": text, "segments": [[kind, message index or -1,
 * text] ...], "thought": bool}, or {"error": sentence, "code": number}.
 */
#ifndef TESTS_TEMPLATES_CASE_RUN_H
#define TESTS_TEMPLATES_CASE_RUN_H

#include <jansson.h>

json_t *case_run(json_t *in);

#endif
