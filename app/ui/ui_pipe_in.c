/*
 * Standard input of the pipe painter: one prompt, one turn per line, or a script.
 *
 * The event loop polls standard input, so that it also handles signals and the events of the
 * worker, which loads the model meanwhile.
 */
#include "app/ui/ui_pipe_state.h"

#include "app/chat/model_sheet.h"
#include "app/common/input_text.h"
#include "app/common/slash.h"
#include "app/options/chat_options.h"
#include "engine/base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FIRST_BYTE_SECONDS 2.0 /* how long to wait for stdin if there is a prompt already */

static struct pipe_ui *self(const struct ui *ui)
{
    return ui->state;
}

/* The length of the first line in p->in without its newline, SIZE_MAX if it is incomplete. Except
 * with PIPE_LINES, a message in fences (SLASH_FENCE) counts as one line, which ends with the line
 * of its closing fence. *is_open: the closing fence is missing. */
static size_t line_end(const struct pipe_ui *p, bool *is_open)
{
    const char *text = strbuf_text(&p->in);
    const size_t n_left = p->in.n_bytes - p->n_searched;
    const char *end = n_left > 0 ? memchr(text + p->n_searched, '\n', n_left) : NULL;
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
        return !p->has_sent_prompt;
    /* Read lines only when one is needed: p->in is limited to INPUT_MAX_BYTES, stdin is not. */
    bool is_open;
    return !chat_is_busy(ui->chat) && line_end(p, &is_open) == SIZE_MAX;
}

void pipe_input(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    char block[65536];
    bool is_open;
    const bool has_lines =
        p->plan.kind != PIPE_ONCE && line_end(p, &is_open) == SIZE_MAX && !is_open;
    p->n_searched = has_lines ? p->in.n_bytes : 0;
    const ssize_t n = read(STDIN_FILENO, block, sizeof(block));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0)
        pipe_end(
            p, report_fail(PROGRAM, EXIT_FILE, "cannot read standard input: %s", strerror(errno)));
    if (n <= 0)
        p->at_end = true;
    else if (has_lines)
        input_add_block(&p->in, block, (size_t)n);
    else
        strbuf_add(&p->in, block, (size_t)n);
    if (p->in.failed)
        pipe_end(p, report_fail(PROGRAM, EXIT_INTERNAL, "out of memory for standard input"));
    else if (!has_lines && p->in.n_bytes > INPUT_MAX_BYTES)
        pipe_end(p, report_fail(PROGRAM, EXIT_USAGE, "%s is larger than %zu bytes",
                                p->plan.kind == PIPE_ONCE ? "standard input" : "a message",
                                INPUT_MAX_BYTES));
}

void pipe_end(struct pipe_ui *p, enum exit_code code)
{
    if (!p->aborts && (!p->ends || p->code == EXIT_DONE))
        p->code = code;
    p->ends = true;
}

/* Append the cleaned text to `out`. `name` is for messages. False: it is too long or binary, or
 * memory ran out; the reason *err was shown. */
static bool clean_input(struct ui *ui, const char *name, struct bn_str raw, struct strbuf *out,
                        struct bn_error *err)
{
    size_t bad_at;
    if (raw.n_bytes > INPUT_MAX_BYTES) {
        (void)bn_fail(err, BN_EARG, "%s is longer than %zu bytes", name, INPUT_MAX_BYTES);
        (void)report_error(PROGRAM, STAGE_RUN, err);
        return false;
    }
    if (!input_clean(name, raw, out, &bad_at, err)) {
        (void)report_error(PROGRAM, STAGE_RUN, err); /* the caller uses report_code */
        return false;
    }
    if (bad_at != SIZE_MAX)
        ui_notice(ui, TONE_WARNING, INPUT_UTF8_NOTICE, name, bad_at);
    return true;
}

/* Clean the prompt of the command line, once. False: memory ran out, and the program ends. */
static bool clean_prompt(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    struct strbuf clean = {0};
    struct bn_error err;
    const bool ok = clean_input(ui, "the prompt", strbuf_str(&p->plan.prompt), &clean, &err);
    if (!ok)
        pipe_end(p, report_code(STAGE_RUN, &err));
    strbuf_finish(&p->plan.prompt);
    p->plan.prompt = clean;
    return ok;
}

/* Remove the newline of the last line. */
static void cut_newline(struct strbuf *text)
{
    if (text->n_bytes > 0 && text->ptr[text->n_bytes - 1] == '\n')
        strbuf_cut(text, text->n_bytes - 1);
}

/* Join attachments, stdin and the prompt in p->line, separated by empty lines. The prompt is last,
 * because it is often a question about the other texts. One file alone is the prompt as it is, like
 * the text of stdin. False: the program ends. */
static bool make_prompt(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    struct strbuf *text = &p->line, from_stdin = {0};
    strbuf_cut(text, 0);
    struct bn_error err;
    bool ok = clean_input(ui, "standard input", strbuf_str(&p->in), &from_stdin, &err);
    if (!ok)
        pipe_end(p, report_code(STAGE_RUN, &err));
    ok = ok && clean_prompt(ui);
    const char *lack = input_facts_of(p->in.n_bytes, strbuf_str(&from_stdin)).lack;
    if (ok && lack && p->plan.stdin_use == PIPE_STDIN_WHOLE &&
        p->plan.prompt.n_bytes > 0) /* only with --file -: the user expects a document */
        ui_notice(ui, TONE_WARNING, "standard input %s", lack);
    if (ok) {
        cut_newline(&from_stdin);
        cut_newline(&p->plan.only_file);
        const bool is_alone = p->plan.has_only_file && input_is_blank(strbuf_str(&from_stdin)) &&
                              input_is_blank(strbuf_str(&p->plan.prompt));
        const struct bn_str parts[] = {strbuf_str(is_alone ? &p->plan.only_file : &p->plan.files),
                                       strbuf_str(&from_stdin), strbuf_str(&p->plan.prompt)};
        for (size_t i = 0; i < 3; i++) {
            if (input_is_blank(parts[i]))
                continue;
            if (text->n_bytes > 0)
                strbuf_add_text(text, text->ptr[text->n_bytes - 1] == '\n' ? "\n" : "\n\n");
            strbuf_add_str(text, parts[i]);
        }
        ok = !text->failed && text->n_bytes > 0;
        if (text->failed)
            pipe_end(p, report_fail(PROGRAM, EXIT_INTERNAL, "out of memory for the prompt"));
        else if (!ok)
            pipe_end(p, report_fail(PROGRAM, EXIT_USAGE, "empty prompt"));
    }
    strbuf_finish(&from_stdin);
    return ok;
}

/* Set *event to an event with p->line as its text. Returns true, for use in a return statement. */
static bool set_text_event(struct pipe_ui *p, enum ui_event_kind kind, struct ui_event *event)
{
    *event = (struct ui_event){.kind = kind, .text = strbuf_str(&p->line)};
    return true;
}

/* PIPE_ONCE: the only message, then the end. */
static bool next_once(struct ui *ui, struct ui_event *event)
{
    struct pipe_ui *p = self(ui);
    if (p->has_sent_prompt) {
        pipe_end(p, EXIT_DONE);
        return false;
    }
    if (!p->at_end && p->plan.stdin_use == PIPE_STDIN_IF_ANY && p->in.n_bytes == 0 &&
        clock_seconds() - p->opened > FIRST_BYTE_SECONDS) {
        /* --quiet must not hide it: the answer lacks a document that comes too late. */
        ui_notice(ui, TONE_ERROR, "nothing came from standard input; -f - waits for it");
        p->at_end = true;
    }
    if (!p->at_end)
        return false;
    p->has_sent_prompt = true;
    return make_prompt(ui) && set_text_event(p, UI_PROMPT, event);
}

/* Move the first line of p->in to `out`, without its newline. At the end of stdin, an incomplete
 * line counts. False: there is no line, or it was cancelled. */
static bool take_line(struct ui *ui, struct strbuf *out)
{
    struct pipe_ui *p = self(ui);
    bool is_open;
    const size_t end = line_end(p, &is_open);
    if (end == SIZE_MAX && (!p->at_end || p->in.n_bytes == 0))
        return false;
    const size_t n = end == SIZE_MAX ? p->in.n_bytes : end;
    strbuf_add(out, p->in.ptr, n);
    p->line_number = p->n_lines + 1;
    /* A message in fences has several lines. */
    p->n_lines += 1 + bn_str_count((struct bn_str){p->in.ptr, n}, '\n');
    strbuf_drop(&p->in, end == SIZE_MAX ? n : n + 1);
    p->n_searched = 0;
    /* A fence is still open only at the end of stdin. At a terminal that is Ctrl-D: cancel the
     * message. */
    if (is_open && p->plan.kind == PIPE_INTERACTIVE) {
        strbuf_cut(out, 0);
        ui_notice(ui, TONE_WARNING, "a message without its closing " SLASH_FENCE " is not sent");
        return false;
    }
    if (is_open) {
        /* In a script, close it and send the message. */
        ui_notice(ui, TONE_WARNING,
                  "line %zu begins a message without a closing " SLASH_FENCE
                  ": it has all lines up to the end",
                  p->line_number);
        strbuf_add_text(out, SLASH_FENCE);
    }
    return true;
}

/* Move the next line of p->in that is not blank to p->line, cleaned. With --keep-going, a line that
 * cannot be cleaned is passed over. False: there is no such line, or a failure ends the program
 * (p->ends). */
static bool next_clean_line(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    struct strbuf raw = {0};
    bool has_line = false;
    while (!has_line && !p->ends && take_line(ui, &raw)) {
        if (raw.n_bytes > 0 && raw.ptr[raw.n_bytes - 1] == '\r')
            strbuf_cut(&raw, raw.n_bytes - 1);
        p->has_shown_prompt = false;
        strbuf_cut(&p->line, 0);
        if (raw.failed) {
            pipe_end(p, report_fail(PROGRAM, EXIT_INTERNAL, "out of memory for a line"));
            break;
        }
        char name[40]; /* fits */
        struct bn_error err;
        (void)snprintf(name, sizeof(name), "line %zu", p->line_number);
        if (clean_input(ui, name, strbuf_str(&raw), &p->line, &err)) {
            has_line = !input_is_blank(strbuf_str(&p->line));
        } else {
            if (p->plan.output != PIPE_TEXT)
                pipe_put_failed(ui, &err);
            pipe_failed(ui, report_code(STAGE_RUN, &err));
        }
        strbuf_cut(&raw, 0);
    }
    strbuf_finish(&raw);
    return has_line;
}

/* PIPE_LINES, PIPE_SCRIPT and PIPE_INTERACTIVE: plan.prompt, then the lines of stdin. */
static bool next_of_lines(struct ui *ui, struct ui_event *event)
{
    struct pipe_ui *p = self(ui);
    /* A script waits for the model. Otherwise the output of its commands would depend on the time
     * that the model takes to load. */
    if (p->plan.kind == PIPE_SCRIPT && ui->chat->phase == CHAT_LOADING)
        return false;
    if (!p->has_sent_prompt) {
        p->has_sent_prompt = true;
        if (!clean_prompt(ui))
            return false;
        /* The prompt is no command. With PIPE_LINES, @paths in it are text, as in the lines. */
        *event = (struct ui_event){.kind = p->plan.kind == PIPE_LINES ? UI_PROMPT : UI_MESSAGE,
                                   .text = strbuf_str(&p->plan.prompt)};
        if (!input_is_blank(event->text))
            return true;
    }
    if (next_clean_line(ui))
        return set_text_event(p, p->plan.kind == PIPE_LINES ? UI_PROMPT : UI_LINE, event);
    if (p->at_end) {
        if (p->n_turns_written == 0 && p->plan.kind == PIPE_LINES && ui->first_failure == EXIT_DONE)
            pipe_end(p, report_fail(PROGRAM, EXIT_USAGE, "empty prompt"));
        pipe_end(p, ui->first_failure);
    } else if (p->plan.kind == PIPE_INTERACTIVE && !p->has_shown_prompt) {
        p->has_shown_prompt = true;
        fprintf(stderr, ">>> ");
    }
    return false;
}

/* PIPE_INFO and PIPE_EXPLAIN: wait for the model, print the information, and end the program. */
static void print_model_sheet(struct ui *ui)
{
    const struct chat *c = ui->chat;
    struct strbuf lines = {0};
    if (!worker_info(c->worker))
        return;
    if (self(ui)->plan.kind == PIPE_EXPLAIN) {
        model_sheet_explain(c->worker, &lines);
        pipe_put_text(ui, strbuf_str(&lines));
    } else if (self(ui)->plan.output == PIPE_TEXT) {
        model_sheet_lines(c->model, c->worker, ui->options, &lines);
        strbuf_add_char(&lines, '\n');
        pipe_put_text(ui, strbuf_str(&lines));
    } else {
        pipe_put_json(ui, model_sheet_json(c->model, c->worker, ui->options));
    }
    pipe_end(self(ui), strbuf_n_failed() == 0
                           ? EXIT_DONE
                           : report_fail(PROGRAM, EXIT_INTERNAL,
                                         "out of memory for the information about the model"));
    strbuf_finish(&lines);
}

/* Return the next text as an event. Called while no turn runs or waits. False: no event, or the
 * program ends (p->ends). */
static bool next_text(struct ui *ui, struct ui_event *event)
{
    switch (self(ui)->plan.kind) {
    case PIPE_INFO:
    case PIPE_EXPLAIN:
        print_model_sheet(ui);
        return false;
    case PIPE_ONCE:
        return next_once(ui, event);
    case PIPE_LINES:
    case PIPE_SCRIPT:
    case PIPE_INTERACTIVE:
        break;
    }
    return next_of_lines(ui, event);
}

bool pipe_next_event(struct ui *ui, struct ui_event *event)
{
    struct pipe_ui *p = self(ui);
    if (!p->ends && !p->aborts && !chat_is_busy(ui->chat) && next_text(ui, event))
        return true;
    if (!p->ends && !p->aborts)
        return false;
    *event = (struct ui_event){.kind = p->aborts ? UI_ABORT : UI_END, .code = p->code};
    return true;
}

void pipe_failed(struct ui *ui, enum exit_code code)
{
    const enum pipe_kind kind = self(ui)->plan.kind;
    if (kind == PIPE_INTERACTIVE)
        return; /* the user has read the reason and continues */
    if (!options_flag(ui->options, "keep-going") || (kind != PIPE_SCRIPT && kind != PIPE_LINES))
        pipe_end(self(ui), code);
    else if (ui->first_failure == EXIT_DONE)
        ui->first_failure = code;
}

void pipe_entry_done(struct ui *ui, enum entry_result entry)
{
    /* For a message that was not sent, pipe_turn_failed may have set a code already, which
     * stays. */
    if (entry != ENTRY_DONE)
        pipe_failed(ui, entry == ENTRY_NO_FILE    ? EXIT_FILE
                        : entry == ENTRY_TOO_LONG ? EXIT_CONTEXT
                                                  : EXIT_USAGE);
}
