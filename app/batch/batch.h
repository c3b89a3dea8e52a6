/*
 * --batch: each line of stdin is a prompt of its own; several are decoded together, and the answers
 * come in the order of the lines. What a line answers depends on no other line and not on how many
 * are decoded together.
 *
 * The engine runs on the calling thread, which also hears the signals: there is no painter.
 */
#ifndef APP_BATCH_H
#define APP_BATCH_H

#include "app/chat/open_model.h"
#include "app/common/report.h"
#include "app/options/options.h"

/* Answer the lines of stdin. Errors are printed to stderr. Returns the code of the first line that
 * failed, else EXIT_DONE. */
enum exit_code batch_run(const struct options *options, const struct open_model *model);

#endif
