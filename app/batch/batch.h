/*
 * --batch: each line of stdin that is not blank is an independent prompt, or a JSON object with one
 * (batch_item.h). Several prompts are decoded together, and the answers are written in the order of
 * the lines. An answer does not depend on other lines or on the number of lines decoded together.
 *
 * The engine runs on the calling thread, which also handles signals. There is no painter.
 */
#ifndef APP_BATCH_H
#define APP_BATCH_H

#include "app/chat/open_model.h"
#include "app/common/report.h"
#include "app/options/options.h"

/* Load the weights and answer the lines of stdin. Call it once: it opens the wake pipe (signals.h).
 * Errors are printed to stderr. Returns the code of the error or signal that ended the batch, else
 * that of the first line that failed. Without failures EXIT_DONE, or EXIT_USAGE if stdin is empty
 * or all lines are blank. */
enum exit_code batch_run(const struct options *options, const struct open_model *model);

#endif
