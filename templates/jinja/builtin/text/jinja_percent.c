/*
 * "..." % args: printf-style formatting as in Python.
 */
#include "templates/jinja/builtin/text/jinja_format.h"
#include "templates/jinja/builtin/text/jinja_markup.h"
#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_print.h"

#include <math.h>

struct percent {
    struct jvm *vm;
    struct jbuf b;
    struct jstr *text; /* the format */
    size_t at;         /* its next byte */
    struct jval args;  /* a tuple, or a single value, such as the dict for "(key)" */
    size_t n_used;     /* number of arguments taken in order, not by key */
    bool is_mapping;   /* args has items like a mapping, so that unused arguments are no error */
};

static bool next_arg(struct percent *p, struct jval *out)
{
    const bool tuple = p->args.kind == J_TUPLE;
    if (p->n_used >= (tuple ? p->args.u.list->n : 1))
        return jvm_fail(p->vm, "not enough arguments for format string");
    *out = tuple ? p->args.u.list->items[p->n_used] : p->args;
    p->n_used++;
    return true;
}

/* The next byte of the format; '\0' at its end. */
static char peek(const struct percent *p)
{
    return p->at < p->text->n_bytes ? p->text->ptr[p->at] : '\0';
}

/* The value of "(key)". *found is false if there is no "(" here. */
static bool named_arg(struct percent *p, struct jval *out, bool *found)
{
    size_t depth = 1;
    struct jval key, *val;
    *found = peek(p) == '(';
    if (!*found)
        return true;
    const size_t b0 = ++p->at;
    while (p->at < p->text->n_bytes && depth > 0) {
        depth += p->text->ptr[p->at] == '(';
        depth -= p->text->ptr[p->at] == ')';
        p->at++;
    }
    if (depth > 0)
        return jvm_fail(p->vm, "incomplete format key");
    if (p->args.kind != J_DICT)
        return jvm_fail(p->vm, "format requires a mapping");
    if (!jstr_slice(p->vm, p->text, b0, p->at - 1, &key) ||
        !jdict_find(p->vm, p->args.u.dict, key, &val))
        return false;
    if (!val)
        return jvm_fail(p->vm, "the format's key is not in the mapping");
    *out = *val;
    return true;
}

static void read_flags(struct percent *p, struct layout *how)
{
    for (;; p->at++) {
        switch (peek(p)) {
        case '-':
            how->align = '<';
            break;
        case '+':
            how->sign = '+';
            break;
        case ' ':
            how->sign = how->sign ? how->sign : ' ';
            break;
        case '#':
            how->alternate = true;
            break;
        case '0':
            how->fill = '0';
            break;
        default:
            return;
        }
    }
}

/* A width or precision: digits, or '*' for the next argument. *out is 0 before the call. */
static bool read_count(struct percent *p, int64_t *out)
{
    struct jval v;
    if (peek(p) == '*') {
        p->at++;
        if (!next_arg(p, &v))
            return false;
        if (!jval_is_integer(v))
            return jvm_fail(p->vm, "* requires an integer");
        *out = jval_int(v);
    } else {
        while (peek(p) >= '0' && peek(p) <= '9') {
            if (*out > (int64_t)LAYOUT_MAX_WIDTH)
                break;
            *out = *out * 10 + (peek(p) - '0');
            p->at++;
        }
    }
    return (*out <= (int64_t)LAYOUT_MAX_WIDTH && *out >= -(int64_t)LAYOUT_MAX_WIDTH) ||
           jvm_fail(p->vm, "width or precision is too large");
}

static bool percent_int(struct percent *p, struct jval v, struct layout *how)
{
    struct jval i = v;
    const bool decimal = how->type == 'd' || how->type == 'i' || how->type == 'u';
    if (v.kind == J_FLOAT && decimal) {
        if (!(v.u.f >= -0x1p63 && v.u.f < 0x1p63))
            return jvm_fail(p->vm, "integer overflow: only 64 bits");
        i = jint((int64_t)v.u.f);
    }
    if (v.kind == J_UNDEF && decimal)
        return jundef_fail(p->vm, v);
    if (!jval_is_integer(i))
        return jvm_fail(p->vm, "%%%c format: a number is required, not %s", how->type,
                        jkind_name(v));
    if (decimal)
        how->type = 'd';
    if (how->precision > 0) { /* the minimum number of digits: lay out an inner field with zeros */
        struct layout digits = {.fill = '0',
                                .align = '=',
                                .sign = how->sign,
                                .alternate = how->alternate,
                                .precision = -1,
                                .type = how->type};
        const bool has_sign = jval_int(i) < 0 || how->sign;
        const size_t prefix = how->alternate && how->type != 'd' ? 2 : 0;
        struct jbuf b = {.vm = p->vm};
        struct jval text;
        digits.width = (size_t)how->precision + has_sign + prefix;
        how->precision = -1; /* layout_text would cut the text there */
        if (!layout_int(&b, jval_int(i), &digits))
            return false;
        /* With the flag 0, zeros fill a greater width too: then the number is laid out again. */
        if (how->align != '=' || how->width <= b.n)
            return jbuf_done(&b, &text) && layout_text(&p->b, text.u.s, how);
        digits.width = how->width;
        return layout_int(&p->b, jval_int(i), &digits);
    }
    return layout_int(&p->b, jval_int(i), how);
}

static bool percent_float(struct percent *p, struct jval v, const struct layout *how)
{
    double f;
    if (v.kind == J_UNDEF)
        return jundef_fail(p->vm, v);
    if (!jval_is_number(v))
        return jvm_fail(p->vm, "must be real number, not %s", jkind_name(v));
    f = jval_double(v);
    return layout_float(&p->b, f, how);
}

static bool percent_text(struct percent *p, struct jval v, const struct layout *how)
{
    struct jval text;
    struct jbuf b = {.vm = p->vm};
    if (how->type == 'c') {
        if (jval_is_integer(v)) {
            const int64_t cp = jval_int(v);
            if (cp < 0 || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
                return jvm_fail(p->vm, "%%c arg not in range(0x110000)");
            if (!jbuf_cp(&b, (uint32_t)cp, ORIGIN_TEMPLATE))
                return false;
        } else if (v.kind != J_STR || jstr_chars(v.u.s) != 1) {
            return jvm_fail(p->vm, "%%c requires int or char");
        } else if (!jbuf_str(&b, v.u.s)) {
            return false;
        }
    } else if (how->type == 's' && p->text->is_markup) {
        if (!markup_escape(p->vm, v, &text) || !jbuf_str(&b, text.u.s))
            return false;
    } else if (how->type == 's'   ? !print_str(&b, v)
               : how->type == 'a' ? !print_ascii(&b, v)
                                  : !print_repr(&b, v)) {
        return false;
    }
    if (!jbuf_done(&b, &text))
        return false;
    const bool is_repr = how->type == 'r' || how->type == 'a';
    if (is_repr && p->text->is_markup && !markup_escape(p->vm, text, &text))
        return false;
    return layout_text(&p->b, text.u.s, how);
}

static bool percent_value(struct percent *p, struct jval v, struct layout *how)
{
    const bool is_text = strchr("srac", how->type) != NULL;
    if (is_text || how->align == '<')
        how->fill = 0; /* the flag 0 has no effect */
    if (!how->align)
        how->align = how->fill == '0' ? '=' : '>';
    if (is_text) {
        how->precision = how->type == 'c' ? -1 : how->precision;
        return percent_text(p, v, how);
    }
    return strchr("diuoxX", how->type) ? percent_int(p, v, how) : percent_float(p, v, how);
}

/* One conversion, "%(key)flags width.precision type"; p->at is after the '%'. */
static bool percent_one(struct percent *p)
{
    struct layout how = {.precision = -1};
    struct jval v = {.kind = J_MISSING};
    bool named;
    int64_t count = 0;
    if (!named_arg(p, &v, &named))
        return false;
    read_flags(p, &how);
    if (!read_count(p, &count))
        return false;
    if (count < 0)
        how.align = '<';
    how.width = (size_t)(count < 0 ? -count : count);
    if (peek(p) == '.') {
        p->at++;
        count = 0;
        if (!read_count(p, &count))
            return false;
        how.precision = count < 0 ? 0 : (int)count;
    }
    if (peek(p) == 'h' || peek(p) == 'l' || peek(p) == 'L') /* a C length, ignored as in Python */
        p->at++;
    how.type = peek(p);
    if (how.type == '\0' && p->at >= p->text->n_bytes)
        return jvm_fail(p->vm, "incomplete format");
    p->at++;
    if (how.type == '%')
        return jbuf_slice(&p->b, p->text, p->at - 1, p->at);
    if (how.type == '\0' || !strchr("diuoxXeEfFgGcrsa", how.type))
        return jvm_fail(p->vm, "unsupported format character");
    if (!named && !next_arg(p, &v))
        return false;
    return percent_value(p, v, &how);
}

bool format_percent(struct jvm *vm, struct jval text, struct jval args, struct jval *out)
{
    struct percent p = {.vm = vm, .b = {.vm = vm}, .text = text.u.s, .args = args};
    p.is_mapping =
        args.kind == J_DICT || args.kind == J_LIST || args.kind == J_RANGE || args.kind == J_UNDEF;
    while (p.at < p.text->n_bytes) {
        const size_t b0 = p.at;
        while (p.at < p.text->n_bytes && p.text->ptr[p.at] != '%')
            p.at++;
        if (!jbuf_slice(&p.b, p.text, b0, p.at))
            return false;
        if (p.at == p.text->n_bytes)
            break;
        const size_t start = ++p.at;
        if (!percent_one(&p) || !jvm_steps(vm, 1 + (p.at - start) / 8))
            return false;
    }
    if (!p.is_mapping && p.n_used < (args.kind == J_TUPLE ? args.u.list->n : 1))
        return jvm_fail(vm, "not all arguments converted during string formatting");
    if (!jbuf_done(&p.b, out))
        return false;
    out->u.s->is_markup = text.u.s->is_markup;
    return true;
}
