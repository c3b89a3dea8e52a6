/*
 * The full-screen painter: a transcript that scrolls, a status row, and the editor in a pane that
 * grows with its text.
 *
 * When the screen is left, what was shown in this run is printed to the ordinary one.
 */
#include "app/ui/ui_full_state.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <stdio.h>
#include <string.h>

#define EXIT_ROWS 2000 /* more would push everything else out of the terminal's memory */

static struct full_ui *self(const struct ui *ui)
{
    return ui->state;
}

/* ---- text ---- */

static enum scroll_break chosen_break(const struct ui *ui)
{
    return terminal_wrap(ui) == FLOW_WRAP ? SCROLL_WORDS : SCROLL_COLUMNS;
}

static void add_lines(struct ui *ui, enum scroll_look look, enum scroll_break breaks,
                      struct bn_str text)
{
    struct full_ui *u = self(ui);
    scroll_end(&u->text);
    scroll_add(&u->text, look, breaks, text);
    if (text.n_bytes == 0 || text.ptr[text.n_bytes - 1] != '\n')
        scroll_add(&u->text, look, breaks, bn_str_of("\n"));
    scroll_end(&u->text);
    if (u->due == DUE_NOTHING)
        u->due = DUE_SOON;
}

static const enum scroll_look looks_of_tones[] = {[TONE_PLAIN] = SCROLL_PLAIN,
                                                  [TONE_EXACT] = SCROLL_PLAIN,
                                                  [TONE_NOTE] = SCROLL_NOTE,
                                                  [TONE_WARNING] = SCROLL_WARNING,
                                                  [TONE_ERROR] = SCROLL_WARNING};

static void say_line(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    add_lines(ui, looks_of_tones[tone], tone == TONE_EXACT ? SCROLL_COLUMNS : chosen_break(ui),
              text);
}

static void full_notice(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    if (!terminal_is_silent(ui, tone))
        say_line(ui, tone, text);
}

void full_add_said(struct ui *ui, struct bn_str text)
{
    struct strbuf line = {0};
    strbuf_add_text(&line, TERMINAL_PROMPT);
    for (size_t i = 0; i < text.n_bytes; i++) {
        strbuf_add_char(&line, text.ptr[i]);
        if (text.ptr[i] == '\n')
            strbuf_add_text(&line, "... ");
    }
    add_lines(ui, SCROLL_SAID, chosen_break(ui), strbuf_str(&line));
    self(ui)->is_scrolled = false; /* who says something wants to see the answer */
    strbuf_finish(&line);
}

/* What others wrote to standard error; not in the middle of an answer. */
static void add_log(struct ui *ui, enum error_log_lines lines)
{
    struct full_ui *u = self(ui);
    struct strbuf text = {0};
    if (u->in_answer && lines == LOG_WHOLE && u->log.bytes.n_bytes > 0)
        return; /* there is some to be shown after it, and the pipe holds the rest */
    if (error_log_read(&u->log, lines, &text) > 0)
        full_screen_beep();
    if (text.n_bytes > 0 && u->in_answer && lines == LOG_WHOLE) {
        strbuf_add_str(&text, strbuf_str(&u->log.bytes));
        strbuf_finish(&u->log.bytes);
        u->log.bytes = text;
        return;
    }
    if (text.n_bytes > 0)
        full_notice(ui, TONE_NOTE, strbuf_str(&text));
    strbuf_finish(&text);
}

static void full_ready(struct ui *ui)
{
    (void)ui; /* there is one editor */
    full_open_line();
}

static int full_tick(struct ui *ui)
{
    add_log(ui, LOG_WHOLE);
    full_open_line();
    const int wait = full_paint(ui);
    if (ui->terminal->keys.bytes.n_bytes > 0 && (wait < 0 || wait > 20))
        return 20; /* an Esc, or a paste whose end is awaited */
    return wait;
}

static void full_interrupt(struct ui *ui)
{
    struct full_ui *u = self(ui);
    strbuf_cut(&ui->terminal->keys.bytes, 0);
    strbuf_cut(&u->choices, 0);
    if (!line_clear())
        full_notice(ui, TONE_PLAIN, bn_str_of("Ctrl-D or /quit leaves"));
    u->due = DUE_NOW;
}

static bool full_wants_input(const struct ui *ui)
{
    (void)ui; /* type-ahead, Esc: always */
    return true;
}

/* ---- answers ---- */

static void full_turn_begin(struct ui *ui)
{
    struct full_ui *u = self(ui);
    scroll_end(&u->text);
    full_find_end(u);
    u->in_answer = true;
    ui->terminal->printed = (struct answer_mark){0};
    u->said_busy = false;
    u->answer_line = u->text.n;
    u->part = PART_ANSWER;
    u->due = DUE_NOW;
}

static void full_answer(struct ui *ui, enum answer_part part, struct bn_str text)
{
    struct full_ui *u = self(ui);
    const enum scroll_look look = part == PART_THOUGHT ? SCROLL_THOUGHT : SCROLL_ANSWER;
    if (part == PART_THOUGHT && !options_flag(ui->options, "thoughts"))
        return;
    if (u->part == PART_THOUGHT && part == PART_ANSWER) {
        scroll_end(&u->text);
        scroll_add(&u->text, SCROLL_ANSWER, SCROLL_WORDS, bn_str_of("\n"));
    }
    u->part = part;
    scroll_add(&u->text, look, chosen_break(ui), text);
    if (u->due == DUE_NOTHING)
        u->due = DUE_SOON;
}

static void full_token(struct ui *ui, const struct turn *turn)
{
    (void)ui; /* the status row goes by the clock */
    (void)turn;
}

static void end_answer(struct ui *ui)
{
    struct full_ui *u = self(ui);
    scroll_end(&u->text);
    u->in_answer = false;
    u->said_busy = false;
    u->due = DUE_NOW;
}

static void full_turn_end(struct ui *ui, const struct turn *turn)
{
    end_answer(ui);
    terminal_say_end(ui, turn, say_line);
}

static void full_turn_failed(struct ui *ui, const struct bn_error *err)
{
    end_answer(ui);
    terminal_fail(ui, err);
}

/* ---- taking and giving back ---- */

/* One part of the answer that runs, of which n_printed bytes are printed. */
static void take_up_part(struct ui *ui, enum answer_part part, struct bn_str text, size_t n_printed)
{
    struct full_ui *u = self(ui);
    n_printed = size_min(n_printed, text.n_bytes);
    if (n_printed > 0) {
        full_answer(ui, part, (struct bn_str){text.ptr, n_printed});
        u->printed = scroll_here(&u->text);
    }
    if (n_printed < text.n_bytes)
        full_answer(ui, part, (struct bn_str){text.ptr + n_printed, text.n_bytes - n_printed});
}

static void take_up(struct ui *ui)
{
    const struct turn *turn = &ui->chat->turn;
    const struct answer_mark mark = terminal_printed(ui);
    full_turn_begin(ui);
    ui->terminal->printed = mark;
    take_up_part(ui, PART_THOUGHT, strbuf_str(&turn->thought), mark.n_thought);
    take_up_part(ui, PART_ANSWER, strbuf_str(&turn->shown), mark.n_shown);
}

/* The conversation that there is, and an answer that runs. */
static void add_earlier(struct ui *ui)
{
    struct full_ui *u = self(ui);
    const struct transcript_state *now = &ui->chat->transcript.now;
    const bool busy = chat_is_busy(ui->chat);
    for (size_t i = 0; i < now->n; i++) {
        const struct exchange *e = now->items[i];
        full_add_said(ui, e->user);
        if (i + 1 < now->n || !busy)
            add_lines(ui, SCROLL_ANSWER, chosen_break(ui), e->answer.text);
    }
    u->printed = scroll_here(&u->text);
    if (busy)
        take_up(ui);
}

static bool full_open(struct ui *ui, struct bn_error *err)
{
    struct full_ui *u = mem_alloc(1, sizeof(*u));
    if (!u)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    const enum screen_style style = terminal_wants_looks(ui) ? SCREEN_RICH : SCREEN_SIMPLE;
    if (options_flag(ui->options, "plain")) {
        mem_free(u);
        return bn_fail(err, BN_EUNSUPPORTED, "--plain never rewrites the screen");
    }
    if (!tty_take(TTY_PASTE_PLAIN, err) || !full_screen_open(style, &u->screen, err)) {
        tty_give_back();
        mem_free(u);
        return false;
    }
    tty_mark_pastes(); /* only now: nothing is written to a terminal that cannot */
    ui->state = u;
    error_log_take(&u->log);
    ui->log_fd = u->log.fd;
    terminal_begin(ui);
    full_edit_with(u);
    full_resize(ui);
    add_earlier(ui);
    return true;
}

/* Print what this run has shown to the ordinary screen. The next painter prints an answer that it
 * goes on with. */
static void print_transcript(struct ui *ui, enum ui_close how)
{
    struct full_ui *u = self(ui);
    const struct store *store = ui->chat->store;
    struct strbuf text = {0}, all = {0};
    if (u->in_answer && how == UI_CLOSE_CHANGE)
        scroll_cut(&u->text, u->answer_line);
    const size_t n_left = scroll_print(&u->text, u->printed, EXIT_ROWS, &text);
    if (n_left > 0) {
        const char *path = store->session_path[0] ? store->session_path : store->last_path;
        strbuf_addf(&all, "(%zu earlier rows left out%s%s)\n", n_left,
                    path[0] ? "; the conversation is in " : "", path);
    }
    strbuf_add_str(&all, strbuf_str(&text));
    if (how == UI_CLOSE_CHANGE || options_flag(ui->options, "exit-transcript"))
        (void)tty_write(all.ptr, all.n_bytes); /* a terminal that is gone shows nothing */
    strbuf_finish(&text);
    strbuf_finish(&all);
}

static void full_close(struct ui *ui, enum ui_close how)
{
    struct full_ui *u = self(ui);
    if (!u)
        return;
    add_log(ui, LOG_ALL);
    terminal_finish(how);
    full_edit_with(NULL);
    full_screen_close(u->screen);
    error_log_give_back(&u->log);
    tty_give_back();
    print_transcript(ui, how);
    full_find_end(u);
    scroll_finish(&u->text);
    input_rows_finish(&u->input);
    strbuf_finish(&u->choices);
    strbuf_finish(&u->log.bytes);
    mem_free(u);
    ui->state = NULL;
    ui->log_fd = 0;
}

static void full_suspend(struct ui *ui)
{
    struct full_ui *u = self(ui);
    full_screen_leave(u->screen);
    error_log_give_back(&u->log);
    ui->log_fd = 0;
    tty_give_back();
}

static void full_resume(struct ui *ui)
{
    struct full_ui *u = self(ui);
    struct bn_error err;
    full_screen_leave(u->screen);
    if (!tty_take_again(&err)) {
        ui->terminal->is_hung_up = true;
        return;
    }
    error_log_take(&u->log);
    ui->log_fd = u->log.fd;
    full_screen_again(u->screen);
    u->due = DUE_NOW;
}

const struct ui_ops ui_full_ops = {
    .name = "full",
    .is_terminal = true,
    .open = full_open,
    .close = full_close,
    .ready = full_ready,
    .wants_input = full_wants_input,
    .input = full_input,
    .next_event = full_next_event,
    .entry_done = terminal_entry_done,
    .tick = full_tick,
    .resize = full_resize,
    .interrupt = full_interrupt,
    .suspend = full_suspend,
    .resume = full_resume,
    .notice = full_notice,
    .show_message = full_add_said,
    .find = full_find,
    .edit = terminal_edit,
    .turn_begin = full_turn_begin,
    .answer = full_answer,
    .token = full_token,
    .turn_end = full_turn_end,
    .turn_failed = full_turn_failed,
};
