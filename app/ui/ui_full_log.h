/*
 * Standard error kept off the screen: while it is taken, what anyone writes there goes to a pipe
 * and comes out as lines.
 */
#ifndef APP_UI_FULL_LOG_H
#define APP_UI_FULL_LOG_H

#include "app/common/strbuf.h"

struct error_log {
    int fd;    /* read end; 0: not taken */
    int saved; /* the real standard error */
    struct strbuf bytes;
};

/* Where the system has no pipe left, nothing is taken: the screen is then repainted on Ctrl-L. */
void error_log_take(struct error_log *log);
void error_log_give_back(struct error_log *log);
/* Whole lines that have come, out of `bytes`; with LOG_ALL an unfinished one too. Bells are left
 * out and counted. */
enum error_log_lines { LOG_WHOLE, LOG_ALL };
size_t error_log_read(struct error_log *log, enum error_log_lines lines, struct strbuf *out);

#endif
