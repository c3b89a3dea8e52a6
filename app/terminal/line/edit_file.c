/*
 * Runs an editor on a temporary file: see edit_file.h.
 */
#include "app/terminal/line/edit_file.h"

#include "app/common/env.h"
#include "app/common/file/paths.h"
#include "app/common/input_text.h"
#include "app/terminal/signals.h"
#include "engine/base/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_NOT_RUN 127 /* the exit code of a shell that cannot run a command */

/* Runs in the child process. The command may contain options, so a shell parses it. The path is a
 * separate argument, "$1", which the shell does not parse. */
static void run_editor(const char *editor, const char *path)
{
    char script[1024];
    if ((size_t)snprintf(script, sizeof(script), "exec %s \"$1\"", editor) >= sizeof(script))
        _exit(EXIT_NOT_RUN);
    signals_reset_child();
    execl("/bin/sh", "sh", "-c", script, "sh", path, (char *)NULL);
    _exit(EXIT_NOT_RUN);
}

/* Wait for the end of the editor. If the user stops it (Ctrl-Z), stop this program too, so that the
 * shell gets the terminal, and continue both together. */
static bool wait_for_editor(pid_t child, const char *editor, struct bn_error *err)
{
    int status;
    for (;;) {
        if (waitpid(child, &status, WUNTRACED) < 0) {
            if (errno != EINTR)
                return bn_fail(err, BN_EIO, "cannot wait for '%s': %s", editor, strerror(errno));
        } else if (WIFSTOPPED(status)) {
            signals_stop_self();
            (void)kill(child, SIGCONT); /* if it has just ended, waitpid says so */
        } else {
            break;
        }
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    return bn_fail(err, BN_EIO, "the editor '%s' failed; the message is unchanged", editor);
}

static bool read_back(const char *path, struct strbuf *text, struct bn_error *err)
{
    char *bytes;
    size_t n_bytes, bad_at;
    struct strbuf clean = {0};
    if (!path_read_all(path, INPUT_MAX_BYTES, &bytes, &n_bytes, err))
        return false;
    const bool ok =
        input_clean("the edited text", (struct bn_str){bytes, n_bytes}, &clean, &bad_at, err);
    mem_free(bytes);
    if (ok) {
        if (clean.n_bytes > 0 && clean.ptr[clean.n_bytes - 1] == '\n')
            strbuf_cut(&clean, clean.n_bytes - 1); /* editors append a newline to the last line */
        strbuf_finish(text);
        *text = clean;
        return true;
    }
    strbuf_finish(&clean);
    return false;
}

bool edit_file_run(struct strbuf *text, struct bn_error *err)
{
    const char *visual = env_get(ENV_VISUAL), *plain = env_get(ENV_EDITOR);
    const char *editor = visual ? visual : plain ? plain : "vi";
    const char *dir = env_get(ENV_TMPDIR);
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof(path), "%s/bitnet-chat-XXXXXX",
                   dir ? dir : "/tmp"); /* mkstemp fails if it was cut */
    const int fd = mkstemp(path);
    if (fd < 0)
        return bn_fail(err, BN_EIO, "cannot make a file for the editor: %s", strerror(errno));
    bool ok = fd_write_all(fd, strbuf_text(text), text->n_bytes) ||
              bn_fail(err, BN_EIO, "cannot write '%s': %s", path, strerror(errno));
    (void)close(fd); /* local file systems report errors in write, not in close */
    if (ok) {
        const pid_t child = fork();
        if (child == 0)
            run_editor(editor, path);
        ok = child > 0 ? wait_for_editor(child, editor, err)
                       : bn_fail(err, BN_EIO, "cannot start '%s': %s", editor, strerror(errno));
        signals_forget_keys(); /* they were meant for the editor */
    }
    ok = ok && read_back(path, text, err);
    (void)unlink(path); /* if it fails, the file stays in the temporary directory */
    return ok;
}
