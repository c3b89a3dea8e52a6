/*
 * The file of --log: messages of the engine and the statistics of each answer. A line begins with
 * the seconds since the log was opened. The file contains no text of the conversation. Any thread
 * may write lines.
 */
#ifndef APP_LOG_FILE_H
#define APP_LOG_FILE_H

#include "engine/base/log.h"

#include <stdbool.h>
#include <stdio.h>

struct log_file { /* all zero: no log */
    FILE *f;
    double opened;       /* clock_seconds when the log was opened */
    int error;           /* errno of the first line that could not be written; or 0 */
    bool is_error_known; /* log_file_new_error has returned it */
};

/* Open for appending. A new file has mode 0600; missing directories are not created. BN_EIO; then
 * *log does not change. */
bool log_file_open(struct log_file *log, const char *path, struct bn_error *err);
/* Does nothing without a log. No other thread may use the log during the call. */
void log_file_close(struct log_file *log);
/* Write `text` as report_safe does, between the time and a newline. Does nothing without a log, and
 * after a write that failed. */
void log_file_line(struct log_file *log, const char *text);
/* The errno of the write that failed; 0 if none failed, and after the first call that returned the
 * errno. So a caller that asks often reports the error once. */
int log_file_new_error(struct log_file *log);
/* Format of a warning about a failed write; the arguments are the path of --log and the text of the
 * errno. */
#define LOG_NOTICE "cannot write the log '%s': %s; it ends here"
/* A value for bn_model_config.log, which passes the engine's messages to this log. The log must
 * outlive the model. Without a log the messages are dropped, so open the log first. */
struct bn_log log_file_sink(struct log_file *log);

#endif
