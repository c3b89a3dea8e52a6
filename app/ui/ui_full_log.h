/*
 * Keeps standard error off the screen: after error_log_redirect, everything written to it goes into
 * a pipe and is returned by error_log_read.
 */
#ifndef APP_UI_FULL_LOG_H
#define APP_UI_FULL_LOG_H

#include "app/common/strbuf.h"

struct error_log {
    int fd;    /* read end of the pipe; 0: not redirected */
    int saved; /* the real standard error */
    struct strbuf bytes;
};

/* If no pipe can be created, nothing is redirected; the user can repaint the screen with Ctrl-L. */
void error_log_redirect(struct error_log *log);
void error_log_restore(struct error_log *log);
/* Append the complete lines that were written; with LOG_ALL, also an incomplete one. Bell
 * characters are removed. Returns their number. */
enum error_log_lines { LOG_WHOLE, LOG_ALL };
size_t error_log_read(struct error_log *log, enum error_log_lines lines, struct strbuf *out);

#endif
