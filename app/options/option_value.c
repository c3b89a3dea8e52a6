/*
 * Parsing and formatting of option values: see option_value.h.
 *
 * A number is an optional sign and digits; a real number may also have a point and an exponent. The
 * other forms that strtod accepts (nan, inf, hexadecimal, leading spaces) are refused.
 */
#include "app/options/option_value.h"

#include "app/common/file/paths.h"
#include "app/common/term_text.h"
#include "engine/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void option_value_finish(struct option_value *v)
{
    for (size_t i = 0; i < v->n_texts; i++)
        mem_free(v->texts[i]);
    mem_free(v->texts);
    mem_free(v->numbers);
    *v = (struct option_value){0};
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Read the bytes from `text` up to `end`, exclusive. False: not a whole number, or one whose
 * absolute value is above INT64_MAX. */
static bool read_int(const char *text, const char *end, int64_t *out)
{
    const bool negative = text < end && *text == '-';
    if (text < end && (*text == '-' || *text == '+'))
        text++;
    if (text == end)
        return false;
    uint64_t v = 0;
    for (; text < end; text++) {
        const uint64_t digit = (uint64_t)(*text - '0');
        if (!is_digit(*text) || v > ((uint64_t)INT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = negative ? -(int64_t)v : (int64_t)v;
    return true;
}

/* Fail with the values that the row accepts. option_describe does not name a large limit, but an
 * error names both ends of the range. */
static bool fail_value(const struct option *row, const char *label, const char *text,
                       struct bn_error *err)
{
    char expected[200];
    const bool is_int = row->kind == OPTION_INT || row->kind == OPTION_INTS;
    if (is_int && row->ints.max >= INT32_MAX)
        return bn_fail(err, BN_EARG, "%s '%s': expected %s from %lld to %lld%s", label, text,
                       row->kind == OPTION_INT ? "a whole number" : "whole numbers",
                       (long long)row->ints.min, (long long)row->ints.max,
                       row->kind == OPTION_INT ? "" : ", separated by commas");
    option_describe(row, expected, sizeof(expected));
    return bn_fail(err, BN_EARG, "%s '%s': expected %s", label, text, expected);
}

static bool looks_like_real(const char *s)
{
    size_t n_digits = 0;
    s += *s == '-' || *s == '+';
    for (; is_digit(*s); s++)
        n_digits++;
    if (*s == '.')
        for (s++; is_digit(*s); s++)
            n_digits++;
    if (n_digits == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '-' || *s == '+';
        if (!is_digit(*s))
            return false;
        while (is_digit(*s))
            s++;
    }
    return *s == '\0';
}

static bool parse_flag(const char *text, int64_t *out)
{
    /* Words for off and on in turn. */
    static const char *const words[] = {"off", "on", "false", "true", "no", "yes", "0", "1"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(text, words[i]) == 0) {
            *out = (int64_t)(i % 2);
            return true;
        }
    return false;
}

/* *out is the index of the word in `choices`, which are separated by "|". */
static bool parse_choice(const char *choices, const char *text, int64_t *out)
{
    const size_t n_text = strlen(text);
    int64_t index = 0;
    for (const char *at = choices; *at; index++) {
        const size_t n = strcspn(at, "|");
        if (n == n_text && memcmp(at, text, n) == 0) {
            *out = index;
            return true;
        }
        at += n + (at[n] == '|');
    }
    return false;
}

static bool in_ints(const struct option *row, int64_t v)
{
    return v >= row->ints.min && v <= row->ints.max;
}

static bool parse_ints(const struct option *row, const char *label, const char *text,
                       struct option_value *out, struct bn_error *err)
{
    for (const char *at = text;;) {
        const char *end = at + strcspn(at, ",");
        int64_t v;
        if (!read_int(at, end, &v) || !in_ints(row, v))
            return fail_value(row, label, text, err);
        if (!mem_grow(&out->numbers, &out->numbers_cap, out->n_numbers + 1, sizeof(*out->numbers)))
            return bn_fail(err, BN_ENOMEM, "out of memory for %s", label);
        out->numbers[out->n_numbers++] = v;
        if (*end == '\0')
            return true;
        at = end + 1;
    }
}

static bool add_text(const char *text, struct option_value *out, struct bn_error *err)
{
    const size_t n = strlen(text) + 1;
    char *copy = mem_alloc(n, 1);
    if (!copy || !mem_grow(&out->texts, &out->texts_cap, out->n_texts + 1, sizeof(*out->texts))) {
        mem_free(copy);
        return bn_fail(err, BN_ENOMEM, "out of memory for an option of %zu bytes", n);
    }
    memcpy(copy, text, n);
    out->texts[out->n_texts++] = copy;
    return true;
}

/* Whether the first bytes of the text precede a path: none, or "@". */
static bool begins_path(const struct option *row, const char *text, size_t *n_before)
{
    *n_before = text[0] == '@' && (row->paths & OPTION_AT_PATH) ? 1 : 0;
    return *n_before > 0 || (row->paths & OPTION_PATH);
}

/* Add the text, with the home directory in place of a "~/" that begins a path. */
static bool add_expanded(const struct option *row, const char *text, struct option_value *out,
                         struct bn_error *err)
{
    size_t n_before;
    const char *home =
        begins_path(row, text, &n_before) ? path_home(bn_str_of(text + n_before)) : NULL;
    if (!home)
        return add_text(text, out, err);
    char path[PATH_BYTES];
    const int n =
        snprintf(path, sizeof(path), "%.*s%s%s", (int)n_before, text, home, text + n_before + 1);
    if (n < 0 || (size_t)n >= sizeof(path))
        return bn_fail(err, BN_EARG, "--%s: a path of %d bytes is too long", row->name, n);
    return add_text(path, out, err);
}

/* The settings are floats: a number that is the excluded minimum as a float is refused, too. */
static bool parse_real(const struct option *row, const char *text, double *out)
{
    if (!looks_like_real(text))
        return false;
    *out = strtod(text, NULL);
    return isfinite(*out) && *out >= row->reals.min && *out <= row->reals.max &&
           !(row->reals.above_min && (float)*out == (float)row->reals.min);
}

bool option_value_parse(const struct option *row, const char *label, const char *text,
                        struct option_value *out, struct bn_error *err)
{
    bool ok = false;
    switch (row->kind) {
    case OPTION_FLAG:
        ok = parse_flag(text, &out->number);
        break;
    case OPTION_INT:
        if (row->check && !row->check(text, err))
            return bn_fail_prefix(err, "%s '%s'", label, text);
        ok = read_int(text, text + strlen(text), &out->number) && in_ints(row, out->number);
        break;
    case OPTION_REAL:
        ok = parse_real(row, text, &out->real);
        break;
    case OPTION_CHOICE:
        if (parse_choice(row->choices, text, &out->number))
            return add_text(text, out, err);
        break;
    case OPTION_INTS:
        return parse_ints(row, label, text, out, err);
    case OPTION_TEXT:
        if (row->check && !row->check(text, err))
            return bn_fail_prefix(err, "%s '%s'", label, text);
        return add_expanded(row, text, out, err);
    }
    return ok || fail_value(row, label, text, err);
}

bool option_unquote(char **value, char comment)
{
    char *end = **value == '"' ? strchr(*value + 1, '"') : NULL;
    if (!end)
        return false;
    const char *rest = end + 1 + strspn(end + 1, " \t\r");
    if (*rest && *rest != comment)
        return false;
    *end = 0;
    ++*value;
    return true;
}

bool option_has_choice(const struct option *row, const char *word)
{
    int64_t index; /* not needed */
    return parse_choice(row->choices, word, &index);
}

bool option_value_copy(const struct option_value *from, struct option_value *out)
{
    struct bn_error ignored; /* the caller writes the message */
    out->source = from->source;
    out->set = from->set;
    out->number = from->number;
    out->real = from->real;
    for (size_t i = 0; i < from->n_texts; i++)
        if (!add_text(from->texts[i], out, &ignored))
            return false;
    if (from->n_numbers > 0 &&
        !mem_grow(&out->numbers, &out->numbers_cap, from->n_numbers, sizeof(*out->numbers)))
        return false;
    for (size_t i = 0; i < from->n_numbers; i++)
        out->numbers[out->n_numbers++] = from->numbers[i];
    return true;
}

/* Each text is in quotes, because it may have a comma. */
static void format_texts(const struct option_value *v, char *out, size_t out_bytes)
{
    struct strbuf list = {0};
    for (size_t i = 0; i < v->n_texts; i++) {
        strbuf_add_text(&list, i > 0 ? ", \"" : "\"");
        term_text_escape(bn_str_of(v->texts[i]), &list);
        strbuf_add_char(&list, '"');
    }
    (void)snprintf(out, out_bytes, "%s", strbuf_text(&list));
    strbuf_finish(&list);
}

void option_value_format(const struct option *row, const struct option_value *v, char *out,
                         size_t out_bytes)
{
    size_t n = 0;
    out[0] = '\0';
    if (!v->set)
        return;
    if (row->kind == OPTION_FLAG)
        (void)snprintf(out, out_bytes, "%s", v->number ? "on" : "off");
    if (row->kind == OPTION_INT)
        (void)snprintf(out, out_bytes, "%lld", (long long)v->number);
    if (row->kind == OPTION_REAL)
        (void)snprintf(out, out_bytes, "%g", v->real);
    if (v->n_texts > 0 && row->repeats)
        format_texts(v, out, out_bytes);
    else if (v->n_texts > 0)
        (void)snprintf(out, out_bytes, "%s", v->texts[0]);
    for (size_t i = 0; i < v->n_numbers && n < out_bytes; i++)
        n += (size_t)snprintf(out + n, out_bytes - n, "%s%lld", i ? "," : "",
                              (long long)v->numbers[i]);
}
