/*
 * The lines of --log about the model and the answers, for a chat and for a batch. Without an open
 * log these functions do nothing.
 */
#ifndef APP_CHAT_LOG_H
#define APP_CHAT_LOG_H

#include "app/chat/turn_report.h"
#include "app/common/check/sense_check.h"
#include "app/common/log_file.h"

/* The model is loaded: write its name and format, the device and the time, then the engine's notes
 * about the weights. `name` is the model's name, safe for a terminal; n_ctx is the context in
 * tokens. */
void chat_log_loaded(struct log_file *log, const char *name, const struct bn_model_info *info,
                     size_t n_ctx, const struct bn_notes *notes);
/* An answer has ended: write how, and its statistics. `space->columns` should be SIZE_MAX, so that
 * no field is left out. */
void chat_log_answer(struct log_file *log, const struct turn *turn, const struct turn_space *space);
/* The sense check has ended after `seconds`: write its result, or `err` if the check has failed
 * (then its code is not 0). */
void chat_log_check(struct log_file *log, const struct sense_result *result, double seconds,
                    const struct bn_error *err);

#endif
