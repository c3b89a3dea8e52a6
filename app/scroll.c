/*
 * Scrolling text: see scroll.h. Rows are found again from their line when they are asked for; only
 * their number is kept, so a layout costs one pass over the text.
 */
#include "app/scroll.h"

#include "app/term_text.h"
#include "engine/base/memory.h"

#include <string.h>

void scroll_finish(struct scroll *s)
{
    for (size_t i = 0; i < s->n; i++)
        strbuf_finish(&s->lines[i].text);
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
    size_t used = 0, n_word_end = 0, n_word = 0;
    struct term_char c;
    for (size_t i = at; i < text.n_bytes;) {
        const size_t before = i;
        if (!term_text_next(text, &i, &c))
            break;
        if (c.code == ' ' && words) {
            if (before > at && text.ptr[before - 1] != ' ')
                n_word_end = before; /* blanks at a break are left out */
            used++;
            n_word = i;
            continue;
        }
        used += c.width;
        if (used <= limit || before == at)
            continue;
        *next = n_word_end > 0 ? n_word : before;
        return n_word_end > 0 ? n_word_end : before;
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
    s->lines[s->n++] =
        (struct scroll_line){.look = look, .breaks = s->in_code ? SCROLL_COLUMNS : breaks};
    s->is_open = true;
    return true;
}

static void put(struct scroll_line *line, const struct term_char *c)
{
    if (c->code != '\t') {
        term_text_put(&line->text, c->code);
        return;
    }
    const size_t at = term_text_width(strbuf_str(&line->text));
    for (size_t n = TERM_TAB - at % TERM_TAB; n > 0; n--)
        strbuf_add_char(&line->text, ' ');
}

static bool is_fence(const struct scroll_line *line)
{
    return line->text.n_bytes >= 3 && memcmp(line->text.ptr, "```", 3) == 0;
}

static void end_line(struct scroll *s)
{
    if (is_fence(&s->lines[s->n - 1]))
        s->in_code = !s->in_code;
    lay_line(s, s->n - 1);
    s->is_open = false;
}

void scroll_add(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                struct bn_str text)
{
    struct term_char c;
    if (s->is_open && s->lines[s->n - 1].look != look)
        scroll_end(s);
    strbuf_add_str(&s->bytes, text);
    const struct bn_str all = strbuf_str(&s->bytes);
    const struct bn_str whole = {all.ptr, all.n_bytes - term_text_tail(all)};
    for (size_t at = 0; term_text_next(whole, &at, &c);) {
        if (!s->is_open && !begin_line(s, look, breaks))
            break;
        if (c.code == '\n')
            end_line(s);
        else
            put(&s->lines[s->n - 1], &c);
    }
    strbuf_drop(&s->bytes, whole.n_bytes);
    if (s->is_open)
        lay_line(s, s->n - 1);
}

void scroll_end(struct scroll *s)
{
    if (s->bytes.n_bytes > 0 && s->is_open)
        term_text_put(&s->lines[s->n - 1].text, TERM_REPLACEMENT); /* it was never completed */
    strbuf_cut(&s->bytes, 0);
    if (s->is_open)
        end_line(s);
    s->in_code = false;
}

void scroll_cut(struct scroll *s, size_t line)
{
    while (s->n > line)
        strbuf_finish(&s->lines[--s->n].text);
    s->is_open = s->in_code = false;
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

static void print_line(const struct scroll *s, const struct scroll_line *line, struct strbuf *out)
{
    size_t next;
    if (line->breaks == SCROLL_COLUMNS) { /* the terminal breaks it, and it can be copied whole */
        strbuf_add_str(out, strbuf_str(&line->text));
        strbuf_add_char(out, '\n');
        return;
    }
    for (size_t at = 0;; at = next) {
        const size_t end = row_end(line, s->columns, at, &next);
        strbuf_add(out, strbuf_text(&line->text) + at, end - at);
        strbuf_add_char(out, '\n');
        if (next >= line->text.n_bytes)
            return;
    }
}

size_t scroll_print(const struct scroll *s, size_t first, size_t max_rows, struct strbuf *out)
{
    size_t from = s->n, n_printed = 0;
    const size_t row0 = first < s->n ? s->lines[first].row0 : s->n_rows;
    while (from > first && n_printed + s->lines[from - 1].n_rows <= max_rows)
        n_printed += s->lines[--from].n_rows;
    for (size_t i = from; i < s->n; i++)
        print_line(s, &s->lines[i], out);
    return s->n_rows - row0 - n_printed;
}
