/*
 * What the inline painter writes: text that is only ever appended, the row below it, and the
 * program's own words.
 *
 * Between repaints the cursor always stands at the end of the text, and the row is erased before
 * the text moves into it. On a resize only the cursor's row is given again.
 */
#include "app/ui/ui_inline_state.h"

#include "engine/base/size.h"

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
    if (!tty_write(u->out.ptr, u->out.n_bytes))
        ui->terminal->is_hung_up = true;
    strbuf_cut(&u->out, 0);
}

void inline_erase_row(struct inline_ui *u)
{
    if (u->has_row)
        inline_add_caps(u, TERM_STRING_ERASE_BELOW);
    u->has_row = false;
}

/* May the row be painted? Not where the next character would go to the next row: the cursor could
 * not be put back there. */
static bool has_room(const struct inline_ui *u)
{
    const struct flow *f = &u->flow;
    return u->wants_row && u->caps.can_repaint && f->column + f->n_doubtful < u->size.columns;
}

/* From the row below back to the end of the text. Where the terminal may have another idea of a
 * width than we, the text itself leads there. */
static void go_back(struct inline_ui *u)
{
    strbuf_add_char(&u->out, '\r');
    inline_add_caps(u, TERM_STRING_UP);
    if (u->flow.n_doubtful > 0) {
        flow_row(&u->flow, &u->out);
        flow_plain(&u->flow, &u->out);
    } else if (u->flow.column > 0) {
        term_caps_right(&u->caps, u->flow.column, &u->out);
    }
}

static void paint_part(struct inline_ui *u, size_t from, size_t to)
{
    flow_plain(&u->flow, &u->out);
    strbuf_add_char(&u->out, '\n');
    if (from > 0)
        term_caps_right(&u->caps, from, &u->out);
    inline_add_caps(u, TERM_STRING_DIM);
    strbuf_add(&u->out, u->row + from, to - from);
    inline_add_caps(u, TERM_STRING_NORMAL);
    go_back(u);
}

/* The row below the cursor, which comes back to where it was. */
void inline_paint_row(struct inline_ui *u)
{
    if (!has_room(u))
        return;
    inline_erase_row(u);
    paint_part(u, 0, strlen(u->row));
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

void inline_paint_anew(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (!u->caps.can_repaint || !u->caps.strings[TERM_STRING_CLEAR][0])
        return;
    inline_follow_size(ui);
    flow_plain(&u->flow, &u->out);
    inline_add_caps(u, TERM_STRING_CLEAR);
    u->has_row = false;
    flow_again(&u->flow, u->size.columns, &u->out);
    inline_paint_row(u);
}

/* Each line end with the row below it moved down: a few bytes instead of the whole row again. */
static void add_above_row(struct inline_ui *u, struct bn_str text)
{
    for (size_t i = 0; i < text.n_bytes; i++) {
        if (text.ptr[i] != '\n') {
            strbuf_add_char(&u->out, text.ptr[i]);
            continue;
        }
        strbuf_add_text(&u->out, "\n\n"); /* there may have been no room below the row */
        inline_add_caps(u, TERM_STRING_UP);
        inline_add_caps(u, TERM_STRING_INSERT_ROW);
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
        return; /* nothing moves into the row */
    strbuf_add_str(&added, new);
    strbuf_cut(&u->out, n_before);
    if (wraps || !u->caps.strings[TERM_STRING_INSERT_ROW][0])
        add_over_row(u, strbuf_str(&added));
    else
        add_above_row(u, strbuf_str(&added));
    strbuf_finish(&added);
}

/* Only what differs is sent. */
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
        inline_paint_row(u); /* the rest of the longer one goes */
    else if (from < to)
        paint_part(u, from, to);
}

void inline_refresh_row(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    char next[sizeof(u->row)];
    (void)terminal_status(ui, u->said_busy ? TERMINAL_REFUSED : TERMINAL_CALM, u->size.columns - 1,
                          next, sizeof(next)); /* the row has one look */
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
    flow_init(&flow, u->size.columns, tone == TONE_EXACT ? FLOW_NO_WRAP : terminal_wrap(ui),
              FLOW_WORDS, NULL);
    if (tone == TONE_ERROR || tone == TONE_WARNING)
        inline_add_caps(u, TERM_STRING_BOLD);
    else if (tone == TONE_NOTE)
        inline_add_caps(u, TERM_STRING_DIM);
    flow_add(&flow, text, &u->out);
    flow_flush(&flow, &u->out);
    if (tone != TONE_PLAIN && tone != TONE_EXACT)
        inline_add_caps(u, TERM_STRING_NORMAL);
    if (flow.column > 0 || text.n_bytes == 0)
        strbuf_add_char(&u->out, '\n');
    flow_finish(&flow);
}
