/*
 * Streaming text into lines: see flow.h.
 */
#include "app/flow.h"

#include "app/term_text.h"
#include "engine/base/size.h"

#include <stdint.h>

void flow_init(struct flow *f, size_t columns, enum flow_wrap wrap)
{
    flow_finish(f);
    f->wrap = wrap;
    f->columns = columns;
}

void flow_finish(struct flow *f)
{
    strbuf_finish(&f->row);
    strbuf_finish(&f->word);
    strbuf_finish(&f->bytes);
    *f = (struct flow){0};
}

static bool breaks_words(const struct flow *f)
{
    return f->wrap == FLOW_WRAP && !f->in_code;
}

/* Columns that may be used. One is spared where we break, since terminals disagree about the width
 * of some characters. */
static size_t limit(const struct flow *f)
{
    return breaks_words(f) && f->columns > 1 ? f->columns - 1 : f->columns;
}

static void new_row(struct flow *f)
{
    f->column = 0;
    strbuf_cut(&f->row, 0);
}

static void put_char(struct flow *f, const struct term_char *c, struct strbuf *out)
{
    if (f->column + c->width > limit(f)) {
        if (breaks_words(f) && f->column > 0)
            strbuf_add_char(out, '\n');
        new_row(f); /* elsewhere the terminal breaks the row */
    }
    term_text_put(out, c->code);
    term_text_put(&f->row, c->code);
    f->column += c->width;
}

static void put_blanks(struct flow *f, size_t n, struct strbuf *out)
{
    const struct term_char blank = {.code = ' ', .width = 1};
    for (size_t i = 0; i < n; i++)
        put_char(f, &blank, out);
}

static void put_word(struct flow *f, struct strbuf *out)
{
    struct term_char c;
    const struct bn_str word = strbuf_str(&f->word);
    if (word.n_bytes == 0)
        return;
    if (breaks_words(f) && f->column > 0 && f->column + f->n_blanks + f->word_width > limit(f)) {
        strbuf_add_char(out, '\n');
        new_row(f);
    } else {
        put_blanks(f, f->n_blanks, out);
    }
    for (size_t at = 0; term_text_next(word, &at, &c);)
        put_char(f, &c, out);
    f->n_blanks = 0;
    f->word_width = 0;
    strbuf_cut(&f->word, 0);
}

static void end_line(struct flow *f, struct strbuf *out)
{
    put_word(f, out);
    if (!breaks_words(f))
        put_blanks(f, f->n_blanks, out); /* code keeps its blanks */
    f->n_blanks = 0;
    f->n_ticks = 0;
    strbuf_add_char(out, '\n');
    new_row(f);
    if (f->closes_code)
        f->in_code = f->closes_code = false;
}

/* A line that begins with three backticks opens code, or closes it at its end. */
static void watch_fence(struct flow *f, uint32_t code)
{
    if (f->n_ticks == SIZE_MAX)
        return;
    f->n_ticks = code == '`' ? f->n_ticks + 1 : SIZE_MAX;
    if (f->n_ticks == 3) {
        f->closes_code = f->in_code;
        f->in_code = true;
        f->n_ticks = SIZE_MAX;
    }
}

static void take(struct flow *f, const struct term_char *c, struct strbuf *out)
{
    if (c->code == '\n') {
        end_line(f, out);
        return;
    }
    watch_fence(f, c->code);
    if (c->code == ' ' || c->code == '\t') {
        put_word(f, out);
        const size_t at = f->column + f->n_blanks;
        f->n_blanks += c->code == ' ' ? 1 : TERM_TAB - at % TERM_TAB;
        return;
    }
    if (f->word_width + c->width > limit(f))
        put_word(f, out); /* longer than a row: it goes out in parts */
    term_text_put(&f->word, c->code);
    f->word_width += c->width;
}

void flow_add(struct flow *f, struct bn_str text, struct strbuf *out)
{
    struct term_char c;
    strbuf_add_str(&f->bytes, text);
    const struct bn_str all = strbuf_str(&f->bytes);
    const struct bn_str whole = {all.ptr, all.n_bytes - term_text_tail(all)};
    for (size_t at = 0; term_text_next(whole, &at, &c);)
        take(f, &c, out);
    strbuf_drop(&f->bytes, whole.n_bytes);
    if (!breaks_words(f))
        put_word(f, out); /* nobody waits for its end */
}

void flow_flush(struct flow *f, struct strbuf *out)
{
    struct term_char c;
    for (size_t at = 0; term_text_next(strbuf_str(&f->bytes), &at, &c);)
        take(f, &c, out);
    strbuf_cut(&f->bytes, 0);
    put_word(f, out);
    f->n_blanks = 0;
}

size_t flow_rows_up(const struct flow *f, size_t columns)
{
    return f->column > 0 ? (f->column - 1) / columns : 0;
}

void flow_again(struct flow *f, size_t columns, struct strbuf *out)
{
    struct flow fresh = {.wrap = f->wrap, .columns = columns, .in_code = f->in_code};
    const struct bn_str row = strbuf_str(&f->row);
    struct term_char c;
    for (size_t at = 0; term_text_next(row, &at, &c);) {
        if (c.code == ' ') {
            put_word(&fresh, out);
            fresh.n_blanks++;
        } else {
            term_text_put(&fresh.word, c.code);
            fresh.word_width += c.width;
        }
    }
    put_word(&fresh, out);
    put_blanks(&fresh, fresh.n_blanks, out);
    f->columns = columns;
    f->column = fresh.column;
    strbuf_cut(&f->row, 0);
    strbuf_add_str(&f->row, strbuf_str(&fresh.row));
    flow_finish(&fresh);
}
