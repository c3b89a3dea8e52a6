/*
 * Literals. jinja2 encodes a string to ASCII with "backslashreplace" and decodes it with
 * "unicode-escape". So unknown escapes keep their backslash, and a backslash before a non-ASCII
 * character becomes the escape of that character as text.
 */
#include "templates/jinja/parse/jinja_lex.h"

#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_text.h"

#include <stdio.h>

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static const struct {
    char letter, means;
} simple_escapes[] = {
    {'\\', '\\'}, {'\'', '\''}, {'"', '"'},  {'a', '\a'}, {'b', '\b'},
    {'f', '\f'},  {'n', '\n'},  {'r', '\r'}, {'t', '\t'}, {'v', '\v'},
};

/* \x, \u, \U: exactly n hexadecimal digits. Returns n, or 0 if there are fewer. */
static size_t hex_escape(struct bn_str s, size_t at, size_t n, uint32_t *cp)
{
    if (n > s.n_bytes - at)
        return 0;
    *cp = 0;
    for (size_t i = 0; i < n; i++) {
        const int d = hex_digit(s.ptr[at + i]);
        if (d < 0)
            return 0;
        *cp = *cp << 4 | (uint32_t)d;
    }
    return n;
}

/* A backslash before a non-ASCII character: Python's encoder has replaced the character with an
 * escape, and the decoder reads the two backslashes as one. */
static bool put_escaped(struct jbuf *b, uint32_t cp)
{
    char text[12];
    (void)snprintf(text, sizeof text, cp < 0x100 ? "x%02x" : cp < 0x10000 ? "u%04x" : "U%08x", cp);
    return jbuf_text(b, "\\") && jbuf_text(b, text);
}

/* Decodes the escape whose backslash is before `at`. Returns the number of its bytes after the
 * backslash. 0: *problem is set, or the string cannot grow (memory, limits). */
static size_t put_escape(struct jbuf *b, struct bn_str s, size_t at, const char **problem)
{
    const char c = s.ptr[at];
    uint32_t cp = 0;
    for (size_t i = 0; i < sizeof simple_escapes / sizeof simple_escapes[0]; i++)
        if (simple_escapes[i].letter == c)
            return jbuf_add(b, &simple_escapes[i].means, 1, ORIGIN_TEMPLATE) ? 1 : 0;
    if (c == '\n') /* the string goes on in the next line, without the backslash and the newline */
        return 1;
    if (c >= '0' && c <= '7') {
        size_t n = 0;
        for (; n < 3 && at + n < s.n_bytes && s.ptr[at + n] >= '0' && s.ptr[at + n] <= '7'; n++)
            cp = cp << 3 | (uint32_t)(s.ptr[at + n] - '0');
        return jbuf_cp(b, cp, ORIGIN_TEMPLATE) ? n : 0;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
        const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        const size_t n = hex_escape(s, at + 1, digits, &cp);
        if (n == 0 || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
            *problem = n == 0 ? "a truncated \\x, \\u or \\U escape"
                              : "an escape that is not a Unicode character";
            return 0;
        }
        return jbuf_cp(b, cp, ORIGIN_TEMPLATE) ? 1 + n : 0;
    }
    if (c == 'N') {
        *problem = "\\N{...} escapes are not supported";
        return 0;
    }
    const size_t n = text_next(s, at, &cp);
    if (cp >= 0x80)
        return put_escaped(b, cp) ? n : 0;
    return jbuf_text(b, "\\") && jbuf_add(b, s.ptr + at, n, ORIGIN_TEMPLATE) ? n : 0;
}

bool literal_string(struct jvm *vm, struct bn_str inside, struct jval *out, const char **problem)
{
    struct jbuf b = {.vm = vm};
    *problem = NULL;
    for (size_t at = 0; at < inside.n_bytes;) {
        size_t end = at;
        while (end < inside.n_bytes && inside.ptr[end] != '\\')
            end++;
        if (!jbuf_add(&b, inside.ptr + at, end - at, ORIGIN_TEMPLATE))
            return false;
        at = end;
        if (at == inside.n_bytes)
            break;
        if (at + 1 == inside.n_bytes) {
            *problem = "a backslash at the end of a string";
            return false;
        }
        const size_t n = put_escape(&b, inside, at + 1, problem);
        if (n == 0)
            return false;
        at += 1 + n;
    }
    if (!jbuf_done(&b, out))
        return false;
    jstr_chars(out->u.s); /* caches the count: the tree is read-only later */
    return true;
}

/* The end of the digits from `at` on, which may have single underscores before and between them. */
static size_t digits_end(struct bn_str s, size_t at, int base)
{
    for (;;) {
        const size_t p = at < s.n_bytes && s.ptr[at] == '_' ? at + 1 : at;
        const int d = p < s.n_bytes ? hex_digit(s.ptr[p]) : -1;
        if (d < 0 || d >= base)
            return at;
        at = p + 1;
    }
}

static bool digit_at(struct bn_str s, size_t at)
{
    return at < s.n_bytes && s.ptr[at] >= '0' && s.ptr[at] <= '9';
}

/* The digits end at `at`. Returns the end of the fraction and exponent after them, or `at` if there
 * are none: an integer. */
static size_t float_end(struct bn_str s, size_t at)
{
    size_t end = at;
    if (end < s.n_bytes && s.ptr[end] == '.' && digit_at(s, end + 1))
        end = digits_end(s, end + 1, 10);
    if (end < s.n_bytes && (s.ptr[end] == 'e' || s.ptr[end] == 'E')) {
        const size_t sign = end + 1 < s.n_bytes && (s.ptr[end + 1] == '+' || s.ptr[end + 1] == '-');
        if (digit_at(s, end + 1 + sign))
            end = digits_end(s, end + 1 + sign, 10);
    }
    return end;
}

/* The value of the digits and underscores [b0, b1). J_NONE: it does not fit int64_t. */
static struct jval integer_value(struct bn_str s, size_t b0, size_t b1, int base)
{
    int64_t v = 0;
    for (size_t i = b0; i < b1; i++) {
        if (s.ptr[i] == '_')
            continue;
        if (!int_mul(v, base, &v) || !int_add(v, hex_digit(s.ptr[i]), &v))
            return jnone();
    }
    return jint(v);
}

size_t literal_number(struct bn_str text, bool after_dot, struct jval *out)
{
    const size_t whole = digits_end(text, 0, 10);
    const size_t end = after_dot ? whole : float_end(text, whole);
    *out = jnone();
    if (end > whole) {
        double f = 0;
        /* cannot fail: the syntax was checked */
        (void)number_parse_float((struct bn_str){text.ptr, end}, &f);
        *out = jfloat(f);
        return end;
    }
    if (text.n_bytes > 2 && text.ptr[0] == '0') {
        const char c = text.ptr[1] | 0x20; /* lower case */
        const int base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        const size_t stop = base ? digits_end(text, 2, base) : 0;
        if (stop > 2) {
            *out = integer_value(text, 2, stop, base);
            return stop;
        }
    }
    if (text.ptr[0] == '0') { /* only zeros: 012 is two tokens, 0 and 12, as in jinja2 */
        *out = jint(0);
        return digits_end(text, 0, 1);
    }
    *out = integer_value(text, 0, whole, 10);
    return whole;
}
