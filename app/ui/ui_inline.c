/*
 * The inline painter: answers are appended to the ordinary screen, Readline edits below them, and
 * while something runs one ephemeral row stands under the text.
 *
 * Nothing that scrolled away is ever painted again. The ephemeral row is erased before the text
 * moves into it; between repaints the cursor always stands at the end of the text. On a resize only
 * the cursor's row is given again.
 */
#include "app/ui/ui_inline_state.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

/* How often the row is repainted: a line of ssh is thin, and so is an answer. */
#define ROW_SECONDS 0.5
#define ROW_SECONDS_ANSWER 1.0
static struct inline_ui *self(const struct ui *ui)
{
    return ui->state;
}

static void inline_notice(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    if (terminal_is_silent(ui, tone))
        return;
    inline_begin_aside(ui);
    inline_add_aside(ui, tone, text);
    inline_end_aside(ui);
}

/* ---- the row and the prompt ---- */

static void put_prompt(const struct inline_ui *u, const char *progress,
                       char out[INLINE_PROMPT_BYTES])
{
    if (u->caps.strings[TERM_STRING_BOLD][0])
        (void)snprintf(out, INLINE_PROMPT_BYTES, "\001%s\002%s" TERMINAL_PROMPT "\001%s\002",
                       u->caps.strings[TERM_STRING_BOLD], progress,
                       u->caps.strings[TERM_STRING_NORMAL]); /* fits */
    else
        (void)snprintf(out, INLINE_PROMPT_BYTES, "%s" TERMINAL_PROMPT, progress); /* fits */
}

/* While the model loads the prompt says how far it is; Readline owns its row. */
static void make_prompt(struct ui *ui, char out[INLINE_PROMPT_BYTES])
{
    const struct chat *c = ui->chat;
    char progress[24] = "";
    if (c->phase == CHAT_LOADING && c->n_to_load > 0 && self(ui)->caps.can_repaint)
        (void)snprintf(progress, sizeof(progress), "(loading %.0f%%) ",
                       floor(100.0 * (double)c->n_loaded / (double)c->n_to_load)); /* fits */
    put_prompt(self(ui), progress, out);
}

static int row_wait(const struct ui *ui, double now)
{
    const struct inline_ui *u = self(ui);
    const enum chat_phase phase = ui->chat->phase;
    const double every = phase == CHAT_GENERATING ? ROW_SECONDS_ANSWER : ROW_SECONDS;
    const double left = every - (now - u->row_painted);
    return left > 0 && phase == u->row_phase ? (int)(left * 1000) + 1 : 0;
}

/* An Esc, or a paste whose end is awaited: time decides. */
static bool is_undecided(const struct strbuf *keys)
{
    return keys->n_bytes > 0 && (keys->ptr[0] == '\033' || keys->ptr[keys->n_bytes - 1] == '\033');
}

static int inline_tick(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    const struct chat *c = ui->chat;
    const double now = clock_seconds();
    int wait = -1;
    inline_follow_size(ui);
    if (is_undecided(&ui->terminal->keys.bytes))
        wait = 20;
    if (chat_is_busy(c) && u->wants_row && u->caps.can_repaint) {
        if (row_wait(ui, now) == 0) {
            u->row_painted = now;
            u->row_phase = c->phase;
            inline_refresh_row(ui);
        }
        wait = wait < 0 ? row_wait(ui, now) : wait;
    } else if (line_is_open()) {
        char prompt[INLINE_PROMPT_BYTES];
        make_prompt(ui, prompt);
        if (strcmp(prompt, u->prompt) != 0 &&
            (c->phase != CHAT_LOADING || row_wait(ui, now) == 0)) {
            u->row_painted = now;
            u->row_phase = c->phase;
            memcpy(u->prompt, prompt, sizeof(prompt));
            line_set_prompt(u->prompt);
        }
    }
    inline_write_out(ui);
    /* A command has been done and no line is open: the prompt, and keys that wait for it, are next.
     */
    if (!chat_is_busy(c) && !line_is_open())
        return 0;
    return wait;
}

static void inline_resize(struct ui *ui)
{
    inline_follow_size(ui);
    inline_write_out(ui);
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
    make_prompt(ui, u->prompt);
    line_begin(u->prompt);
}

static void inline_said(struct ui *ui, struct bn_str text)
{
    inline_add_aside(ui, TONE_NOTE, text);
    inline_write_out(ui);
}

static void inline_interrupt(struct ui *ui)
{
    strbuf_cut(&ui->terminal->keys.bytes, 0);
    if (!line_clear())
        inline_notice(ui, TONE_PLAIN, bn_str_of("Ctrl-D or /quit leaves"));
}

/* ---- answers ---- */

static void inline_turn_begin(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    flow_init(&u->flow, u->size.columns, terminal_wrap(ui), FLOW_ANSWER, &u->paint);
    u->wants_row = !options_flag(ui->options, "plain");
    u->said_busy = false;
    u->in_answer = true;
    ui->terminal->printed = (struct answer_mark){0};
    u->part = PART_ANSWER;
    u->row_painted = clock_seconds();
    inline_refresh_row(ui);
    inline_write_out(ui);
}

/* A thought ends with an empty line. */
static void switch_part(struct ui *ui, enum answer_part part)
{
    struct inline_ui *u = self(ui);
    if (u->part == PART_THOUGHT && part == PART_ANSWER)
        inline_add_text(ui, bn_str_of("\n\n"));
    u->part = part;
    flow_speak(&u->flow, part == PART_THOUGHT ? FLOW_THOUGHT : FLOW_ANSWER, &u->out);
}

static void inline_answer(struct ui *ui, enum answer_part part, struct bn_str text)
{
    if (part == PART_THOUGHT && !options_flag(ui->options, "thoughts"))
        return;
    inline_follow_size(ui);
    switch_part(ui, part);
    inline_add_text(ui, text);
    inline_write_out(ui);
}

static void inline_token(struct ui *ui, const struct turn *turn)
{
    (void)ui; /* the row is repainted by the clock */
    (void)turn;
}

static void end_answer(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    inline_follow_size(ui);
    inline_erase_row(u);
    u->wants_row = false;
    flow_flush(&u->flow, &u->out);
    flow_plain(&u->flow, &u->out);
    if (u->flow.column > 0)
        strbuf_add_char(&u->out, '\n');
    flow_begin_row(&u->flow);
    u->in_answer = false;
}

static void inline_turn_end(struct ui *ui, const struct turn *turn)
{
    end_answer(ui);
    terminal_say_end(ui, turn, inline_add_aside);
    inline_write_out(ui);
}

static void inline_turn_failed(struct ui *ui, const struct bn_error *err)
{
    end_answer(ui);
    terminal_fail(ui, err);
}

/* ---- taking and giving back ---- */

static enum term_looks chosen_looks(const struct ui *ui)
{
    if (options_flag(ui->options, "plain"))
        return TERM_LOOKS_PLAIN;
    return terminal_wants_looks(ui) ? TERM_LOOKS_RICH : TERM_LOOKS_SIMPLE;
}

static struct bn_str part_of(const struct strbuf *b, size_t from, size_t to)
{
    return (struct bn_str){strbuf_text(b) + from, to - from};
}

/* One part of the answer that runs, of which n_printed bytes are printed. */
static void take_up_part(struct ui *ui, enum answer_part part, const struct strbuf *text,
                         size_t n_printed)
{
    struct inline_ui *u = self(ui);
    n_printed = size_min(n_printed, text->n_bytes);
    if (part == PART_THOUGHT && !options_flag(ui->options, "thoughts"))
        return;
    if (n_printed > 0) {
        u->part = part;
        flow_speak(&u->flow, part == PART_THOUGHT ? FLOW_THOUGHT : FLOW_ANSWER, &u->out);
        flow_skip(&u->flow, part_of(text, 0, n_printed));
    }
    if (n_printed < text->n_bytes)
        inline_answer(ui, part, part_of(text, n_printed, text->n_bytes));
}

static void take_up(struct ui *ui)
{
    const struct turn *turn = &ui->chat->turn;
    const struct answer_mark mark = terminal_printed(ui);
    inline_turn_begin(ui);
    take_up_part(ui, PART_THOUGHT, &turn->thought, mark.n_thought);
    take_up_part(ui, PART_ANSWER, &turn->shown, mark.n_shown);
}

/* What the screen has of the answer; the rest is left to the next painter. */
static void leave_answer(struct ui *ui)
{
    const struct inline_ui *u = self(ui);
    const struct turn *turn = &ui->chat->turn;
    const size_t n_held = flow_held(&u->flow);
    const bool in_thought = u->part == PART_THOUGHT;
    ui->terminal->printed =
        (struct answer_mark){.n_thought = turn->thought.n_bytes - (in_thought ? n_held : 0),
                             .n_shown = turn->shown.n_bytes - (in_thought ? 0 : n_held)};
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
    term_caps_paint(&u->caps, &u->paint);
    u->flow.columns = u->size.columns;
    terminal_begin(ui);
    put_prompt(u, "", u->final_prompt);
    line_set_final_prompt(u->final_prompt);
    if (chat_is_busy(ui->chat))
        take_up(ui);
    return true;
}

static void inline_close(struct ui *ui, enum ui_close how)
{
    struct inline_ui *u = self(ui);
    if (!u)
        return;
    inline_erase_row(u);
    if (u->in_answer && how == UI_CLOSE_CHANGE)
        leave_answer(ui);
    else
        flow_flush(&u->flow, &u->out);
    flow_plain(&u->flow, &u->out);
    if (line_is_open() || u->flow.column > 0)
        strbuf_add_char(&u->out, '\n');
    inline_write_out(ui);
    line_set_final_prompt(NULL);
    terminal_finish(how);
    tty_give_back();
    flow_finish(&u->flow);
    strbuf_finish(&u->out);
    mem_free(u);
    ui->state = NULL;
}

static void inline_suspend(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    inline_erase_row(u);
    flow_plain(&u->flow, &u->out);
    strbuf_add_char(&u->out, '\n');
    flow_begin_row(&u->flow); /* an answer goes on there, and repeats nothing */
    inline_write_out(ui);
    tty_give_back();
    u->is_suspended = true;
}

/* After inline_suspend the cursor stands at the start of a row. Without it somebody else stopped
 * the process, and the screen is as it was. */
static void inline_resume(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    struct bn_error err;
    const bool is_own_row = u->is_suspended;
    u->is_suspended = false;
    if (!tty_take_again(&err))
        ui->terminal->is_hung_up = true;
    if (line_is_open()) {
        if (!is_own_row)
            line_hide();
        line_show();
    } else if (u->in_answer) {
        inline_paint_row(u);
        inline_write_out(ui);
    }
}

const struct ui_ops ui_inline_ops = {
    .name = "inline",
    .is_terminal = true,
    .open = inline_open,
    .close = inline_close,
    .ready = inline_ready,
    .wants_input = inline_wants_input,
    .input = inline_input,
    .next_event = inline_next_event,
    .entry_done = terminal_entry_done,
    .tick = inline_tick,
    .resize = inline_resize,
    .interrupt = inline_interrupt,
    .suspend = inline_suspend,
    .resume = inline_resume,
    .notice = inline_notice,
    .show_message = inline_said,
    .find = ui_find_nowhere,
    .edit = terminal_edit,
    .turn_begin = inline_turn_begin,
    .answer = inline_answer,
    .token = inline_token,
    .turn_end = inline_turn_end,
    .turn_failed = inline_turn_failed,
};
