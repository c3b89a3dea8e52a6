/*
 * The view of the full-screen painter: scrolling, the matches of /find, and the frame, which shows
 * from top to bottom the text, the choices of Tab, the queued lines, the status row and the editor.
 * The view is the visible part of the text.
 *
 * After /find, n and N move between the matches. The keys that scroll work as usual. Esc
 * ends the search, but during an answer it stops the answer. Any other key ends the search, too,
 * and is passed to the editor.
 */
#include "app/ui/ui_full_state.h"

#include "app/common/pattern.h"
#include "app/common/term_text.h"
#include "app/terminal/line/line_edit.h"
#include "app/terminal/text/status.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORD_SECONDS 1.0    /* the longest pause between two letters of a word */
#define FRAME_SECONDS 0.04  /* 25 frames per second while text arrives */
#define STATUS_SECONDS 0.25 /* faster changes are unreadable */
#define INPUT_ROWS 8        /* most rows of the editor */
#define QUEUE_ROWS 3        /* most rows of queued lines */
#define MIN_COLUMNS 20      /* a screen with fewer columns or rows shows only the editor */
#define MIN_ROWS 5
#define MORE_BELOW "more below | "

/* ---- view ---- */

/* The first row of a view of n_rows rows that shows the end of the text. */
static size_t last_top(const struct full_ui *u, size_t n_rows)
{
    return u->text.n_rows > n_rows ? u->text.n_rows - n_rows : 0;
}

/* The first row of the view, which has n_rows rows. If the view reaches the end of the text, this
 * function clears is_scrolled, so that the view follows new text. */
static size_t top_of_view(struct full_ui *u, size_t n_rows)
{
    const struct scroll *t = &u->text;
    const size_t last = last_top(u, n_rows);
    if (!u->is_scrolled || u->top_line >= t->n)
        return last;
    const struct scroll_line *line = &t->lines[u->top_line];
    const size_t top = line->row0 + size_min(u->top_row, line->n_rows - 1);
    u->is_scrolled = top < last;
    return size_min(top, last);
}

/* Move the view so that it begins at row `top`, or to the end of the text if the rows from `top` on
 * do not fill the view. The line of the row is stored, because a new layout changes the numbers of
 * rows. */
static void scroll_to(struct full_ui *u, size_t top)
{
    u->due = DUE_NOW;
    u->is_scrolled = top < last_top(u, u->n_shown);
    if (!u->is_scrolled)
        return;
    u->top_line = scroll_line_of(&u->text, top);
    u->top_row = top - u->text.lines[u->top_line].row0;
}

void full_scroll(struct full_ui *u, enum full_direction direction, size_t n_rows)
{
    const size_t top = top_of_view(u, u->n_shown);
    if (direction == FULL_UP)
        scroll_to(u, top - size_min(top, n_rows));
    else
        scroll_to(u, top + size_min(last_top(u, u->n_shown) - top, n_rows));
}

/* ---- /find ---- */

/* Messages, answers and thoughts are searched; commands and notices are not. A first line of the
 * user that begins with a slash counts as a command, even if it is a message. The later lines of a
 * command look like those of a message and are searched, too. */
static bool is_searched(const struct scroll_line *line)
{
    /* sizeof(TERMINAL_PROMPT) counts the final NUL, so it is the length of the prompt and a
     * slash. */
    static const struct bn_str command = {TERMINAL_PROMPT "/", sizeof(TERMINAL_PROMPT)};
    if (line->look == SCROLL_USER)
        return !bn_str_starts(strbuf_str(&line->text), command);
    return line->look == SCROLL_ANSWER || line->look == SCROLL_THOUGHT;
}

static void show_match(struct full_ui *u, size_t at)
{
    const size_t row = scroll_row_of(&u->text, u->find.hits[at].begin);
    u->find.at = at;
    scroll_to(u, row - size_min(row, u->n_shown / 3)); /* a third of the view is above it */
}

/* Whether a line of the text matches. */
static bool has_hit(struct pattern *pattern, struct bn_str text)
{
    struct bn_str line;
    for (size_t at = 0; bn_str_next_line(text, &at, &line);) {
        struct pattern_hit hit = {0};
        if (pattern_next(pattern, line, &hit))
            return true;
    }
    return false;
}

/* If the text of a placeholder in line i matches, show the text in the place of the line. Returns
 * by how many lines there are more. */
static size_t expand_line(struct full_ui *u, size_t i, struct pattern *pattern)
{
    const struct bn_str displayed = strbuf_str(&u->text.lines[i].text);
    struct strbuf text = {0}, lines = {0};
    size_t n_new = 1;
    line_expand(displayed, &text);
    if (!text.failed && !bn_str_equal(strbuf_str(&text), displayed) &&
        has_hit(pattern, strbuf_str(&text))) {
        input_rows_continue(strbuf_str(&text), &lines);
        n_new = size_max(scroll_replace(&u->text, i, strbuf_str(&lines)), 1);
    }
    strbuf_finish(&text);
    strbuf_finish(&lines);
    return n_new - 1;
}

/* Pasted text is shown as a placeholder: see expand_line. */
static void expand_matches(struct full_ui *u, struct pattern *pattern)
{
    for (size_t i = 0; i < u->text.n; i++) {
        if (u->text.lines[i].look != SCROLL_USER || !is_searched(&u->text.lines[i]))
            continue;
        const size_t n_more = expand_line(u, i, pattern);
        size_t *const after[] = {&u->printed.line, &u->answer_line, &u->top_line};
        for (size_t k = 0; k < sizeof(after) / sizeof(after[0]); k++)
            *after[k] += *after[k] > i ? n_more : 0;
        i += n_more;
    }
}

/* Add the hits in line i. False: out of memory. */
static bool add_hits(struct full_ui *u, size_t i, struct pattern *pattern)
{
    struct full_find *f = &u->find;
    struct pattern_hit hit = {0};
    while (pattern_next(pattern, strbuf_str(&u->text.lines[i].text), &hit)) {
        if (!mem_grow(&f->hits, &f->cap, f->n + 1, sizeof(*f->hits)))
            return false;
        f->hits[f->n++] = (struct full_hit){{i, hit.begin}, hit.end};
    }
    return true;
}

bool full_find(struct ui *ui, struct pattern *pattern)
{
    struct full_ui *u = ui->state;
    full_find_end(u);
    expand_matches(u, pattern);
    for (size_t i = 0; i < u->text.n; i++)
        if (is_searched(&u->text.lines[i]) && !add_hits(u, i, pattern))
            break; /* show the matches so far */
    if (pattern_gave_up(pattern))
        ui_notice(ui, TONE_PLAIN, "some lines took too long and were left out");
    if (u->find.n == 0)
        ui_notice(ui, TONE_PLAIN, "nothing matches");
    else
        show_match(u, 0);
    return true;
}

void full_find_end(struct full_ui *u)
{
    mem_free(u->find.hits);
    u->find = (struct full_find){0};
    u->due = DUE_NOW;
}

bool full_is_finding(const struct full_ui *u)
{
    return u->find.n > 0;
}

bool full_find_key(struct full_ui *u, char key)
{
    if (u->find.n == 0)
        return false;
    if (key == 'n')
        show_match(u, (u->find.at + 1) % u->find.n);
    else if (key == 'N')
        show_match(u, (u->find.at + u->find.n - 1) % u->find.n);
    else
        full_find_end(u);
    if (key == 'n' || key == 'N') {
        u->find.key = key;
        u->find.pressed = clock_seconds();
    }
    return key == 'n' || key == 'N' || key == 0x1B;
}

char full_find_letter(const struct full_ui *u)
{
    return clock_seconds() - u->find.pressed < WORD_SECONDS ? u->find.key : 0;
}

/* Write "match 2 of 7, n N Esc | ", or "" if no search is active. During an answer without "Esc",
 * which then stops the answer. */
static void find_hint(const struct full_ui *u, bool is_busy, char *out, size_t out_bytes)
{
    if (u->find.n == 0)
        out[0] = 0;
    else
        (void)snprintf(out, out_bytes, "match %zu of %zu, n N%s | ", u->find.at + 1, u->find.n,
                       is_busy ? "" : " Esc"); /* if it does not fit, it is cut */
}

/* ---- frame ---- */

static enum screen_look look_of(enum scroll_look look)
{
    static const enum screen_look looks[] = {
        [SCROLL_ANSWER] = SCREEN_NORMAL, [SCROLL_THOUGHT] = SCREEN_DIM,
        [SCROLL_USER] = SCREEN_BOLD,     [SCROLL_PLAIN] = SCREEN_NORMAL,
        [SCROLL_TABLE] = SCREEN_NORMAL,  [SCROLL_NOTE] = SCREEN_DIM,
        [SCROLL_WARNING] = SCREEN_BOLD,
    };
    return looks[look];
}

/* Show the place of a match without characters, at byte `at` of `part` or behind it: mark a whole
 * character, or append a marked blank to an empty row. */
static bool mark_place(struct bn_str part, size_t at, struct strbuf *text, struct strbuf *looks)
{
    if (part.n_bytes == 0) {
        strbuf_add_char(text, ' ');
        strbuf_add_char(looks, (char)(TEXT_PLAIN | SCREEN_MARKED));
        return !looks->failed;
    }
    const size_t n_indent = looks->n_bytes - part.n_bytes;
    at = size_min(at, part.n_bytes - 1);
    while (at > 0 && utf8_is_continuation(part.ptr[at]))
        at--; /* to the first byte of the character */
    do
        looks->ptr[n_indent + at++] |= SCREEN_MARKED;
    while (at < part.n_bytes && utf8_is_continuation(part.ptr[at]));
    return true;
}

/* Mark the part of `hit` that is in row `row` of the transcript in `looks`, those of `text`, which
 * ends with the row's `part` of the line. False: it is not in this row, or out of memory. */
static bool mark_match(const struct full_ui *u, const struct full_hit *hit, size_t row,
                       struct bn_str part, struct strbuf *text, struct strbuf *looks)
{
    if (looks->failed)
        return false;
    const size_t at = (size_t)(part.ptr - strbuf_text(&u->text.lines[hit->begin.line].text));
    if (hit->begin.byte == hit->end)
        return scroll_row_of(&u->text, hit->begin) == row &&
               mark_place(part, hit->end - size_min(at, hit->end), text, looks);
    const size_t end = size_min(hit->end, at + part.n_bytes),
                 n_indent = looks->n_bytes - part.n_bytes;
    for (size_t k = size_max(hit->begin.byte, at); k < end; k++)
        looks->ptr[n_indent + k - at] |= SCREEN_MARKED;
    return hit->begin.byte < end && hit->end > at;
}

/* Paint row `row` of the text in row y of the screen. */
static void paint_text_row(struct full_ui *u, size_t y, size_t row)
{
    static const enum text_look text_looks[] = {
        [SCREEN_NORMAL] = TEXT_PLAIN, [SCREEN_BOLD] = TEXT_BOLD, [SCREEN_DIM] = TEXT_DIM};
    const size_t i = scroll_line_of(&u->text, row), n_indent = scroll_row_indent(&u->text, row);
    const struct scroll_line *line = &u->text.lines[i];
    const struct bn_str part = scroll_row(&u->text, row);
    const char *part_looks = scroll_row_looks(line, part);
    const enum screen_look look = look_of(line->look);
    const struct full_hit *hit = u->find.n > 0 ? &u->find.hits[u->find.at] : NULL;
    const bool may_have_hit = hit && hit->begin.line == i;
    if (n_indent == 0 && !may_have_hit) {
        curses_set_row(u->screen, y, look, part, part_looks);
        return;
    }
    struct strbuf text = {0}, looks = {0};
    for (size_t k = 0; k < n_indent; k++) {
        strbuf_add_char(&text, ' ');
        strbuf_add_char(&looks, (char)TEXT_PLAIN);
    }
    strbuf_add_str(&text, part);
    for (size_t k = 0; k < part.n_bytes; k++)
        strbuf_add_char(&looks, part_looks ? part_looks[k] : (char)text_looks[look]);
    const bool is_marked = may_have_hit && mark_match(u, hit, row, part, &text, &looks);
    const bool has_looks = !looks.failed && (is_marked || part_looks);
    curses_set_row(u->screen, y, look, strbuf_str(&text), has_looks ? looks.ptr : NULL);
    strbuf_finish(&text);
    strbuf_finish(&looks);
}

/* Paint the view in the first n_rows rows of the screen. */
static void paint_text(struct full_ui *u, size_t n_rows)
{
    const size_t top = top_of_view(u, n_rows);
    u->n_shown = n_rows;
    for (size_t y = 0; y < n_rows; y++) {
        const size_t row = top + y;
        if (row < u->text.n_rows)
            paint_text_row(u, y, row);
        else
            curses_set_row(u->screen, y, SCREEN_NORMAL, bn_str_of(""), NULL);
    }
}

/* Paint the first n_rows lines of a text in the rows from `row` on. */
static void paint_lines(struct full_ui *u, const struct strbuf *lines, size_t row, size_t n_rows)
{
    const char *at = strbuf_text(lines);
    for (size_t i = 0; i < n_rows; i++) {
        const size_t n = strcspn(at, "\n");
        const struct bn_str line = {at, n};
        curses_set_row(u->screen, row + i, SCREEN_DIM,
                       (struct bn_str){at, term_text_fit(line, u->size.columns)}, NULL);
        at += n + (at[n] == '\n');
    }
}

/* Paint the editor in n_rows rows from `row` on, and send the frame to the terminal. */
static void paint_input(struct full_ui *u, size_t row, size_t n_rows)
{
    const struct input_rows *r = &u->input;
    input_rows_limit(&u->input, n_rows, u->size.columns);
    for (size_t i = 0; i < n_rows; i++)
        curses_set_row(u->screen, row + i, input_rows_is_mark(r, i) ? SCREEN_DIM : SCREEN_NORMAL,
                       i < r->n ? input_rows_row(r, i) : bn_str_of(""), NULL);
    curses_refresh(u->screen, row + r->cursor_row, r->cursor_column, input_rows_before(r));
}

/* The status row may be too wide, because text was put before it. Remove whole items from the
 * right; if only one is left, cut it. */
static void drop_items(char *status, size_t columns)
{
    if (strlen(status) <= columns)
        return;
    for (size_t end = columns; end > 0; end--) {
        if (strncmp(status + end, STATUS_SEPARATOR, strlen(STATUS_SEPARATOR)) == 0) {
            status[end] = 0;
            return;
        }
    }
    status[term_text_fit(bn_str_of(status), columns)] = 0;
}

static void paint_all(struct ui *ui)
{
    struct full_ui *u = ui->state;
    const size_t rows = u->size.rows;
    struct line_view view;
    line_view(&view);
    input_rows_make(&u->input, view.prompt, view.text, view.point, u->size.columns);
    if (u->input.n == 0)
        return; /* out of memory: skip this frame */
    if (rows < MIN_ROWS || u->size.columns < MIN_COLUMNS) {
        for (size_t y = 0; y + 1 < rows; y++)
            curses_set_row(u->screen, y, SCREEN_NORMAL, bn_str_of(""), NULL);
        paint_input(u, rows - 1, 1);
        return;
    }
    /* The editor and the status row come first. The choices get at most half of the other rows, and
     * the queue at most half of the rest. At least one row is left for the text. */
    const size_t n_input = size_min(size_min(u->input.n, INPUT_ROWS), rows - 2);
    const size_t n_choices =
        size_min(bn_str_count(strbuf_str(&u->choices), '\n'), (rows - 1 - n_input) / 2);
    const size_t n_free = rows - 1 - n_input - n_choices;
    strbuf_cut(&u->queued, 0);
    entry_queue_rows(&ui->terminal->queue, ENTRY_NEXT, u->size.columns,
                     size_min(size_max(n_free / 2, 1), QUEUE_ROWS), &u->queued);
    const size_t n_queued = size_min(bn_str_count(strbuf_str(&u->queued), '\n'), n_free - 1);
    const size_t n_text = n_free - n_queued;
    paint_text(u, n_text);
    paint_lines(u, &u->choices, n_text, n_choices);
    paint_lines(u, &u->queued, n_text + n_choices, n_queued);
    /* fullness 0, 1, 2: SCREEN_BAR, SCREEN_BAR_HIGH, SCREEN_BAR_FULL */
    const enum screen_look bar = (enum screen_look)((int)SCREEN_BAR + u->fullness);
    char found[64], status[sizeof(u->status) + sizeof(MORE_BELOW) + sizeof(found)];
    find_hint(u, chat_is_busy(ui->chat), found, sizeof(found));
    (void)snprintf(status, sizeof(status), "%s%s%s", found, u->is_scrolled ? MORE_BELOW : "",
                   u->status); /* fits */
    drop_items(status, u->size.columns);
    curses_set_row(u->screen, rows - 1 - n_input, bar, bn_str_of(status), NULL);
    paint_input(u, rows - n_input, n_input);
}

/* Format the status row again. While something runs, do so only every STATUS_SECONDS and for a
 * frame that is due now. */
static void make_status(struct ui *ui, double now)
{
    struct full_ui *u = ui->state;
    char before[sizeof(u->status)];
    const bool busy = chat_is_busy(ui->chat);
    const bool is_running = busy || ui->chat->phase == CHAT_LOADING;
    if (is_running && u->due != DUE_NOW && now - u->status_made < STATUS_SECONDS)
        return;
    memcpy(before, u->status, sizeof(before));
    u->fullness = ui_terminal_fullness(ui);
    ui_terminal_status(ui, u->size.columns, u->status, sizeof(u->status));
    u->status_made = now;
    if (strcmp(before, u->status) != 0 && u->due == DUE_NOTHING)
        u->due = DUE_SOON;
}

void full_resize(struct ui *ui)
{
    struct full_ui *u = ui->state;
    const struct tty_size size = tty_size(STDOUT_FILENO);
    if (size.columns == u->size.columns && size.rows == u->size.rows)
        return;
    if (size.columns != u->size.columns || u->text.columns == 0)
        scroll_layout(&u->text, size.columns);
    u->size = size;
    curses_resize(u->screen, size);
    line_resize(size.rows, size.columns);
    strbuf_cut(&u->choices, 0); /* the choices were arranged for another width */
    u->due = DUE_NOW;
}

int full_paint(struct ui *ui)
{
    struct full_ui *u = ui->state;
    const double now = clock_seconds();
    if (ui->terminal->is_hung_up)
        return -1; /* in the background of a shell, ncurses would stop the process */
    full_resize(ui);
    make_status(ui, now);
    const double left = u->painted + FRAME_SECONDS - now;
    if (u->due == DUE_NOW || (u->due == DUE_SOON && left <= 0)) {
        paint_all(ui);
        u->painted = now;
        u->due = DUE_NOTHING;
    }
    if (u->due == DUE_SOON)
        return (int)(left * 1000) + 1; /* rounded up: an earlier call would not paint */
    return chat_is_busy(ui->chat) ? (int)(STATUS_SECONDS * 1000) : -1;
}
