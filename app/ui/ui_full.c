/*
 * The full-screen painter: the text of the conversation, which scrolls, a status row, and the line
 * editor in rows whose number grows with its text.
 *
 * When it closes, it prints the text since it opened, but at most EXIT_ROWS rows, on the ordinary
 * screen. With --no-exit-transcript it does so only before a change to the other painter.
 */
#include "app/ui/ui_full_state.h"

#include "engine/base/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXIT_ROWS 2000 /* more rows could displace all earlier text in the terminal's scrollback */

static struct full_ui *self(const struct ui *ui)
{
    return ui->state;
}

/* ---- text ---- */

static enum scroll_break chosen_break(const struct ui *ui)
{
    return ui_terminal_wrap(ui) == FLOW_WRAP ? SCROLL_WORDS : SCROLL_COLUMNS;
}

/* Append text as lines of its own, and paint soon. A running answer continues below with its
 * Markdown, for example inside of a block of code. */
static void add_lines(struct ui *ui, enum scroll_look look, enum scroll_break breaks,
                      struct bn_str text)
{
    struct full_ui *u = self(ui);
    struct scroll_paused answer = {0};
    if (u->in_answer)
        scroll_pause(&u->text, &answer);
    if (answer.has_line && u->printed.line == u->text.n) /* the line moves */
        u->printed = (struct scroll_position){u->text.n, 0};
    scroll_end(&u->text);
    scroll_add(&u->text, look, breaks, text);
    if (text.n_bytes == 0 || text.ptr[text.n_bytes - 1] != '\n')
        scroll_add(&u->text, look, breaks, bn_str_of("\n"));
    scroll_end(&u->text);
    if (u->in_answer)
        scroll_resume(&u->text, &answer);
    if (u->due == DUE_NOTHING)
        u->due = DUE_SOON;
}

/* Messages of TONE_USER repeat earlier ones. With SCROLL_USER, /find would find them twice. */
static const enum scroll_look looks_of_tones[] = {
    [TONE_PLAIN] = SCROLL_PLAIN,  [TONE_TABLE] = SCROLL_TABLE, [TONE_EXACT] = SCROLL_PLAIN,
    [TONE_USER] = SCROLL_WARNING, [TONE_NOTE] = SCROLL_NOTE,   [TONE_WARNING] = SCROLL_WARNING,
    [TONE_ERROR] = SCROLL_WARNING};

static void show_message(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    add_lines(ui, looks_of_tones[tone], tone == TONE_EXACT ? SCROLL_COLUMNS : chosen_break(ui),
              text);
}

static void full_notice(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    if (!ui_is_hidden(ui, tone))
        show_message(ui, tone, text);
}

void full_add_user_text(struct ui *ui, struct bn_str text)
{
    struct strbuf line = {0};
    strbuf_add_text(&line, TERMINAL_PROMPT);
    input_rows_continue(text, &line);
    add_lines(ui, SCROLL_USER, chosen_break(ui), strbuf_str(&line));
    self(ui)->is_scrolled = false; /* the view moves to the end */
    strbuf_finish(&line);
}

/* ---- standard error ---- */

/* Redirect standard error into a pipe. Both ends are non-blocking: the main thread empties the
 * pipe, so it would wait forever if it filled the pipe itself. If no pipe can be created, text of
 * standard error disturbs the screen until the user presses Ctrl-L. */
static void stderr_pipe_open(struct stderr_pipe *p)
{
    int fds[2];
    if (p->fd > 0 || pipe(fds) != 0)
        return;
    p->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3); /* not a standard descriptor */
    if (p->saved < 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(fds[0], F_SETFD, FD_CLOEXEC) != 0 || fcntl(fds[1], F_SETFL, O_NONBLOCK) != 0 ||
        dup2(fds[1], STDERR_FILENO) < 0) {
        if (p->saved >= 0)
            (void)close(p->saved);
        (void)close(fds[0]);
    } else {
        p->fd = fds[0];
    }
    (void)close(fds[1]); /* descriptor 2 is the write end now */
}

static void stderr_pipe_close(struct stderr_pipe *p)
{
    if (p->fd <= 0)
        return;
    (void)dup2(p->saved, STDERR_FILENO); /* cannot fail: both are open */
    (void)close(p->saved);
    (void)close(p->fd);
    p->fd = 0;
}

#define STDERR_MAX_BYTES 65536 /* most bytes in p.bytes; bounds the memory */

enum stderr_pipe_lines {
    STDERR_COMPLETE,
    STDERR_ALSO_PARTIAL
}; /* PARTIAL: the incomplete last line */

/* Append the lines that were written to standard error since the last call, and those that were
 * kept then. Returns the number of bell characters, which are removed. Text that would make
 * p->bytes longer than STDERR_MAX_BYTES is lost. It is read nevertheless, because unread text would
 * keep the event loop busy. */
static size_t stderr_pipe_read(struct stderr_pipe *p, enum stderr_pipe_lines lines,
                               struct strbuf *out)
{
    char block[4096];
    size_t n_bells = 0, n_whole = 0;               /* n_whole: bytes to append */
    for (size_t i = 0; p->fd > 0 && i < 64; i++) { /* endless output must not block the loop */
        const ssize_t n = read(p->fd, block, sizeof(block));
        if (n <= 0)
            break;
        for (ssize_t k = 0; k < n; k++) {
            if (block[k] == '\a')
                n_bells++;
            else if (p->bytes.n_bytes < STDERR_MAX_BYTES)
                strbuf_add_char(&p->bytes, block[k]);
        }
    }
    for (size_t i = 0; i < p->bytes.n_bytes; i++)
        if (p->bytes.ptr[i] == '\n')
            n_whole = i + 1;
    if (lines == STDERR_ALSO_PARTIAL)
        n_whole = p->bytes.n_bytes;
    strbuf_add(out, strbuf_text(&p->bytes), n_whole);
    strbuf_drop(&p->bytes, n_whole);
    return n_bells;
}

/* Show the text of standard error as a notice. During an answer, STDERR_COMPLETE keeps complete
 * lines in p.bytes until the answer ends. */
static void show_stderr(struct ui *ui, enum stderr_pipe_lines lines)
{
    struct full_ui *u = self(ui);
    struct strbuf text = {0};
    if (stderr_pipe_read(&u->stderr_pipe, lines, &text) > 0)
        curses_beep();
    if (text.n_bytes > 0 && u->in_answer && lines == STDERR_COMPLETE) { /* put the lines back */
        strbuf_add_str(&text, strbuf_str(&u->stderr_pipe.bytes));
        strbuf_finish(&u->stderr_pipe.bytes);
        u->stderr_pipe.bytes = text;
        return;
    }
    if (text.n_bytes > 0)
        full_notice(ui, TONE_NOTE, strbuf_str(&text));
    strbuf_finish(&text);
}

/* ---- input and status ---- */

static void full_ready(struct ui *ui)
{
    (void)ui; /* the only editor needs no argument */
    full_open_line();
}

static int full_tick(struct ui *ui)
{
    show_stderr(ui, STDERR_COMPLETE);
    full_open_line();
    const int wait = full_paint(ui);
    /* If a key or a paste is incomplete, test again after 20 ms whether its time is over. */
    if (ui->terminal->keys.bytes.n_bytes > 0 && (wait < 0 || wait > 20))
        return 20;
    return wait;
}

static void full_interrupt(struct ui *ui)
{
    struct full_ui *u = self(ui);
    ui_terminal_interrupt(ui);
    full_find_end(u);
    strbuf_cut(&u->choices, 0);
    u->due = DUE_NOW;
}

static void full_unqueue_all(struct ui *ui)
{
    ui_terminal_unqueue_all(ui);
    self(ui)->due = DUE_NOW;
}

/* ---- answers ---- */

static void skip_part(struct ui *ui, enum answer_part part, struct bn_str text)
{
    struct full_ui *u = self(ui);
    if (text.n_bytes == 0)
        return;
    u->part = part;
    scroll_skip(&u->text, part == PART_THOUGHT ? SCROLL_THOUGHT : SCROLL_ANSWER, chosen_break(ui),
                text);
}

static void full_turn_begin(struct ui *ui)
{
    struct full_ui *u = self(ui);
    scroll_end(&u->text);
    full_find_end(u);
    u->in_answer = true;
    ui->terminal->printed = (struct answer_position){0};
    u->answer_line = u->text.n;
    u->part = PART_ANSWER;
    ui_terminal_skip_earlier(ui, skip_part);
    u->due = DUE_NOW;
}

static void full_answer(struct ui *ui, enum answer_part part, struct bn_str text)
{
    struct full_ui *u = self(ui);
    const enum scroll_look look = part == PART_THOUGHT ? SCROLL_THOUGHT : SCROLL_ANSWER;
    if (part == PART_THOUGHT && !options_flag(ui->options, "thoughts"))
        return;
    if (u->part == PART_THOUGHT && part == PART_ANSWER) { /* separate them by an empty line */
        scroll_end(&u->text);
        scroll_add(&u->text, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("\n"));
    }
    u->part = part;
    scroll_add(&u->text, look, chosen_break(ui), text);
    if (u->due == DUE_NOTHING)
        u->due = DUE_SOON;
}

static void end_answer(struct ui *ui)
{
    struct full_ui *u = self(ui);
    scroll_end(&u->text);
    u->in_answer = false;
    u->due = DUE_NOW;
}

static void full_turn_end(struct ui *ui, const struct turn *turn)
{
    end_answer(ui);
    ui_terminal_show_end(ui, turn, show_message);
}

static void full_turn_failed(struct ui *ui, const struct bn_error *err)
{
    end_answer(ui);
    ui_terminal_show_failure(ui, err);
}

/* ---- open and close ---- */

/* A ui_terminal_add_fn. */
static void add_running(struct ui *ui, enum answer_part part, struct bn_str printed,
                        struct bn_str rest)
{
    struct full_ui *u = self(ui);
    if (printed.n_bytes > 0) {
        full_answer(ui, part, printed);
        u->printed = scroll_end_position(&u->text);
    }
    if (rest.n_bytes > 0)
        full_answer(ui, part, rest);
}

static void add_stored_answer(struct ui *ui, const struct exchange *e)
{
    struct strbuf thought = {0}, answer = {0};
    chat_split_answer(ui->chat, e, &thought, &answer);
    if (thought.n_bytes > 0 && options_flag(ui->options, "thoughts")) {
        add_lines(ui, SCROLL_THOUGHT, chosen_break(ui), strbuf_str(&thought));
        add_lines(ui, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("\n")); /* as in full_answer */
    }
    add_lines(ui, SCROLL_ANSWER, chosen_break(ui), strbuf_str(&answer));
    strbuf_finish(&thought);
    strbuf_finish(&answer);
}

/* Show the conversation so far, and the running answer. The conversation is not printed at the end:
 * the ordinary screen shows it already, or it was read from a saved chat. */
static void add_conversation(struct ui *ui)
{
    struct full_ui *u = self(ui);
    const struct transcript_state *now = &ui->chat->transcript.now;
    const bool busy = chat_is_busy(ui->chat);
    for (size_t i = 0; i < now->n; i++) {
        const struct exchange *e = now->items[i];
        full_add_user_text(ui, exchange_typed(e));
        if (i + 1 < now->n || !busy)
            add_stored_answer(ui, e);
    }
    u->printed = scroll_end_position(&u->text);
    if (busy)
        ui_terminal_resume_answer(ui, add_running);
}

static bool full_open(struct ui *ui, struct bn_error *err)
{
    struct full_ui *u = mem_alloc(1, sizeof(*u));
    if (!u)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    const enum screen_style style = ui_terminal_uses_colour(ui) ? SCREEN_RICH : SCREEN_SIMPLE;
    if (options_flag(ui->options, "plain")) {
        mem_free(u);
        return bn_fail(err, BN_EUNSUPPORTED, "--plain never rewrites the screen");
    }
    if (!tty_acquire(TTY_PASTE_PLAIN, err) || !curses_open(style, &u->screen, err)) {
        tty_release();
        mem_free(u);
        return false;
    }
    tty_enable_bracketed_paste(); /* after curses_open, which fails on an unsuitable terminal */
    ui->state = u;
    stderr_pipe_open(&u->stderr_pipe);
    ui->stderr_fd = u->stderr_pipe.fd;
    ui_terminal_begin(ui);
    full_attach_editor(u);
    full_resize(ui);
    add_conversation(ui);
    return true;
}

/* Write the text after u->printed to the ordinary screen. At the end of the program, this requires
 * --exit-transcript. If another painter opens next, a running answer is left out, because that
 * painter prints it. */
static void print_transcript(struct ui *ui, enum ui_close how)
{
    struct full_ui *u = self(ui);
    const struct store *store = ui->chat->store;
    struct strbuf text = {0}, all = {0};
    if (u->in_answer && how == UI_CLOSE_CHANGE)
        scroll_truncate(&u->text, u->answer_line);
    const size_t n_left = scroll_print(&u->text, u->printed, EXIT_ROWS, &text);
    if (n_left > 0) {
        const char *path = store_main_path(store);
        strbuf_addf(&all, "(%zu earlier rows left out%s%s)\n", n_left,
                    path[0] ? "; the conversation is in " : "", path);
    }
    strbuf_add_str(&all, strbuf_str(&text));
    if (!ui->terminal->is_hung_up &&
        (how == UI_CLOSE_CHANGE || options_flag(ui->options, "exit-transcript")))
        (void)tty_write(all.ptr, all.n_bytes); /* an error means that the terminal is gone */
    strbuf_finish(&text);
    strbuf_finish(&all);
}

static void full_close(struct ui *ui, enum ui_close how)
{
    struct full_ui *u = self(ui);
    if (!u)
        return;
    show_stderr(ui, STDERR_ALSO_PARTIAL);
    ui_terminal_end(how);
    full_attach_editor(NULL);
    curses_close(u->screen);
    stderr_pipe_close(&u->stderr_pipe);
    tty_release();
    print_transcript(ui, how);
    full_find_end(u);
    scroll_finish(&u->text);
    input_rows_finish(&u->input);
    strbuf_finish(&u->choices);
    strbuf_finish(&u->queued);
    strbuf_finish(&u->stderr_pipe.bytes);
    mem_free(u);
    ui->state = NULL;
    ui->stderr_fd = 0;
}

static void full_suspend(struct ui *ui)
{
    struct full_ui *u = self(ui);
    show_stderr(ui, STDERR_COMPLETE); /* before the pipe with its text is closed */
    curses_suspend();
    stderr_pipe_close(&u->stderr_pipe);
    ui->stderr_fd = 0;
    tty_release();
}

static void full_resume(struct ui *ui)
{
    struct full_ui *u = self(ui);
    struct bn_error err;
    bool has_terminal = tty_wait_for_foreground(&err);
    if (has_terminal) {
        curses_suspend(); /* after SIGSTOP, full_suspend was not called */
        has_terminal = tty_reacquire(&err);
    }
    if (!has_terminal) {
        ui->terminal->is_hung_up = true;
        return;
    }
    stderr_pipe_open(&u->stderr_pipe);
    ui->stderr_fd = u->stderr_pipe.fd;
    curses_resume(u->screen);
    u->due = DUE_NOW;
}

const struct ui_ops ui_full_ops = {
    .name = "full",
    .is_terminal = true,
    .open = full_open,
    .close = full_close,
    .ready = full_ready,
    .wants_input = ui_terminal_wants_input,
    .input = full_input,
    .next_event = full_next_event,
    .entry_done = ui_terminal_entry_done,
    .tick = full_tick,
    .resize = full_resize,
    .interrupt = full_interrupt,
    .unqueue_all = full_unqueue_all,
    .suspend = full_suspend,
    .resume = full_resume,
    .notice = full_notice,
    .show_message = full_add_user_text,
    .find = full_find,
    .edit = ui_terminal_edit,
    .turn_begin = full_turn_begin,
    .answer = full_answer,
    .token = ui_terminal_token,
    .turn_end = full_turn_end,
    .turn_failed = full_turn_failed,
};
