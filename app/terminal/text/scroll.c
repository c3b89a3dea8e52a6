/*
 * Scrolling text: see scroll.h. Rows are found again from their line when they are asked for; only
 * their number is kept, so a layout costs one pass over the text.
 */
#include "app/terminal/text/scroll.h"

#include "app/common/term_text.h"
#include "engine/base/memory.h"
#include "engine/base/utf8.h"

#include <string.h>

void scroll_finish(struct scroll *s)
{
    scroll_cut(s, 0);
    mem_free(s->lines);
    strbuf_finish(&s->bytes);
    *s = (struct scroll){0};
}

/* The row that begins at `at`: where it ends, and where the next one begins. */
static size_t row_end(const struct scroll_line *line, size_t columns, size_t at, size_t *next)
{
    const struct bn_str text = strbuf_str(&line->text);
    const bool words = line->breaks == SCROLL_WORDS;
    const size_t limit = words && columns > 1 ? columns - 1 : columns;
    size_t used = 0, n_word_end = 0, n_word = 0, base = at, before = 0;
    struct term_char c;
    for (size_t i = at; i < text.n_bytes;) {
        const size_t here = i;
        if (!term_text_next(text, &i, &c))
            break;
        if (c.code == ' ' && words) {
            if (here > at && text.ptr[here - 1] != ' ')
                n_word_end = here; /* blanks at a break are left out */
            used++;
            before = 1;
            n_word = i;
            continue;
        }
        if (c.width > 0)
            base = here; /* what has no width of its own stays with it */
        used += term_text_wide(&c, before);
        before = c.width;
        if (used <= limit || base == at)
            continue;
        *next = n_word_end > 0 ? n_word : base;
        return n_word_end > 0 ? n_word_end : base;
    }
    *next = text.n_bytes;
    return text.n_bytes;
}

static size_t count_rows(const struct scroll_line *line, size_t columns)
{
    size_t n = 0, at = 0;
    do {
        (void)row_end(line, columns, at, &at); /* only how many there are */
        n++;
    } while (at < line->text.n_bytes);
    return n;
}

static void lay_line(struct scroll *s, size_t i)
{
    struct scroll_line *line = &s->lines[i];
    line->row0 = i > 0 ? s->lines[i - 1].row0 + s->lines[i - 1].n_rows : 0;
    line->n_rows = s->columns > 0 ? count_rows(line, s->columns) : 1;
    s->n_rows = line->row0 + line->n_rows;
}

void scroll_layout(struct scroll *s, size_t columns)
{
    s->columns = columns;
    s->n_rows = 0;
    for (size_t i = 0; i < s->n; i++)
        lay_line(s, i);
}

static bool begin_line(struct scroll *s, enum scroll_look look, enum scroll_break breaks)
{
    if (!mem_grow(&s->lines, &s->cap, s->n + 1, sizeof(*s->lines)))
        return false;
    s->lines[s->n++] = (struct scroll_line){.look = look, .breaks = breaks};
    s->is_open = true;
    return true;
}

static void put(struct scroll_line *line, uint32_t code, enum text_look look)
{
    if (code == '\t') {
        const size_t at = term_text_width(strbuf_str(&line->text));
        for (size_t n = TERM_TAB - at % TERM_TAB; n > 0; n--)
            strbuf_add_char(&line->text, ' ');
    } else {
        term_text_put(&line->text, code);
    }
    if (markdown_is_block(look))
        line->breaks = SCROLL_COLUMNS;
    while (line->look == SCROLL_ANSWER && line->looks.n_bytes < line->text.n_bytes &&
           !line->looks.failed)
        strbuf_add_char(&line->looks, (char)look);
}

static void end_line(struct scroll *s)
{
    lay_line(s, s->n - 1);
    s->is_open = false;
}

static void put_all(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                    const struct markdown_char *chars, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!s->is_open && !begin_line(s, look, breaks))
            return;
        if (chars[i].code == '\n')
            end_line(s);
        else
            put(&s->lines[s->n - 1], chars[i].code, chars[i].look);
    }
}

static void take_char(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                      uint32_t code)
{
    struct markdown_char chars[MARKDOWN_OUT] = {{.code = code}};
    const bool is_markdown = look == SCROLL_ANSWER || look == SCROLL_THOUGHT;
    put_all(s, look, breaks, chars, is_markdown ? markdown_take(&s->markdown, code, chars) : 1);
}

void scroll_add(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                struct bn_str text)
{
    struct term_char c;
    if (s->look != look || s->breaks != breaks)
        scroll_end(s);
    s->look = look;
    s->breaks = breaks;
    strbuf_add_str(&s->bytes, text);
    const struct bn_str all = strbuf_str(&s->bytes);
    const struct bn_str whole = {all.ptr, all.n_bytes - utf8_open_bytes(all.ptr, all.n_bytes)};
    for (size_t at = 0; term_text_next(whole, &at, &c);)
        take_char(s, look, breaks, c.code);
    strbuf_drop(&s->bytes, whole.n_bytes);
    if (s->is_open)
        lay_line(s, s->n - 1);
}

void scroll_end(struct scroll *s)
{
    struct markdown_char chars[MARKDOWN_OUT];
    struct term_char c;
    for (size_t at = 0; term_text_next(strbuf_str(&s->bytes), &at, &c);)
        take_char(s, s->look, s->breaks, c.code); /* it was never completed */
    strbuf_cut(&s->bytes, 0);
    put_all(s, s->look, s->breaks, chars, markdown_flush(&s->markdown, chars));
    if (s->is_open)
        end_line(s);
    s->markdown = (struct markdown){0};
}

void scroll_cut(struct scroll *s, size_t line)
{
    while (s->n > line) {
        strbuf_finish(&s->lines[--s->n].text);
        strbuf_finish(&s->lines[s->n].looks);
    }
    s->is_open = false;
    s->markdown = (struct markdown){0};
    strbuf_cut(&s->bytes, 0);
    s->n_rows = s->n > 0 ? s->lines[s->n - 1].row0 + s->lines[s->n - 1].n_rows : 0;
}

size_t scroll_line_of(const struct scroll *s, size_t row)
{
    size_t low = 0, high = s->n;
    while (high - low > 1) {
        const size_t mid = low + (high - low) / 2;
        if (s->lines[mid].row0 <= row)
            low = mid;
        else
            high = mid;
    }
    return low;
}

struct bn_str scroll_row(const struct scroll *s, size_t row)
{
    const struct scroll_line *line = &s->lines[scroll_line_of(s, row)];
    size_t at = 0, next = 0;
    size_t end = row_end(line, s->columns, 0, &next);
    for (size_t i = line->row0; i < row && next < line->text.n_bytes; i++) {
        at = next;
        end = row_end(line, s->columns, at, &next);
    }
    return (struct bn_str){strbuf_text(&line->text) + at, end - at};
}

const char *scroll_row_looks(const struct scroll_line *line, struct bn_str part)
{
    if (line->looks.n_bytes < line->text.n_bytes || line->looks.n_bytes == 0)
        return NULL;
    return line->looks.ptr + (part.ptr - line->text.ptr);
}

struct scroll_place scroll_here(struct scroll *s)
{
    struct markdown_char chars[MARKDOWN_OUT];
    put_all(s, s->look, s->breaks, chars, markdown_flush(&s->markdown, chars));
    if (!s->is_open)
        return (struct scroll_place){s->n, 0};
    return (struct scroll_place){s->n - 1, s->lines[s->n - 1].text.n_bytes};
}

/* The line's text from `at` on. */
static void print_line(const struct scroll *s, const struct scroll_line *line, size_t at,
                       struct strbuf *out)
{
    size_t next;
    if (line->breaks == SCROLL_COLUMNS) { /* the terminal breaks it, and it can be copied whole */
        strbuf_add(out, strbuf_text(&line->text) + at, line->text.n_bytes - at);
        strbuf_add_char(out, '\n');
        return;
    }
    for (;; at = next) {
        const size_t end = row_end(line, s->columns, at, &next);
        strbuf_add(out, strbuf_text(&line->text) + at, end - at);
        strbuf_add_char(out, '\n');
        if (next >= line->text.n_bytes)
            return;
    }
}

size_t scroll_print(const struct scroll *s, struct scroll_place from, size_t max_rows,
                    struct strbuf *out)
{
    size_t line = s->n, n_printed = 0;
    const size_t row0 = from.line < s->n ? s->lines[from.line].row0 : s->n_rows;
    while (line > from.line && n_printed + s->lines[line - 1].n_rows <= max_rows)
        n_printed += s->lines[--line].n_rows;
    for (size_t i = line; i < s->n; i++) {
        size_t at = i == from.line ? from.byte : 0;
        while (at > 0 && at < s->lines[i].text.n_bytes && s->lines[i].text.ptr[at] == ' ')
            at++;
        if (at == 0 || at < s->lines[i].text.n_bytes)
            print_line(s, &s->lines[i], at, out);
    }
    return s->n_rows - row0 - n_printed;
}
