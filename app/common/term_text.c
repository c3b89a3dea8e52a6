/*
 * Strip, measure and cut text for a terminal: see term_text.h.
 *
 * UTF-8 is decoded here and not by the C library, so that the result does not depend on the locale
 * and a broken sequence costs exactly one replacement for its first byte.
 */
#define _XOPEN_SOURCE 700 /* wcwidth */
#include "app/common/term_text.h"

#include <wchar.h>

/* Length of the sequence that begins with `lead`, 0 if none does, and its smallest code point. */
static size_t sequence_bytes(unsigned char lead, uint32_t *smallest)
{
    if (lead >= 0xC2 && lead <= 0xDF) {
        *smallest = 0x80;
        return 2;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        *smallest = 0x800;
        return 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        *smallest = 0x10000;
        return 4;
    }
    return 0;
}

/* Bytes of the valid character at p, 0 if there is none. */
static size_t decode(const unsigned char *p, size_t n_left, uint32_t *code)
{
    uint32_t smallest = 0;
    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    const size_t n = sequence_bytes(p[0], &smallest);
    if (n == 0 || n > n_left)
        return 0;
    uint32_t c = p[0] & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3Fu);
    }
    if (c < smallest || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    *code = c;
    return n;
}

static bool is_harmful(uint32_t c)
{
    if (c < 0x20)
        return c != '\n' && c != '\t';
    return (c >= 0x7F && c <= 0x9F) ||       /* DEL, C1 */
           (c >= 0x202A && c <= 0x202E) ||   /* bidirectional embeddings and overrides */
           (c >= 0x2066 && c <= 0x2069) ||   /* isolates */
           c == 0x2028 || c == 0x2029 ||     /* line and paragraph separator */
           (c >= 0xE0000 && c <= 0xE0FFF) || /* tags: invisible text */
           (c & 0xFFFE) == 0xFFFE;
}

static size_t columns(uint32_t c)
{
    if (c < 0x80)
        return c == '\n' ? 0 : 1;
    const int w = wcwidth((wchar_t)c);
    return w < 0 ? 1 : (size_t)w;
}

bool term_text_is_doubtful(uint32_t c)
{
    return c == 0xFE0F || c == 0x200D || c == 0x20E3 || /* emoji style, joiner, keycap */
           (c >= 0x1F1E6 && c <= 0x1F1FF) ||            /* letters of flags */
           (c >= 0x1F3FB && c <= 0x1F3FF);              /* tones of skin */
}

size_t term_text_wide(const struct term_char *c, size_t before)
{
    return c->code == 0xFE0F && before == 1 ? 1 : c->width;
}

bool term_text_next(struct bn_str s, size_t *at, struct term_char *c)
{
    if (*at >= s.n_bytes)
        return false;
    uint32_t code = TERM_REPLACEMENT;
    const size_t n = decode((const unsigned char *)s.ptr + *at, s.n_bytes - *at, &code);
    c->replaced = n == 0 || is_harmful(code);
    c->code = c->replaced ? TERM_REPLACEMENT : code;
    c->n_bytes = n ? n : 1;
    c->width = columns(c->code);
    *at += c->n_bytes;
    return true;
}

void term_text_put(struct strbuf *out, uint32_t code)
{
    char b[4];
    size_t n = 1;
    if (code < 0x80) {
        b[0] = (char)code;
    } else if (code < 0x800) {
        n = 2;
        b[0] = (char)(0xC0 | code >> 6);
    } else if (code < 0x10000) {
        n = 3;
        b[0] = (char)(0xE0 | code >> 12);
    } else {
        n = 4;
        b[0] = (char)(0xF0 | code >> 18);
    }
    for (size_t i = 1; i < n; i++)
        b[i] = (char)(0x80 | (code >> (6 * (n - 1 - i)) & 0x3F));
    strbuf_add(out, b, n);
}

void term_text_clean(struct bn_str s, enum term_lines lines, struct strbuf *out)
{
    struct term_char c;
    for (size_t at = 0; term_text_next(s, &at, &c);) {
        const bool is_blank = c.code == '\n' || c.code == '\t';
        term_text_put(out, is_blank && lines == TERM_ONE_LINE ? ' ' : c.code);
    }
}

size_t term_text_repair(struct bn_str s, struct strbuf *out)
{
    size_t first_bad = SIZE_MAX;
    for (size_t at = 0; at < s.n_bytes;) {
        uint32_t code;
        const size_t n = decode((const unsigned char *)s.ptr + at, s.n_bytes - at, &code);
        if (n > 0) {
            strbuf_add(out, s.ptr + at, n);
        } else {
            term_text_put(out, TERM_REPLACEMENT);
            if (first_bad == SIZE_MAX)
                first_bad = at;
        }
        at += n ? n : 1;
    }
    return first_bad;
}

size_t term_text_width(struct bn_str s)
{
    struct term_char c;
    size_t width = 0;
    for (size_t at = 0; term_text_next(s, &at, &c);)
        width += c.width;
    return width;
}

size_t term_text_fit(struct bn_str s, size_t width)
{
    struct term_char c;
    size_t used = 0, n_fit = 0;
    for (size_t at = 0; term_text_next(s, &at, &c); n_fit = at) {
        used += c.width;
        if (used > width)
            break;
    }
    return n_fit;
}

void term_text_brief(struct bn_str s, size_t width, struct strbuf *out)
{
    /* A line shows at most `width` columns, so a long text need not be cleaned to its end. A
     * character is at most 4 bytes and marks of width 0 are few. */
    struct strbuf clean = {0};
    const struct bn_str head = {s.ptr, s.n_bytes < 16 * width + 16 ? s.n_bytes : 16 * width + 16};
    term_text_clean(head, TERM_ONE_LINE, &clean);
    if (head.n_bytes == s.n_bytes && term_text_width(strbuf_str(&clean)) <= width) {
        strbuf_add_str(out, strbuf_str(&clean));
    } else {
        const size_t dots = width < 3 ? width : 3;
        strbuf_add(out, strbuf_text(&clean), term_text_fit(strbuf_str(&clean), width - dots));
        strbuf_add(out, "...", dots);
    }
    strbuf_finish(&clean);
}

size_t term_text_tail(struct bn_str s)
{
    for (size_t back = 1; back <= 3 && back <= s.n_bytes; back++) {
        const unsigned char lead = (unsigned char)s.ptr[s.n_bytes - back];
        uint32_t smallest;
        if ((lead & 0xC0) == 0x80)
            continue;
        return sequence_bytes(lead, &smallest) > back ? back : 0;
    }
    return 0;
}
