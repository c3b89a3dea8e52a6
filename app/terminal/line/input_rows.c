/*
 * Breaks the text of the editor into rows: see input_rows.h.
 */
#include "app/terminal/line/input_rows.h"

#include "app/common/term_text.h"
#include "engine/base/memory.h"

#include <string.h>

#define CONTINUED "... "

void input_rows_finish(struct input_rows *r)
{
    strbuf_finish(&r->text);
    mem_free(r->starts);
    *r = (struct input_rows){0};
}

static size_t begin_row(struct input_rows *r)
{
    if (mem_grow(&r->starts, &r->cap, r->n + 1, sizeof(*r->starts)))
        r->starts[r->n++] = r->text.n_bytes;
    return 0;
}

static void put(struct input_rows *r, uint32_t code, size_t width, size_t columns, size_t *column)
{
    if (*column + width > columns && *column > 0 && code != 0xFE0F)
        *column = begin_row(r);
    term_text_put(&r->text, code);
    *column += width;
}

/* The prompt without control sequences. */
static void put_prompt(struct input_rows *r, const char *prompt, size_t columns, size_t *column)
{
    struct strbuf shown = {0};
    struct term_char c;
    for (const char *at = prompt; *at; at++) {
        if (*at == '\001')
            at += strcspn(at, "\002");
        if (!*at)
            break;
        if (*at != '\002' && *at != '\n')
            strbuf_add_char(&shown, *at);
    }
    for (size_t at = 0; term_text_next(strbuf_str(&shown), &at, &c);)
        put(r, c.code, c.width, columns, column);
    strbuf_finish(&shown);
}

void input_rows_make(struct input_rows *r, const char *prompt, struct bn_str text, size_t point,
                     size_t columns)
{
    struct term_char c;
    size_t column, wide = 0; /* columns of the previous character */
    r->n = 0;
    strbuf_cut(&r->text, 0);
    column = begin_row(r);
    put_prompt(r, prompt, columns, &column);
    for (size_t at = 0;;) {
        if (at == point) {
            r->cursor_row = r->n - (r->n > 0);
            r->cursor_column = column;
        }
        const size_t before = at;
        if (!term_text_next(text, &at, &c))
            break;
        const unsigned char byte = (unsigned char)text.ptr[before];
        if (byte == '\n') {
            column = begin_row(r);
            for (const char *mark = CONTINUED; *mark && columns > 2 * strlen(CONTINUED); mark++)
                put(r, (uint32_t)*mark, 1, columns, &column);
        } else if (byte < 0x20 || byte == 0x7F) {
            put(r, '^', 1, columns, &column);
            put(r, byte ^ 0x40u, 1, columns, &column);
        } else {
            wide = term_text_added_width(&c, wide);
            put(r, c.code, wide, columns, &column);
        }
        if (before < point && point < at)
            at = point; /* a point inside a character would never be reached */
    }
    if (r->cursor_column >= columns) { /* the cursor is where the next character will be */
        r->cursor_column = 0;
        r->cursor_row++;
        if (r->cursor_row >= r->n)
            (void)begin_row(r);
    }
}

struct bn_str input_rows_row(const struct input_rows *r, size_t row)
{
    const size_t end = row + 1 < r->n ? r->starts[row + 1] : r->text.n_bytes;
    return (struct bn_str){strbuf_text(&r->text) + r->starts[row], end - r->starts[row]};
}

size_t input_rows_first(const struct input_rows *r, size_t n_shown)
{
    if (r->n <= n_shown)
        return 0;
    const size_t last = r->cursor_row + 1 < n_shown ? 0 : r->cursor_row + 1 - n_shown;
    return last + n_shown > r->n ? r->n - n_shown : last;
}
