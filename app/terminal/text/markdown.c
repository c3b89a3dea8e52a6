/*
 * Markdown as a machine that sees one character at a time: see markdown.h.
 *
 * `place` says where in a line, or in fenced code, the next character stands. A character that may
 * begin a mark is held; the first one that does not belong to the mark decides what it was.
 */
#include "app/terminal/text/markdown.h"

#include <string.h>

#define MAX_DIGITS 9 /* of an item's number: CommonMark, list items */
#define MAX_HEADING 6

struct sink {
    struct markdown_char *out;
    size_t n;
};

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

static void emit(struct markdown *m, struct sink *sink, uint32_t code, enum text_look look)
{
    sink->out[sink->n++] = (struct markdown_char){code, look};
    m->before = code;
}

static void emit_held(struct markdown *m, struct sink *sink, enum text_look look)
{
    for (size_t i = 0; i < m->n_held; i++)
        emit(m, sink, (unsigned char)m->held[i], look);
    m->n_held = 0;
}

static enum text_look look_in_line(const struct markdown *m)
{
    return m->n_code > 0   ? TEXT_CODE
           : m->is_heading ? TEXT_HEADING
           : m->is_bold    ? TEXT_BOLD
                           : TEXT_PLAIN;
}

static void hold(struct markdown *m, uint32_t c)
{
    m->held[m->n_held++] = (char)c;
}

/* Does c go on with the mark that is held? */
static bool goes_on(const struct markdown *m, uint32_t c)
{
    const char first = m->held[0], last = m->held[m->n_held - 1];
    if (is_digit((unsigned char)first))
        return is_digit((unsigned char)last) &&
               ((is_digit(c) && m->n_held < MAX_DIGITS) || c == '.' || c == ')');
    return first != '-' && first != '+' && c == (unsigned char)first;
}

/* A run of * or ` in a line, and the character after it. */
static void decide_run(struct markdown *m, struct sink *sink, uint32_t next)
{
    const size_t n = m->n_held;
    m->place = MD_LINE;
    if (m->held[0] == '`') {
        const bool opens = m->n_code == 0 && next != '\n', closes = m->n_code == n;
        if (opens)
            m->n_code = n;
        emit_held(m, sink, look_in_line(m));
        if (closes)
            m->n_code = 0;
        return;
    }
    const bool is_mark = n == 2 || n == 3;
    const bool closes = is_mark && m->is_bold && !is_blank(m->before);
    if (is_mark && !m->is_bold && !is_blank(next))
        m->is_bold = true;
    emit_held(m, sink, look_in_line(m));
    if (closes)
        m->is_bold = false;
}

/* A mark at the start of a line. */
static void decide_start(struct markdown *m, struct sink *sink, uint32_t next)
{
    const char first = m->held[0], last = m->held[m->n_held - 1];
    const bool is_number = is_digit((unsigned char)first) && !is_digit((unsigned char)last);
    const bool is_bullet = m->n_held == 1 && is_one_of((unsigned char)first, "-+*");
    if ((is_number || is_bullet) && is_blank(next)) {
        emit_held(m, sink, TEXT_MARK); /* what follows stands at a start again */
    } else if (first == '#' && m->n_held <= MAX_HEADING && is_blank(next)) {
        m->is_heading = true;
        m->place = MD_LINE;
        emit_held(m, sink, TEXT_HEADING);
    } else if ((first == '`' || first == '~') && m->n_held >= 3) {
        m->place = MD_FENCE;
        m->fence = first;
        m->n_fence = m->n_held;
        emit_held(m, sink, TEXT_FENCE);
    } else if (first == '`' || first == '*') {
        decide_run(m, sink, next);
    } else {
        m->place = MD_LINE;
        emit_held(m, sink, TEXT_PLAIN);
    }
}

static void decide(struct markdown *m, struct sink *sink, uint32_t next)
{
    if (m->place == MD_START) {
        decide_start(m, sink, next);
    } else if (m->place == MD_BLOCK_START) {
        const bool ends = m->n_held >= m->n_fence && is_blank(next);
        m->place = ends ? MD_BLOCK_END : MD_BLOCK_LINE;
        emit_held(m, sink, ends ? TEXT_FENCE : TEXT_BLOCK);
    } else {
        decide_run(m, sink, next);
    }
}

/* Too long a run: no mark of anything. */
static void give_up(struct markdown *m, struct sink *sink)
{
    const bool in_block = m->place == MD_BLOCK_START;
    m->literal = (unsigned char)m->held[0];
    m->place = in_block ? MD_BLOCK_LINE : MD_LINE;
    emit_held(m, sink, in_block ? TEXT_BLOCK : look_in_line(m));
}

static void end_line(struct markdown *m, struct sink *sink)
{
    static const enum text_look looks[] = {
        [MD_FENCE] = TEXT_FENCE,
        [MD_BLOCK_START] = TEXT_BLOCK,
        [MD_BLOCK_LINE] = TEXT_BLOCK,
        [MD_BLOCK_END] = TEXT_FENCE,
    };
    const bool in_block = m->place >= MD_FENCE;
    emit(m, sink, '\n', in_block ? looks[m->place] : TEXT_PLAIN);
    m->place = in_block && m->place != MD_BLOCK_END ? MD_BLOCK_START : MD_START;
    m->n_code = 0;
    m->is_bold = m->is_heading = m->is_escaped = false;
    m->literal = 0;
}

static void take_in_line(struct markdown *m, struct sink *sink, uint32_t c)
{
    const bool is_mark = c == '`' || (c == '*' && m->n_code == 0);
    if (is_mark && !m->is_escaped && c != m->literal) {
        hold(m, c);
        return;
    }
    if (c != m->literal)
        m->literal = 0;
    m->is_escaped = c == '\\' && !m->is_escaped && m->n_code == 0;
    emit(m, sink, c, look_in_line(m));
}

static void take_in_block(struct markdown *m, struct sink *sink, uint32_t c)
{
    if (m->place == MD_FENCE) {
        if (c == '`' && m->fence == '`') { /* code of one line, in many backticks */
            m->place = MD_LINE;
            m->n_code = m->n_fence;
            hold(m, c);
        } else {
            emit(m, sink, c, TEXT_FENCE);
        }
        return;
    }
    if (m->place == MD_BLOCK_START && c == (unsigned char)m->fence) {
        hold(m, c);
        return;
    }
    if (!is_blank(c))
        m->place = MD_BLOCK_LINE; /* also where it follows what looked like the end */
    emit(m, sink, c, m->place == MD_BLOCK_END ? TEXT_FENCE : TEXT_BLOCK);
}

static void take(struct markdown *m, struct sink *sink, uint32_t c)
{
    if (c == '\n') {
        end_line(m, sink);
    } else if (m->place >= MD_FENCE) {
        take_in_block(m, sink, c);
    } else if (m->place == MD_START && (is_blank(c) || c == '>')) {
        emit(m, sink, c, TEXT_PLAIN);
    } else if (m->place == MD_START && is_one_of(c, "#`~*+-0123456789")) {
        hold(m, c);
    } else {
        m->place = MD_LINE;
        take_in_line(m, sink, c);
    }
}

size_t markdown_take(struct markdown *m, uint32_t code, struct markdown_char out[MARKDOWN_OUT])
{
    struct sink sink = {.out = out};
    if (m->before == 0)
        m->before = '\n';
    if (m->n_held > 0 && goes_on(m, code)) {
        hold(m, code);
        if (m->n_held == MARKDOWN_HELD)
            give_up(m, &sink);
        return sink.n;
    }
    if (m->n_held > 0)
        decide(m, &sink, code);
    take(m, &sink, code);
    return sink.n;
}

size_t markdown_flush(struct markdown *m, struct markdown_char out[MARKDOWN_OUT])
{
    struct sink sink = {.out = out};
    if (m->n_held > 0)
        decide(m, &sink, ' ');
    return sink.n;
}
