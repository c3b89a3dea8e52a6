/*
 * Scrolling text: see scroll.h. Only the first row and the number of rows of each line are stored.
 * Where the rows begin and end is computed when they are needed.
 */
#include "app/terminal/text/scroll.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <string.h>

void scroll_finish(struct scroll *s)
{
    scroll_truncate(s, 0);
    mem_free(s->lines);
    *s = (struct scroll){0};
}

/* The columns of a row that may be used. */
static size_t limit_of(const struct scroll_line *line, size_t columns)
{
    return line->breaks == SCROLL_WORDS && columns > 1 ? columns - 1 : columns;
}

/* The number of blanks before the later rows of the line. */
static size_t indent_of(const struct scroll_line *line, size_t columns)
{
    return line->breaks == SCROLL_WORDS ? markdown_hang_indent(&line->hang, limit_of(line, columns))
                                        : 0;
}

/* Return the offset of the end of the row that begins at `at`; *next is the beginning of the next
 * row. At least one character fits, so that only the row of an empty line is empty. */
static size_t row_end(const struct scroll_line *line, size_t columns, size_t at, size_t *next)
{
    const struct bn_str text = strbuf_str(&line->text);
    const bool words = line->breaks == SCROLL_WORDS;
    const size_t indent = indent_of(line, columns), lead = at == 0 ? indent : 0;
    const size_t limit = limit_of(line, columns) - (at > 0 ? indent : 0);
    /* `used` and `before`: columns of the row so far, and of its last character. The others are
     * offsets: the end of the last complete word (0: none), the start of the next word, the start
     * of the last character with a width, and the end of what fits into the row. */
    size_t used = 0, word_end = 0, word_start = 0, base = at, before = 0, fits = at;
    struct term_char c;
    for (size_t i = at; i < text.n_bytes;) {
        const size_t here = i;
        if (!term_text_next(text, &i, &c))
            break;
        if (c.code == ' ' && words) {
            /* Behind a list mark, a new row would have no more room than this one. */
            if (here > at && text.ptr[here - 1] != ' ' && used >= lead)
                word_end = here; /* blanks at a break are left out */
            used++;
            before = 1;
            word_start = i;
            if (used <= limit)
                fits = i;
            continue; /* blanks never break a row; those beyond the limit are left out */
        }
        if (c.width > 0)
            base = here; /* the following characters without width stay in its row */
        used += term_text_added_width(&c, before);
        before = c.width;
        if (used <= limit || base == at) {
            fits = i;
            continue;
        }
        *next = word_end > 0 ? word_start : base;
        /* fits < base: blanks before `base` are left out. fits > base: U+FE0F has widened it. */
        return word_end > 0 ? word_end : size_min(base, fits);
    }
    *next = text.n_bytes;
    return fits;
}

static size_t count_rows(const struct scroll_line *line, size_t columns)
{
    size_t n = 0, at = 0;
    do {
        (void)row_end(line, columns, at, &at); /* only the next row is needed */
        n++;
    } while (at < line->text.n_bytes);
    return n;
}

/* Update the layout of line i, after that of the lines before it. s->n_rows becomes the number of
 * rows up to the end of this line. */
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

static void end_line(struct scroll *s)
{
    lay_line(s, s->n - 1);
    s->is_open = false;
}

/* The line gets this character, behind its text so far. Measuring that text for each character
 * would take a time that grows with the square of its length: hence text_columns. */
static void note_char(struct scroll_line *line, uint32_t code, enum text_look look)
{
    const struct bn_str text = strbuf_str(&line->text);
    const bool is_markdown = line->look == SCROLL_ANSWER || line->look == SCROLL_THOUGHT;
    if (is_markdown && !line->hang.has_text)
        markdown_hang_add(&line->hang, code, look, line->text_columns);
    else if (line->look == SCROLL_TABLE && code != ' ' && text.n_bytes >= 2 &&
             memcmp(text.ptr + text.n_bytes - 2, "  ", 2) == 0)
        line->hang = (struct markdown_hang){.column = line->text_columns, .is_table = true};
}

static void add_char(struct scroll_line *line, uint32_t code, size_t width)
{
    term_text_put(&line->text, code);
    line->text_columns += width;
}

/* False: out of memory. */
static bool open_line(struct scroll *s)
{
    if (!mem_grow(&s->lines, &s->cap, s->n + 1, sizeof(*s->lines)))
        return false;
    struct scroll_line *line = &s->lines[s->n++];
    *line = (struct scroll_line){.look = s->look, .breaks = s->breaks, .hang = s->continued};
    s->is_open = true;
    for (size_t n = s->continued.column; n > 0; n--)
        add_char(line, ' ', 1);
    s->continued = (struct markdown_hang){0};
    return true;
}

/* The `put` of a struct markdown_sink: append a character to the last line. */
static void put_char(void *ud, const struct term_char *c, enum text_look look)
{
    struct scroll *s = ud;
    const bool is_blank = c->code == ' ' || c->code == '\t' || c->code == '\n';
    if (!s->is_open && s->continued.has_text && is_blank) {
        if (c->code == '\n')
            s->continued = (struct markdown_hang){0};
        return;
    }
    if (!s->is_open && !open_line(s))
        return;
    struct scroll_line *line = &s->lines[s->n - 1];
    if (c->code == '\n') {
        end_line(s);
        return;
    }
    note_char(line, c->code, look);
    if (c->code == '\t') {
        for (size_t n = TERM_TAB - line->text_columns % TERM_TAB; n > 0; n--)
            add_char(line, ' ', 1);
    } else {
        add_char(line, c->code, c->width);
    }
    if (markdown_is_block(look))
        line->breaks = SCROLL_COLUMNS;
    /* One look for each byte that was added to the text. */
    while (line->look == SCROLL_ANSWER && line->looks.n_bytes < line->text.n_bytes &&
           !line->looks.failed)
        strbuf_add_char(&line->looks, (char)look);
}

/* Text with this look and these breaks follows. */
static void begin_text(struct scroll *s, enum scroll_look look, enum scroll_break breaks)
{
    if (s->look != look || s->breaks != breaks)
        scroll_end(s);
    s->look = look;
    s->breaks = breaks;
    s->markdown.is_plain = look != SCROLL_ANSWER && look != SCROLL_THOUGHT;
}

void scroll_add(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                struct bn_str text)
{
    begin_text(s, look, breaks);
    markdown_add(&s->markdown, text, &(struct markdown_sink){put_char, s});
    if (s->is_open)
        lay_line(s, s->n - 1);
}

void scroll_end(struct scroll *s)
{
    markdown_end(&s->markdown, &(struct markdown_sink){put_char, s});
    if (s->is_open)
        end_line(s);
    markdown_finish(&s->markdown);
    s->continued = (struct markdown_hang){0};
}

struct skipped_line {
    struct markdown_hang hang;
    size_t column;
};

/* The text was shown before: only note where the text of its last line begins. */
static void skip_char(void *ud, const struct term_char *c, enum text_look look)
{
    struct skipped_line *line = ud;
    if (c->code == '\n') {
        *line = (struct skipped_line){0};
        return;
    }
    if (!markdown_is_block(look))
        markdown_hang_add(&line->hang, c->code, look, line->column);
    line->column += c->code == '\t' ? TERM_TAB - line->column % TERM_TAB : c->width;
}

void scroll_skip(struct scroll *s, enum scroll_look look, enum scroll_break breaks,
                 struct bn_str text)
{
    struct skipped_line line = {0};
    const struct markdown_sink sink = {skip_char, &line};
    begin_text(s, look, breaks);
    markdown_add(&s->markdown, text, &sink);
    markdown_flush(&s->markdown, &sink);
    if (breaks == SCROLL_WORDS)
        s->continued = line.hang;
}

static size_t rows_end(const struct scroll *s)
{
    return s->n > 0 ? s->lines[s->n - 1].row0 + s->lines[s->n - 1].n_rows : 0;
}

void scroll_pause(struct scroll *s, struct scroll_paused *out)
{
    markdown_flush(&s->markdown, &(struct markdown_sink){put_char, s});
    *out = (struct scroll_paused){
        .markdown = s->markdown, .continued = s->continued, .look = s->look, .breaks = s->breaks};
    s->markdown = (struct markdown){0};
    if (s->is_open) {
        const struct scroll_line *line = &s->lines[s->n - 1];
        out->has_line = strspn(strbuf_text(&line->text), " ") == line->text.n_bytes;
        if (!out->has_line && line->breaks == SCROLL_WORDS)
            out->continued = line->hang;
    }
    if (out->has_line) {
        out->line = s->lines[--s->n];
        s->is_open = false;
        s->n_rows = rows_end(s);
    }
    scroll_end(s);
}

void scroll_resume(struct scroll *s, const struct scroll_paused *paused)
{
    struct scroll_line line = paused->line;
    s->markdown = paused->markdown;
    s->continued = paused->continued;
    s->look = paused->look;
    s->breaks = paused->breaks;
    if (!paused->has_line)
        return;
    if (mem_grow(&s->lines, &s->cap, s->n + 1, sizeof(*s->lines))) {
        s->lines[s->n++] = line;
        s->is_open = true;
        lay_line(s, s->n - 1);
    } else { /* only blanks are lost */
        strbuf_finish(&line.text);
        strbuf_finish(&line.looks);
    }
}

void scroll_truncate(struct scroll *s, size_t line)
{
    while (s->n > line) {
        strbuf_finish(&s->lines[--s->n].text);
        strbuf_finish(&s->lines[s->n].looks);
    }
    s->is_open = false;
    markdown_finish(&s->markdown);
    s->n_rows = rows_end(s);
}

size_t scroll_replace(struct scroll *s, size_t line, struct bn_str text)
{
    struct scroll part = {.columns = s->columns};
    scroll_add(&part, s->lines[line].look, s->lines[line].breaks, text);
    scroll_end(&part);
    const size_t n = part.n;
    if (n == 0 || !mem_grow(&s->lines, &s->cap, s->n - 1 + n, sizeof(*s->lines))) {
        scroll_finish(&part);
        return 0;
    }
    strbuf_finish(&s->lines[line].text);
    strbuf_finish(&s->lines[line].looks);
    memmove(s->lines + line + n, s->lines + line + 1, (s->n - line - 1) * sizeof(*s->lines));
    memcpy(s->lines + line, part.lines, n * sizeof(*s->lines)); /* also their texts */
    mem_free(part.lines);
    s->n += n - 1;
    for (size_t i = line; i < s->n; i++)
        s->lines[i].row0 = i > 0 ? s->lines[i - 1].row0 + s->lines[i - 1].n_rows : 0;
    s->n_rows = rows_end(s);
    return n;
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

size_t scroll_row_of(const struct scroll *s, struct scroll_position at)
{
    const struct scroll_line *line = &s->lines[at.line];
    size_t row = line->row0, next;
    (void)row_end(line, s->columns, 0, &next);
    while (next <= at.byte && next < line->text.n_bytes) {
        (void)row_end(line, s->columns, next, &next);
        row++;
    }
    return row;
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

size_t scroll_row_indent(const struct scroll *s, size_t row)
{
    const struct scroll_line *line = &s->lines[scroll_line_of(s, row)];
    return row > line->row0 ? indent_of(line, s->columns) : 0;
}

const char *scroll_row_looks(const struct scroll_line *line, struct bn_str part)
{
    if (line->looks.n_bytes < line->text.n_bytes || line->looks.n_bytes == 0)
        return NULL; /* not a line of an answer, or out of memory */
    return line->looks.ptr + (part.ptr - line->text.ptr);
}

struct scroll_position scroll_end_position(struct scroll *s)
{
    markdown_flush(&s->markdown, &(struct markdown_sink){put_char, s});
    if (!s->is_open)
        return (struct scroll_position){s->n, 0};
    lay_line(s, s->n - 1); /* the mark may have begun this line */
    return (struct scroll_position){s->n - 1, s->lines[s->n - 1].text.n_bytes};
}

/* Append the text of the line from `at` on. */
static void print_line(const struct scroll *s, const struct scroll_line *line, size_t at,
                       struct strbuf *out)
{
    size_t next;
    /* The terminal breaks such a line, so that it can be copied as a whole. */
    if (line->breaks == SCROLL_COLUMNS) {
        strbuf_add(out, strbuf_text(&line->text) + at, line->text.n_bytes - at);
        strbuf_add_char(out, '\n');
        return;
    }
    for (;; at = next) {
        const size_t end = row_end(line, s->columns, at, &next);
        for (size_t n = at > 0 ? indent_of(line, s->columns) : 0; n > 0; n--)
            strbuf_add_char(out, ' ');
        strbuf_add(out, strbuf_text(&line->text) + at, end - at);
        strbuf_add_char(out, '\n');
        if (next >= line->text.n_bytes)
            return;
    }
}

size_t scroll_print(const struct scroll *s, struct scroll_position from, size_t max_rows,
                    struct strbuf *out)
{
    size_t line = s->n, n_printed = 0;
    const size_t row0 = from.line < s->n ? s->lines[from.line].row0 : s->n_rows;
    while (line > from.line && n_printed + s->lines[line - 1].n_rows <= max_rows)
        n_printed += s->lines[--line].n_rows;
    for (size_t i = line; i < s->n; i++) {
        size_t at = i == from.line ? from.byte : 0;
        /* If `from` is within a line, leave out blanks there; print no row if nothing is left. */
        while (at > 0 && at < s->lines[i].text.n_bytes && s->lines[i].text.ptr[at] == ' ')
            at++;
        if (at == 0 || at < s->lines[i].text.n_bytes)
            print_line(s, &s->lines[i], at, out);
    }
    return s->n_rows - row0 - n_printed;
}
