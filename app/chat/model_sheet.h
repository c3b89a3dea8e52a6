/*
 * What model runs, and how: for /info and --info, as lines or as one JSON object; what runs how,
 * for --explain.
 */
#ifndef APP_MODEL_SHEET_H
#define APP_MODEL_SHEET_H

#include "app/chat/answer/worker.h"
#include "app/chat/open_model.h"
#include "app/common/strbuf.h"

#include <jansson.h>

/* Lines without a newline at the end. While the model loads, what the file alone says. */
void model_sheet_lines(const struct open_model *m, const struct worker *w, struct strbuf *out);
/* What runs how, for a prompt and for one token of an answer; the model must be loaded and the
 * worker idle. */
void model_sheet_explain(const struct worker *w, struct strbuf *out);
/* The model must be loaded. NULL: out of memory. */
json_t *model_sheet_json(const struct open_model *m, const struct worker *w);

#endif
