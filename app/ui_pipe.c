/*
 * Pipes and scripts: see ui_pipe.h.
 *
 * stdin is read without blocking the loop, so that the model loads meanwhile and signals are heard.
 * At a terminal stdout is cleaned as every terminal is; anywhere else the answer's bytes go out as
 * they are.
 */
#include "app/ui_pipe.h"

#include "app/app.h"
#include "app/input_text.h"
#include "app/json_out.h"
#include "app/model_sheet.h"
#include "app/status.h"
#include "app/term_text.h"
#include "app/tty.h"
#include "app/turn_report.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define FIRST_BYTE_SECONDS 2.0 /* with a prompt given, nobody waits longer for an attachment */
#define ROW_SECONDS 0.1        /* progress on stderr, ten times a second */

struct pipe_ui {
    struct pipe_plan plan;
    struct strbuf in;  /* read from stdin and not used yet */
    bool at_end;       /* of stdin */
    bool has_asked;    /* ONCE: the turn has begun; others: the first prompt is through */
    bool has_prompted; /* TYPED: the prompt stands on stderr */
    double opened;
    size_t n_answers;
    struct strbuf held; /* --no-stream: the answer until its end */
    bool in_thought;    /* the last text was thought, on stderr */
    bool out_is_tty, row_allowed;
    size_t n_row; /* columns of the progress row on stderr */
    double row_painted;
};

static struct pipe_ui *self(const struct ui *ui)
{
    return ui->state;
}

bool ui_pipe_plan(struct ui *ui, const struct pipe_plan *plan, struct bn_error *err)
{
    struct pipe_ui *p = mem_alloc(1, sizeof(*p));
    if (!p)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    p->plan = *plan;
    ui->state = p;
    return true;
}

static bool pipe_open(struct ui *ui, struct bn_error *err)
{
    struct pipe_ui *p = self(ui);
    (void)err;
    p->opened = clock_seconds();
    p->out_is_tty = isatty(STDOUT_FILENO);
    p->row_allowed = isatty(STDERR_FILENO) && !options_flag(ui->app->options, "quiet") &&
                     !options_flag(ui->app->options, "plain");
    p->at_end = p->plan.kind == PIPE_INFO ||
                (p->plan.kind == PIPE_ONCE && p->plan.takes_stdin == PIPE_STDIN_UNUSED);
    return true;
}

/* ---- stderr ---- */

static void erase_row(struct pipe_ui *p)
{
    if (p->n_row > 0)
        fprintf(stderr, "\r%*s\r", (int)p->n_row, "");
    p->n_row = 0;
}

static void pipe_close(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    if (!p)
        return;
    erase_row(p);
    strbuf_finish(&p->plan.files);
    strbuf_finish(&p->plan.prompt);
    strbuf_finish(&p->in);
    strbuf_finish(&p->held);
    mem_free(p);
    ui->state = NULL;
}

static void pipe_notice(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    struct strbuf clean = {0};
    if ((tone == TONE_NOTE || tone == TONE_WARNING) && options_flag(ui->app->options, "quiet"))
        return;
    erase_row(p);
    term_text_clean(text, TERM_KEEP_LINES, &clean);
    fprintf(stderr, "%s%s%s\n", tone == TONE_PLAIN ? "" : PROGRAM ": ",
            tone == TONE_WARNING ? "warning: " : "", strbuf_text(&clean));
    strbuf_finish(&clean);
}

static int pipe_tick(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    struct status s = {0};
    char row[100];
    const bool is_waiting_for_stdin = p->plan.kind == PIPE_ONCE && !p->has_asked && !p->at_end;
    const int wait = is_waiting_for_stdin && p->plan.takes_stdin == PIPE_STDIN_IF_ANY ? 100 : -1;
    if (!p->row_allowed || !chat_is_busy(&ui->app->chat) ||
        (p->out_is_tty && ui->app->chat.phase == CHAT_GENERATING))
        return wait;
    const double now = clock_seconds();
    if (now - p->row_painted < ROW_SECONDS)
        return (int)(ROW_SECONDS * 1000);
    p->row_painted = now;
    turn_status(&ui->app->chat, &s);
    status_format(&s, size_min(tty_size(STDERR_FILENO).columns - 1, sizeof(row) - 1), row,
                  sizeof(row));
    erase_row(p);
    fprintf(stderr, "%s", row);
    (void)fflush(stderr); /* progress only */
    p->n_row = strlen(row);
    return (int)(ROW_SECONDS * 1000);
}

/* ---- stdout ---- */

static void leave_output(struct ui *ui)
{
    if (ui->app->leaving)
        return;
    (void)report_fail(PROGRAM, EXIT_FILE, "cannot write to standard output: %s", strerror(errno));
    ui->app->ending = false; /* this reason goes before an interrupt's */
    chat_stop(&ui->app->chat);
    ui->app->code = EXIT_DONE;
    app_leave(ui->app, EXIT_FILE);
}

static void put(struct ui *ui, struct bn_str text)
{
    erase_row(self(ui));
    if (fwrite(text.ptr, 1, text.n_bytes, stdout) != text.n_bytes || fflush(stdout) != 0)
        leave_output(ui);
}

static void put_json(struct ui *ui, json_t *object)
{
    struct bn_error err;
    erase_row(self(ui));
    if (!json_out_write(object, stdout, JSON_OUT_LINE, &err) || fflush(stdout) != 0)
        leave_output(ui);
}

static json_t *event_json(const char *event)
{
    json_t *o = json_object();
    if (o)
        (void)json_out_add(o, "event",
                           json_string(event)); /* NULL is reported when it is written */
    return o;
}

static void pipe_turn_begin(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    strbuf_cut(&p->held, 0);
    p->in_thought = false;
    if (p->plan.output == PIPE_JSONL) {
        json_t *o = event_json("start");
        if (o)
            (void)json_out_add(o, "turn", json_integer((json_int_t)p->n_answers + 1));
        put_json(ui, o);
    } else if (p->plan.output == PIPE_TEXT && p->n_answers > 0 && p->plan.kind != PIPE_TYPED) {
        put(ui, bn_str_of("\n")); /* an empty line between two answers */
    }
}

static void put_text(struct ui *ui, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    struct strbuf clean = {0};
    if (!p->out_is_tty) {
        put(ui, text);
        return;
    }
    term_text_clean(text, TERM_KEEP_LINES, &clean);
    put(ui, strbuf_str(&clean));
    strbuf_finish(&clean);
}

static void put_thought(struct ui *ui, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    struct strbuf clean = {0};
    if (options_flag(ui->app->options, "quiet") || !options_flag(ui->app->options, "thoughts"))
        return;
    erase_row(p);
    term_text_clean(text, TERM_KEEP_LINES, &clean);
    fprintf(stderr, "%s", strbuf_text(&clean));
    strbuf_finish(&clean);
    p->in_thought = true;
}

static void pipe_answer(struct ui *ui, enum answer_part part, struct bn_str text)
{
    struct pipe_ui *p = self(ui);
    if (p->plan.output == PIPE_JSONL) {
        json_t *o = event_json("token");
        if (o)
            (void)json_out_add(o, part == PART_THOUGHT ? "thought" : "text", json_out_text(text));
        put_json(ui, o);
    } else if (p->plan.output == PIPE_JSON) {
        return;
    } else if (part == PART_THOUGHT) {
        put_thought(ui, text);
    } else {
        if (p->in_thought)
            fputc('\n', stderr);
        p->in_thought = false;
        if (options_flag(ui->app->options, "stream"))
            put_text(ui, text);
        else
            strbuf_add_str(&p->held, text);
    }
}

static void pipe_token(struct ui *ui, const struct turn *turn)
{
    (void)ui; /* the row is repainted by the clock */
    (void)turn;
}

static void print_stats(struct ui *ui, const struct turn *turn)
{
    const struct app *app = ui->app;
    const bool wanted = options_given(app->options, "stats") ? options_flag(app->options, "stats")
                                                             : self(ui)->plan.kind == PIPE_TYPED;
    struct strbuf line = {0};
    if (!wanted || options_flag(app->options, "quiet"))
        return;
    erase_row(self(ui));
    turn_stats_line(&app->chat, turn, &line);
    fprintf(stderr, "%s\n", strbuf_text(&line));
    strbuf_finish(&line);
}

static void pipe_turn_end(struct ui *ui, const struct turn *turn)
{
    struct pipe_ui *p = self(ui);
    p->n_answers++;
    if (p->plan.output == PIPE_JSON) {
        put_json(ui, turn_json(&ui->app->chat, turn));
    } else if (p->plan.output == PIPE_JSONL) {
        json_t *o = turn_json(&ui->app->chat, turn);
        if (o)
            (void)json_out_add(o, "event", json_string("end"));
        put_json(ui, o);
    } else {
        strbuf_add_char(&p->held, '\n');
        put_text(ui, strbuf_str(&p->held));
    }
    erase_row(p);
    if (turn->finish == FINISH_DEGENERATE || p->plan.kind == PIPE_TYPED) {
        const char *notice = turn_end_notice(turn);
        if (notice)
            ui_notice(ui, TONE_WARNING, "%s", notice);
    }
    print_stats(ui, turn);
}

static void pipe_turn_failed(struct ui *ui, const struct bn_error *err)
{
    const bool is_load = ui->app->chat.phase == CHAT_BROKEN;
    const enum report_stage stage = is_load ? STAGE_LOAD : STAGE_RUN;
    erase_row(self(ui));
    const enum exit_code code = report_error(PROGRAM, stage, err);
    if (is_load || self(ui)->plan.kind != PIPE_TYPED)
        app_leave(ui->app, is_load && code == EXIT_CONTEXT ? EXIT_MODEL : code);
}

/* ---- stdin ---- */

static bool pipe_wants_input(const struct ui *ui)
{
    const struct pipe_ui *p = self(ui);
    if (p->at_end)
        return false;
    if (p->plan.kind == PIPE_ONCE)
        return !p->has_asked;
    return !chat_is_busy(&ui->app->chat) &&
           (p->in.n_bytes == 0 || !memchr(p->in.ptr, '\n', p->in.n_bytes));
}

static void pipe_input(struct ui *ui)
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
static bool next_line(struct pipe_ui *p, struct strbuf *out)
{
    const char *end = p->in.n_bytes > 0 ? memchr(p->in.ptr, '\n', p->in.n_bytes) : NULL;
    if (!end && (!p->at_end || p->in.n_bytes == 0))
        return false;
    const size_t n = end ? (size_t)(end - p->in.ptr) : p->in.n_bytes;
    strbuf_add(out, p->in.ptr, n);
    strbuf_drop(&p->in, end ? n + 1 : n);
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
        else if (!app_enter(ui->app, strbuf_str(&line)) && p->plan.kind == PIPE_SCRIPT)
            app_leave(ui->app, EXIT_USAGE);
    }
    strbuf_finish(&line);
}

static void ready_lines(struct ui *ui)
{
    struct pipe_ui *p = self(ui);
    struct strbuf line = {0};
    if (!p->has_asked && p->plan.prompt.n_bytes > 0) {
        p->has_asked = true;
        (void)app_say(ui->app, strbuf_str(&p->plan.prompt)); /* its failure has been reported */
        return;
    }
    while (!ui->app->leaving && !chat_is_busy(&ui->app->chat) && next_line(p, &line)) {
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
        put_text(ui, strbuf_str(&lines));
    } else {
        put_json(ui, model_sheet_json(ui->app));
    }
    strbuf_finish(&lines);
    app_leave(ui->app, EXIT_DONE);
}

static void pipe_ready(struct ui *ui)
{
    if (self(ui)->plan.kind == PIPE_INFO)
        ready_info(ui);
    else if (self(ui)->plan.kind == PIPE_ONCE)
        ready_once(ui);
    else
        ready_lines(ui);
}

static void pipe_interrupt(struct ui *ui)
{
    if (self(ui)->plan.kind != PIPE_TYPED)
        return;
    self(ui)->has_prompted = false;
    fprintf(stderr, "\nCtrl-D or /quit leaves\n");
}

static void pipe_edit(struct ui *ui, struct bn_str text)
{
    (void)ui; /* there is no editor: the sender has the text */
    (void)text;
}

static void pipe_unmoved(struct ui *ui)
{
    (void)ui; /* nothing depends on the terminal's size or mode */
}

const struct ui_ops ui_pipe_ops = {
    .name = "pipe",
    .open = pipe_open,
    .close = pipe_close,
    .ready = pipe_ready,
    .input = pipe_input,
    .wants_input = pipe_wants_input,
    .tick = pipe_tick,
    .resize = pipe_unmoved,
    .interrupt = pipe_interrupt,
    .suspend = pipe_unmoved,
    .resume = pipe_unmoved,
    .notice = pipe_notice,
    .edit = pipe_edit,
    .turn_begin = pipe_turn_begin,
    .answer = pipe_answer,
    .token = pipe_token,
    .turn_end = pipe_turn_end,
    .turn_failed = pipe_turn_failed,
};
