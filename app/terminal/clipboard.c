/*
 * Clipboard programs, OSC 52, and code blocks: see clipboard.h.
 *
 * A program reads the text from a temporary file. With a pipe, a program that does not read would
 * block the chat.
 */
#include "app/terminal/clipboard.h"

#include "app/common/env.h"
#include "app/common/file/paths.h"
#include "app/common/strbuf.h"
#include "app/terminal/signals.h"
#include "engine/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELPER_SECONDS 2.0 /* limit for one program */
#define EXIT_NOT_FOUND 127 /* exit code: the program could not run (as in shells) */

struct helper {
    enum env_var needs;   /* the program is tried if this variable is set; PATH is usually set */
    const char *words[4]; /* program and arguments, then NULL if there are fewer than four words */
};
static const struct helper helpers[] = {
    {ENV_WAYLAND_DISPLAY, {"wl-copy"}},
    {ENV_DISPLAY, {"xclip", "-selection", "clipboard", "-in"}},
    {ENV_DISPLAY, {"xsel", "--clipboard", "--input"}},
    {ENV_PATH, {"pbcopy"}},
};

/* ---- clipboard programs ---- */

/* Runs in the child process. wl-copy, xclip and xsel leave a background process that holds the text
 * of the clipboard. If that process kept our standard output and error open, a program that reads
 * our output through a pipe would wait for the end of both. */
static void exec_helper(const struct helper *h, int input)
{
    const int nowhere = open("/dev/null", O_WRONLY);
    signals_reset_child();
    if (nowhere < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
        dup2(nowhere, STDERR_FILENO) < 0)
        _exit(EXIT_NOT_FOUND);
    execlp(h->words[0], h->words[0], h->words[1], h->words[2], h->words[3], (char *)NULL);
    _exit(EXIT_NOT_FOUND);
}

static bool wait_for_helper(pid_t child)
{
    const double started = clock_seconds();
    const struct timespec pause = {0, 5000000}; /* 5 ms */
    int status;
    for (;;) {
        const pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            return WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (ended < 0 && errno != EINTR)
            return false;
        if (clock_seconds() - started > HELPER_SECONDS)
            break;
        (void)nanosleep(&pause, NULL); /* a signal only shortens the pause */
    }
    (void)kill(child, SIGKILL); /* for example because the display does not respond */
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return false;
}

static bool copy_with_helper(const struct helper *h, FILE *text)
{
    rewind(text); /* the programs share the file offset, and an earlier one may have read */
    const pid_t child = fork();
    if (child == 0)
        exec_helper(h, fileno(text));
    return child > 0 && wait_for_helper(child);
}

static const char *copy_with_any_helper(struct bn_str text)
{
    const char *helper = NULL;
    FILE *f = tmpfile();
    bool ok = f && fwrite(text.ptr, 1, text.n_bytes, f) == text.n_bytes && fflush(f) == 0;
    for (size_t i = 0; ok && !helper && i < sizeof(helpers) / sizeof(helpers[0]); i++)
        if (env_get(helpers[i].needs) && copy_with_helper(&helpers[i], f))
            helper = helpers[i].words[0];
    if (f)
        (void)fclose(f); /* this also deletes the file */
    return helper;
}

/* ---- the terminal ---- */

/* Base64 of RFC 4648: three bytes become four digits of six bits. */
static void add_base64(struct bn_str s, struct strbuf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < s.n_bytes; i += 3) {
        const size_t n = s.n_bytes - i < 3 ? s.n_bytes - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < n ? (uint8_t)s.ptr[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            /* n bytes need n + 1 digits. */
            strbuf_add_char(out, k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=');
    }
}

static bool write_osc52(struct bn_str text, struct bn_error *err)
{
    struct strbuf out = {0};
    strbuf_add_text(&out, "\033]52;c;"); /* c: the clipboard, not the primary selection */
    add_base64(text, &out);
    strbuf_add_char(&out, '\a');
    bool ok = !out.failed || bn_fail(err, BN_ENOMEM, "out of memory for %zu bytes", text.n_bytes);
    if (ok && (fwrite(out.ptr, 1, out.n_bytes, stdout) != out.n_bytes || fflush(stdout) != 0))
        ok = bn_fail(err, BN_EIO, "cannot write to the terminal: %s", strerror(errno));
    strbuf_finish(&out);
    return ok;
}

bool clipboard_put(struct bn_str text, const char **program, struct bn_error *err)
{
    const char *helper = copy_with_any_helper(text);
    if (!helper && !isatty(STDOUT_FILENO))
        return bn_fail(err, BN_EUNSUPPORTED,
                       "no clipboard: wl-copy, xclip, xsel and pbcopy do not work here, and "
                       "standard output is no terminal");
    *program = helper;
    return helper || write_osc52(text, err);
}

/* ---- blocks of code ---- */

/* The number of fence characters at the start of a line, or 0 if it is not a fence. *mark is the
 * character. *is_bare: only blanks follow, as required of a closing fence. As in CommonMark, up to
 * three spaces may come first. If the result is 0, *mark and *is_bare have no meaning. */
static size_t fence_marks(struct bn_str line, char *mark, bool *is_bare)
{
    size_t at = 0, n = 0;
    while (at < line.n_bytes && at < 3 && line.ptr[at] == ' ')
        at++;
    if (at == line.n_bytes || (line.ptr[at] != '`' && line.ptr[at] != '~'))
        return 0;
    *mark = line.ptr[at];
    while (at + n < line.n_bytes && line.ptr[at + n] == *mark)
        n++;
    *is_bare = true;
    for (size_t i = at + n; i < line.n_bytes; i++) {
        if (*mark == '`' && line.ptr[i] == '`')
            return 0; /* inline code: no backtick may follow a fence of backticks in its line */
        if (!strchr(" \t\r", line.ptr[i]))
            *is_bare = false;
    }
    return n >= 3 ? n : 0;
}

/* Count the blocks, but stop after block `number` and set *code to it. If there are fewer blocks,
 * *code is unchanged. */
static size_t find_block(struct bn_str text, size_t number, struct bn_str *code)
{
    /* n_open: length of the fence that opened the block, 0 outside of blocks. begin: offset of the
     * first line in the block. next: offset of the line after `line`. */
    size_t n_blocks = 0, n_open = 0, begin = 0, next = 0;
    char opened_by = 0;
    struct bn_str line;
    while (bn_str_next_line(text, &next, &line)) {
        char mark = 0;
        bool is_bare = false;
        const size_t n_marks = fence_marks(line, &mark, &is_bare);
        if (n_open == 0 && n_marks > 0) {
            n_open = n_marks;
            opened_by = mark;
            begin = next;
            n_blocks++;
        } else if (n_open > 0 && n_marks >= n_open && mark == opened_by && is_bare) {
            if (n_blocks == number)
                *code = (struct bn_str){text.ptr + begin, (size_t)(line.ptr - text.ptr) - begin};
            n_open = 0;
        }
        if (n_blocks == number && n_open == 0)
            return n_blocks;
    }
    if (n_open > 0 && n_blocks == number)
        *code = (struct bn_str){text.ptr + begin, text.n_bytes - begin};
    return n_blocks;
}

size_t clipboard_code_count(struct bn_str text)
{
    struct bn_str unused;
    return find_block(text, SIZE_MAX, &unused);
}

bool clipboard_code_block(struct bn_str text, size_t number, struct bn_str *code)
{
    return number > 0 && find_block(text, number, code) == number;
}
