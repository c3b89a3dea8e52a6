/*
 * What the inline painter writes: text that is only ever appended, the row below it, and the
 * program's own words.
 *
 * Between repaints the cursor always stands at the end of the text, and the row is erased before
 * the text moves into it. On a resize only the cursor's row is given again.
 */
#include "app/ui_inline_state.h"

#include "engine/base/size.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Synchronised updates, ignored where unknown; terminfo has no standard name for them. */
#define SYNC_BEGIN "\033[?2026h"
#define SYNC_END "\033[?2026l"

static struct inline_ui *self(const struct ui *ui)
{
    return ui->state;
}

void inline_add_caps(struct inline_ui *u, enum term_string which)
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

void inline_erase_row(struct inline_ui *u)
{
    if (u->has_row)
        inline_add_caps(u, TERM_STRING_ERASE_BELOW);
    u->has_row = false;
}

/* The row below the cursor, which comes back to where it was. Not where the next character would go
 * to the next row: the cursor could not be put back there. */
void inline_paint_row(struct inline_ui *u)
{
    if (!u->wants_row || !u->caps.can_repaint || u->flow.column >= u->size.columns)
        return;
    inline_erase_row(u);
    flow_plain(&u->flow, &u->out);
    strbuf_add_char(&u->out, '\n');
    inline_add_caps(u, TERM_STRING_DIM);
    strbuf_add_text(&u->out, u->row);
    inline_add_caps(u, TERM_STRING_NORMAL);
    strbuf_add_char(&u->out, '\r');
    inline_add_caps(u, TERM_STRING_UP);
    if (u->flow.column > 0)
        term_caps_right(&u->caps, u->flow.column, &u->out);
    u->has_row = true;
}

/* The terminal is as wide as it says; the text's last row may have been broken anew. */
void inline_follow_size(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    const struct tty_size size = tty_size(STDOUT_FILENO);
    if (size.columns == u->size.columns && size.rows == u->size.rows)
        return;
    if (size.columns != u->size.columns && (u->in_answer || u->has_row) && u->caps.can_repaint) {
        for (size_t i = flow_rows_up(&u->flow, size.columns); i > 0; i--)
            inline_add_caps(u, TERM_STRING_UP);
        strbuf_add_char(&u->out, '\r');
        inline_add_caps(u, TERM_STRING_ERASE_BELOW);
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

void inline_add_text(struct ui *ui, struct bn_str text)
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
    inline_erase_row(u);
    strbuf_add_str(&u->out, strbuf_str(&before));
    inline_paint_row(u);
    add_sync(u, SYNC_END);
    strbuf_finish(&before);
}

void inline_refresh_row(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    char before[sizeof(u->row)];
    memcpy(before, u->row, sizeof(before));
    (void)terminal_status(ui, u->said_busy ? "busy, Esc stops" : "Esc stops", u->size.columns - 1,
                          u->row, sizeof(u->row)); /* the row has one look */
    if (u->has_row && strcmp(before, u->row) == 0)
        return;
    add_sync(u, SYNC_BEGIN);
    inline_paint_row(u);
    add_sync(u, SYNC_END);
}

/* ---- the program's own words ---- */

void inline_begin_aside(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (line_is_open()) {
        line_hide();
        return;
    }
    inline_erase_row(u);
    flow_flush(&u->flow, &u->out);
    flow_plain(&u->flow, &u->out);
    if (u->flow.column > 0)
        strbuf_add_char(&u->out, '\n');
}

void inline_end_aside(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    flow_begin_row(&u->flow);
    inline_write_out(ui);
    if (line_is_open())
        line_show();
}

void inline_add_aside(struct ui *ui, enum ui_tone tone, struct bn_str text)
{
    struct inline_ui *u = self(ui);
    struct flow flow = {0};
    flow_init(&flow, u->size.columns, tone == TONE_PLAIN ? FLOW_NO_WRAP : terminal_wrap(ui),
              FLOW_WORDS, NULL);
    if (tone == TONE_ERROR || tone == TONE_WARNING)
        inline_add_caps(u, TERM_STRING_BOLD);
    else if (tone == TONE_NOTE)
        inline_add_caps(u, TERM_STRING_DIM);
    flow_add(&flow, text, &u->out);
    flow_flush(&flow, &u->out);
    if (tone != TONE_PLAIN)
        inline_add_caps(u, TERM_STRING_NORMAL);
    if (flow.column > 0 || text.n_bytes == 0)
        strbuf_add_char(&u->out, '\n');
    flow_finish(&flow);
}
