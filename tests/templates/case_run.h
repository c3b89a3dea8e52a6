/*
 * Renders one case: what the differential test and the recorded cases share.
 *
 * In: {"template": text, "messages": [...], "args": {...}, "generation": bool, "now": seconds,
 * "choice": name, "model_template": text, "bos_token": text, "eos_token": text}, all but one of the
 * templates optional. Out: {"text", "segments": [[kind, message, text] ...], "thought"}, or
 * {"error": sentence, "code": number}; a new reference. Knows nothing of what is right.
 */
#ifndef TESTS_TEMPLATES_CASE_RUN_H
#define TESTS_TEMPLATES_CASE_RUN_H

#include <jansson.h>

json_t *case_run(json_t *in);

#endif
