/*
 * Standard input of the pipe painter: one prompt, a turn a line, or a script.
 *
 * It is read without blocking the loop, so that the model loads meanwhile and signals are heard.
 */
#include "app/ui/ui_pipe_state.h"

#include "app/chat/model_sheet.h"
#include "app/common/input_text.h"
#include "app/common/slash.h"
#include "engine/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BYTE_SECONDS 2.0 /* with a prompt given, nobody waits longer for an attachment */

static struct pipe_ui *self(const struct ui *ui)
{
    return ui->state;
}

/* Bytes of the first line that was read; SIZE_MAX: its end has not come. A line of a script that
 * opens a fence goes on to the line that closes it. */
static size_t line_end(const struct pipe_ui *p, bool *is_open)
{
    const char *text = strbuf_text(&p->in);
    const char *end = p->in.n_bytes > 0 ? memchr(text, '\n', p->in.n_bytes) : NULL;
    const size_t n_blank = strspn(text, " \t");
    *is_open = false;
    const char *close;
    if (p->plan.kind != PIPE_LINES && slash_fence(text + n_blank, &close)) {
        *is_open = !close;
        end = close ? strchr(close, '\n') : NULL;
    }
    return end ? (size_t)(end - text) : SIZE_MAX;
}

bool pipe_wants_input(const struct ui *ui)
{
    const struct pipe_ui *p = self(ui);
    if (p->at_end)
        return false;
    if (p->plan.kind == PIPE_ONCE)
        return !p->has_asked;
    bool is_open;
    return !chat_is_busy(&ui->app->chat) && line_end(p, &is_open) == SIZE_MAX;
}

void pipe_input(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    char block[65536];
    const ssize_t n = read(STDIN_FILENO, block, sizeof(block));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0)
        app_leave(ui->app, report_fail(PROGRAM, EXIT_FILE, "cannot read standard input: %s",
                                       strerror(errno)));
    if (n <= 0)
        p->at_end = true;
    else
        strbuf_add(&p->in, block, (size_t)n);
    if (p->in.failed || p->in.n_bytes > INPUT_MAX_BYTES)
        app_leave(ui->app, report_fail(PROGRAM, EXIT_USAGE,
                                       "standard input is larger than %zu bytes", INPUT_MAX_BYTES));
}

static bool is_blank_text(struct bn_str s)
{
    for (size_t i = 0; i < s.n_bytes; i++)
        if (!strchr(" \t\r\n", s.ptr[i]) || !s.ptr[i])
            return false;
    return true;
}

/* Text of stdin as it may be used; false: binary, and the program leaves. */
static bool clean_input(struct ui *ui, struct bn_str raw, struct strbuf *out)
{
    struct bn_error err;
    size_t bad_at;
    if (!input_clean("standard input", raw, out, &bad_at, &err)) {
        app_leave(ui->app, report_error(PROGRAM, STAGE_RUN, &err));
        return false;
    }
    if (bad_at != SIZE_MAX)
        ui_notice(ui, TONE_WARNING,
                  "standard input is not valid UTF-8 at offset %zu: replaced by U+FFFD", bad_at);
    return true;
}

static void ask(struct ui *ui, struct bn_str text)
{
    struct bn_error err;
    if (!chat_ask(&ui->app->chat, text, &err))
        pipe_turn_failed(ui, &err);
}

/* Attachments, stdin, an empty line, the prompt: a document before the question about it. */
static void ask_once(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    struct strbuf text = {0}, from_stdin = {0};
    p->has_asked = true;
    if (clean_input(ui, strbuf_str(&p->in), &from_stdin)) {
        if (from_stdin.n_bytes > 0 && from_stdin.ptr[from_stdin.n_bytes - 1] == '\n')
            strbuf_cut(&from_stdin, from_stdin.n_bytes - 1); /* the end of the last line */
        const struct bn_str parts[] = {strbuf_str(&p->plan.files), strbuf_str(&from_stdin),
                                       strbuf_str(&p->plan.prompt)};
        for (size_t i = 0; i < 3; i++) {
            if (is_blank_text(parts[i]))
                continue;
            if (text.n_bytes > 0)
                strbuf_add_text(&text, text.ptr[text.n_bytes - 1] == '\n' ? "\n" : "\n\n");
            strbuf_add_str(&text, parts[i]);
        }
        if (text.n_bytes == 0)
            app_leave(ui->app, report_fail(PROGRAM, EXIT_USAGE, "empty prompt"));
        else
            ask(ui, strbuf_str(&text));
    }
    strbuf_finish(&text);
    strbuf_finish(&from_stdin);
}

static void ready_once(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    if (p->has_asked) {
        app_leave(ui->app, EXIT_DONE);
        return;
    }
    if (!p->at_end && p->plan.takes_stdin == PIPE_STDIN_IF_ANY && p->in.n_bytes == 0 &&
        clock_seconds() - p->opened > FIRST_BYTE_SECONDS) {
        ui_notice(ui, TONE_WARNING, "nothing came from standard input; -f - waits for it");
        p->at_end = true;
    }
    if (p->at_end)
        ask_once(ui);
}

/* The next line of stdin without its end; false: none is whole yet. */
static bool next_line(struct ui *ui, struct strbuf *out)
{
    struct pipe_ui *p = self(ui);
    bool is_open;
    const size_t end = line_end(p, &is_open);
    if (end == SIZE_MAX && (!p->at_end || p->in.n_bytes == 0))
        return false;
    const size_t n = end == SIZE_MAX ? p->in.n_bytes : end;
    strbuf_add(out, p->in.ptr, n);
    strbuf_drop(&p->in, end == SIZE_MAX ? n : n + 1);
    if (is_open && p->plan.kind == PIPE_TYPED) { /* who types has thought better of it */
        strbuf_cut(out, 0);
        ui_notice(ui, TONE_WARNING, "a message without its closing " SLASH_FENCE " is not sent");
        return false;
    }
    if (is_open)
        strbuf_add_text(out, SLASH_FENCE); /* the input ended first: what is there is said */
    return true;
}

static void take_line(struct ui *ui, struct bn_str raw)
{
    const struct pipe_ui *p = self(ui);
    struct strbuf line = {0};
    if (raw.n_bytes > 0 && raw.ptr[raw.n_bytes - 1] == '\r')
        raw.n_bytes--;
    if (clean_input(ui, raw, &line) && !is_blank_text(strbuf_str(&line))) {
        if (p->plan.kind == PIPE_LINES)
            ask(ui, strbuf_str(&line));
        else if (app_enter(ui->app, strbuf_str(&line)) != ENTRY_DONE && p->plan.kind == PIPE_SCRIPT)
            app_leave(ui->app, EXIT_USAGE);
    }
    strbuf_finish(&line);
}

static void ready_lines(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    struct strbuf line = {0};
    /* What commands of a script say must not depend on how long the model takes to load. */
    if (p->plan.kind == PIPE_SCRIPT && ui->app->chat.phase == CHAT_LOADING)
        return;
    if (!p->has_asked && p->plan.prompt.n_bytes > 0) {
        p->has_asked = true;
        (void)app_say(ui->app, strbuf_str(&p->plan.prompt)); /* its failure has been reported */
        return;
    }
    while (!ui->app->leaving && !chat_is_busy(&ui->app->chat) && next_line(ui, &line)) {
        p->has_prompted = false;
        take_line(ui, strbuf_str(&line));
        strbuf_cut(&line, 0);
    }
    strbuf_finish(&line);
    if (ui->app->leaving || chat_is_busy(&ui->app->chat))
        return;
    if (p->at_end) {
        if (p->n_answers == 0 && p->plan.kind == PIPE_LINES)
            app_leave(ui->app, report_fail(PROGRAM, EXIT_USAGE, "empty prompt"));
        app_leave(ui->app, EXIT_DONE);
    } else if (p->plan.kind == PIPE_TYPED && !p->has_prompted) {
        p->has_prompted = true;
        fprintf(stderr, ">>> ");
    }
}

static void ready_info(struct ui *ui)
{
    struct strbuf lines = {0};
    if (!worker_info(ui->app->worker))
        return;
    if (self(ui)->plan.output == PIPE_TEXT) {
        model_sheet_lines(ui->app, &lines);
        strbuf_add_char(&lines, '\n');
        pipe_put_text(ui, strbuf_str(&lines));
    } else {
        pipe_put_json(ui, model_sheet_json(ui->app));
    }
    strbuf_finish(&lines);
    app_leave(ui->app, EXIT_DONE);
}

static void ready_explain(struct ui *ui)
{
    struct strbuf lines = {0};
    if (!worker_info(ui->app->worker))
        return;
    model_sheet_explain(ui->app, &lines);
    pipe_put_text(ui, strbuf_str(&lines));
    strbuf_finish(&lines);
    app_leave(ui->app, EXIT_DONE);
}

void pipe_ready(struct ui *ui)
{
    if (self(ui)->plan.kind == PIPE_INFO)
        ready_info(ui);
    else if (self(ui)->plan.kind == PIPE_EXPLAIN)
        ready_explain(ui);
    else if (self(ui)->plan.kind == PIPE_ONCE)
        ready_once(ui);
    else
        ready_lines(ui);
}
