/*
 * The output of the inline painter: appended text, the status row below it, and messages.
 *
 * Text above the cursor's row is never written again. During an answer, the cursor is at the end of
 * the text between two writes. Before text is written into the place of the status row, the status
 * row is erased or moved down. When the width has changed, only the row with the cursor is written
 * again. A newline also moves the cursor to column 0, because tty_acquire does not change the
 * terminal's output mode.
 */
#include "app/ui/ui_inline_state.h"

#include "app/common/term_text.h"
#include "engine/base/clock.h"
#include "engine/base/size.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The terminal shows the output between these sequences as one update (synchronised output).
 * Terminals without this feature ignore them. terminfo has no standard name for them. */
#define SYNC_BEGIN "\033[?2026h"
#define SYNC_END "\033[?2026l"

/* After the width has changed, the last row of an answer, or the editor, is written again when no
 * other change has come for this time. Otherwise the screen might already have a third width, at
 * which the rows have another number of parts. tmux changes its screen at once, but reports a
 * change up to 0.25 s after the one before. */
#define SETTLE_SECONDS 0.3
#define MAX_SETTLE_SECONDS 1.0 /* most seconds that inline_settle waits while changes come */

#define QUEUE_ROWS 3 /* most rows of queued lines, so that the answer keeps most of the screen */

static struct inline_ui *self(const struct ui *ui)
{
    return ui->state;
}

void inline_add_terminfo(struct inline_ui *u, enum terminfo_string which)
{
    strbuf_add_text(&u->out, u->caps.strings[which]);
}

/* Set *out to the rows below the status row, and set their numbers, n_below and n_queued. They take
 * at most half of the screen. As in the editor, the last column stays free, so that the terminal
 * does not break a row. Returns the value for below_cursor. */
static size_t make_below(struct ui *ui, struct strbuf *out)
{
    struct inline_ui *u = self(ui);
    const size_t max_rows = u->size.rows / 2;
    const size_t n_least = max_rows > 1 && !line_is_empty() ? 1 : 0; /* reserved for typed text */
    strbuf_cut(out, 0);
    if (max_rows > n_least)
        entry_queue_rows(&ui->terminal->queue, ENTRY_NEXT, tty_safe_columns(u->size),
                         size_min(max_rows - n_least, QUEUE_ROWS), out);
    u->n_queued = bn_str_count(strbuf_str(out), '\n');
    const size_t cursor = inline_typed_rows(ui, max_rows - u->n_queued, out);
    u->n_below = bn_str_count(strbuf_str(out), '\n');
    return cursor;
}

static void add_sync(struct inline_ui *u, const char *mark)
{
    if (u->caps.can_repaint)
        strbuf_add_text(&u->out, mark);
}

void inline_write_out(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    (void)fflush(stdout); /* Readline's output comes first; tty_write reports errors */
    if (!ui->terminal->is_hung_up && !tty_write(u->out.ptr, u->out.n_bytes))
        ui->terminal->is_hung_up = true;
    strbuf_cut(&u->out, 0);
}

void inline_erase_row(struct inline_ui *u)
{
    if (u->has_row)
        inline_add_terminfo(u, TERMINFO_ERASE_BELOW);
    u->has_row = false;
}

/* Whether the status row can be painted. While the width may still change, it cannot: the terminal
 * might wrap the status row, and then it is unknown how far the cursor must move up to the text. If
 * the text fills its row, it cannot either: the cursor would have to return to the place after the
 * last column, and no control sequence can do that. The terminal may show each character of varying
 * width one column wider. */
static bool has_room(const struct inline_ui *u)
{
    const struct flow *f = &u->flow;
    return u->row_enabled && u->caps.can_repaint && !u->is_settling &&
           f->column + f->n_width_varies < u->size.columns;
}

/* Move the cursor from n_rows below the text back to the end of the text. If the width of a
 * character differs between terminals, write the text again to get there. */
static void go_back(struct inline_ui *u, size_t n_rows)
{
    strbuf_add_char(&u->out, '\r');
    for (size_t i = 0; i < n_rows; i++)
        inline_add_terminfo(u, TERMINFO_UP);
    if (u->flow.n_width_varies > 0) {
        flow_write_row(&u->flow, &u->out);
        flow_reset_look(&u->flow, &u->out);
    } else if (u->flow.column > 0) {
        terminfo_add_right(&u->caps, u->flow.column, &u->out);
    }
}

/* Write the bytes [from, to) of the status row in the row below the cursor. The cursor stays in
 * that row. The status row is ASCII, so a byte is a column. */
static void paint_row_range(struct inline_ui *u, size_t from, size_t to)
{
    flow_reset_look(&u->flow, &u->out);
    strbuf_add_char(&u->out, '\n');
    if (from > 0)
        terminfo_add_right(&u->caps, from, &u->out);
    inline_add_terminfo(u, TERMINFO_DIM);
    strbuf_add(&u->out, u->row + from, to - from);
    inline_add_terminfo(u, TERMINFO_NORMAL);
}

/* Write a row of typed text. The cursor of the terminal stays at the end of the answer, so the
 * place of the editor's cursor is shown by a character in reverse video. */
static void paint_typed(struct inline_ui *u, struct bn_str row, size_t cursor)
{
    if (cursor > row.n_bytes) {
        strbuf_add_str(&u->out, row);
        return;
    }
    const size_t end = cursor < row.n_bytes ? term_text_cluster(row, cursor) : cursor;
    strbuf_add(&u->out, row.ptr, cursor);
    inline_add_terminfo(u, TERMINFO_REVERSE);
    if (end > cursor)
        strbuf_add(&u->out, row.ptr + cursor, end - cursor);
    else if (u->caps.strings[TERMINFO_REVERSE][0])
        strbuf_add_char(&u->out, ' ');
    inline_add_terminfo(u, TERMINFO_NORMAL);
    strbuf_add(&u->out, row.ptr + end, row.n_bytes - end);
}

/* Write the rows below the status row: queued lines are dim, typed text is not. */
static void paint_below(struct inline_ui *u)
{
    const char *const begin = strbuf_text(&u->below), *at = begin;
    for (size_t i = 0; i < u->n_below; i++) {
        const size_t n = strcspn(at, "\n");
        strbuf_add_text(&u->out, "\n");
        const size_t row = (size_t)(at - begin);
        if (i >= u->n_queued) {
            paint_typed(u, (struct bn_str){at, n},
                        u->below_cursor >= row ? u->below_cursor - row : SIZE_MAX);
        } else {
            inline_add_terminfo(u, TERMINFO_DIM);
            strbuf_add(&u->out, at, n);
            inline_add_terminfo(u, TERMINFO_NORMAL);
        }
        at += n + (at[n] == '\n');
    }
}

void inline_paint_row(struct inline_ui *u)
{
    if (!has_room(u))
        return;
    inline_erase_row(u);
    paint_row_range(u, 0, strlen(u->row));
    paint_below(u);
    go_back(u, 1 + u->n_below);
    u->has_row = true;
}

int inline_settle_wait(const struct inline_ui *u)
{
    if (!u->is_settling)
        return -1;
    const double left = SETTLE_SECONDS - (clock_seconds() - u->resized);
    return left > 0 ? (int)(left * 1000) + 1 : 0;
}

/* At a new width, the terminal may have broken the last row of the text into several rows. */
static void adapt_last_row(struct inline_ui *u)
{
    u->row_clock.written = 0; /* the next inline_tick paints the status row again */
    for (size_t i = flow_rows_up(&u->flow, u->size.columns); i > 0; i--)
        inline_add_terminfo(u, TERMINFO_UP);
    strbuf_add_char(&u->out, '\r');
    inline_add_terminfo(u, TERMINFO_ERASE_BELOW);
    flow_rewrite_row(&u->flow, u->size.columns, &u->out);
}

/* The width stays as it is now. */
static void adapt_rows(struct inline_ui *u)
{
    u->is_settling = false;
    if (u->in_answer)
        adapt_last_row(u);
    else
        inline_hide_editor(u); /* the next inline_tick draws it again */
}

void inline_follow_size(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    const struct tty_size size = tty_size(STDOUT_FILENO);
    if (size.columns == u->size.columns && size.rows == u->size.rows) {
        if (inline_settle_wait(u) == 0)
            adapt_rows(u);
        return;
    }
    u->editor.is_changed = true;
    if (size.columns != u->size.columns && u->caps.can_repaint &&
        (u->in_answer || u->editor.is_drawn || u->is_settling)) {
        inline_erase_row(u); /* from the cursor on, so it does not matter how it is broken */
        u->is_settling = true;
        u->resized = clock_seconds();
    }
    u->size = size;
    if (u->is_settling)
        inline_resize_editor(u);
    u->flow.columns = size.columns;
    if (!u->has_row) /* while the rows are visible, `below` must have the same rows */
        u->below_cursor = make_below(ui, &u->below);
    line_resize(size.rows, size.columns);
}

void inline_settle(struct ui *ui)
{
    const struct inline_ui *u = self(ui);
    const double end = clock_seconds() + MAX_SETTLE_SECONDS;
    inline_follow_size(ui);
    while (u->is_settling && clock_seconds() < end) {
        const int left = (int)(1000 * (end - clock_seconds())) + 1; /* ms */
        const int wait = inline_settle_wait(u);
        (void)poll(NULL, 0, wait < left ? wait : left); /* a signal may end it early */
        inline_follow_size(ui);
    }
}

void inline_repaint(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (!u->caps.can_repaint || !u->caps.strings[TERMINFO_CLEAR][0])
        return;
    inline_follow_size(ui);
    flow_reset_look(&u->flow, &u->out);
    inline_add_terminfo(u, TERMINFO_CLEAR);
    u->has_row = u->is_settling = false;
    flow_rewrite_row(&u->flow, u->size.columns, &u->out);
    inline_paint_row(u);
}

/* Write text above the status row. For each newline, a row is inserted above the status row, which
 * takes fewer bytes than painting the status row again. */
static void add_above_row(struct inline_ui *u, struct bn_str text)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        if (text.ptr[i] != '\n') {
            strbuf_add_char(&u->out, text.ptr[i]);
            continue;
        }
        for (size_t k = 0; k < 2 + u->n_below; k++)
            strbuf_add_char(&u->out, '\n'); /* to the row below `below`; the screen may scroll */
        for (size_t k = 0; k < 1 + u->n_below; k++)
            inline_add_terminfo(u, TERMINFO_UP);
        inline_add_terminfo(u, TERMINFO_INSERT_ROW); /* the cursor is on the status row */
    }
}

/* Erase the status row, write text, and paint the status row below it. */
static void add_over_row(struct inline_ui *u, struct bn_str text)
{
    add_sync(u, SYNC_BEGIN);
    inline_erase_row(u);
    strbuf_add_str(&u->out, text);
    inline_paint_row(u);
    add_sync(u, SYNC_END);
}

void inline_add_text(struct ui *ui, struct bn_str text)
{
    struct inline_ui *u = self(ui);
    struct strbuf added = {0};
    const size_t n_before = u->out.n_bytes, n_wrapped = u->flow.n_wrapped;
    flow_add(&u->flow, text, &u->out);
    const struct bn_str new = {u->out.ptr + n_before, u->out.n_bytes - n_before};
    const bool wraps = u->flow.n_wrapped > n_wrapped;
    const bool ends_line = new.n_bytes > 0 && memchr(new.ptr, '\n', new.n_bytes);
    if (!u->has_row || (!wraps && !ends_line))
        return; /* no text moves into the status row */
    /* Take the text back from `out`, to put control sequences before or into it. */
    strbuf_add_str(&added, new);
    strbuf_cut(&u->out, n_before);
    if (wraps || !u->caps.strings[TERMINFO_INSERT_ROW][0])
        add_over_row(u, strbuf_str(&added));
    else
        add_above_row(u, strbuf_str(&added));
    strbuf_finish(&added);
}

/* Change the visible status row to `next`, and write only the range of bytes that differ. A shorter
 * row is painted as a whole. */
static void change_row(struct inline_ui *u, const char *next)
{
    const size_t n_before = strlen(u->row), n = strlen(next);
    size_t from = 0, to = n;
    while (from < n && next[from] == u->row[from])
        from++;
    while (n == n_before && to > from && next[to - 1] == u->row[to - 1])
        to--;
    memcpy(u->row, next, n + 1);
    if (n < n_before)
        inline_paint_row(u); /* erase the rest of the longer row */
    else if (from < to) {
        paint_row_range(u, from, to);
        go_back(u, 1);
    }
}

void inline_refresh_row(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    char next[sizeof(u->row)];
    struct strbuf below = {0};
    if (!has_room(u))
        return; /* `below` must stay equal to the visible rows */
    const size_t cursor = make_below(ui, &below);
    const bool is_same =
        cursor == u->below_cursor && bn_str_equal(strbuf_str(&below), strbuf_str(&u->below));
    strbuf_finish(&u->below);
    u->below = below;
    u->below_cursor = cursor;
    ui_terminal_status(ui, u->size.columns - 1, next, sizeof(next));
    if (u->has_row && is_same) {
        change_row(u, next);
        return;
    }
    memcpy(u->row, next, sizeof(next));
    add_sync(u, SYNC_BEGIN);
    inline_paint_row(u);
    add_sync(u, SYNC_END);
}

void inline_begin_message(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    inline_hide_editor(u);
    inline_erase_row(u);
    if (u->in_answer)
        flow_pause(&u->flow); /* the answer continues after the message */
    else
        flow_flush(&u->flow, &u->out);
    flow_reset_look(&u->flow, &u->out);
    if (u->flow.column > 0)
        strbuf_add_char(&u->out, '\n');
}

void inline_end_message(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    flow_begin_row(&u->flow);
    inline_write_out(ui);
    inline_show_editor(ui);
}

void inline_add_message(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    struct inline_ui *u = self(ui);
    struct flow flow = {0};
    flow_init(&flow, u->size.columns, tone == TONE_EXACT ? FLOW_NO_WRAP : ui_terminal_wrap(ui),
              tone == TONE_TABLE ? FLOW_TABLE : FLOW_MESSAGE, NULL);
    const bool is_bold = tone == TONE_ERROR || tone == TONE_WARNING || tone == TONE_USER;
    const bool is_dim = tone == TONE_NOTE;
    if (is_bold)
        inline_add_terminfo(u, TERMINFO_BOLD);
    else if (is_dim)
        inline_add_terminfo(u, TERMINFO_DIM);
    flow_add(&flow, text, &u->out);
    flow_flush(&flow, &u->out);
    if (is_bold || is_dim)
        inline_add_terminfo(u, TERMINFO_NORMAL);
    if (flow.column > 0 || text.n_bytes == 0)
        strbuf_add_char(&u->out, '\n');
    flow_finish(&flow);
}
