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
    double opened; /* clock_seconds when the log was opened */
};

/* Open for appending. A new file has mode 0600. BN_EIO. */
bool log_file_open(struct log_file *log, const char *path, struct bn_error *err);
void log_file_close(struct log_file *log); /* does nothing without a log */
/* Write `text` as a line. Does nothing without a log. */
void log_file_line(struct log_file *log, const char *text);
/* A value for bn_model_config.log, which passes the engine's messages to this log. The log must
 * outlive the model. Without a log the messages are dropped, so open the log first. */
struct bn_log log_file_sink(struct log_file *log);

#endif
