/*
 * Formats a log line and passes it to the callback.
 */
#include "engine/base/log.h"

#include <stdarg.h>
#include <stdio.h>

void bn_log(const struct bn_log *log, enum bn_log_level level, const char *fmt, ...)
{
    if (!log || !log->write)
        return;
    char line[400]; /* a longer line is cut after 399 bytes */
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    log->write(log->ud, level, line);
}
