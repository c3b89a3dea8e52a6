/*
 * Markdown as a state machine over characters: see markdown.h.
 *
 * `place` is the position of the next character in a line or in fenced code. The characters of a
 * possible mark are pending. The first character that does not belong to the mark decides its
 * meaning.
 */
#include "app/terminal/text/markdown.h"

#include "engine/base/size.h"
#include "engine/base/utf8.h"

#include <string.h>

#define MAX_DIGITS 9  /* of a list number, as in CommonMark */
#define MAX_HEADING 6 /* most '#' of a heading, as in CommonMark */

#define TABLE_COLUMNS 12 /* most English words fit, so that they are not broken */

static bool is_blank(uint32_t c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

static bool is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_one_of(uint32_t c, const char *set)
{
    return c > 0 && c < 0x80 && strchr(set, (int)c);
}

static void emit(struct markdown *m, const struct markdown_sink *sink, const struct term_char *c,
                 enum text_look look)
{
    sink->put(sink->ud, c, look);
    m->before = c->code;
}

static void emit_pending(struct markdown *m, const struct markdown_sink *sink, enum text_look look)
{
    for (size_t i = 0; i < m->n_pending; i++) {
        const struct term_char c = {(unsigned char)m->pending[i], .n_bytes = 1, .width = 1};
        emit(m, sink, &c, look);
    }
    m->n_pending = 0;
}

static enum text_look look_in_line(const struct markdown *m)
{
    return m->n_code > 0   ? TEXT_CODE
           : m->is_heading ? TEXT_HEADING
           : m->is_bold    ? TEXT_BOLD
                           : TEXT_PLAIN;
}

/* Make c part of the pending mark. */
static void defer(struct markdown *m, uint32_t c)
{
    m->pending[m->n_pending++] = (char)c;
}

/* Whether c belongs to the pending mark: the number of a list item, or a run of one character. A
 * bullet of '-' or '+' has one character. */
static bool continues_mark(const struct markdown *m, uint32_t c)
{
    const char first = m->pending[0], last = m->pending[m->n_pending - 1];
    if (is_digit((unsigned char)first))
        return is_digit((unsigned char)last) &&
               ((is_digit(c) && m->n_pending < MAX_DIGITS) || c == '.' || c == ')');
    return first != '-' && first != '+' && c == (unsigned char)first;
}

/* Decide a pending run of * or ` in a line. `next` is the character after it. Two * begin or end
 * bold text, three begin or end bold italic text, which is shown as bold. They begin it only before
 * a character that is not blank, and end it only after one. Any other number of * is text; a single
 * one is often a multiplication. Code ends with its line, so backticks at the end of a line begin
 * nothing. */
static void decide_run(struct markdown *m, const struct markdown_sink *sink, uint32_t next)
{
    const size_t n = m->n_pending;
    m->place = MD_LINE;
    if (m->pending[0] == '`') {
        const bool opens = m->n_code == 0 && next != '\n', closes = m->n_code == n;
        if (opens)
            m->n_code = n;
        emit_pending(m, sink, look_in_line(m));
        if (closes)
            m->n_code = 0;
        return;
    }
    const bool is_mark = n == 2 || n == 3;
    const bool closes = is_mark && m->is_bold && !is_blank(m->before);
    if (is_mark && !m->is_bold && !is_blank(next))
        m->is_bold = true;
    emit_pending(m, sink, look_in_line(m));
    if (closes)
        m->is_bold = false;
}

/* Decide a mark at the start of a line. */
static void decide_start(struct markdown *m, const struct markdown_sink *sink, uint32_t next)
{
    const char first = m->pending[0], last = m->pending[m->n_pending - 1];
    const bool is_number = is_digit((unsigned char)first) && !is_digit((unsigned char)last);
    const bool is_bullet = m->n_pending == 1 && is_one_of((unsigned char)first, "-+*");
    if ((is_number || is_bullet) && is_blank(next)) {
        emit_pending(m, sink, TEXT_MARK); /* place stays MD_START: an item may begin with a mark */
    } else if (first == '#' && m->n_pending <= MAX_HEADING && is_blank(next)) {
        m->is_heading = true;
        m->place = MD_LINE;
        emit_pending(m, sink, TEXT_HEADING);
    } else if ((first == '`' || first == '~') && m->n_pending >= 3) {
        m->place = MD_FENCE;
        m->fence = first;
        m->n_fence = m->n_pending;
        m->is_fence_quoted = m->is_quoted;
        emit_pending(m, sink, TEXT_FENCE);
    } else if (first == '`' || first == '*') {
        decide_run(m, sink, next);
    } else {
        m->place = MD_LINE;
        emit_pending(m, sink, TEXT_PLAIN);
    }
}

/* Decide the pending mark. `next` is the character after it. */
static void decide(struct markdown *m, const struct markdown_sink *sink, uint32_t next)
{
    if (m->place == MD_START) {
        decide_start(m, sink, next);
    } else if (m->place == MD_BLOCK_START) {
        const bool ends = m->n_pending >= m->n_fence && is_blank(next);
        m->place = ends ? MD_BLOCK_END : MD_BLOCK_LINE;
        emit_pending(m, sink, ends ? TEXT_FENCE : TEXT_BLOCK);
    } else {
        decide_run(m, sink, next);
    }
}

/* The pending run is too long for a mark: treat it and the rest of the run as text. */
static void drop_mark(struct markdown *m, const struct markdown_sink *sink)
{
    const bool in_block = m->place == MD_BLOCK_START;
    m->literal = (unsigned char)m->pending[0];
    m->place = in_block ? MD_BLOCK_LINE : MD_LINE;
    emit_pending(m, sink, in_block ? TEXT_BLOCK : look_in_line(m));
}

static void end_line(struct markdown *m, const struct markdown_sink *sink,
                     const struct term_char *newline)
{
    static const enum text_look looks[] = {
        [MD_FENCE] = TEXT_FENCE,
        [MD_BLOCK_START] = TEXT_BLOCK,
        [MD_BLOCK_LINE] = TEXT_BLOCK,
        [MD_BLOCK_END] = TEXT_FENCE,
    };
    const bool in_block = m->place >= MD_FENCE;
    emit(m, sink, newline, in_block ? looks[m->place] : TEXT_PLAIN);
    m->place = in_block && m->place != MD_BLOCK_END ? MD_BLOCK_START : MD_START;
    m->n_code = 0;
    m->is_bold = m->is_heading = m->is_escaped = m->is_quoted = false;
    m->literal = 0;
}

static void add_in_line(struct markdown *m, const struct markdown_sink *sink,
                        const struct term_char *c)
{
    const bool is_mark = c->code == '`' || (c->code == '*' && m->n_code == 0);
    if (c->code != m->literal)
        m->literal = 0;
    if (is_mark && !m->is_escaped && c->code != m->literal) {
        defer(m, c->code);
        return;
    }
    m->is_escaped = c->code == '\\' && !m->is_escaped && m->n_code == 0;
    emit(m, sink, c, look_in_line(m));
}

static void add_in_block(struct markdown *m, const struct markdown_sink *sink,
                         const struct term_char *c)
{
    if (m->place == MD_FENCE) {
        /* In CommonMark, no backtick may follow a fence of backticks in its line. So the supposed
         * fence has begun inline code. */
        if (c->code == '`' && m->fence == '`') {
            m->place = MD_LINE;
            m->n_code = m->n_fence;
            defer(m, c->code);
        } else {
            emit(m, sink, c, TEXT_FENCE);
        }
        return;
    }
    if (m->place == MD_BLOCK_START && c->code == (unsigned char)m->fence) {
        defer(m, c->code);
        return;
    }
    if (m->place == MD_BLOCK_START && m->is_fence_quoted && !m->is_quoted && c->code == '>') {
        m->is_quoted = true;
        emit(m, sink, c, TEXT_BLOCK);
        return;
    }
    /* Also in MD_BLOCK_END: a fence with text after it does not close a block. */
    if (!is_blank(c->code))
        m->place = MD_BLOCK_LINE;
    emit(m, sink, c, m->place == MD_BLOCK_END ? TEXT_FENCE : TEXT_BLOCK);
}

/* Whether c begins a line without '>' after quoted code. This line is not part of the quote. */
static bool ends_quote(const struct markdown *m, uint32_t c)
{
    return m->place == MD_BLOCK_START && m->is_fence_quoted && !m->is_quoted && c != '>' &&
           c != ' ' && c != '\t';
}

static void add_char(struct markdown *m, const struct markdown_sink *sink,
                     const struct term_char *c)
{
    if (m->before == 0)
        m->before = '\n';
    if (m->n_pending > 0 && continues_mark(m, c->code)) {
        defer(m, c->code);
        if (m->n_pending == MARKDOWN_MAX_PENDING)
            drop_mark(m, sink);
        return;
    }
    if (m->n_pending > 0)
        decide(m, sink, c->code);
    if (ends_quote(m, c->code))
        m->place = MD_START;
    if (c->code == '\n') {
        end_line(m, sink, c);
    } else if (m->place >= MD_FENCE) {
        add_in_block(m, sink, c);
    } else if (m->place == MD_START && (is_blank(c->code) || c->code == '>')) {
        m->is_quoted |= c->code == '>';
        emit(m, sink, c, TEXT_PLAIN);
    } else if (m->place == MD_START && is_one_of(c->code, "#`~*+-0123456789")) {
        defer(m, c->code);
    } else {
        m->place = MD_LINE;
        add_in_line(m, sink, c);
    }
}

/* Process the first n_bytes of m->bytes. */
static void add_bytes(struct markdown *m, size_t n_bytes, const struct markdown_sink *sink)
{
    const struct bn_str text = {m->bytes.ptr, n_bytes};
    struct term_char c;
    for (size_t at = 0; term_text_next(text, &at, &c);) {
        if (m->is_plain)
            sink->put(sink->ud, &c, TEXT_PLAIN);
        else
            add_char(m, sink, &c);
    }
    strbuf_drop(&m->bytes, n_bytes);
}

void markdown_add(struct markdown *m, struct bn_str text, const struct markdown_sink *sink)
{
    if (m->bytes.failed)
        strbuf_cut(&m->bytes, 0); /* clears `failed`: the text after the lost piece is shown */
    strbuf_add_str(&m->bytes, text);
    add_bytes(m, m->bytes.n_bytes - utf8_partial_bytes(m->bytes.ptr, m->bytes.n_bytes), sink);
}

void markdown_flush(struct markdown *m, const struct markdown_sink *sink)
{
    if (m->n_pending > 0)
        decide(m, sink, ' ');
}

void markdown_end(struct markdown *m, const struct markdown_sink *sink)
{
    add_bytes(m, m->bytes.n_bytes, sink);
    markdown_flush(m, sink);
}

void markdown_hang_add(struct markdown_hang *h, uint32_t code, enum text_look look, size_t column)
{
    if (h->has_text || is_blank(code) || look == TEXT_MARK)
        return;
    if (code == '>')
        h->is_quote = true;
    else
        *h = (struct markdown_hang){.column = column, .has_text = true, .is_quote = h->is_quote};
}

void markdown_hang_new_row(struct markdown_hang *h)
{
    h->has_text = true;
}

size_t markdown_hang_indent(const struct markdown_hang *h, size_t limit)
{
    if (h->is_quote && h->column > limit / 3)
        return 0;
    const size_t indent = limit > 0 ? size_min(h->column, 2 * (limit - 1) / 3) : 0;
    const bool is_narrow = indent < h->column || limit - indent < TABLE_COLUMNS;
    return h->is_table && is_narrow ? size_min(indent, 2) : indent;
}

void markdown_finish(struct markdown *m)
{
    strbuf_finish(&m->bytes);
    *m = (struct markdown){0};
}
