/*
 * Log lines of the engine. A callback of the caller receives them, on the thread that called the
 * engine; the engine itself never prints.
 */
#ifndef ENGINE_BASE_LOG_H
#define ENGINE_BASE_LOG_H

#include "engine/base/error.h"

enum bn_log_level { BN_LOG_DEBUG, BN_LOG_INFO, BN_LOG_WARNING };

struct bn_log {
    void (*write)(void *ud, enum bn_log_level level, const char *line); /* NULL: silent */
    void *ud;
};

/* Pass one line, without newline, to log->write. The line is valid until log->write returns. It is
 * cut after 399 bytes, also inside a character of UTF-8. `log` may be NULL. */
void bn_log(const struct bn_log *log, enum bn_log_level level, const char *fmt, ...)
    BN_PRINTF(3, 4);

#endif
