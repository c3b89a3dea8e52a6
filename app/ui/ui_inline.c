/*
 * The inline painter: answers are appended to the ordinary screen, and Readline edits below them.
 * During an answer, a temporary status row is shown below the text.
 */
#include "app/ui/ui_inline_state.h"

#include "app/common/term_text.h"
#include "app/terminal/term_keys.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

static struct inline_ui *self(const struct ui *ui)
{
    return ui->state;
}

static void inline_notice(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    if (ui_is_hidden(ui, tone))
        return;
    inline_begin_message(ui);
    inline_add_message(ui, tone, text);
    inline_end_message(ui);
}

/* ---- status row and prompt ---- */

/* While the model loads, the prompt shows the progress, because the status row is shown only during
 * a turn. floor: "100%" appears only at the end. */
static void make_prompt(struct ui *ui, char out[INLINE_PROMPT_BYTES])
{
    const struct chat *c = ui->chat;
    char progress[24] = "";
    if (c->phase == CHAT_LOADING && c->n_to_load > 0 && !chat_is_busy(c) &&
        self(ui)->caps.can_repaint)
        (void)snprintf(progress, sizeof(progress), "(loading %.0f%%) ",
                       floor(100.0 * (double)c->n_loaded / (double)c->n_to_load)); /* fits */
    (void)snprintf(out, INLINE_PROMPT_BYTES, "%s" TERMINAL_PROMPT, progress);      /* fits */
}

/* Milliseconds until the next repaint of the status row or of the progress in the prompt. */
static int row_wait(const struct ui *ui, double now)
{
    return status_wait(&self(ui)->row_clock, chat_state(ui->chat), now);
}

/* Show a prompt that has changed. The progress of loading changes as often as a status row. */
static void update_prompt(struct ui *ui, double now)
{
    struct inline_ui *u = self(ui);
    char prompt[INLINE_PROMPT_BYTES];
    make_prompt(ui, prompt);
    if (strcmp(prompt, u->prompt) == 0 || line_has_other_prompt() ||
        (ui->chat->phase == CHAT_LOADING && row_wait(ui, now) > 0))
        return;
    status_written(&u->row_clock, chat_state(ui->chat), now);
    memcpy(u->prompt, prompt, sizeof(prompt));
    line_set_prompt(u->prompt);
}

static int inline_tick(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    const struct chat *c = ui->chat;
    const double now = clock_seconds();
    /* If a key or a paste is incomplete, test again after 20 ms whether its time is over. */
    int wait = ui->terminal->keys.bytes.n_bytes > 0 ? 20 : -1;
    inline_follow_size(ui);
    if (chat_is_busy(c))
        inline_open_editor(ui);
    if (chat_is_busy(c) && u->row_enabled && u->caps.can_repaint) {
        if (row_wait(ui, now) == 0) {
            status_written(&u->row_clock, chat_state(ui->chat), now);
            inline_refresh_row(ui);
        }
        wait = wait < 0 ? row_wait(ui, now) : wait;
    } else if (line_is_open() && !u->in_answer) {
        update_prompt(ui, now);
        inline_draw_editor(ui);
    }
    inline_write_out(ui);
    const int settle_wait = inline_settle_wait(u);
    if (settle_wait >= 0 && (wait < 0 || settle_wait < wait))
        wait = settle_wait;
    /* A command has finished and the editor is closed: return at once, so that the prompt and
     * waiting keys come next. */
    if (!chat_is_busy(c) && !line_is_open())
        return 0;
    return wait;
}

static void inline_resize(struct ui *ui)
{
    inline_follow_size(ui);
    inline_write_out(ui);
}

static void inline_ready(struct ui *ui)
{
    if (line_is_open())
        return;
    make_prompt(ui, self(ui)->prompt);
    inline_open_editor(ui);
}

/* ---- keys ---- */

/* Begin a row below the editor, whose rows stay on the screen, or below the text. */
static void leave_row(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (u->editor.is_drawn)
        inline_leave_editor(u);
    else if (u->flow.column > 0 || (!u->caps.can_repaint && !u->in_answer)) /* Readline's line */
        strbuf_add_char(&u->out, '\n');
    flow_pause(&u->flow);
    flow_begin_row(&u->flow); /* a running answer continues in this row */
}

/* Append a line of the user to the text, with "... " after each newline, as in the editor. An open
 * editor is erased first and not kept as text, because it may have shown only some of its rows. */
static void add_user_text(struct ui *ui, struct bn_str displayed)
{
    struct inline_ui *u = self(ui);
    struct strbuf text = {0};
    input_rows_continue(displayed, &text);
    inline_begin_message(ui);
    inline_add_terminfo(u, TERMINFO_BOLD);
    strbuf_add_text(&u->out, TERMINAL_PROMPT);
    inline_add_terminfo(u, TERMINFO_NORMAL);
    term_text_clean(strbuf_str(&text), TERM_KEEP_LINES, &u->out);
    strbuf_add_char(&u->out, '\n');
    flow_begin_row(&u->flow);
    inline_write_out(ui);
    strbuf_finish(&text);
}

/* A ui_terminal_entered_fn for lines that become events at once. */
static void show_entered(struct ui *ui, struct bn_str displayed)
{
    const struct inline_ui *u = self(ui);
    if (u->caps.can_repaint || u->in_answer)
        add_user_text(ui, displayed);
    /* otherwise Readline has drawn it */
}

/* A ui_terminal_entered_fn for lines from the queue. */
static void show_queued(struct ui *ui, struct bn_str displayed)
{
    const struct inline_ui *u = self(ui);
    if (!u->caps.can_repaint && line_is_open()) {
        line_leave();
        line_stop(); /* `ready` opens the editor again, below the output of this line */
    }
    add_user_text(ui, displayed);
}

/* If F2 is among the keys, remove it and set *event to the change of the painter. The other painter
 * gets the remaining keys, also those before F2. */
static bool remove_f2(struct strbuf *keys, struct ui_event *event)
{
    const struct term_key_hit hit = term_keys_find(keys->ptr, keys->n_bytes, TERM_KEY_F2);
    struct strbuf rest = {0};
    if (hit.key != TERM_KEY_F2)
        return false;
    strbuf_add(&rest, keys->ptr, hit.at);
    strbuf_add(&rest, keys->ptr + hit.at + hit.n_bytes, keys->n_bytes - hit.at - hit.n_bytes);
    strbuf_finish(keys);
    *keys = rest;
    *event = (struct ui_event){.kind = UI_CHANGE_PAINTER, .painter = "full"};
    return true;
}

/* Queued lines are rows below the answer. Without these rows, as with --plain, a message shows that
 * a line waits or was taken back. */
static void show_change_of_queue(struct ui *ui, size_t n_before)
{
    const struct inline_ui *u = self(ui);
    const struct entry_queue *q = &ui->terminal->queue;
    struct strbuf text = {0};
    if (q->n == n_before || !u->in_answer || (u->row_enabled && u->caps.can_repaint))
        return;
    if (q->n > n_before) /* one column stays free, as in flow.c */
        entry_queue_last_row(q, tty_safe_columns(u->size), &text);
    else
        strbuf_add_text(&text, "taken back");
    inline_begin_message(ui);
    inline_add_message(ui, TONE_PLAIN, strbuf_str(&text));
    inline_end_message(ui);
    inline_write_out(ui);
    strbuf_finish(&text);
}

/* Handle the keys of the queue until there is an event. False: no event; all keys are used, or the
 * last one is incomplete. */
static bool feed_keys(struct ui *ui, struct ui_event *event)
{
    struct strbuf *keys = &ui->terminal->keys.bytes;
    while (keys->n_bytes > 0) {
        if (remove_f2(keys, event) || ui_terminal_filter_keys(ui, event))
            return true;
        const size_t n = ui_terminal_complete_keys(ui);
        if (n == 0)
            return false;
        inline_open_editor(ui);
        const size_t n_queued = ui->terminal->queue.n;
        const enum ui_terminal_fed fed = ui_terminal_feed(ui, n, show_entered, event);
        show_change_of_queue(ui, n_queued);
        (void)fflush(stdout); /* of Readline; inline_write_out reports errors */
        if (fed == TERMINAL_EVENT && event->kind == UI_END)
            leave_row(ui); /* so that the shell's prompt begins a new row */
        if (fed != TERMINAL_FED_ALL)
            return fed == TERMINAL_EVENT;
    }
    return false;
}

static bool inline_next_event(struct ui *ui, struct ui_event *event)
{
    if (ui->terminal->is_hung_up) {
        *event = (struct ui_event){.kind = UI_HANG_UP};
        return true;
    }
    if (ui_terminal_next_queued(ui, show_queued, event))
        return true;
    /* While no turn runs, keys wait until `ready` opens the editor, after the output of the last
     * command or turn. */
    return (line_is_open() || chat_is_busy(ui->chat)) && feed_keys(ui, event);
}

static void inline_input(struct ui *ui)
{
    (void)ui_terminal_read_keys(ui); /* the number is not needed */
}

/* ---- answers ---- */

/* Go on as if this part of the answer had been written. */
static void skip_part(struct ui *ui, enum answer_part part, struct bn_str text)
{
    struct inline_ui *u = self(ui);
    if (text.n_bytes == 0)
        return;
    u->part = part;
    flow_set_kind(&u->flow, part == PART_THOUGHT ? FLOW_THOUGHT : FLOW_ANSWER, &u->out);
    flow_skip(&u->flow, text);
}

/* If a signal ends the program during an answer, erase the status row and the rows below it. The
 * cursor is at the end of the text. */
static void set_exit_sequence(const struct inline_ui *u)
{
    char bytes[100] = "";
    if (u->in_answer && u->row_enabled && u->caps.can_repaint)
        (void)snprintf(bytes, sizeof(bytes), "%s%s", u->caps.strings[TERMINFO_NORMAL],
                       u->caps.strings[TERMINFO_ERASE_BELOW]); /* fits: see terminfo.h */
    tty_set_exit_sequence(bytes);
}

static void inline_turn_begin(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    ui_terminal_note_fullness(ui);
    inline_hide_editor(u);
    if (!u->caps.can_repaint)
        line_stop(); /* Readline must not draw during the answer */
    flow_init(&u->flow, u->size.columns, ui_terminal_wrap(ui), FLOW_ANSWER, &u->looks);
    u->row_enabled = !options_flag(ui->options, "plain");
    u->in_answer = true;
    set_exit_sequence(u);
    ui->terminal->printed = (struct answer_position){0};
    u->part = PART_ANSWER;
    ui_terminal_skip_earlier(ui, skip_part);
    make_prompt(ui, u->prompt);
    line_replace_prompt(u->prompt);
    status_written(&u->row_clock, chat_state(ui->chat), clock_seconds());
    inline_refresh_row(ui);
    inline_write_out(ui);
}

/* A blank line separates a thought from the answer. */
static void switch_part(struct ui *ui, enum answer_part part)
{
    struct inline_ui *u = self(ui);
    if (u->part == PART_THOUGHT && part == PART_ANSWER)
        inline_add_text(ui, bn_str_of("\n\n"));
    u->part = part;
    flow_set_kind(&u->flow, part == PART_THOUGHT ? FLOW_THOUGHT : FLOW_ANSWER, &u->out);
}

static void inline_answer(struct ui *ui, enum answer_part part, struct bn_str text)
{
    if (part == PART_THOUGHT && !options_flag(ui->options, "thoughts"))
        return;
    self(ui)->row_clock.n_text += text.n_bytes;
    inline_follow_size(ui);
    switch_part(ui, part);
    inline_add_text(ui, text);
    inline_write_out(ui);
}

static void end_answer(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    inline_settle(ui);
    inline_erase_row(u);
    u->row_enabled = u->is_settling = false;
    flow_flush(&u->flow, &u->out);
    flow_reset_look(&u->flow, &u->out);
    if (u->flow.column > 0)
        strbuf_add_char(&u->out, '\n');
    flow_begin_row(&u->flow);
    u->in_answer = false;
    set_exit_sequence(u);
    u->editor.is_changed = true; /* the editor was not drawn during the answer */
    if (!u->caps.can_repaint)
        line_stop(); /* Readline draws the line when it is opened again */
}

static void inline_turn_end(struct ui *ui, const struct turn *turn)
{
    end_answer(ui);
    ui_terminal_show_end(ui, turn, inline_add_message);
    ui_terminal_show_fullness(ui, turn, inline_add_message);
    inline_write_out(ui);
}

static void inline_turn_failed(struct ui *ui, const struct bn_error *err)
{
    end_answer(ui);
    ui_terminal_show_failure(ui, err);
}

/* ---- open and close ---- */

static enum terminfo_style chosen_style(const struct ui *ui)
{
    if (options_flag(ui->options, "plain"))
        return TERMINFO_STYLE_NONE;
    return ui_terminal_uses_colour(ui) ? TERMINFO_STYLE_RICH : TERMINFO_STYLE_SIMPLE;
}

/* A ui_terminal_add_fn. */
static void add_running(struct ui *ui, enum answer_part part, struct bn_str printed,
                        struct bn_str rest)
{
    if (part == PART_THOUGHT && !options_flag(ui->options, "thoughts"))
        return;
    skip_part(ui, part, printed);
    if (rest.n_bytes > 0)
        inline_answer(ui, part, rest);
}

/* Record how much of the answer is on the screen. When this painter opens again, it prints the
 * rest. A hidden thought counts as printed. */
static void note_printed(struct ui *ui)
{
    const struct inline_ui *u = self(ui);
    const struct turn *turn = &ui->chat->turn;
    const size_t n_pending = flow_n_pending(&u->flow);
    const bool in_thought = u->part == PART_THOUGHT;
    ui->terminal->printed =
        (struct answer_position){.n_thought = turn->thought.n_bytes - (in_thought ? n_pending : 0),
                                 .n_shown = turn->shown.n_bytes - (in_thought ? 0 : n_pending)};
}

static bool inline_open(struct ui *ui, struct bn_error *err)
{
    struct inline_ui *u = mem_alloc(1, sizeof(*u));
    if (!u)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    ui->state = u;
    terminfo_read(&u->caps, chosen_style(ui));
    /* Also with --plain: without the marks, each line of a paste would be sent as a message. */
    if (!tty_acquire(u->caps.has_screen ? TTY_PASTE_BRACKETED : TTY_PASTE_PLAIN, err)) {
        mem_free(u);
        ui->state = NULL;
        return false;
    }
    u->size = tty_size(STDOUT_FILENO);
    terminfo_text_looks(&u->caps, &u->looks);
    u->flow.columns = u->size.columns; /* inline_turn_begin sets the other fields */
    ui_terminal_begin(ui);
    make_prompt(ui, u->prompt);
    if (chat_is_busy(ui->chat))
        ui_terminal_resume_answer(ui, add_running);
    return true;
}

static void inline_close(struct ui *ui, enum ui_close how)
{
    struct inline_ui *u = self(ui);
    if (!u)
        return;
    inline_erase_row(u);
    if (u->in_answer && how == UI_CLOSE_CHANGE)
        note_printed(ui);
    else
        flow_flush(&u->flow, &u->out);
    flow_reset_look(&u->flow, &u->out);
    if (how == UI_CLOSE_CHANGE && u->caps.can_repaint)
        inline_hide_editor(u); /* the next painter shows the text of the editor */
    if (u->editor.is_drawn || u->flow.column > 0 || (line_is_open() && !u->caps.can_repaint))
        leave_row(ui);
    inline_write_out(ui);
    ui_terminal_end(how);
    line_set_display(NULL);
    tty_set_exit_sequence(""); /* the rows are erased already */
    tty_release();
    flow_finish(&u->flow);
    input_rows_finish(&u->editor.drawn);
    input_rows_finish(&u->editor.next);
    strbuf_finish(&u->below);
    strbuf_finish(&u->out);
    mem_free(u);
    ui->state = NULL;
}

static void inline_suspend(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    inline_erase_row(u);
    flow_reset_look(&u->flow, &u->out);
    leave_row(ui);
    inline_write_out(ui);
    tty_set_exit_sequence(""); /* the rows are erased already */
    tty_release();
    u->is_suspended = true;
}

/* After inline_suspend, the cursor is at the start of a row. If SIGSTOP has stopped this process,
 * inline_suspend was not called, and the editor may still be on the screen. */
static void inline_resume(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    struct bn_error err;
    const bool is_own_row = u->is_suspended;
    u->is_suspended = false;
    tty_set_exit_sequence(""); /* tty_reacquire would write it */
    if (!tty_reacquire(&err)) {
        ui->terminal->is_hung_up = true;
        return;
    }
    set_exit_sequence(u);
    if (u->in_answer) {
        inline_follow_size(ui);
        inline_refresh_row(ui);
    } else {
        if (!is_own_row)
            inline_hide_editor(u);
        u->editor.is_changed = true;
        inline_show_editor(ui);
    }
    inline_write_out(ui);
}

const struct ui_ops ui_inline_ops = {
    .name = "inline",
    .is_terminal = true,
    .open = inline_open,
    .close = inline_close,
    .ready = inline_ready,
    .wants_input = ui_terminal_wants_input,
    .input = inline_input,
    .next_event = inline_next_event,
    .entry_done = ui_terminal_entry_done,
    .tick = inline_tick,
    .resize = inline_resize,
    .interrupt = ui_terminal_interrupt,
    .unqueue_all = ui_terminal_unqueue_all,
    .suspend = inline_suspend,
    .resume = inline_resume,
    .notice = inline_notice,
    .show_message = add_user_text,
    .find = ui_find_nowhere,
    .edit = ui_terminal_edit,
    .turn_begin = inline_turn_begin,
    .answer = inline_answer,
    .token = ui_terminal_token,
    .turn_end = inline_turn_end,
    .turn_failed = inline_turn_failed,
};
