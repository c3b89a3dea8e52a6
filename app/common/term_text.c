/*
 * Cleaning, measuring and cutting text for a terminal: see term_text.h.
 *
 * Widths come from wcwidth and not from libunistring's uc_width, because Readline and ncurses
 * compute the position of the cursor with wcwidth. The two differ for 91 assigned characters, among
 * them the soft hyphen and the hexagrams (glibc 2.36, libunistring 1.0).
 */
#define _XOPEN_SOURCE 700 /* wcwidth */
#include "app/common/term_text.h"

#include "engine/base/size.h"
#include "engine/base/utf8.h"

#include <wchar.h>

/* Whether the terminal could act on the character, or other text could be hidden with it. */
static bool is_harmful(uint32_t c)
{
    if (c < 0x20)
        return c != '\n' && c != '\t';
    return (c >= 0x7F && c <= 0x9F) ||       /* DEL, C1 */
           (c >= 0x202A && c <= 0x202E) ||   /* bidirectional embeddings and overrides */
           (c >= 0x2066 && c <= 0x2069) ||   /* isolates */
           c == 0x2028 || c == 0x2029 ||     /* line and paragraph separator */
           (c >= 0xE0000 && c <= 0xE0FFF) || /* tags and variation selectors: invisible text */
           (c & 0xFFFE) == 0xFFFE;           /* noncharacters: the last two of each plane */
}

static size_t columns(uint32_t c)
{
    if (c < 0x80)
        return c == '\n' ? 0 : 1;
    const int w = wcwidth((wchar_t)c);
    return w < 0 ? 1 : (size_t)w; /* terminals draw a character unknown to wcwidth as one box */
}

#define JOINER 0x200D      /* zero-width joiner: combines emoji */
#define EMOJI_STYLE 0xFE0F /* variation selector 16: the character before it is an emoji */
#define KEYCAP 0x20E3      /* draws a key around the character before it */

static bool is_skin_tone(uint32_t c)
{
    return c >= 0x1F3FB && c <= 0x1F3FF;
}

/* A regional indicator: two of them are a flag. */
static bool is_flag_part(uint32_t c)
{
    return c >= 0x1F1E6 && c <= 0x1F1FF;
}

bool term_text_width_varies(uint32_t c)
{
    return c == EMOJI_STYLE || c == JOINER || c == KEYCAP || is_flag_part(c) || is_skin_tone(c);
}

bool term_text_has_varying_width(struct bn_str s)
{
    struct term_char c;
    for (size_t at = 0; term_text_next(s, &at, &c);)
        if (term_text_width_varies(c.code))
            return true;
    return false;
}

size_t term_text_added_width(const struct term_char *c, size_t before)
{
    return c->code == EMOJI_STYLE && before == 1 ? 1 : c->width;
}

bool term_text_next(struct bn_str s, size_t *at, struct term_char *c)
{
    if (*at >= s.n_bytes)
        return false;
    uint32_t code = TERM_REPLACEMENT;
    const size_t n = utf8_decode(s.ptr + *at, s.n_bytes - *at, &code);
    c->replaced = n == 0 || is_harmful(code);
    c->code = c->replaced ? TERM_REPLACEMENT : code;
    c->n_bytes = n > 0 ? n : 1;
    c->width = columns(c->code);
    *at += c->n_bytes;
    return true;
}

void term_text_put(struct strbuf *out, uint32_t code)
{
    char bytes[4];
    strbuf_add(out, bytes, utf8_encode(code, bytes));
}

void term_text_clean(struct bn_str s, enum term_lines lines, struct strbuf *out)
{
    struct term_char c;
    for (size_t at = 0; term_text_next(s, &at, &c);) {
        const bool is_blank = c.code == '\n' || c.code == '\t';
        term_text_put(out, is_blank && lines == TERM_ONE_LINE ? ' ' : c.code);
    }
}

void term_text_escape(struct bn_str s, struct strbuf *out)
{
    struct term_char c;
    for (size_t at = 0; term_text_next(s, &at, &c);) {
        const char *bytes = s.ptr + at - c.n_bytes;
        if (c.code == '\n')
            strbuf_add_text(out, "\\n");
        else if (c.code == '\t')
            strbuf_add_text(out, "\\t");
        else if (c.code == '\\')
            strbuf_add_text(out, "\\\\");
        else if (!c.replaced)
            strbuf_add(out, bytes, c.n_bytes);
        for (size_t i = 0; c.replaced && i < c.n_bytes; i++)
            strbuf_addf(out, "\\x%02X", (unsigned char)bytes[i]);
    }
}

size_t term_text_repair(struct bn_str s, struct strbuf *out)
{
    size_t first_bad = SIZE_MAX;
    for (size_t at = 0; at < s.n_bytes;) {
        uint32_t code;
        const size_t n = utf8_decode(s.ptr + at, s.n_bytes - at, &code);
        if (n > 0) {
            strbuf_add(out, s.ptr + at, n);
        } else {
            term_text_put(out, TERM_REPLACEMENT);
            if (first_bad == SIZE_MAX)
                first_bad = at;
        }
        at += n > 0 ? n : 1;
    }
    return first_bad;
}

size_t term_text_cluster(struct bn_str s, size_t at)
{
    struct term_char first, c;
    if (!term_text_next(s, &at, &first))
        return at;
    uint32_t before = first.code;
    size_t end = at, n_chars = 1;
    if (first.code == '\n')
        return end;
    /* A character belongs to the cluster if it has no width, follows a joiner, is a skin tone, or
     * is the second of the two characters of a flag. A newline or a tab always ends the cluster. */
    for (; term_text_next(s, &at, &c); end = at, n_chars++) {
        const bool is_flag = n_chars == 1 && is_flag_part(before) && is_flag_part(c.code);
        if (c.code == '\n' || c.code == '\t')
            break;
        if (c.width != 0 && before != JOINER && !is_skin_tone(c.code) && !is_flag)
            break;
        before = c.code;
    }
    return end;
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
    /* Only the beginning of a long text can fit, so the rest is not cleaned. COLUMN_BYTES is enough
     * for a character and three of width 0 after it: each has at most 4 bytes. The beginning is one
     * column too long, so that its last character, which the cut may divide, is not shown. A text
     * with more characters of width 0 is cut earlier, perhaps with U+FFFD for the divided one. */
    enum { COLUMN_BYTES = 16 };
    struct strbuf clean = {0};
    const struct bn_str start = {s.ptr, size_min(s.n_bytes, COLUMN_BYTES * (width + 1))};
    term_text_clean(start, TERM_ONE_LINE, &clean);
    if (start.n_bytes == s.n_bytes && term_text_width(strbuf_str(&clean)) <= width) {
        strbuf_add_str(out, strbuf_str(&clean));
    } else {
        const size_t dots = width < 3 ? width : 3;
        size_t n_kept = term_text_fit(strbuf_str(&clean), width - dots);
        while (n_kept > 0 && strbuf_text(&clean)[n_kept - 1] == '.')
            n_kept--; /* the text may itself be cut, as in a placeholder: one mark is enough */
        strbuf_add(out, strbuf_text(&clean), n_kept);
        strbuf_add(out, "...", dots);
    }
    strbuf_finish(&clean);
}
