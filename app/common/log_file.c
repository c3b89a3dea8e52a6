/*
 * Log lines with a time: see log_file.h. The stream is locked while a line is written.
 */
#include "app/common/log_file.h"

#include "app/common/report.h"
#include "engine/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool log_file_open(struct log_file *log, const char *path, struct bn_error *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "a") : NULL;
    if (!f) {
        (void)bn_fail(err, BN_EIO, "cannot write the log '%s': %s", path, strerror(errno));
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    (void)setvbuf(f, NULL, _IOLBF, 0); /* each line is in the file at once, also after a crash */
    *log = (struct log_file){.f = f, .opened = clock_seconds()};
    return true;
}

void log_file_close(struct log_file *log)
{
    if (log->f)
        (void)fclose(log->f); /* the chat does not fail because of its log */
    log->f = NULL;
}

static void put(struct log_file *log, const char *mark, const char *text)
{
    if (!log->f)
        return;
    flockfile(log->f);
    if (log->error == 0) {
        fprintf(log->f, "%9.3f %s", clock_seconds() - log->opened, mark);
        report_safe(log->f, bn_str_of(text)); /* names from a model file may hold newlines */
        errno = EIO; /* if an earlier write of this line failed, its errno may be lost */
        if (fputc('\n', log->f) == EOF || ferror(log->f))
            log->error = errno;
    }
    funlockfile(log->f);
}

int log_file_new_error(struct log_file *log)
{
    if (!log->f)
        return 0;
    flockfile(log->f);
    const int error = log->is_error_known ? 0 : log->error;
    log->is_error_known = log->error != 0;
    funlockfile(log->f);
    return error;
}

void log_file_line(struct log_file *log, const char *text)
{
    put(log, "", text);
}

static void on_message(void *ud, enum bn_log_level level, const char *line)
{
    put(ud, level == BN_LOG_WARNING ? "engine: warning: " : "engine: ", line);
}

struct bn_log log_file_sink(struct log_file *log)
{
    return log->f ? (struct bn_log){on_message, log} : (struct bn_log){0};
}
