/*
 * Describes the open model: lines or a JSON object for /info and --info, and the kernels and
 * threads of a forward pass for --explain. Main thread only.
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
/* The reason for a context of n_ctx tokens, followed by "; " because other text follows in the same
 * parentheses. "" if n_ctx is the context of training, or is not the default. Static text. */
const char *model_sheet_ctx_limit(const struct bn_model_info *info, size_t n_ctx);
/* Appends the lines of /info, without a newline at the end. While the model loads, the facts of
 * worker_info are missing. */
void model_sheet_lines(const struct open_model *m, const struct worker *w, const struct options *o,
                       struct strbuf *out);
/* Appends kernels and threads of two passes: n_ubatch tokens of a prompt, one token of an answer.
 * The model must be loaded, and the worker must run no job and no check. */
void model_sheet_explain(const struct worker *w, struct strbuf *out);
/* Facts about the model as one object: most of those of model_sheet_lines, and a few more. The
 * model must be loaded. The caller owns the object. NULL: out of memory. */
json_t *model_sheet_json(const struct open_model *m, const struct worker *w,
                         const struct options *o);

#endif
