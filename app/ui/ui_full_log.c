/*
 * Standard error redirected into a pipe: see ui_full_log.h. Both ends are non-blocking, because the
 * main thread would wait forever if it filled the pipe itself.
 */
#include "app/ui/ui_full_log.h"

#include <fcntl.h>
#include <unistd.h>

void error_log_redirect(struct error_log *log)
{
    int fds[2];
    if (log->fd > 0 || pipe(fds) != 0)
        return;
    log->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    if (log->saved < 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(fds[0], F_SETFD, FD_CLOEXEC) != 0 || fcntl(fds[1], F_SETFL, O_NONBLOCK) != 0 ||
        dup2(fds[1], STDERR_FILENO) < 0) {
        if (log->saved >= 0)
            (void)close(log->saved);
        (void)close(fds[0]);
    } else {
        log->fd = fds[0];
    }
    (void)close(fds[1]); /* descriptor 2 is the write end now */
}

void error_log_restore(struct error_log *log)
{
    if (log->fd <= 0)
        return;
    (void)dup2(log->saved, STDERR_FILENO); /* cannot fail: both are open */
    (void)close(log->saved);
    (void)close(log->fd);
    log->fd = 0;
}

size_t error_log_read(struct error_log *log, enum error_log_lines lines, struct strbuf *out)
{
    char block[4096];
    size_t n_bells = 0, n_whole = 0;
    for (size_t i = 0; log->fd > 0 && i < 64; i++) { /* limited, so that a flood of output cannot
                                                        block the loop */
        const ssize_t n = read(log->fd, block, sizeof(block));
        if (n <= 0)
            break;
        for (ssize_t k = 0; k < n; k++) {
            if (block[k] == '\a')
                n_bells++;
            else
                strbuf_add_char(&log->bytes, block[k]);
        }
    }
    for (size_t i = 0; i < log->bytes.n_bytes; i++)
        if (log->bytes.ptr[i] == '\n')
            n_whole = i + 1;
    if (lines == LOG_ALL)
        n_whole = log->bytes.n_bytes;
    strbuf_add(out, strbuf_text(&log->bytes), n_whole);
    strbuf_drop(&log->bytes, n_whole);
    return n_bells;
}
