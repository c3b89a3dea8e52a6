/*
 * Breaks the text of the editor into rows: see input_rows.h.
 */
#include "app/terminal/line/input_rows.h"

#include "app/common/term_text.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <stdio.h>
#include <string.h>

#define EMOJI_STYLE 0xFE0Fu /* makes an emoji of the character before it */

void input_rows_continue(struct bn_str input, struct strbuf *out)
{
    for (size_t i = 0; i < input.n_bytes; i++) {
        strbuf_add_char(out, input.ptr[i]);
        if (input.ptr[i] == '\n')
            strbuf_add_text(out, INPUT_CONTINUED);
    }
}

void input_rows_finish(struct input_rows *r)
{
    strbuf_finish(&r->text);
    mem_free(r->starts);
    *r = (struct input_rows){0};
}

/* Begin a row. Returns its first column, 0. */
static size_t begin_row(struct input_rows *r)
{
    r->n_width_varies = 0;
    if (mem_grow(&r->starts, &r->cap, r->n + 1, sizeof(*r->starts)))
        r->starts[r->n++] = r->text.n_bytes;
    return 0;
}

/* Append a character of `width` columns to the last row, or to a new row if it does not fit. A
 * terminal may show a character of varying width one column wider, unless its width is 0. So the
 * row keeps one column free for each such character that it has already. An EMOJI_STYLE stays with
 * its character. */
static void put(struct input_rows *r, uint32_t code, size_t width, size_t columns, size_t *column)
{
    const bool varies = term_text_width_varies(code);
    if (*column + width + r->n_width_varies > columns && *column > 0 && code != EMOJI_STYLE)
        *column = begin_row(r);
    term_text_put(&r->text, code);
    r->n_width_varies += varies && width > 0;
    *column += width;
}

/* Append the prompt without control sequences and newlines. */
static void put_prompt(struct input_rows *r, const char *prompt, size_t columns, size_t *column)
{
    struct strbuf shown = {0};
    struct term_char c;
    for (const char *at = prompt; *at; at++) {
        if (*at == '\001')
            at += strcspn(at, "\002"); /* to the end marker */
        if (!*at)
            break;
        if (*at != '\002' && *at != '\n')
            strbuf_add_char(&shown, *at);
    }
    for (size_t at = 0; term_text_next(strbuf_str(&shown), &at, &c);)
        put(r, c.code, c.width, columns, column);
    r->n_prompt = r->text.n_bytes;
    strbuf_finish(&shown);
}

/* Append a character of the text. `byte` is its first byte: in c, control characters are replaced.
 * A newline begins a row. *last_width is the number of columns of the last character: on entry that
 * of the previous one, on return that of this one. 0: a newline or a control character, which no
 * EMOJI_STYLE changes. */
static void put_char(struct input_rows *r, const struct term_char *c, char byte, size_t columns,
                     size_t *last_width, size_t *column)
{
    if (byte == '\n') {
        *last_width = 0;
        *column = begin_row(r);
        /* On a narrow screen, INPUT_CONTINUED would take at least half of the row. */
        for (const char *mark = INPUT_CONTINUED; *mark && columns > 2 * strlen(INPUT_CONTINUED);
             mark++)
            put(r, (uint32_t)*mark, 1, columns, column);
    } else if ((unsigned char)byte < 0x20 || byte == 0x7F) {
        *last_width = 0;
        put(r, '^', 1, columns, column);
        put(r, (unsigned char)byte ^ 0x40u, 1, columns, column); /* 1 is ^A, 0x7F is ^? */
    } else {
        *last_width = term_text_added_width(c, *last_width);
        put(r, c->code, *last_width, columns, column);
    }
}

/* Set the cursor to the end of the text so far. */
static void set_cursor(struct input_rows *r, size_t column)
{
    r->cursor_row = r->n - (r->n > 0); /* the last row; n is 0 only if memory has run out */
    r->cursor_column = column;
    r->cursor_byte = r->text.n_bytes;
}

void input_rows_make(struct input_rows *r, const char *prompt, struct bn_str text, size_t point,
                     size_t columns)
{
    struct term_char c;
    size_t column, last_width = 0;
    size_t end = 0; /* of the current cluster */
    r->n = 0;
    r->has_mark_above = r->has_mark_below = false;
    strbuf_cut(&r->text, 0);
    column = begin_row(r);
    put_prompt(r, prompt, columns, &column);
    set_cursor(r, column);
    for (size_t at = 0, before = 0; term_text_next(text, &at, &c); before = at) {
        const size_t n_rows = r->n;
        const bool begins = before >= end; /* a cluster */
        /* The last cluster for which this is true is at the point. */
        const bool may_be_point = begins && before <= point;
        if (begins)
            end = term_text_cluster(text, before);
        if (may_be_point)
            set_cursor(r, column);
        put_char(r, &c, text.ptr[before], columns, &last_width, &column);
        /* A cluster that does not fit takes the cursor into its new row; a newline does not. */
        if (may_be_point && text.ptr[before] != '\n' && r->n > n_rows &&
            r->starts[n_rows] == r->cursor_byte) {
            r->cursor_row = n_rows;
            r->cursor_column = 0;
        }
    }
    if (point >= text.n_bytes)
        set_cursor(r, column);
    if (r->cursor_column >= columns) { /* the row is full: a character would begin a new one */
        r->cursor_column = 0;
        r->cursor_row++;
        if (r->cursor_row >= r->n)
            (void)begin_row(r);
        r->cursor_byte = r->cursor_row < r->n ? r->starts[r->cursor_row] : r->text.n_bytes;
    }
}

size_t input_rows_width(struct bn_str row)
{
    size_t width = 0;
    for (size_t at = 0; at < row.n_bytes;) {
        const size_t end = term_text_cluster(row, at);
        width += size_min(term_text_width((struct bn_str){row.ptr + at, end - at}), 2);
        at = end;
    }
    return width;
}

struct bn_str input_rows_row(const struct input_rows *r, size_t row)
{
    const size_t end = row + 1 < r->n ? r->starts[row + 1] : r->text.n_bytes;
    return (struct bn_str){strbuf_text(&r->text) + r->starts[row], end - r->starts[row]};
}

struct bn_str input_rows_before(const struct input_rows *r)
{
    if (r->cursor_row >= r->n)
        return (struct bn_str){0};
    const size_t start = r->starts[r->cursor_row];
    return (struct bn_str){strbuf_text(&r->text) + start, r->cursor_byte - start};
}

/* The least number of rows with marks: one above, one below, and the row of the cursor. */
#define MARKED_ROWS 3

/* Append a mark for `n_hidden` rows. Returns its number of bytes. */
static size_t add_mark(struct strbuf *text, size_t n_hidden, const char *where, size_t columns)
{
    char mark[48];
    (void)snprintf(mark, sizeof(mark), "(%zu rows %s)", n_hidden, where); /* fits */
    const size_t n_bytes = term_text_fit(bn_str_of(mark), columns);
    strbuf_add(text, mark, n_bytes);
    return n_bytes;
}

/* Keep the rows [first, end), and the marks of r->has_mark_above and r->has_mark_below. */
static void keep_rows(struct input_rows *r, size_t first, size_t end, size_t columns)
{
    struct strbuf text = {0};
    const size_t n_all = r->n, start = r->starts[first], n_above = r->has_mark_above;
    const size_t stop = end < n_all ? r->starts[end] : r->text.n_bytes;
    const size_t n_mark = n_above > 0 ? add_mark(&text, first, "above", columns) : 0;
    strbuf_add(&text, strbuf_text(&r->text) + start, stop - start);
    for (size_t i = first; i < end; i++) /* to a lower place: if there is a mark, first >= 1 */
        r->starts[i - first + n_above] = r->starts[i] - start + n_mark;
    r->n = end - first + n_above;
    if (n_above > 0)
        r->starts[0] = 0;
    if (r->has_mark_below) {
        r->starts[r->n++] = text.n_bytes;
        (void)add_mark(&text, n_all - end, "below", columns);
    }
    r->n_prompt = n_above > 0 || r->n_prompt < start ? 0 : r->n_prompt - start;
    r->cursor_row = r->cursor_row - first + n_above;
    r->cursor_byte = r->cursor_byte - start + n_mark;
    if (text.failed)
        r->n = 0;
    strbuf_finish(&r->text);
    r->text = text;
}

void input_rows_limit(struct input_rows *r, size_t n_shown, size_t columns)
{
    if (r->n <= n_shown)
        return;
    const bool has_marks = n_shown >= MARKED_ROWS;
    /* Without memory, the row of the cursor may be missing: it is row n. */
    const size_t cursor = size_min(r->cursor_row, r->n - 1);
    /* Show the beginning or the end, if the cursor is there; else the cursor is in the last row. */
    const bool at_begin = cursor + 1 < n_shown, at_end = has_marks && cursor + 2 >= r->n;
    r->has_mark_above = has_marks && !at_begin;
    r->has_mark_below = has_marks && !at_end;
    const size_t n_kept = n_shown - r->has_mark_above - r->has_mark_below;
    size_t first = 0;
    if (at_end)
        first = r->n - n_kept;
    else if (!at_begin)
        first = cursor + 1 - n_kept;
    keep_rows(r, first, first + n_kept, columns);
}

bool input_rows_is_mark(const struct input_rows *r, size_t row)
{
    return (row == 0 && r->has_mark_above) || (row + 1 == r->n && r->has_mark_below);
}
