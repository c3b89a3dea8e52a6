/*
 * Describes the open model: lines or a JSON object for /info and --info, and the kernels and
 * threads of a pass for --explain.
 */
#ifndef APP_MODEL_SHEET_H
#define APP_MODEL_SHEET_H

#include "app/chat/answer/worker.h"
#include "app/chat/open_model.h"
#include "app/common/strbuf.h"
#include "app/options/options.h"

#include <jansson.h>

/* Appends the ids of the repairs among the notes, such as "end-of-turn, pre-tokenizer", which
 * --no-repair accepts. */
void model_sheet_repairs(const struct bn_notes *notes, struct strbuf *out);
/* The reason for a context of n_ctx tokens, as the start of a list in parentheses; "" if it is the
 * trained one or was chosen with --ctx. */
const char *model_sheet_ctx_limit(const struct bn_model_info *info, size_t n_ctx);
/* Appends lines, without a newline at the end. While the model loads, only facts of its file. */
void model_sheet_lines(const struct open_model *m, const struct worker *w, const struct options *o,
                       struct strbuf *out);
/* Appends kernels and threads of two passes: n_ubatch tokens of a prompt, one token of an answer.
 * The model must be loaded and the worker idle. */
void model_sheet_explain(const struct worker *w, struct strbuf *out);
/* The model must be loaded. NULL: out of memory. */
json_t *model_sheet_json(const struct open_model *m, const struct worker *w,
                         const struct options *o);

#endif
