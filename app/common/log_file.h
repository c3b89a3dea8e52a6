/*
 * The file of --log: what the engine remarks and how long each answer took, a line each with the
 * seconds since the program began. Nothing of what is said gets into it. Lines may come from any
 * thread.
 */
#ifndef APP_LOG_FILE_H
#define APP_LOG_FILE_H

#include "engine/base/log.h"

#include <stdbool.h>
#include <stdio.h>

struct log_file { /* all zero: nobody asked for one */
    FILE *f;
    double opened; /* clock_seconds */
};

/* Appends to what is there; a new file is its owner's only. BN_EIO. */
bool log_file_open(struct log_file *log, const char *path, struct bn_error *err);
void log_file_close(struct log_file *log);
void log_file_line(struct log_file *log, const char *text);
/* A sink for the engine; the log must outlive its users. */
struct bn_log log_file_sink(struct log_file *log);

#endif
