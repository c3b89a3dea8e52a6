/*
 * The output of the inline painter: appended text, the status row below it, and messages.
 *
 * Text that has scrolled away is never painted again. Between repaints the cursor is at the end of
 * the text, and the status row is erased before text moves into it. When the width changes, only
 * the row with the cursor is written again.
 */
#include "app/ui/ui_inline_state.h"

#include "engine/base/size.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Synchronised updates. Terminals without them ignore this. terminfo has no name for them. */
#define SYNC_BEGIN "\033[?2026h"
#define SYNC_END "\033[?2026l"

static struct inline_ui *self(const struct ui *ui)
{
    return ui->state;
}

void inline_add_terminfo(struct inline_ui *u, enum terminfo_string which)
{
    strbuf_add_text(&u->out, u->caps.strings[which]);
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
    if (!tty_write(u->out.ptr, u->out.n_bytes))
        ui->terminal->is_hung_up = true;
    strbuf_cut(&u->out, 0);
}

void inline_erase_row(struct inline_ui *u)
{
    if (u->has_row)
        inline_add_terminfo(u, TERMINFO_ERASE_BELOW);
    u->has_row = false;
}

/* The status row is not painted if the next character would go to a new row, because the cursor
 * could not be moved back there. */
static bool has_room(const struct inline_ui *u)
{
    const struct flow *f = &u->flow;
    return u->row_enabled && u->caps.can_repaint && f->column + f->n_doubtful < u->size.columns;
}

/* Move the cursor from the status row back to the end of the text. If the width of a character
 * differs between terminals, write the text again to get there. */
static void go_back(struct inline_ui *u)
{
    strbuf_add_char(&u->out, '\r');
    inline_add_terminfo(u, TERMINFO_UP);
    if (u->flow.n_doubtful > 0) {
        flow_write_row(&u->flow, &u->out);
        flow_reset_look(&u->flow, &u->out);
    } else if (u->flow.column > 0) {
        terminfo_add_right(&u->caps, u->flow.column, &u->out);
    }
}

static void paint_row_range(struct inline_ui *u, size_t from, size_t to)
{
    flow_reset_look(&u->flow, &u->out);
    strbuf_add_char(&u->out, '\n');
    if (from > 0)
        terminfo_add_right(&u->caps, from, &u->out);
    inline_add_terminfo(u, TERMINFO_DIM);
    strbuf_add(&u->out, u->row + from, to - from);
    inline_add_terminfo(u, TERMINFO_NORMAL);
    go_back(u);
}

/* Paint the status row below the cursor, and move the cursor back. */
void inline_paint_row(struct inline_ui *u)
{
    if (!has_room(u))
        return;
    inline_erase_row(u);
    paint_row_range(u, 0, strlen(u->row));
    u->has_row = true;
}

/* The terminal may have broken the last row of the text again. */
void inline_follow_size(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    const struct tty_size size = tty_size(STDOUT_FILENO);
    if (size.columns == u->size.columns && size.rows == u->size.rows)
        return;
    if (size.columns != u->size.columns && (u->in_answer || u->has_row) && u->caps.can_repaint) {
        for (size_t i = flow_rows_up(&u->flow, size.columns); i > 0; i--)
            inline_add_terminfo(u, TERMINFO_UP);
        strbuf_add_char(&u->out, '\r');
        inline_add_terminfo(u, TERMINFO_ERASE_BELOW);
        u->has_row = false;
        flow_rewrite_row(&u->flow, size.columns, &u->out);
    }
    u->size = size;
    u->flow.columns = size.columns;
    line_resize(size.rows, size.columns);
}

void inline_repaint(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (!u->caps.can_repaint || !u->caps.strings[TERMINFO_CLEAR][0])
        return;
    inline_follow_size(ui);
    flow_reset_look(&u->flow, &u->out);
    inline_add_terminfo(u, TERMINFO_CLEAR);
    u->has_row = false;
    flow_rewrite_row(&u->flow, u->size.columns, &u->out);
    inline_paint_row(u);
}

/* Write text above the status row. Each newline inserts a row, which takes fewer bytes than
 * painting the status row again. */
static void add_above_row(struct inline_ui *u, struct bn_str text)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        if (text.ptr[i] != '\n') {
            strbuf_add_char(&u->out, text.ptr[i]);
            continue;
        }
        strbuf_add_text(&u->out, "\n\n"); /* scrolls if the status row is the last row */
        inline_add_terminfo(u, TERMINFO_UP);
        inline_add_terminfo(u, TERMINFO_INSERT_ROW);
    }
}

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
    strbuf_add_str(&added, new);
    strbuf_cut(&u->out, n_before);
    if (wraps || !u->caps.strings[TERMINFO_INSERT_ROW][0])
        add_over_row(u, strbuf_str(&added));
    else
        add_above_row(u, strbuf_str(&added));
    strbuf_finish(&added);
}

/* Send only the characters that differ. */
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
    else if (from < to)
        paint_row_range(u, from, to);
}

void inline_refresh_row(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    char next[sizeof(u->row)];
    (void)terminal_status(ui, u->size.columns - 1, next,
                          sizeof(next)); /* the pressure is not shown */
    if (!has_room(u))
        return;
    if (u->has_row) {
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
    if (line_is_open()) {
        line_hide();
        return;
    }
    inline_erase_row(u);
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
    if (line_is_open())
        line_show();
}

void inline_add_message(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    struct inline_ui *u = self(ui);
    struct flow flow = {0};
    flow_init(&flow, u->size.columns, tone == TONE_EXACT ? FLOW_NO_WRAP : terminal_wrap(ui),
              FLOW_MESSAGE, NULL);
    if (tone == TONE_ERROR || tone == TONE_WARNING)
        inline_add_terminfo(u, TERMINFO_BOLD);
    else if (tone == TONE_NOTE)
        inline_add_terminfo(u, TERMINFO_DIM);
    flow_add(&flow, text, &u->out);
    flow_flush(&flow, &u->out);
    if (tone != TONE_PLAIN && tone != TONE_EXACT)
        inline_add_terminfo(u, TERMINFO_NORMAL);
    if (flow.column > 0 || text.n_bytes == 0)
        strbuf_add_char(&u->out, '\n');
    flow_finish(&flow);
}
