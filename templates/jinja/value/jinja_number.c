/*
 * Checked integer arithmetic, and numbers as text.
 *
 * The decimal point of the locale has no effect: repr() uses only the digits of printf's exponent
 * form, number_format replaces the point that printf wrote, and reading passes digits and an
 * exponent without a point to strtod.
 */
#include "templates/jinja/value/jinja_number.h"

#include "templates/jinja/value/jinja_text.h"
#include "templates/jinja/value/jinja_unicode.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A double, or the middle between two doubles, has at most 768 significant digits. Further digits
 * matter only if one of them is not zero: see `sticky`. */
#define MAX_DIGITS 800

bool int_add(int64_t a, int64_t b, int64_t *out)
{
    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b)
        return false;
    *out = a + b;
    return true;
}

bool int_sub(int64_t a, int64_t b, int64_t *out)
{
    if (b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b)
        return false;
    *out = a - b;
    return true;
}

bool int_mul(int64_t a, int64_t b, int64_t *out)
{
    if (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
              : (b > 0 ? a < INT64_MIN / b : a != 0 && b < INT64_MAX / a))
        return false;
    *out = a * b;
    return true;
}

bool int_floordiv(int64_t a, int64_t b, int64_t *out)
{
    if (a == INT64_MIN && b == -1)
        return false;
    *out = a / b - (a % b != 0 && (a < 0) != (b < 0));
    return true;
}

int64_t int_mod(int64_t a, int64_t b)
{
    if (b == -1) /* INT64_MIN % -1 is undefined in C */
        return 0;
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

double float_mod(double a, double b)
{
    double r = fmod(a, b);
    if (r == 0)
        return copysign(0.0, b);
    if ((r < 0) != (b < 0))
        r += b;
    return r;
}

int int_compare_float(int64_t a, double b)
{
    if (isnan(b))
        return JNUM_UNORDERED;
    if (b >= 0x1p63)
        return -1;
    if (b < -0x1p63)
        return 1;
    const double whole = floor(b);
    const int64_t i = (int64_t)whole; /* the two tests above keep it in range */
    if (a != i)
        return a < i ? -1 : 1;
    return b > whole ? -1 : 0;
}

void number_print_int(int64_t v, char out[NUMBER_CHARS])
{
    (void)snprintf(out, NUMBER_CHARS, "%" PRId64, v);
}

/* `precision` digits of |v|, at most 17. v is finite. Returns the exponent of ten of the first
 * digit. */
static int digits_of(double v, int precision, char digits[24])
{
    char text[48];
    size_t n = 0;
    (void)snprintf(text, sizeof text, "%.*e", precision - 1, fabs(v));
    const char *const e = strchr(text, 'e');
    for (const char *p = text; p < e; p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    digits[n] = '\0';
    return (int)strtol(e + 1, NULL, 10);
}

/* The reverse of digits_of: the number whose first digit has this exponent of ten. */
static double from_digits(const char *digits, int exponent)
{
    char text[48];
    (void)snprintf(text, sizeof text, "%se%d", digits, exponent - (int)strlen(digits) + 1);
    return strtod(text, NULL);
}

static const char *not_finite(double v)
{
    return isnan(v) ? "nan" : v < 0 ? "-inf" : "inf";
}

/* If |v| is a power of two, the doubles below |v| are twice as dense as those above it. So the
 * number with these digits, the nearest to |v|, may be less than |v| and read back as another
 * double, while the next larger number reads back as |v|. If so, store the digits of the latter in
 * `digits` and return true. (If all digits are 9, the next larger number is a power of ten. It was
 * tried before with fewer digits, or is too far from |v| if 9 is the only digit.) */
static bool next_reads_back(double v, int exponent, char digits[24])
{
    char next[24];
    int power;
    size_t i = strlen(digits);
    if (frexp(fabs(v), &power) != 0.5)
        return false;
    memcpy(next, digits, i + 1);
    while (i > 0 && next[i - 1] == '9')
        next[--i] = '0';
    if (i == 0)
        return false;
    next[i - 1]++;
    if (from_digits(next, exponent) != fabs(v))
        return false;
    memcpy(digits, next, sizeof next);
    return true;
}

void number_print_float(double v, char out[NUMBER_CHARS])
{
    char digits[24];
    int exponent = 0;
    if (!isfinite(v)) {
        (void)snprintf(out, NUMBER_CHARS, "%s", not_finite(v));
        return;
    }
    for (int precision = 1; precision <= 17; precision++) { /* 17 digits identify every double */
        exponent = digits_of(v, precision, digits);
        if (from_digits(digits, exponent) == fabs(v) || next_reads_back(v, exponent, digits))
            break;
    }
    const int n = (int)strlen(digits);
    const char *const sign = signbit(v) ? "-" : "";
    /* repr() uses the exponent form below 1e-4 and from 1e16 on. */
    if (exponent < -4 || exponent >= 16)
        (void)snprintf(out, NUMBER_CHARS, "%s%.1s%s%se%c%02d", sign, digits, n > 1 ? "." : "",
                       digits + 1, exponent < 0 ? '-' : '+', abs(exponent));
    else if (exponent < 0)
        (void)snprintf(out, NUMBER_CHARS, "%s0.%.*s%s", sign, -exponent - 1, "000", digits);
    else if (n <= exponent + 1)
        (void)snprintf(out, NUMBER_CHARS, "%s%s%.*s.0", sign, digits, exponent + 1 - n,
                       "0000000000000000");
    else
        (void)snprintf(out, NUMBER_CHARS, "%s%.*s.%s", sign, exponent + 1, digits,
                       digits + exponent + 1);
}

void number_format(double v, char conversion, int precision, bool keep_point,
                   char out[NUMBER_FORMAT_CHARS])
{
    /* Constant formats, so that the compiler can check them. 0x80 is not in any letter, so it can
     * stand for keep_point. */
    char text[NUMBER_FORMAT_CHARS];
    size_t n = 0;
    switch (conversion | (keep_point ? 0x80 : 0)) {
#define CASE(letter, fmt)                                                                          \
    case letter:                                                                                   \
        (void)snprintf(text, sizeof text, "%." fmt, precision, v);                                 \
        break;                                                                                     \
    case letter | 0x80:                                                                            \
        (void)snprintf(text, sizeof text, "%#." fmt, precision, v);                                \
        break;
        CASE('e', "*e")
        CASE('E', "*E")
        CASE('f', "*f")
        CASE('F', "*F")
        CASE('g', "*g")
        CASE('G', "*G")
#undef CASE
    default:
        text[0] = '\0';
    }
    for (const char *p = text; *p; p++) {
        const bool plain = (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
                           (*p >= 'A' && *p <= 'Z') || *p == '-' || *p == '+';
        if (plain)
            out[n++] = *p;
        else if (n > 0 && out[n - 1] != '.') /* a locale's point may have several bytes */
            out[n++] = '.';
    }
    out[n] = '\0';
}

double number_round(double v, int64_t n_digits)
{
    char text[NUMBER_FORMAT_CHARS], digits[24];
    double rounded = v;
    /* 323 and -308 are the bounds of CPython: beyond them v stays the same or becomes 0. */
    if (!isfinite(v) || v == 0 || n_digits > 323)
        return v;
    if (n_digits >= 0) {
        number_format(v, 'f', (int)n_digits, false, text);
        (void)number_parse_float(bn_str_of(text), &rounded); /* cannot fail on printed digits */
        return rounded;
    }
    if (n_digits < -308)
        return copysign(0.0, v);
    const int exponent = digits_of(v, 17, digits);
    const int keep = exponent + (int)n_digits; /* number of digits that remain, minus one */
    if (keep >= 0) {
        /* The bound 300 only shortens the text: from 17 digits on, it reads back as v. */
        number_format(v, 'e', keep < 300 ? keep : 300, false, text);
        (void)number_parse_float(bn_str_of(text), &rounded); /* cannot fail, as above */
        return rounded;
    }
    /* |v| is less than one unit, 10^-n_digits: it rounds up only if it is more than half a unit.
     * 309 digits are all that a double of 1 or more has; half a unit may have no exact double. */
    number_format(fabs(v), 'e', 308, false, text);
    const char *end = strchr(text, 'e');
    const bool is_half = strspn(text + 2, "0") >= (size_t)(end - text - 2);
    const bool up = keep == -1 && (text[0] > '5' || (text[0] == '5' && !is_half));
    return copysign(up ? from_digits("1", exponent + 1) : 0.0, v);
}

static struct bn_str stripped(struct bn_str s)
{
    const size_t end = text_trim_space(s, s.n_bytes);
    const size_t start = text_skip_space((struct bn_str){s.ptr, end}, 0);
    return (struct bn_str){s.ptr + start, end - start};
}

/* Whether s is the word `lower`, in which each letter may be small or capital. */
static bool same_letters(struct bn_str s, const char *lower)
{
    if (s.n_bytes != strlen(lower))
        return false;
    for (size_t i = 0; i < s.n_bytes; i++)
        if ((s.ptr[i] | 0x20) != lower[i])
            return false;
    return true;
}

/* A decimal number: the value is the digits as an integer, times 10^exponent. */
struct decimal {
    char digits[MAX_DIGITS + 32]; /* (n), at most MAX_DIGITS + 1; then the exponent for strtod */
    size_t n;
    bool sticky; /* a digit that was dropped is not zero */
    int64_t exponent;
};

/* Adds digits with single underscores between them to d. Returns the number of bytes. 0: no digits,
 * or an underscore after the last one. */
static size_t read_digits(struct bn_str s, size_t at, struct decimal *d, bool is_fraction)
{
    const size_t start = at;
    bool after_digit = false;
    while (at < s.n_bytes) {
        uint32_t cp;
        const size_t n = text_next(s, at, &cp);
        const int digit = uni_decimal(cp);
        if (digit < 0 && !(cp == '_' && after_digit))
            break;
        after_digit = digit >= 0;
        at += n;
        if (digit < 0)
            continue;
        if (d->n == 0 && digit == 0) { /* a leading zero */
            d->exponent -= is_fraction;
        } else if (d->n < MAX_DIGITS) {
            d->digits[d->n++] = (char)('0' + digit);
            d->exponent -= is_fraction;
        } else {
            d->sticky = d->sticky || digit != 0;
            d->exponent += !is_fraction;
        }
    }
    if (at > start && !after_digit)
        return 0; /* it ends with an underscore */
    return at - start;
}

/* Adds the exponent after the letter e at `at`. Returns the number of bytes, 0: bad syntax. */
static size_t read_exponent(struct bn_str s, size_t at, int64_t *exponent)
{
    const size_t start = at++;
    const bool minus = at < s.n_bytes && s.ptr[at] == '-';
    int64_t e = 0;
    bool after_digit = false;
    if (at < s.n_bytes && (s.ptr[at] == '-' || s.ptr[at] == '+'))
        at++;
    while (at < s.n_bytes) {
        uint32_t cp;
        const size_t n = text_next(s, at, &cp);
        const int digit = uni_decimal(cp);
        if (digit < 0 && !(cp == '_' && after_digit))
            break;
        after_digit = digit >= 0;
        at += n;
        if (digit >= 0 && e < 100000000) /* with any larger exponent the value is 0 or infinite */
            e = e * 10 + digit;
    }
    *exponent += minus ? -e : e;
    return after_digit ? at - start : 0;
}

bool number_parse_float(struct bn_str text, double *out)
{
    struct bn_str s = stripped(text);
    struct decimal d = {.n = 0};
    const bool minus = s.n_bytes > 0 && s.ptr[0] == '-';
    if (s.n_bytes > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+'))
        s = (struct bn_str){s.ptr + 1, s.n_bytes - 1};
    if (same_letters(s, "inf") || same_letters(s, "infinity") || same_letters(s, "nan")) {
        const double v = (s.ptr[0] | 0x20) == 'n' ? (double)NAN : (double)INFINITY;
        *out = minus ? -v : v;
        return true;
    }
    size_t at = read_digits(s, 0, &d, false);
    size_t n_read = at;
    if (at < s.n_bytes && s.ptr[at] == '.') {
        const size_t n = read_digits(s, at + 1, &d, true);
        at += 1 + n;
        n_read += n;
    }
    if (n_read == 0)
        return false;
    if (at < s.n_bytes && (s.ptr[at] == 'e' || s.ptr[at] == 'E')) {
        const size_t n = read_exponent(s, at, &d.exponent);
        if (n == 0)
            return false;
        at += n;
    }
    if (at != s.n_bytes)
        return false;
    if (d.sticky) {
        d.digits[d.n++] = '1';
        d.exponent--;
    }
    (void)snprintf(d.digits + d.n, sizeof d.digits - d.n, "%se%" PRId64, d.n ? "" : "0",
                   d.exponent);
    *out = minus ? -strtod(d.digits, NULL) : strtod(d.digits, NULL);
    return true;
}

static int digit_value(uint32_t cp)
{
    const int decimal = uni_decimal(cp);
    if (decimal >= 0)
        return decimal;
    if (cp >= 'a' && cp <= 'z')
        return (int)cp - 'a' + 10;
    return cp >= 'A' && cp <= 'Z' ? (int)cp - 'A' + 10 : 99; /* 99: no digit in any base */
}

/* The number of bytes of a prefix "0x", "0o" or "0b" and of one underscore after it; 0 if there is
 * no prefix, or if *base is neither 0 nor the base of the prefix. Else sets *base to that base. */
static size_t base_prefix(struct bn_str s, int64_t *base)
{
    const char c = s.n_bytes > 1 && s.ptr[0] == '0' ? s.ptr[1] | 0x20 : '\0'; /* lower case */
    const int named = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    if (named && (*base == 0 || *base == named)) {
        *base = named;
        return 2 + (s.n_bytes > 2 && s.ptr[2] == '_');
    }
    return 0;
}

enum number_result number_parse_int(struct bn_str text, int64_t base, int64_t *out)
{
    struct bn_str s = stripped(text);
    const bool minus = s.n_bytes > 0 && s.ptr[0] == '-';
    bool after_digit = false, too_large = false, leading_zero = false;
    int64_t v = 0;
    if (s.n_bytes > 0 && (s.ptr[0] == '-' || s.ptr[0] == '+'))
        s = (struct bn_str){s.ptr + 1, s.n_bytes - 1};
    const bool is_any_base = base == 0;
    size_t at = base_prefix(s, &base);
    if (base == 0) {
        base = 10;
        leading_zero = s.n_bytes > 0 && s.ptr[0] == '0'; /* valid only if v is 0, as in Python */
    }
    while (at < s.n_bytes) {
        uint32_t cp;
        at += text_next(s, at, &cp);
        if (cp == '_' && after_digit) {
            after_digit = false;
            continue;
        }
        const int d = digit_value(cp);
        if (d >= base)
            return NUMBER_BAD;
        after_digit = true;
        /* Accumulate negative values: INT64_MIN has no positive counterpart. */
        if (!int_mul(v, base, &v) || !int_sub(v, d, &v))
            too_large = true;
    }
    if (!after_digit || (is_any_base && leading_zero && (v != 0 || too_large)))
        return NUMBER_BAD;
    if (too_large || (!minus && v == INT64_MIN))
        return NUMBER_TOO_LARGE;
    *out = minus ? v : -v;
    return NUMBER_OK;
}
