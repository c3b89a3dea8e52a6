/*
 * Streaming text into lines: see flow.h. Bytes become characters, characters get their looks, cells
 * become words, words become rows.
 */
#include "app/terminal/text/flow.h"

#include "app/common/term_text.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/base/utf8.h"

#include <string.h>

void flow_init(struct flow *f, size_t columns, enum flow_wrap wrap, enum flow_voice voice,
               const struct flow_paint *paint)
{
    flow_finish(f);
    f->wrap = wrap;
    f->voice = voice;
    f->paint = paint;
    f->columns = columns;
}

void flow_finish(struct flow *f)
{
    mem_free(f->row.items);
    mem_free(f->word.items);
    strbuf_finish(&f->bytes);
    *f = (struct flow){0};
}

/* Out of memory: the cell is not remembered, so a resize would not show it again. */
static void push(struct flow_cells *cells, struct flow_cell cell)
{
    if (mem_grow(&cells->items, &cells->cap, cells->n + 1, sizeof(*cells->items)))
        cells->items[cells->n++] = cell;
}

/* ---- looks ---- */

static const char *begin_of(const struct flow *f, enum text_look look)
{
    const char *s = f->paint ? f->paint->begin[look] : NULL;
    return s && look != TEXT_PLAIN ? s : "";
}

static void set_look(struct flow *f, enum text_look look, struct strbuf *out)
{
    const char *now = begin_of(f, f->look), *next = begin_of(f, look);
    f->look = look;
    if (strcmp(now, next) == 0)
        return;
    if (now[0])
        strbuf_add_text(out, f->paint->begin[TEXT_PLAIN]);
    strbuf_add_text(out, next);
}

void flow_plain(struct flow *f, struct strbuf *out)
{
    set_look(f, TEXT_PLAIN, out);
}

/* ---- rows ---- */

static bool breaks_words(const struct flow *f, enum text_look look)
{
    return f->wrap == FLOW_WRAP && !markdown_is_block(look);
}

/* Columns that may be used. One is spared where we break, since terminals disagree about the width
 * of some characters. */
static size_t limit(const struct flow *f, enum text_look look)
{
    return breaks_words(f, look) && f->columns > 1 ? f->columns - 1 : f->columns;
}

void flow_begin_row(struct flow *f)
{
    f->column = 0;
    f->row.n = 0;
    f->n_doubtful = 0;
}

static enum text_look shown_look(const struct flow *f, enum text_look look)
{
    return f->voice == FLOW_THOUGHT ? TEXT_DIM : look;
}

/* Blanks take any look, as ours change letters alone. */
static void write_cell(struct flow *f, const struct flow_cell *cell, struct strbuf *out)
{
    if (cell->code != ' ')
        set_look(f, shown_look(f, cell->look), out);
    term_text_put(out, cell->code);
}

static void put_cell(struct flow *f, const struct flow_cell *cell, struct strbuf *out)
{
    if (f->column + cell->width > limit(f, cell->look)) {
        if (breaks_words(f, cell->look) && f->column > 0)
            strbuf_add_char(out, '\n');
        else
            f->n_wrapped++;
        flow_begin_row(f);
    }
    write_cell(f, cell, out);
    push(&f->row, *cell);
    f->column += cell->width;
    f->n_doubtful += term_text_is_doubtful(cell->code);
}

static void put_blanks(struct flow *f, enum text_look look, struct strbuf *out)
{
    const struct flow_cell blank = {.code = ' ', .width = 1, .look = (uint8_t)look};
    for (size_t i = 0; i < f->n_blanks; i++)
        put_cell(f, &blank, out);
    f->n_blanks = f->n_blank_bytes = 0;
}

static void put_word(struct flow *f, struct strbuf *out)
{
    if (f->word.n == 0)
        return;
    const enum text_look look = f->word.items[0].look;
    if (breaks_words(f, look) && f->column > 0 &&
        f->column + f->n_blanks + f->word_width > limit(f, look)) {
        strbuf_add_char(out, '\n');
        flow_begin_row(f);
        f->n_blanks = f->n_blank_bytes = 0;
    } else {
        put_blanks(f, look, out);
    }
    for (size_t i = 0; i < f->word.n; i++)
        put_cell(f, &f->word.items[i], out);
    f->word_width = 0;
    f->word.n = 0;
}

static void end_line(struct flow *f, enum text_look look, struct strbuf *out)
{
    put_word(f, out);
    if (!breaks_words(f, look))
        put_blanks(f, look, out); /* code keeps its blanks */
    f->n_blanks = f->n_blank_bytes = 0;
    strbuf_add_char(out, '\n');
    flow_begin_row(f);
}

static void take_cell(struct flow *f, struct flow_cell cell, struct strbuf *out)
{
    const bool is_blank = cell.code == ' ' || cell.code == '\t' || cell.code == '\n';
    const bool is_skipped = f->is_skipping && is_blank;
    f->is_skipping &= is_blank && cell.code != '\n';
    if (is_skipped)
        return;
    if (cell.code == '\n') {
        end_line(f, cell.look, out);
    } else if (is_blank) {
        put_word(f, out);
        const size_t at = f->column + f->n_blanks;
        f->n_blanks += cell.code == ' ' ? 1 : TERM_TAB - at % TERM_TAB;
        f->n_blank_bytes++;
    } else {
        /* Longer than a row, it goes out in parts. What began as the mark of a code block may turn
         * out to be none: its rest may be broken, and so is a word of its own. */
        if (f->word_width + cell.width > limit(f, cell.look) ||
            (f->word.n > 0 && breaks_words(f, f->word.items[0].look) != breaks_words(f, cell.look)))
            put_word(f, out);
        push(&f->word, cell);
        f->word_width += cell.width;
    }
}

/* ---- characters ---- */

static void take_decided(struct flow *f, const struct markdown_char *chars, size_t n,
                         const struct term_char *last, struct strbuf *out)
{
    for (size_t i = 0; i < n; i++) { /* all but the last are ASCII */
        const bool is_last = last && i + 1 == n && chars[i].code == last->code;
        const struct flow_cell cell = {.code = chars[i].code,
                                       .look = (uint8_t)chars[i].look,
                                       .width = is_last ? (uint8_t)last->width : 1,
                                       .n_bytes = is_last ? (uint8_t)last->n_bytes : 1};
        take_cell(f, cell, out);
    }
}

static void take_char(struct flow *f, const struct term_char *c, struct strbuf *out)
{
    struct markdown_char chars[MARKDOWN_OUT] = {{.code = c->code}};
    const size_t n = f->voice == FLOW_WORDS ? 1 : markdown_take(&f->markdown, c->code, chars);
    take_decided(f, chars, n, c, out);
}

static void settle(struct flow *f, struct strbuf *out)
{
    struct markdown_char chars[MARKDOWN_OUT];
    struct term_char c;
    for (size_t at = 0; term_text_next(strbuf_str(&f->bytes), &at, &c);)
        take_char(f, &c, out);
    strbuf_cut(&f->bytes, 0);
    take_decided(f, chars, markdown_flush(&f->markdown, chars), NULL, out);
}

void flow_add(struct flow *f, struct bn_str text, struct strbuf *out)
{
    struct term_char c;
    strbuf_add_str(&f->bytes, text);
    const struct bn_str all = strbuf_str(&f->bytes);
    const struct bn_str whole = {all.ptr, all.n_bytes - utf8_open_bytes(all.ptr, all.n_bytes)};
    for (size_t at = 0; term_text_next(whole, &at, &c);)
        take_char(f, &c, out);
    strbuf_drop(&f->bytes, whole.n_bytes);
    if (f->word.n > 0 && !breaks_words(f, f->word.items[0].look))
        put_word(f, out); /* nobody waits for its end */
}

void flow_flush(struct flow *f, struct strbuf *out)
{
    settle(f, out);
    put_word(f, out);
    f->n_blanks = f->n_blank_bytes = 0;
}

void flow_speak(struct flow *f, enum flow_voice voice, struct strbuf *out)
{
    if (voice == f->voice)
        return;
    settle(f, out);
    put_word(f, out);
    f->voice = voice;
    f->markdown = (struct markdown){0};
}

size_t flow_held(const struct flow *f)
{
    size_t n = f->bytes.n_bytes + f->n_blank_bytes + f->markdown.n_held;
    for (size_t i = 0; i < f->word.n; i++)
        n += f->word.items[i].n_bytes;
    return n;
}

void flow_skip(struct flow *f, struct bn_str text)
{
    struct strbuf shown = {0};
    flow_add(f, text, &shown);
    flow_flush(f, &shown);
    strbuf_finish(&shown);
    f->is_skipping = text.n_bytes > 0 && text.ptr[text.n_bytes - 1] != '\n';
    f->look = TEXT_PLAIN;
    flow_begin_row(f);
}

/* ---- the row again ---- */

size_t flow_rows_up(const struct flow *f, size_t columns)
{
    return f->column > 0 ? (f->column - 1) / columns : 0;
}

void flow_again(struct flow *f, size_t columns, struct strbuf *out)
{
    const struct flow_cells row = f->row, word = f->word;
    const size_t word_width = f->word_width, n_blanks = f->n_blanks;
    const size_t n_blank_bytes = f->n_blank_bytes;
    f->row = f->word = (struct flow_cells){0};
    f->word_width = f->n_blanks = f->n_blank_bytes = 0;
    f->columns = columns;
    flow_begin_row(f);
    for (size_t i = 0; i < row.n; i++)
        take_cell(f, row.items[i], out);
    put_word(f, out);
    put_blanks(f, row.n > 0 ? row.items[row.n - 1].look : TEXT_PLAIN, out);
    mem_free(row.items);
    mem_free(f->word.items);
    f->word = word;
    f->word_width = word_width;
    f->n_blanks = n_blanks;
    f->n_blank_bytes = n_blank_bytes;
}

void flow_row(struct flow *f, struct strbuf *out)
{
    for (size_t i = 0; i < f->row.n; i++)
        write_cell(f, &f->row.items[i], out);
}
