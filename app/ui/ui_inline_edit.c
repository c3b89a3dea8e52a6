/*
 * The line editor of the inline painter. Between answers it is drawn below the text, in at most
 * half of the screen. If the window becomes half as wide, the terminal breaks each row into two,
 * and all of them must still be on the screen: rows that have scrolled away cannot be erased.
 * During an answer, a few rows around the cursor are shown below the status row. In both cases,
 * marks count the rows that are not shown (input_rows.h).
 *
 * Each row ends before the last column, and a newline separates it from the next, so that the
 * terminal never breaks a row itself. Only the rows from the first difference on are written again,
 * and the beginning of the cursor's row if it has characters of varying width (term_text.h). On a
 * terminal that cannot repaint (terminfo.h), Readline draws the line, and during an answer the line
 * is not shown.
 */
#include "app/ui/ui_inline_state.h"

#include "app/common/term_text.h"
#include "engine/base/size.h"
#include "engine/base/utf8.h"

#include <stdio.h>
#include <string.h>

static struct inline_ui *self(const struct ui *ui)
{
    return ui->state;
}

/* ---- drawing ---- */

/* The number of bytes at the start of the row `now` that need not be written, because the screen
 * shows the row `before`. A row with characters of varying width is written as a whole. */
static size_t common_bytes(struct bn_str before, struct bn_str now)
{
    size_t n = 0;
    if (term_text_has_varying_width(before) || term_text_has_varying_width(now))
        return bn_str_equal(before, now) ? now.n_bytes : 0;
    while (n < before.n_bytes && n < now.n_bytes && before.ptr[n] == now.ptr[n])
        n++;
    while (n > 0 && n < now.n_bytes && utf8_is_continuation(now.ptr[n]))
        n--; /* back to the start of a character */
    /* A combining character changes the character before it. */
    struct term_char c;
    size_t at = n;
    if (n > 0 && term_text_next(now, &at, &c) && c.width == 0)
        return 0;
    at = n;
    if (n > 0 && term_text_next(before, &at, &c) && c.width == 0)
        return 0;
    return n;
}

/* Append the bytes [from, to) of r->text. The prompt is bold, unless it is that of a search. */
static void add_bytes(struct inline_ui *u, const struct input_rows *r, size_t from, size_t to)
{
    const size_t n_bold = u->editor.has_own_prompt ? size_min(to, r->n_prompt) : 0;
    if (from < n_bold) {
        inline_add_terminfo(u, TERMINFO_BOLD);
        strbuf_add(&u->out, r->text.ptr + from, n_bold - from);
        inline_add_terminfo(u, TERMINFO_NORMAL);
        from = n_bold;
    }
    strbuf_add(&u->out, r->text.ptr + from, to - from);
}

/* Move the cursor to a row of the editor, in any column. */
static void move_to_row(struct inline_ui *u, size_t row)
{
    struct inline_editor *e = &u->editor;
    for (; e->at_row > row; e->at_row--)
        inline_add_terminfo(u, TERMINFO_UP);
    for (; e->at_row < row; e->at_row++)
        strbuf_add_char(&u->out, '\n');
}

/* The cursor is in this row: move it after the first n_bytes bytes. If these bytes have characters
 * of varying width (term_text.h), write them again, because their number of columns is unknown. */
static void move_within_row(struct inline_ui *u, size_t row, size_t n_bytes)
{
    const struct inline_editor *e = &u->editor;
    const struct bn_str text = input_rows_row(&e->drawn, row), before = {text.ptr, n_bytes};
    const size_t start = e->drawn.starts[row];
    strbuf_add_char(&u->out, '\r');
    if (term_text_has_varying_width(before))
        add_bytes(u, &e->drawn, start, start + n_bytes);
    else if (n_bytes > 0)
        terminfo_add_right(&u->caps, term_text_width(before), &u->out);
}

/* Write the rows from `row` on. The first n_same bytes of this row are on the screen already, and
 * the cursor is after them. */
static void write_rows(struct inline_ui *u, size_t row, size_t n_same)
{
    struct inline_editor *e = &u->editor;
    for (;;) {
        const size_t start = e->drawn.starts[row];
        const bool is_mark = input_rows_is_mark(&e->drawn, row);
        if (is_mark)
            inline_add_terminfo(u, TERMINFO_DIM);
        add_bytes(u, &e->drawn, start + n_same, start + input_rows_row(&e->drawn, row).n_bytes);
        if (is_mark)
            inline_add_terminfo(u, TERMINFO_NORMAL);
        e->at_row = row;
        if (++row >= e->drawn.n)
            return;
        strbuf_add_char(&u->out, '\n');
        n_same = 0;
    }
}

/* Break the line of the editor into rows, and keep at most max_rows of them. One column stays
 * free. */
static void make_rows(const struct ui *ui, size_t max_rows, struct input_rows *rows)
{
    const size_t columns = tty_safe_columns(self(ui)->size);
    struct line_view view;
    line_view(&view);
    input_rows_make(rows, view.prompt, view.text, view.point, columns);
    input_rows_limit(rows, max_rows, columns);
}

/* Compare the rows of e->next with those on the screen. The first difference is in *row, after
 * *n_same bytes. If rows were only added or removed at the end, or if all rows are equal, *row and
 * *n_same are the end of the last row that stays. */
static void find_change(const struct inline_editor *e, size_t *row, size_t *n_same)
{
    const size_t n_both = size_min(e->next.n, e->drawn.n);
    for (size_t i = 0; i < n_both; i++) {
        const struct bn_str before = input_rows_row(&e->drawn, i);
        const struct bn_str now = input_rows_row(&e->next, i);
        const bool same_look = input_rows_is_mark(&e->drawn, i) == input_rows_is_mark(&e->next, i);
        *row = i;
        *n_same = same_look ? common_bytes(before, now) : 0;
        if (*n_same < now.n_bytes || *n_same < before.n_bytes)
            return;
    }
}

/* The cursor is at the start of a row: erase this row and the n_below rows below it, which are the
 * last ones with text. The first row is erased separately: for ERASE_BELOW in the first row of the
 * screen, tmux would move the whole screen into its scrollback. */
static void erase_rows(struct inline_ui *u, size_t n_below)
{
    inline_add_terminfo(u, TERMINFO_ERASE_LINE);
    if (n_below == 0)
        return;
    strbuf_add_char(&u->out, '\n');
    inline_add_terminfo(u, TERMINFO_ERASE_BELOW);
    inline_add_terminfo(u, TERMINFO_UP);
}

/* Move the cursor to the first difference, and erase the old text from there on. */
static void go_to_change(struct inline_ui *u, size_t row, size_t n_same)
{
    struct inline_editor *e = &u->editor;
    const size_t n_bytes = input_rows_row(&e->drawn, row).n_bytes;
    if (!e->at_end || e->at_row != row || n_same != n_bytes) { /* else it is there already */
        move_to_row(u, row);
        move_within_row(u, row, n_same);
    }
    if (n_same == 0)
        erase_rows(u, e->drawn.n - 1 - row);
    else if (n_same < n_bytes || row + 1 < e->drawn.n)
        inline_add_terminfo(u, TERMINFO_ERASE_BELOW);
}

/* Exchange e->drawn and e->next. The caller then writes the rows that differ. */
static void swap_rows(struct inline_editor *e)
{
    const struct input_rows rows = e->drawn;
    e->drawn = e->next;
    e->next = rows;
}

static void draw_changes(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    struct inline_editor *e = &u->editor;
    struct line_view view;
    line_view(&view);
    make_rows(ui, size_max(u->size.rows / 2, 1), &e->next);
    if (e->next.cursor_row >= e->next.n)
        return; /* out of memory: draw at the next change */
    size_t row = 0, n_same = 0;
    if (e->is_drawn) {
        find_change(e, &row, &n_same);
        go_to_change(u, row, n_same);
    }
    e->has_own_prompt = strcmp(view.prompt, u->prompt) == 0;
    swap_rows(e);
    e->is_drawn = true;
    write_rows(u, row, n_same);
    const size_t cursor_row = e->drawn.cursor_row;
    const size_t n_before = e->drawn.cursor_byte - e->drawn.starts[cursor_row];
    e->at_end =
        cursor_row + 1 == e->drawn.n && n_before == input_rows_row(&e->drawn, cursor_row).n_bytes;
    if (!e->at_end) {
        move_to_row(u, cursor_row);
        move_within_row(u, cursor_row, n_before);
    }
}

void inline_draw_editor(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (!u->caps.can_repaint || !line_is_open() || u->in_answer || u->is_settling)
        return;
    if (u->editor.is_drawn && !u->editor.is_changed)
        return;
    u->editor.is_changed = false;
    draw_changes(ui);
}

/* The rows are not on the screen any more, or have become text that is not changed. */
static void set_not_drawn(struct inline_editor *e)
{
    e->is_drawn = e->at_end = false;
    e->at_row = 0;
}

/* The number of rows of the screen that the first n_rows drawn rows take. At a smaller width than
 * that of the drawing, the terminal has broken them. */
static size_t screen_rows(const struct inline_ui *u, size_t n_rows)
{
    const size_t columns = u->size.columns;
    size_t n = 0;
    for (size_t row = 0; row < n_rows; row++) {
        const size_t width = input_rows_width(input_rows_row(&u->editor.drawn, row));
        n += width > 0 ? (width + columns - 1) / columns : 1;
    }
    return n;
}

/* The number of rows of the screen from the first row of the editor to the cursor. */
static size_t screen_rows_above(const struct inline_ui *u)
{
    const struct bn_str before = input_rows_before(&u->editor.drawn);
    return screen_rows(u, u->editor.at_row) + input_rows_width(before) / u->size.columns;
}

void inline_hide_editor(struct inline_ui *u)
{
    if (u->editor.is_drawn) {
        const size_t n_above = screen_rows_above(u);
        for (size_t i = 0; i < n_above; i++)
            inline_add_terminfo(u, TERMINFO_UP);
        strbuf_add_char(&u->out, '\r');
        erase_rows(u, screen_rows(u, u->editor.drawn.n) - 1);
        set_not_drawn(&u->editor);
    } else if (!u->caps.can_repaint && line_is_open() && !u->in_answer) {
        line_leave(); /* also with --plain, which never rewrites a row */
    }
}

void inline_show_editor(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    if (!line_is_open() || u->in_answer)
        return;
    if (u->caps.can_repaint)
        inline_draw_editor(ui);
    else
        line_show();
}

void inline_resize_editor(struct inline_ui *u)
{
    if (u->editor.is_drawn && screen_rows(u, u->editor.drawn.n) > u->size.rows / 2)
        inline_hide_editor(u);
}

void inline_leave_editor(struct inline_ui *u)
{
    if (!u->editor.is_drawn)
        return;
    const size_t n_rows = screen_rows(u, u->editor.drawn.n);
    size_t row = screen_rows_above(u);
    do { /* at least once, also if the cursor is after the last column of the last row */
        strbuf_add_char(&u->out, '\n');
    } while (++row < n_rows);
    set_not_drawn(&u->editor);
}

/* ---- during an answer ---- */

/* Most rows of typed text, of which one may be a mark. The answer keeps most of the screen. */
#define TYPED_ROWS 4

size_t inline_typed_rows(struct ui *ui, size_t max_rows, struct strbuf *out)
{
    struct inline_ui *u = self(ui);
    struct input_rows *rows = &u->editor.next;
    size_t cursor = SIZE_MAX;
    if (!line_is_open() || line_is_empty() || max_rows == 0)
        return cursor;
    make_rows(ui, size_min(TYPED_ROWS, max_rows), rows);
    for (size_t i = 0; i < rows->n; i++) {
        if (i == rows->cursor_row)
            cursor = out->n_bytes + input_rows_before(rows).n_bytes;
        strbuf_add_str(out, input_rows_row(rows, i));
        strbuf_add_char(out, '\n');
    }
    return cursor;
}

/* ---- functions of struct line_display ---- */

static void redisplay(void *ud)
{
    struct inline_ui *u = self(ud);
    u->editor.is_changed = true; /* drawn once for all keys that were read together */
    if (u->in_answer)
        u->row_clock.written = 0; /* inline_tick writes it, with the typed text */
}

/* As Readline does, write the list below the line; then the line is drawn again below the list. */
static void show_matches(void *ud, char **words, int n_words, int longest)
{
    struct ui *ui = ud;
    struct inline_ui *u = self(ui);
    if (u->in_answer || u->is_settling)
        return;
    inline_draw_editor(ui);
    inline_leave_editor(u);
    ui_terminal_choices(words, n_words, longest, tty_safe_columns(u->size), &u->out);
    u->editor.is_changed = true;
}

static void clear(void *ud)
{
    struct ui *ui = ud;
    struct inline_ui *u = self(ui);
    if (u->in_answer) {
        inline_repaint(ui);
        return;
    }
    if (!u->caps.strings[TERMINFO_CLEAR][0])
        return;
    inline_add_terminfo(u, TERMINFO_CLEAR);
    set_not_drawn(&u->editor);
}

static void hide(void *ud)
{
    inline_hide_editor(self(ud));
}

static void show_nothing(void *ud)
{
    (void)ud; /* the terminal cannot repaint */
}

static void show_no_matches(void *ud, char **words, int n_words, int longest)
{
    (void)ud;
    (void)words;
    (void)n_words;
    (void)longest;
}

void inline_open_editor(struct ui *ui)
{
    struct inline_ui *u = self(ui);
    /* `hidden`: Readline cannot draw during an answer. The line is edited without being shown. */
    const struct line_display drawn = {false, ui, redisplay, show_matches, clear, hide};
    const struct line_display hidden = {true,         ui,          show_nothing, show_no_matches,
                                        show_nothing, show_nothing};
    if (line_is_open())
        return;
    if (u->caps.can_repaint)
        line_set_display(&drawn);
    else
        line_set_display(u->in_answer ? &hidden : NULL);
    line_begin(u->prompt);
}
