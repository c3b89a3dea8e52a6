/*
 * The full-screen painter: a transcript that scrolls, a status row, and the editor in a pane that
 * grows with its text.
 *
 * The editor stays open while an answer is made, so that type-ahead can be edited; only Enter
 * waits. When the screen is left, what was shown in this run is printed to the ordinary one.
 */
#include "app/ui_full_state.h"

#include "app/line_edit.h"
#include "app/term_keys.h"
#include "app/term_text.h"
#include "app/turn_report.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ESCAPE_SECONDS 0.05 /* an Esc that nothing follows so long is the key itself */
#define PASTE_SECONDS 2.0   /* a paste whose end does not come is ended */
#define PASTE_END "\033[201~"
#define PROMPT ">>> "
#define EXIT_ROWS 2000 /* more would push everything else out of the terminal's memory */

static struct full_ui *painter; /* the one that is open: the editor's calls carry no argument */

static struct full_ui *self(const struct ui *ui)
{
    return ui->state;
}

static bool is_running(const struct ui *ui)
{
    return chat_is_busy(&ui->app->chat);
}

/* ---- text ---- */

static enum scroll_break chosen_break(const struct ui *ui)
{
    return terminal_wrap(ui) == FLOW_WRAP ? SCROLL_WORDS : SCROLL_COLUMNS;
}

static void add_lines(struct ui *ui, enum scroll_look look, struct bn_str text)
{
    struct full_ui *u = self(ui);
    const enum scroll_break breaks = look == SCROLL_PLAIN ? SCROLL_COLUMNS : chosen_break(ui);
    scroll_end(&u->text);
    scroll_add(&u->text, look, breaks, text);
    if (text.n_bytes == 0 || text.ptr[text.n_bytes - 1] != '\n')
        scroll_add(&u->text, look, breaks, bn_str_of("\n"));
    scroll_end(&u->text);
    if (u->due == DUE_NOTHING)
        u->due = DUE_SOON;
}

static void full_notice(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    static const enum scroll_look looks[] = {[TONE_PLAIN] = SCROLL_PLAIN,
                                             [TONE_NOTE] = SCROLL_NOTE,
                                             [TONE_WARNING] = SCROLL_WARNING,
                                             [TONE_ERROR] = SCROLL_WARNING};
    if (!terminal_is_silent(ui, tone))
        add_lines(ui, looks[tone], text);
}

static void add_said(struct ui *ui, struct bn_str text)
{
    struct strbuf line = {0};
    strbuf_add_text(&line, PROMPT);
    for (size_t i = 0; i < text.n_bytes; i++) {
        strbuf_add_char(&line, text.ptr[i]);
        if (text.ptr[i] == '\n')
            strbuf_add_text(&line, "... ");
    }
    add_lines(ui, SCROLL_SAID, strbuf_str(&line));
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

/* ---- the editor ---- */

static void no_redisplay(void)
{
    painter->due = DUE_NOW; /* the frame shows what line_view gives */
}

/* Choices in columns, each with two blanks behind it. */
static void show_matches(char **matches, int n_matches, int longest)
{
    struct full_ui *u = painter;
    const size_t width = size_min((size_t)longest + 2, u->size.columns);
    const size_t n_columns = u->size.columns / (width > 0 ? width : 1);
    strbuf_cut(&u->choices, 0);
    for (int i = 1; i <= n_matches; i++) {
        struct strbuf word = {0};
        const char *slash = strrchr(matches[i], '/');
        const bool is_path = slash && slash > matches[i] && slash[1];
        term_text_brief(bn_str_of(is_path ? slash + 1 : matches[i]), width, &word);
        strbuf_add_str(&u->choices, strbuf_str(&word));
        const size_t n = term_text_width(strbuf_str(&word));
        const bool ends = i == n_matches || (n_columns > 0 && (size_t)i % n_columns == 0);
        for (size_t k = n; k < width && !ends; k++)
            strbuf_add_char(&u->choices, ' ');
        if (ends)
            strbuf_add_char(&u->choices, '\n');
        strbuf_finish(&word);
    }
    u->due = DUE_NOW;
}

static const struct line_display display = {no_redisplay, show_matches};

static void open_line(struct ui *ui)
{
    if (!line_is_open() && !ui->app->leaving && ui->app->chat.phase != CHAT_BROKEN)
        line_begin(PROMPT);
}

static void do_key(struct ui *ui, enum term_key key)
{
    struct full_ui *u = self(ui);
    const size_t page = u->n_shown > 1 ? u->n_shown - 1 : 1;
    switch (key) {
    case TERM_KEY_F2:
        app_change_ui(ui->app, &ui_inline_ops);
        break;
    case TERM_KEY_PAGE_UP:
        full_scroll(u, FULL_UP, page);
        break;
    case TERM_KEY_PAGE_DOWN:
        full_scroll(u, FULL_DOWN, page);
        break;
    case TERM_KEY_FIRST:
        full_scroll(u, FULL_UP, SIZE_MAX);
        break;
    case TERM_KEY_LAST:
        full_scroll(u, FULL_DOWN, SIZE_MAX);
        break;
    case TERM_KEY_NONE:
        break;
    }
}

/* While something runs Ctrl-D is no key, and an Esc by itself stops it. */
static void filter_keys(struct ui *ui, double waited)
{
    struct full_ui *u = self(ui);
    size_t n_kept = 0;
    if (u->keys.ptr[u->keys.n_bytes - 1] == '\033' && waited >= ESCAPE_SECONDS) {
        strbuf_cut(&u->keys, u->keys.n_bytes - 1);
        chat_stop(&ui->app->chat);
    }
    for (size_t i = 0; i < u->keys.n_bytes; i++)
        if (u->keys.ptr[i] != 0x04)
            u->keys.ptr[n_kept++] = u->keys.ptr[i];
    strbuf_cut(&u->keys, n_kept);
}

/* The first n keys to the editor; false: it waits for the end of a paste, or nobody wants keys. */
static bool feed(struct ui *ui, size_t n, double waited)
{
    struct full_ui *u = self(ui);
    size_t n_used;
    open_line(ui);
    if (!line_is_open())
        return false;
    strbuf_cut(&u->choices, 0);
    line_set_enter(is_running(ui) ? LINE_ENTER_WAITS : LINE_ENTER_SENDS);
    const enum line_result result = line_feed(strbuf_text(&u->keys), n, &n_used);
    strbuf_drop(&u->keys, n_used);
    u->due = DUE_NOW;
    if (line_was_refused())
        u->said_busy = true;
    if (result == LINE_END) {
        app_leave(ui->app, EXIT_DONE);
        return false;
    }
    if (result == LINE_DONE) {
        if (line_shown().n_bytes > 0)
            add_said(ui, line_shown());
        terminal_enter(ui);
        open_line(ui);
    } else if (n_used < n && waited > PASTE_SECONDS) {
        strbuf_add_text(&u->keys, PASTE_END); /* the rest of this paste was lost */
    } else {
        return n_used == n;
    }
    return true;
}

static void use_keys(struct ui *ui)
{
    struct full_ui *u = self(ui);
    while (u->keys.n_bytes > 0 && !ui->app->next_ui && !ui->app->leaving) {
        const double waited = clock_seconds() - u->keys_read;
        if (is_running(ui))
            filter_keys(ui, waited);
        const size_t n_held =
            waited < ESCAPE_SECONDS ? term_keys_tail(strbuf_text(&u->keys), u->keys.n_bytes) : 0;
        const size_t n = u->keys.n_bytes - n_held;
        const struct term_key_hit hit = term_keys_find(strbuf_text(&u->keys), n);
        if (hit.at == 0 && hit.key != TERM_KEY_NONE) {
            strbuf_drop(&u->keys, hit.n_bytes);
            do_key(ui, hit.key);
        } else if (hit.at == 0 || !feed(ui, hit.at, waited)) {
            break;
        }
    }
}

static void full_input(struct ui *ui)
{
    struct full_ui *u = self(ui);
    char block[65536];
    const ssize_t n = read(STDIN_FILENO, block, sizeof(block));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        app_end(ui->app, EXIT_HUNG_UP);
        return;
    }
    if (memchr(block, 0x0C, (size_t)n))
        full_screen_paint_anew(u->screen); /* Ctrl-L; Readline has its part in it */
    strbuf_add(&u->keys, block, (size_t)n);
    u->keys_read = clock_seconds();
    use_keys(ui);
}

static bool full_wants_input(const struct ui *ui)
{
    (void)ui; /* type-ahead, Esc: always */
    return true;
}

static void full_ready(struct ui *ui)
{
    if (ui->app->first_prompt.n_bytes > 0 && !ui->app->was_first_prompt) {
        ui->app->was_first_prompt = true;
        add_said(ui, ui->app->first_prompt);
        if (app_say(ui->app, ui->app->first_prompt))
            return;
    }
    open_line(ui);
}

static int full_tick(struct ui *ui)
{
    struct full_ui *u = self(ui);
    add_log(ui, LOG_WHOLE);
    open_line(ui);
    use_keys(ui);
    const int wait = full_paint(ui);
    if (ui->app->leaving || ui->app->next_ui)
        return 0;
    if (u->keys.n_bytes > 0 && (wait < 0 || wait > 20))
        return 20; /* an Esc, or a paste whose end is awaited */
    return wait;
}

static void full_interrupt(struct ui *ui)
{
    struct full_ui *u = self(ui);
    strbuf_cut(&u->keys, 0);
    strbuf_cut(&u->choices, 0);
    if (!line_clear())
        full_notice(ui, TONE_PLAIN, bn_str_of("Ctrl-D or /quit leaves"));
    u->due = DUE_NOW;
}

/* ---- answers ---- */

static void full_turn_begin(struct ui *ui)
{
    struct full_ui *u = self(ui);
    scroll_end(&u->text);
    u->in_answer = true;
    u->said_busy = false;
    u->answer_line = u->text.n;
    u->part = PART_ANSWER;
    u->due = DUE_NOW;
}

static void full_answer(struct ui *ui, enum answer_part part, struct bn_str text)
{
    struct full_ui *u = self(ui);
    const enum scroll_look look = part == PART_THOUGHT ? SCROLL_THOUGHT : SCROLL_ANSWER;
    if (part == PART_THOUGHT && !options_flag(ui->app->options, "thoughts"))
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
    struct strbuf text = {0};
    const char *notice = turn_end_notice(turn);
    end_answer(ui);
    if (notice)
        add_lines(ui, turn->finish == FINISH_DEGENERATE ? SCROLL_WARNING : SCROLL_NOTE,
                  bn_str_of(notice));
    if (turn->n_alts > 0) {
        terminal_probs(ui, turn, &text);
        add_lines(ui, SCROLL_NOTE, strbuf_str(&text));
        strbuf_cut(&text, 0);
    }
    if (terminal_wants_stats(ui)) {
        turn_stats_line(&ui->app->chat, turn, &text);
        add_lines(ui, SCROLL_NOTE, strbuf_str(&text));
    }
    strbuf_finish(&text);
}

static void full_turn_failed(struct ui *ui, const struct bn_error *err)
{
    end_answer(ui);
    if (ui->app->chat.phase == CHAT_BROKEN) {
        ui->ops->close(ui); /* a fatal message stands on a restored terminal */
        app_leave(ui->app, report_error(PROGRAM, STAGE_LOAD, err));
        return;
    }
    full_notice(ui, TONE_ERROR, bn_str_of(err->text));
    if (err->code == BN_ECONTEXT)
        full_notice(ui, TONE_NOTE, bn_str_of("/forget, /clear or a larger --ctx make room"));
}

/* ---- taking and giving back ---- */

/* The conversation that there is, and an answer that runs. */
static void add_earlier(struct ui *ui)
{
    struct full_ui *u = self(ui);
    const struct transcript_state *now = &ui->app->chat.transcript.now;
    const struct turn *turn = &ui->app->chat.turn;
    const bool busy = is_running(ui);
    for (size_t i = 0; i < now->n; i++) {
        const struct exchange *e = now->items[i];
        add_said(ui, e->user);
        if (i + 1 < now->n || !busy)
            add_lines(ui, SCROLL_ANSWER, e->answer.text);
    }
    u->n_earlier = u->text.n;
    if (!busy)
        return;
    full_turn_begin(ui);
    if (turn->thought.n_bytes > 0)
        full_answer(ui, PART_THOUGHT, strbuf_str(&turn->thought));
    if (turn->shown.n_bytes > 0)
        full_answer(ui, PART_ANSWER, strbuf_str(&turn->shown));
}

static bool full_open(struct ui *ui, struct bn_error *err)
{
    struct full_ui *u = mem_alloc(1, sizeof(*u));
    if (!u)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    const enum screen_style style = terminal_wants_looks(ui) ? SCREEN_RICH : SCREEN_SIMPLE;
    if (options_flag(ui->app->options, "plain")) {
        mem_free(u);
        return bn_fail(err, BN_EUNSUPPORTED, "--plain never rewrites the screen");
    }
    if (!tty_take(TTY_PASTE_PLAIN, err) || !full_screen_open(style, &u->screen, err)) {
        tty_give_back();
        mem_free(u);
        return false;
    }
    tty_mark_pastes(); /* only now: nothing is written to a terminal that cannot */
    ui->state = painter = u;
    error_log_take(&u->log);
    ui->log_fd = u->log.fd;
    terminal_begin(ui);
    line_set_display(&display);
    full_resize(ui);
    strbuf_add_str(&u->keys, strbuf_str(&ui->app->typed)); /* another painter had no use for it */
    strbuf_cut(&ui->app->typed, 0);
    add_earlier(ui);
    return true;
}

static void write_all(const struct strbuf *text)
{
    for (size_t at = 0; at < text->n_bytes;) {
        const ssize_t n = write(STDOUT_FILENO, text->ptr + at, text->n_bytes - at);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EINTR)
            return; /* the terminal is gone */
    }
}

/* What this run has shown, on the ordinary screen. An answer that the next painter goes on with is
 * left to it. */
static void print_transcript(struct ui *ui)
{
    struct full_ui *u = self(ui);
    const struct app *app = ui->app;
    struct strbuf text = {0}, all = {0};
    if (u->in_answer && app->next_ui)
        scroll_cut(&u->text, u->answer_line);
    const size_t n_left = scroll_print(&u->text, u->n_earlier, EXIT_ROWS, &text);
    if (n_left > 0) {
        const char *path =
            app->store.session_path[0] ? app->store.session_path : app->store.last_path;
        strbuf_addf(&all, "(%zu earlier rows left out%s%s)\n", n_left,
                    path[0] ? "; the conversation is in " : "", path);
    }
    strbuf_add_str(&all, strbuf_str(&text));
    if (app->next_ui || options_flag(app->options, "exit-transcript"))
        write_all(&all);
    strbuf_finish(&text);
    strbuf_finish(&all);
}

static void full_close(struct ui *ui)
{
    struct full_ui *u = self(ui);
    if (!u)
        return;
    add_log(ui, LOG_ALL);
    strbuf_add_str(&ui->app->typed, strbuf_str(&u->keys));
    terminal_finish(ui);
    line_set_display(NULL);
    full_screen_close(u->screen);
    error_log_give_back(&u->log);
    tty_give_back();
    print_transcript(ui);
    scroll_finish(&u->text);
    input_rows_finish(&u->input);
    strbuf_finish(&u->choices);
    strbuf_finish(&u->keys);
    strbuf_finish(&u->log.bytes);
    mem_free(u);
    ui->state = painter = NULL;
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
    tty_give_back(); /* the shell may have set it otherwise since */
    if (!tty_take(TTY_PASTE_MARKED, &err)) {
        app_end(ui->app, EXIT_HUNG_UP);
        return;
    }
    error_log_take(&u->log);
    ui->log_fd = u->log.fd;
    full_screen_again(u->screen);
    u->due = DUE_NOW;
}

const struct ui_ops ui_full_ops = {
    .name = "full",
    .open = full_open,
    .close = full_close,
    .ready = full_ready,
    .input = full_input,
    .wants_input = full_wants_input,
    .tick = full_tick,
    .resize = full_resize,
    .interrupt = full_interrupt,
    .suspend = full_suspend,
    .resume = full_resume,
    .notice = full_notice,
    .edit = terminal_edit,
    .turn_begin = full_turn_begin,
    .answer = full_answer,
    .token = full_token,
    .turn_end = full_turn_end,
    .turn_failed = full_turn_failed,
};
