/*
 * Streaming text: see flow.h. markdown_add turns bytes into characters with looks. add_cell
 * collects these into words, and put_word writes the words in rows.
 */
#include "app/terminal/text/flow.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <string.h>
#include <unilbrk.h>

void flow_init(struct flow *f, size_t columns, enum flow_wrap wrap, enum flow_kind kind,
               const struct flow_looks *looks)
{
    flow_finish(f);
    f->wrap = wrap;
    f->kind = kind;
    f->looks = looks;
    f->columns = columns;
}

void flow_finish(struct flow *f)
{
    mem_free(f->row.items);
    mem_free(f->held.word.items);
    markdown_finish(&f->markdown);
    *f = (struct flow){0};
}

/* False: out of memory. */
static bool push(struct flow_cells *cells, struct flow_cell cell)
{
    if (!mem_grow(&cells->items, &cells->cap, cells->n + 1, sizeof(*cells->items)))
        return false;
    cells->items[cells->n++] = cell;
    return true;
}

/* ---- looks ---- */

/* The control sequence that starts a look; "" for TEXT_PLAIN. */
static const char *begin_of(const struct flow *f, enum text_look look)
{
    const char *s = f->looks ? f->looks->begin[look] : NULL;
    return s && look != TEXT_PLAIN ? s : "";
}

static void set_look(struct flow *f, enum text_look look, struct strbuf *out)
{
    const char *now = begin_of(f, f->look), *next = begin_of(f, look);
    f->look = look;
    if (strcmp(now, next) == 0)
        return; /* several looks may have the same sequence */
    if (now[0])
        strbuf_add_text(out, f->looks->begin[TEXT_PLAIN]);
    strbuf_add_text(out, next);
}

void flow_reset_look(struct flow *f, struct strbuf *out)
{
    set_look(f, TEXT_PLAIN, out);
}

/* ---- rows ---- */

/* Whether this module breaks lines with this look, between words. Otherwise the terminal does. */
static bool breaks_words(const struct flow *f, enum text_look look)
{
    return f->wrap == FLOW_WRAP && !markdown_is_block(look);
}

/* The number of columns that may be used. If this module breaks the line, one column stays free,
 * because the width of some characters differs between terminals. */
static size_t limit(const struct flow *f, enum text_look look)
{
    return breaks_words(f, look) && f->columns > 1 ? f->columns - 1 : f->columns;
}

void flow_begin_row(struct flow *f)
{
    f->column = 0;
    f->row.n = f->n_indent = 0;
    f->n_width_varies = 0;
    f->row_look = TEXT_PLAIN;
}

static enum text_look shown_look(const struct flow *f, enum text_look look)
{
    return f->kind == FLOW_THOUGHT ? TEXT_DIM : look;
}

/* A blank has the look of the text before it in its row: colours, bold and dim are not visible on
 * it, and a change would take more bytes. It is set again after flow_reset_look, so that the look
 * of each column does not depend on when the caller has written other text. */
static void write_cell(struct flow *f, const struct flow_cell *cell, struct strbuf *out)
{
    if (cell->code != ' ')
        f->row_look = shown_look(f, cell->look);
    set_look(f, f->row_look, out);
    term_text_put(out, cell->code);
}

/* The indentation of the later rows of a line, in columns. */
static size_t indent(const struct flow *f, enum text_look look)
{
    return breaks_words(f, look) ? markdown_hang_indent(&f->hang, limit(f, look)) : 0;
}

static void append_cell(struct flow *f, const struct flow_cell *cell, struct strbuf *out)
{
    write_cell(f, cell, out);
    (void)push(&f->row, *cell); /* without memory, flow_rewrite_row leaves it out */
    f->column += cell->width;
    f->n_width_varies += term_text_width_varies(cell->code);
}

/* The cursor is at the start of a later row of a line. */
static void put_indent(struct flow *f, enum text_look look, struct strbuf *out)
{
    const struct flow_cell blank = {.code = ' ', .width = 1};
    for (size_t n = indent(f, look); n > 0; n--)
        append_cell(f, &blank, out);
    f->n_indent = f->row.n;
}

/* Break the line between words: the text continues in a new row. */
static void break_row(struct flow *f, enum text_look look, struct strbuf *out)
{
    markdown_hang_new_row(&f->hang);
    strbuf_add_char(out, '\n');
    flow_begin_row(f);
    put_indent(f, look, out);
}

/* Write a character at the cursor, or on a new row if it does not fit. */
static void put_cell(struct flow *f, const struct flow_cell *cell, struct strbuf *out)
{
    if (f->column + cell->width > limit(f, cell->look)) {
        if (breaks_words(f, cell->look) && f->column > f->n_indent) {
            break_row(f, cell->look, out);
        } else {
            markdown_hang_new_row(&f->hang);
            f->n_wrapped++; /* the terminal begins a row */
            flow_begin_row(f);
        }
    }
    append_cell(f, cell, out);
}

/* Write the blanks that are held back. */
static void put_blanks(struct flow *f, enum text_look look, struct strbuf *out)
{
    const struct flow_cell blank = {.code = ' ', .width = 1, .look = (uint8_t)look};
    for (size_t i = 0; i < f->held.n_blanks; i++)
        put_cell(f, &blank, out);
    f->held.n_blanks = f->held.n_blank_bytes = 0;
}

/* Write the word that is held back and the blanks before it. If the word begins a new row, the
 * blanks are left out. */
static void put_word(struct flow *f, struct strbuf *out)
{
    if (f->held.word.n == 0)
        return;
    const enum text_look look = f->held.word.items[0].look;
    const size_t at = f->column + f->held.n_blanks;
    /* Behind a list mark, a new row would have no more room than this one. */
    if (breaks_words(f, look) && f->column > 0 && at > indent(f, look) &&
        at + f->held.width > limit(f, look)) {
        break_row(f, look, out);
        f->held.n_blanks = f->held.n_blank_bytes = 0;
    } else {
        put_blanks(f, look, out);
    }
    for (size_t i = 0; i < f->held.word.n; i++)
        put_cell(f, &f->held.word.items[i], out);
    f->held.width = 0;
    f->held.word.n = 0;
}

/* The text that follows begins a line. */
static void begin_line(struct flow *f)
{
    f->held.n_blanks = f->held.n_blank_bytes = 0;
    f->hang = (struct markdown_hang){0};
}

static void end_line(struct flow *f, enum text_look look, struct strbuf *out)
{
    put_word(f, out);
    if (!breaks_words(f, look))
        put_blanks(f, look, out); /* a line that can be copied as a whole keeps its blanks */
    strbuf_add_char(out, '\n');
    flow_begin_row(f);
    begin_line(f); /* other lines lose the blanks at their end */
}

/* Ideographs, kana, and the punctuation of these scripts. */
static bool is_ideographic(uint32_t code)
{
    return (code >= 0x2e80 && code <= 0x33ff) || (code >= 0x3400 && code <= 0x9fff) ||
           (code >= 0xf900 && code <= 0xfaff) || (code >= 0xff00 && code <= 0xff9f) ||
           (code >= 0x20000 && code <= 0x3ffff);
}

/* Whether a row may end between two characters that are no blanks. Chinese and Japanese have no
 * blanks between words, so a row may end nearly everywhere, but punctuation that closes stays at
 * the character before it (Unicode line breaking, UAX 14). */
static bool may_break_between(uint32_t before, uint32_t after)
{
    const uint32_t text[] = {before, after};
    char breaks[2];
    if (!is_ideographic(before) && !is_ideographic(after))
        return false;
    u32_possible_linebreaks(text, 2, "UTF-8", breaks);
    return breaks[1] == UC_BREAK_POSSIBLE;
}

/* This character comes behind the blanks and the beginning of a word that are held back. The text
 * of a quote may begin within a word, as in ">text". */
static void note_cell(struct flow *f, const struct flow_cell *cell)
{
    const size_t at = f->column + f->held.n_blanks + f->held.width;
    if (f->kind == FLOW_TABLE && f->held.word.n == 0 && f->held.n_blanks >= 2)
        f->hang = (struct markdown_hang){.column = at, .is_table = true};
    else if (f->kind == FLOW_ANSWER || f->kind == FLOW_THOUGHT)
        markdown_hang_add(&f->hang, cell->code, cell->look, at);
}

/* The columns of a row for the word that is held back. It may begin left of the indentation of the
 * later rows, as ">text" does: then it stays in this row (put_word). */
static size_t word_limit(const struct flow *f, enum text_look look)
{
    return limit(f, look) - size_min(f->column + f->held.n_blanks, indent(f, look));
}

static void add_cell(struct flow *f, struct flow_cell cell, struct strbuf *out)
{
    const bool is_blank = cell.code == ' ' || cell.code == '\t' || cell.code == '\n';
    const bool is_skipped = f->is_skipping && is_blank;
    f->is_skipping &= is_blank && cell.code != '\n'; /* ends at a word, and after a newline */
    if (is_skipped) {
        if (cell.code == '\n')
            begin_line(f);
        return;
    }
    if (cell.code == '\n') {
        end_line(f, cell.look, out);
    } else if (is_blank) {
        put_word(f, out);
        const size_t at = f->column + f->held.n_blanks;
        f->held.n_blanks += cell.code == ' ' ? 1 : TERM_TAB - at % TERM_TAB;
        f->held.n_blank_bytes++;
    } else {
        note_cell(f, &cell);
        /* A word wider than a row is written in pieces. The word also ends where code becomes
         * prose, as after three backticks that turn out not to be a fence: a word has one kind of
         * break. */
        if (f->held.width + cell.width > word_limit(f, cell.look) ||
            (f->held.word.n > 0 &&
             (breaks_words(f, f->held.word.items[0].look) != breaks_words(f, cell.look) ||
              may_break_between(f->held.word.items[f->held.word.n - 1].code, cell.code))))
            put_word(f, out);
        if (push(&f->held.word, cell)) {
            f->held.width += cell.width;
        } else { /* without memory for the word, write its characters at once */
            put_word(f, out);
            put_blanks(f, cell.look, out);
            put_cell(f, &cell, out);
        }
    }
}

/* ---- characters ---- */

struct flow_target {
    struct flow *flow;
    struct strbuf *out;
};

/* The `put` of a struct markdown_sink. */
static void put_char(void *ud, const struct term_char *c, enum text_look look)
{
    const struct flow_target *target = ud;
    const struct flow_cell cell = {.code = c->code,
                                   .look = (uint8_t)look,
                                   .width = (uint8_t)c->width,
                                   .n_bytes = (uint8_t)c->n_bytes};
    add_cell(target->flow, cell, target->out);
}

/* Write everything that is held back, except blanks after the last word. */
static void end_text(struct flow *f, struct strbuf *out)
{
    struct flow_target target = {f, out};
    markdown_end(&f->markdown, &(struct markdown_sink){put_char, &target});
    put_word(f, out);
}

void flow_add(struct flow *f, struct bn_str text, struct strbuf *out)
{
    struct flow_target target = {f, out};
    f->markdown.is_plain = f->kind == FLOW_MESSAGE || f->kind == FLOW_TABLE;
    markdown_add(&f->markdown, text, &(struct markdown_sink){put_char, &target});
    if (f->held.word.n > 0 && !breaks_words(f, f->held.word.items[0].look))
        put_word(f, out); /* code is not broken between words, so its end need not be known */
}

void flow_flush(struct flow *f, struct strbuf *out)
{
    end_text(f, out);
    f->held.n_blanks = f->held.n_blank_bytes = 0;
}

void flow_pause(struct flow *f)
{
    if (f->column == 0)
        return; /* the blanks are the indentation of this row */
    const enum text_look look = f->row.n > 0 ? f->row.items[f->row.n - 1].look : TEXT_PLAIN;
    f->held.n_blanks = indent(f, look);
    f->held.n_blank_bytes = 0;
    f->is_skipping |= f->held.word.n == 0 && !markdown_is_block(look);
}

void flow_set_kind(struct flow *f, enum flow_kind kind, struct strbuf *out)
{
    if (kind == f->kind)
        return;
    end_text(f, out);
    f->kind = kind;
    markdown_finish(&f->markdown);
}

size_t flow_n_pending(const struct flow *f)
{
    size_t n = f->markdown.bytes.n_bytes + f->held.n_blank_bytes + f->markdown.n_pending;
    for (size_t i = 0; i < f->held.word.n; i++)
        n += f->held.word.items[i].n_bytes;
    return n;
}

void flow_skip(struct flow *f, struct bn_str text)
{
    struct strbuf shown = {0}; /* the output is not used */
    begin_line(f);
    flow_add(f, text, &shown);
    flow_flush(f, &shown);
    strbuf_finish(&shown);
    f->is_skipping = text.n_bytes > 0 && text.ptr[text.n_bytes - 1] != '\n';
    f->look = TEXT_PLAIN;
    if (f->is_skipping)
        flow_pause(f);
    flow_begin_row(f);
}

/* ---- writing the row again ---- */

size_t flow_rows_up(const struct flow *f, size_t columns)
{
    /* After a full row, the cursor stays in this row until the next character: hence the - 1. */
    return f->column > 0 ? (f->column - 1) / columns : 0;
}

void flow_rewrite_row(struct flow *f, size_t columns, struct strbuf *out)
{
    const struct flow_cells row = f->row;
    const struct flow_held held = f->held; /* stays held back */
    f->row = (struct flow_cells){0};
    f->held = (struct flow_held){0};
    f->columns = columns;
    const size_t n_indent = f->n_indent;
    flow_begin_row(f);
    if (n_indent > 0)
        put_indent(f, TEXT_PLAIN, out);
    for (size_t i = n_indent; i < row.n; i++)
        add_cell(f, row.items[i], out);
    put_word(f, out);
    put_blanks(f, row.n > 0 ? row.items[row.n - 1].look : TEXT_PLAIN, out);
    mem_free(row.items);
    mem_free(f->held.word.items);
    f->held = held;
}

void flow_write_row(struct flow *f, struct strbuf *out)
{
    f->row_look = TEXT_PLAIN;
    for (size_t i = 0; i < f->row.n; i++)
        write_cell(f, &f->row.items[i], out);
}
