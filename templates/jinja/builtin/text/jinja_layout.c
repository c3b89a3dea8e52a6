/*
 * Formats text and numbers in a field: sign, prefix, grouping, zeros and fill.
 */
#include "templates/jinja/builtin/text/jinja_format.h"
#include "templates/jinja/value/jinja_number.h"

#include <math.h>
#include <stdio.h>

/* The bytes [0, b1) of s, which are n_chars characters, with fill before and after them. */
static bool padded(struct jbuf *b, const struct jstr *s, size_t b1, size_t n_chars,
                   const struct layout *how)
{
    const size_t pad = how->width > n_chars ? how->width - n_chars : 0;
    const uint32_t fill = how->fill ? how->fill : ' ';
    const size_t left = how->align == '>' ? pad : how->align == '^' ? pad / 2 : 0;
    return jbuf_repeat(b, fill, left, ORIGIN_TEMPLATE) && jbuf_slice(b, s, 0, b1) &&
           jbuf_repeat(b, fill, pad - left, ORIGIN_TEMPLATE);
}

bool layout_text(struct jbuf *b, const struct jstr *s, const struct layout *how)
{
    struct jstr copy = *s; /* because jstr_chars stores the count in its argument */
    if (!jvm_steps(b->vm, s->n_bytes / 64))
        return false;
    size_t n_chars = jstr_chars(&copy);
    if (how->precision >= 0 && (size_t)how->precision < n_chars)
        n_chars = (size_t)how->precision;
    return padded(b, s, jstr_offset(&copy, n_chars), n_chars, how);
}

/* The pieces of a number, for example "-", "0x", "1f" and "", or "-", "", "1" and ".50e+10". */
struct pieces {
    const char *sign, *prefix, *digits, *rest;
    size_t n_digits;
    bool is_binary; /* base 2, 8 or 16: groups of four digits */
};

/* The digits with group separators, and with leading zeros to reach at least `min` characters. */
static bool grouped(struct jbuf *b, const struct pieces *p, char group, size_t min)
{
    const size_t every = p->is_binary ? 4 : 3;
    size_t n = p->n_digits;
    if (!group)
        return jbuf_repeat(b, '0', min > n ? min - n : 0, ORIGIN_TEMPLATE) &&
               jbuf_add(b, p->digits, n, ORIGIN_TEMPLATE);
    while (n + (n - 1) / every < min)
        n++;
    for (size_t i = 0; i < n; i++) {
        const size_t from_end = n - i;
        const char c = from_end > p->n_digits ? '0' : p->digits[p->n_digits - from_end];
        if ((i && from_end % every == 0 && !jbuf_add(b, &group, 1, ORIGIN_TEMPLATE)) ||
            !jbuf_add(b, &c, 1, ORIGIN_TEMPLATE))
            return false;
    }
    return true;
}

/* A fill of '0' with the alignment '=' counts as digits: group separators are put between them. */
static bool layout_number(struct jbuf *b, const struct pieces *p, const struct layout *how)
{
    struct jbuf body = {.vm = b->vm};
    struct jval text;
    const size_t n_around = strlen(p->sign) + strlen(p->prefix) + strlen(p->rest);
    const bool zeros = how->align == '=' && how->fill == '0';
    const size_t min = zeros && how->width > n_around ? how->width - n_around : 1;
    if (how->align == '=' && !zeros) { /* the fill is after sign and prefix */
        if (!grouped(&body, p, how->group, 1))
            return false;
        const size_t n = n_around + body.n;
        return jbuf_text(b, p->sign) && jbuf_text(b, p->prefix) &&
               jbuf_repeat(b, how->fill ? how->fill : ' ', how->width > n ? how->width - n : 0,
                           ORIGIN_TEMPLATE) &&
               jbuf_add(b, body.ptr, body.n, ORIGIN_TEMPLATE) && jbuf_text(b, p->rest);
    }
    if (!jbuf_text(&body, p->sign) || !jbuf_text(&body, p->prefix) ||
        !grouped(&body, p, how->group, min) || !jbuf_text(&body, p->rest) ||
        !jbuf_done(&body, &text))
        return false;
    return padded(b, text.u.s, text.u.s->n_bytes, text.u.s->n_bytes, how); /* ASCII */
}

static const char *sign_text(bool minus, const struct layout *how)
{
    return minus ? "-" : how->sign == '+' ? "+" : how->sign == ' ' ? " " : "";
}

bool layout_int(struct jbuf *b, int64_t v, const struct layout *how)
{
    const char type = how->type;
    const unsigned base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
    const char *const letters = type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    const char prefix[3] = {'0', type, '\0'};
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    char digits[65]; /* 64 binary digits fit */
    size_t at = sizeof digits;
    do {
        digits[--at] = letters[u % base];
        u /= base;
    } while (u);
    const struct pieces p = {.sign = sign_text(v < 0, how),
                             .prefix = how->alternate && base != 10 ? prefix : "",
                             .digits = digits + at,
                             .n_digits = sizeof digits - at,
                             .rest = "",
                             .is_binary = base != 10};
    struct layout right = *how;
    if (!right.align)
        right.align = '>';
    return layout_number(b, &p, &right);
}

/* A precision without a type: as g, but ".0" follows a whole number, and the exponent form begins
 * when the number has as many digits before the point as the precision. */
static void general(double v, int precision, char text[NUMBER_FORMAT_CHARS])
{
    number_format(v, 'g', precision ? precision : 1, false, text);
    if (strcspn(text, ".e") < strlen(text) || !isfinite(v))
        return;
    if (strlen(text) < (size_t)(precision ? precision : 1)) {
        strcat(text, ".0");
        return;
    }
    char *point;
    number_format(v, 'e', precision > 1 ? precision - 1 : 0, false, text);
    if ((point = strchr(text, '.'))) { /* remove zeros at the end of the fraction */
        char *const e = strchr(text, 'e');
        char *end = e;
        while (end[-1] == '0')
            end--;
        if (end - 1 == point)
            end--;
        memmove(end, e, strlen(e) + 1);
    }
}

bool layout_float(struct jbuf *b, double v, const struct layout *how)
{
    char text[NUMBER_FORMAT_CHARS];
    const bool percent = how->type == '%';
    const char type = percent ? 'f' : how->type == 'n' ? 'g' : how->type;
    const double shown = fabs(percent ? v * 100 : v);
    if (how->precision > NUMBER_MAX_PRECISION)
        return jvm_fail(b->vm, "a precision of %d is too large", how->precision);
    if (!type && how->precision < 0)
        number_print_float(shown, text);
    else if (!type)
        general(shown, how->precision, text);
    else
        number_format(shown, type, how->precision < 0 ? 6 : how->precision, how->alternate, text);
    const size_t n_digits = strspn(text, "0123456789");
    char rest[NUMBER_FORMAT_CHARS + 2];
    (void)snprintf(rest, sizeof rest, "%s%s", text + n_digits, percent ? "%" : "");
    struct layout right = *how;
    if (!right.align)
        right.align = '>';
    const struct pieces p = {.sign = sign_text(signbit(v) && !isnan(v), how),
                             .prefix = "",
                             .digits = text,
                             .n_digits = n_digits,
                             .rest = rest};
    if (n_digits == 0) { /* inf, nan */
        const struct pieces word = {
            .sign = p.sign, .prefix = "", .digits = rest, .n_digits = strlen(rest), .rest = ""};
        right.group = 0;
        return layout_number(b, &word, &right);
    }
    return layout_number(b, &p, &right);
}
