/*
 * The inline painter: answers are appended to the ordinary screen, Readline edits below them, and
 * while something runs one ephemeral row stands under the text.
 *
 * Nothing that scrolled away is ever painted again. The ephemeral row is erased before the text
 * moves into it; between repaints the cursor always stands at the end of the text. On a resize only
 * the cursor's row is given again.
 */
#include "app/app.h"

#include "app/flow.h"
#include "app/line_edit.h"
#include "app/term_keys.h"
#include "app/term_text.h"
#include "app/terminal_chat.h"
#include "app/tty.h"
#include "app/turn_report.h"
#include "app/ui_inline_term.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define ROW_SECONDS 0.5     /* the row is repainted twice a second: a line of ssh is thin */
#define ESCAPE_SECONDS 0.05 /* an Esc that nothing follows so long is the key itself */
#define PASTE_SECONDS 2.0   /* a paste whose end does not come is ended */
#define PROMPT ">>> "
#define PROMPT_BYTES 128 /* two terminal strings, progress, marks */
/* Synchronised updates, ignored where unknown; terminfo has no standard name for them. */
#define SYNC_BEGIN "\033[?2026h"
#define SYNC_END "\033[?2026l"

struct inline_ui {
    struct term_caps caps;
    struct tty_size size;
    struct flow flow;
    struct strbuf out; /* to be written */
    bool has_row;      /* the ephemeral row stands below the cursor */
    bool wants_row;    /* something runs */
    char row[256];     /* its text */
    double row_painted;
    enum answer_part part;
    bool in_answer;

    struct strbuf keys; /* read and not used yet: type-ahead */
    double keys_read;   /* when the last of them came */
    bool said_busy;
    char prompt[PROMPT_BYTES]; /* as Readline has it */
    bool is_open;
};

static struct inline_ui *self(const struct ui *ui)
{
    return ui->state;
}

/* ---- writing ---- */

static void add_caps(struct inline_ui *u, enum term_string which)
{
    strbuf_add_text(&u->out, u->caps.strings[which]);
}

static void add_sync(struct inline_ui *u, const char *mark)
{
    if (u->caps.can_repaint)
        strbuf_add_text(&u->out, mark);
}

static void write_out(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    (void)fflush(stdout); /* Readline's part comes first; its failure shows below as well */
    for (size_t at = 0; at < u->out.n_bytes;) {
        const ssize_t n = write(STDOUT_FILENO, u->out.ptr + at, u->out.n_bytes - at);
        if (n > 0) {
            at += (size_t)n;
        } else if (errno != EINTR) {
            app_end(ui->app, EXIT_HUNG_UP); /* the terminal is gone */
            break;
        }
    }
    strbuf_cut(&u->out, 0);
}

static void erase_row(struct inline_ui *u)
{
    if (u->has_row)
        add_caps(u, TERM_STRING_ERASE_BELOW);
    u->has_row = false;
}

/* The row below the cursor, which comes back to where it was. Not where the next character would go
 * to the next row: the cursor could not be put back there. */
static void paint_row(struct inline_ui *u)
{
    if (!u->wants_row || !u->caps.can_repaint || u->flow.column >= u->size.columns)
        return;
    erase_row(u);
    strbuf_add_char(&u->out, '\n');
    add_caps(u, TERM_STRING_DIM);
    strbuf_add_text(&u->out, u->row);
    add_caps(u, TERM_STRING_NORMAL);
    strbuf_add_char(&u->out, '\r');
    add_caps(u, TERM_STRING_UP);
    if (u->flow.column > 0)
        term_caps_right(&u->caps, u->flow.column, &u->out);
    u->has_row = true;
}

/* The terminal is as wide as it says; the text's last row may have been broken anew. */
static void follow_size(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    const struct tty_size size = tty_size(STDOUT_FILENO);
    if (size.columns == u->size.columns && size.rows == u->size.rows)
        return;
    if (size.columns != u->size.columns && (u->in_answer || u->has_row) && u->caps.can_repaint) {
        for (size_t i = flow_rows_up(&u->flow, size.columns); i > 0; i--)
            add_caps(u, TERM_STRING_UP);
        strbuf_add_char(&u->out, '\r');
        add_caps(u, TERM_STRING_ERASE_BELOW);
        u->has_row = false;
        flow_again(&u->flow, size.columns, &u->out);
    }
    u->size = size;
    u->flow.columns = size.columns;
    line_resize(size.rows, size.columns);
}

/* Does it contain a line end, so that the text moves into the ephemeral row? */
static bool moves_down(const struct inline_ui *u, size_t n_before, size_t column_before)
{
    return memchr(u->out.ptr + n_before, '\n', u->out.n_bytes - n_before) ||
           u->flow.column < column_before;
}

static void add_text(struct ui *ui, struct bn_str text)
{
    struct inline_ui *u = self(ui);
    struct strbuf before = {0};
    const size_t n_before = u->out.n_bytes, column = u->flow.column;
    flow_add(&u->flow, text, &u->out);
    if (!u->has_row || u->out.n_bytes == n_before || !moves_down(u, n_before, column))
        return;
    strbuf_add(&before, u->out.ptr + n_before, u->out.n_bytes - n_before);
    strbuf_cut(&u->out, n_before);
    add_sync(u, SYNC_BEGIN);
    erase_row(u);
    strbuf_add_str(&u->out, strbuf_str(&before));
    paint_row(u);
    add_sync(u, SYNC_END);
    strbuf_finish(&before);
}

/* ---- the program's own words ---- */

static void begin_aside(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (line_is_open()) {
        line_hide();
        return;
    }
    erase_row(u);
    flow_flush(&u->flow, &u->out);
    if (u->flow.column > 0)
        strbuf_add_char(&u->out, '\n');
}

static void end_aside(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    const enum flow_wrap wrap = u->flow.wrap;
    const bool in_code = u->flow.in_code;
    flow_init(&u->flow, u->size.columns, wrap);
    u->flow.in_code = in_code;
    write_out(ui);
    if (line_is_open())
        line_show();
}

static void add_aside(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    struct inline_ui *u = self(ui);
    struct flow flow = {0};
    flow_init(&flow, u->size.columns, tone == TONE_PLAIN ? FLOW_NO_WRAP : terminal_wrap(ui));
    if (tone == TONE_ERROR || tone == TONE_WARNING)
        add_caps(u, TERM_STRING_BOLD);
    else if (tone == TONE_NOTE)
        add_caps(u, TERM_STRING_DIM);
    flow_add(&flow, text, &u->out);
    flow_flush(&flow, &u->out);
    if (tone != TONE_PLAIN)
        add_caps(u, TERM_STRING_NORMAL);
    if (flow.column > 0 || text.n_bytes == 0)
        strbuf_add_char(&u->out, '\n');
    flow_finish(&flow);
}

static void inline_notice(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    if (terminal_is_silent(ui, tone))
        return;
    begin_aside(ui);
    add_aside(ui, tone, text);
    end_aside(ui);
}

/* ---- the row and the prompt ---- */

static void refresh_row(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    char before[sizeof(u->row)];
    memcpy(before, u->row, sizeof(before));
    (void)terminal_status(ui, u->said_busy ? "busy, Esc stops" : "Esc stops", u->size.columns - 1,
                          u->row, sizeof(u->row)); /* the row has one look */
    if (u->has_row && strcmp(before, u->row) == 0)
        return;
    add_sync(u, SYNC_BEGIN);
    paint_row(u);
    add_sync(u, SYNC_END);
}

/* While the model loads the prompt says how far it is; Readline owns its row. */
static void make_prompt(struct ui *ui, char out[PROMPT_BYTES])
{
    const struct inline_ui *u = self(ui);
    const struct chat *c = &ui->app->chat;
    char progress[24] = "";
    if (c->phase == CHAT_LOADING && c->n_to_load > 0 && u->caps.can_repaint)
        (void)snprintf(progress, sizeof(progress), "(loading %.0f%%) ",
                       floor(100.0 * (double)c->n_loaded / (double)c->n_to_load)); /* fits */
    if (u->caps.strings[TERM_STRING_BOLD][0])
        (void)snprintf(out, PROMPT_BYTES, "\001%s\002%s" PROMPT "\001%s\002",
                       u->caps.strings[TERM_STRING_BOLD], progress,
                       u->caps.strings[TERM_STRING_NORMAL]); /* fits */
    else
        (void)snprintf(out, PROMPT_BYTES, "%s" PROMPT, progress); /* fits */
}

static int row_wait(const struct inline_ui *u, double now)
{
    const double left = ROW_SECONDS - (now - u->row_painted);
    return left > 0 ? (int)(left * 1000) + 1 : 0;
}

static void use_keys(struct ui *ui);

static int inline_tick(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    const struct chat *c = &ui->app->chat;
    const double now = clock_seconds();
    int wait = -1;
    follow_size(ui);
    if (u->keys.n_bytes > 0) {
        use_keys(ui);
        wait = u->keys.n_bytes > 0 && u->keys.ptr[0] == '\033' ? 20 : -1;
    }
    if (chat_is_busy(c) && u->wants_row && u->caps.can_repaint) {
        if (row_wait(u, now) == 0) {
            u->row_painted = now;
            refresh_row(ui);
        }
        const int next = row_wait(u, now) > 0 ? row_wait(u, now) : (int)(ROW_SECONDS * 1000);
        wait = wait < 0 ? next : wait;
    } else if (line_is_open()) {
        char prompt[PROMPT_BYTES];
        make_prompt(ui, prompt);
        if (strcmp(prompt, u->prompt) != 0 && (c->phase != CHAT_LOADING || row_wait(u, now) == 0)) {
            u->row_painted = now;
            memcpy(u->prompt, prompt, sizeof(prompt));
            line_set_prompt(u->prompt);
        }
    }
    write_out(ui);
    /* A command has been done and no line is open: the prompt, and keys that wait for it, are next.
     */
    if (!chat_is_busy(c) && c->phase != CHAT_BROKEN && !line_is_open())
        return 0;
    return wait;
}

static void inline_resize(struct ui *ui)
{
    follow_size(ui);
    write_out(ui);
}

/* ---- keys ---- */

static void feed_editor(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    static const char paste_end[] = "\033[201~";
    size_t n_used;
    const double waited = clock_seconds() - u->keys_read;
    enum line_result result = line_feed(strbuf_text(&u->keys), u->keys.n_bytes, &n_used);
    strbuf_drop(&u->keys, n_used);
    if (result == LINE_EDITING && u->keys.n_bytes > 0 && waited > PASTE_SECONDS) {
        strbuf_add_text(&u->keys, paste_end); /* the rest of this paste was lost */
        result = line_feed(strbuf_text(&u->keys), u->keys.n_bytes, &n_used);
        strbuf_drop(&u->keys, n_used);
    }
    (void)fflush(stdout); /* Readline's own drawing; write_out notices a terminal that is gone */
    if (result == LINE_DONE)
        terminal_enter(ui);
    else if (result == LINE_END)
        app_leave(ui->app, EXIT_DONE);
}

static bool is_inside_paste(const struct strbuf *keys)
{
    return keys->n_bytes >= 6 && memcmp(keys->ptr, "\033[200~", 6) == 0;
}

/* While something runs: a lone Esc stops it, Enter is refused, the rest waits for the prompt. */
static void filter_keys(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    const double waited = clock_seconds() - u->keys_read;
    size_t n_kept = 0;
    if (u->keys.ptr[u->keys.n_bytes - 1] == '\033' && waited >= ESCAPE_SECONDS) {
        strbuf_cut(&u->keys, u->keys.n_bytes - 1);
        chat_stop(&ui->app->chat);
    }
    if (is_inside_paste(&u->keys))
        return;
    for (size_t i = 0; i < u->keys.n_bytes; i++) {
        const char key = u->keys.ptr[i];
        const bool alt = i > 0 && u->keys.ptr[i - 1] == '\033';
        if (key == '\r' && !alt) {
            u->said_busy = true;
            u->row_painted = 0;   /* say so at once */
        } else if (key != 0x04) { /* Ctrl-D: nobody leaves in the middle of an answer by accident */
            u->keys.ptr[n_kept++] = key;
        }
    }
    strbuf_cut(&u->keys, n_kept);
}

/* F2 changes painters; what was typed after it is for the next one. */
static void use_keys(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (u->keys.n_bytes == 0 || ui->app->next_ui)
        return;
    const struct term_key_hit hit = term_keys_find(u->keys.ptr, u->keys.n_bytes);
    if (hit.key == TERM_KEY_F2) {
        struct strbuf rest = {0};
        strbuf_add(&rest, u->keys.ptr, hit.at);
        strbuf_add(&rest, u->keys.ptr + hit.at + hit.n_bytes,
                   u->keys.n_bytes - hit.at - hit.n_bytes);
        strbuf_finish(&u->keys);
        u->keys = rest;
        app_change_ui(ui->app, &ui_full_ops);
        return;
    }
    if (line_is_open())
        feed_editor(ui);
    else if (chat_is_busy(&ui->app->chat))
        filter_keys(ui);
}

static void inline_input(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    char block[65536];
    const ssize_t n = read(STDIN_FILENO, block, sizeof(block));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        app_end(ui->app, EXIT_HUNG_UP);
        return;
    }
    strbuf_add(&u->keys, block, (size_t)n);
    u->keys_read = clock_seconds();
    use_keys(ui);
}

static bool inline_wants_input(const struct ui *ui)
{
    (void)ui; /* type-ahead, Esc: always */
    return true;
}

static void inline_ready(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (line_is_open())
        return;
    if (ui->app->first_prompt.n_bytes > 0 && !ui->app->was_first_prompt) {
        ui->app->was_first_prompt = true;
        add_aside(ui, TONE_NOTE, ui->app->first_prompt);
        write_out(ui);
        if (app_say(ui->app, ui->app->first_prompt))
            return;
    }
    make_prompt(ui, u->prompt);
    line_begin(u->prompt);
    use_keys(ui);
}

static void inline_interrupt(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    strbuf_cut(&u->keys, 0);
    if (!line_clear())
        inline_notice(ui, TONE_PLAIN, bn_str_of("Ctrl-D or /quit leaves"));
}

/* ---- answers ---- */

static void inline_turn_begin(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    flow_init(&u->flow, u->size.columns, terminal_wrap(ui));
    u->wants_row = !options_flag(ui->app->options, "plain");
    u->said_busy = false;
    u->in_answer = true;
    u->part = PART_ANSWER;
    u->row_painted = clock_seconds();
    refresh_row(ui);
    write_out(ui);
}

static void switch_part(struct ui *ui, enum answer_part part)
{
    struct inline_ui *u = self(ui);
    if (part == u->part)
        return;
    if (u->part == PART_THOUGHT) {
        add_text(ui, bn_str_of("\n\n"));
        add_caps(u, TERM_STRING_NORMAL);
    } else {
        add_caps(u, TERM_STRING_DIM);
    }
    u->part = part;
}

static void inline_answer(struct ui *ui, enum answer_part part, struct bn_str text)
{
    if (part == PART_THOUGHT && !options_flag(ui->app->options, "thoughts"))
        return;
    follow_size(ui);
    switch_part(ui, part);
    add_text(ui, text);
    write_out(ui);
}

static void inline_token(struct ui *ui, const struct turn *turn)
{
    (void)ui; /* the row is repainted by the clock */
    (void)turn;
}

static void end_answer(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    follow_size(ui);
    erase_row(u);
    u->wants_row = false;
    flow_flush(&u->flow, &u->out);
    if (u->part == PART_THOUGHT)
        add_caps(u, TERM_STRING_NORMAL);
    if (u->flow.column > 0)
        strbuf_add_char(&u->out, '\n');
    flow_init(&u->flow, u->size.columns, u->flow.wrap);
    u->in_answer = false;
}

static void inline_turn_end(struct ui *ui, const struct turn *turn)
{
    struct strbuf line = {0}, probs = {0};
    const char *notice = turn_end_notice(turn);
    end_answer(ui);
    if (notice)
        add_aside(ui, turn->finish == FINISH_DEGENERATE ? TONE_WARNING : TONE_NOTE,
                  bn_str_of(notice));
    if (turn->n_alts > 0) {
        terminal_probs(ui, turn, &probs);
        add_aside(ui, TONE_NOTE, strbuf_str(&probs));
    }
    if (terminal_wants_stats(ui)) {
        turn_stats_line(&ui->app->chat, turn, &line);
        add_aside(ui, TONE_NOTE, strbuf_str(&line));
    }
    strbuf_finish(&line);
    strbuf_finish(&probs);
    write_out(ui);
}

static void inline_turn_failed(struct ui *ui, const struct bn_error *err)
{
    end_answer(ui);
    if (ui->app->chat.phase == CHAT_BROKEN) {
        ui->ops->close(ui); /* a fatal message stands on a restored terminal */
        app_leave(ui->app, report_error(PROGRAM, STAGE_LOAD, err));
        return;
    }
    inline_notice(ui, TONE_ERROR, bn_str_of(err->text));
    if (err->code == BN_ECONTEXT)
        inline_notice(ui, TONE_NOTE, bn_str_of("/forget, /clear or a larger --ctx make room"));
}

/* ---- taking and giving back ---- */

static enum term_looks chosen_looks(const struct ui *ui)
{
    if (options_flag(ui->app->options, "plain"))
        return TERM_LOOKS_PLAIN;
    return terminal_wants_looks(ui) ? TERM_LOOKS_RICH : TERM_LOOKS_SIMPLE;
}

/* Another painter has begun with it. */
static void take_up_answer(struct ui *ui)
{
    const struct turn *turn = &ui->app->chat.turn;
    inline_turn_begin(ui);
    if (turn->thought.n_bytes > 0)
        inline_answer(ui, PART_THOUGHT, strbuf_str(&turn->thought));
    if (turn->shown.n_bytes > 0)
        inline_answer(ui, PART_ANSWER, strbuf_str(&turn->shown));
}

static bool inline_open(struct ui *ui, struct bn_error *err)
{
    struct inline_ui *u = mem_alloc(1, sizeof(*u));
    if (!u)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    ui->state = u;
    term_caps_read(&u->caps, chosen_looks(ui));
    if (!tty_take(u->caps.can_repaint ? TTY_PASTE_MARKED : TTY_PASTE_PLAIN, err)) {
        mem_free(u);
        ui->state = NULL;
        return false;
    }
    u->is_open = true;
    u->size = tty_size(STDOUT_FILENO);
    flow_init(&u->flow, u->size.columns, terminal_wrap(ui));
    strbuf_add_str(&u->keys, strbuf_str(&ui->app->typed)); /* another painter had no use for it */
    strbuf_cut(&ui->app->typed, 0);
    terminal_begin(ui);
    if (chat_is_busy(&ui->app->chat))
        take_up_answer(ui);
    return true;
}

static void inline_close(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (!u)
        return;
    erase_row(u);
    if (line_is_open() || u->flow.column > 0)
        strbuf_add_char(&u->out, '\n');
    write_out(ui);
    strbuf_add_str(&ui->app->typed, strbuf_str(&u->keys));
    terminal_finish(ui);
    tty_give_back();
    flow_finish(&u->flow);
    strbuf_finish(&u->out);
    strbuf_finish(&u->keys);
    mem_free(u);
    ui->state = NULL;
}

static void inline_suspend(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    erase_row(u);
    strbuf_add_char(&u->out, '\n');
    write_out(ui);
    tty_give_back();
}

static void inline_resume(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    struct bn_error err;
    tty_give_back(); /* the shell may have set it otherwise since */
    if (!tty_take(u->caps.can_repaint ? TTY_PASTE_MARKED : TTY_PASTE_PLAIN, &err))
        app_end(ui->app, EXIT_HUNG_UP);
    if (line_is_open()) {
        line_show();
    } else if (u->in_answer) {
        flow_again(&u->flow, u->size.columns, &u->out);
        paint_row(u);
        write_out(ui);
    }
}

const struct ui_ops ui_inline_ops = {
    .name = "inline",
    .open = inline_open,
    .close = inline_close,
    .ready = inline_ready,
    .input = inline_input,
    .wants_input = inline_wants_input,
    .tick = inline_tick,
    .resize = inline_resize,
    .interrupt = inline_interrupt,
    .suspend = inline_suspend,
    .resume = inline_resume,
    .notice = inline_notice,
    .edit = terminal_edit,
    .turn_begin = inline_turn_begin,
    .answer = inline_answer,
    .token = inline_token,
    .turn_end = inline_turn_end,
    .turn_failed = inline_turn_failed,
};
