/*
 * str.format(): fields with a number or name, attributes and items, conversions, and format specs,
 * which may contain fields.
 */
#include "templates/jinja/builtin/text/jinja_format.h"
#include "templates/jinja/builtin/text/jinja_markup.h"
#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_number.h"
#include "templates/jinja/value/jinja_print.h"

#define FORMAT_DEPTH 2 /* as in Python: specs may contain fields, the specs of those may not */

struct formatter {
    struct jvm *vm;
    const struct jargs *args;
    size_t n_auto;  /* fields without a number or name so far */
    bool by_number; /* a field had a number */
    bool is_markup; /* the format is markup, so values that are not markup are escaped */
};

/* Append `text` with its fields replaced. depth: number of levels that may contain fields, counted
 * from `text`, which is the first; with 0 `text` may contain none. */
static bool format_into(struct formatter *f, struct jbuf *b, struct jstr *text, int depth);

/* ---- format specs ---- */

/* Returns the number of digits. A number above LAYOUT_MAX_WIDTH is not read exactly. */
static size_t read_width(const char *p, size_t n, size_t *width)
{
    size_t at = 0;
    for (*width = 0; at < n && p[at] >= '0' && p[at] <= '9'; at++)
        if (*width <= LAYOUT_MAX_WIDTH)
            *width = *width * 10 + (size_t)(p[at] - '0');
    return at;
}

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '=' || c == '^';
}

/* [[fill]align][sign][#][0][width][group][.precision][type] */
static bool read_layout(struct jvm *vm, const struct jstr *spec, struct layout *how)
{
    const char *const p = spec->ptr;
    const size_t n = spec->n_bytes;
    size_t at = 0;
    uint32_t first;
    *how = (struct layout){.precision = -1};
    const size_t n_first = n ? text_next(jstr_text(spec), 0, &first) : 0;
    if (n_first && n_first < n && is_align(p[n_first])) {
        how->fill = first;
        how->align = p[n_first];
        at = n_first + 1;
    } else if (n && is_align(p[0])) {
        how->align = p[at++];
    }
    if (at < n && (p[at] == '+' || p[at] == '-' || p[at] == ' '))
        how->sign = p[at++];
    if (at < n && p[at] == '#') {
        how->alternate = true;
        at++;
    }
    if (at < n && p[at] == '0') {
        how->fill = how->fill ? how->fill : '0'; /* for the alignment see format_number */
        at++;
    }
    at += read_width(p + at, n - at, &how->width);
    if (at < n && (p[at] == ',' || p[at] == '_'))
        how->group = p[at++];
    if (at < n && p[at] == '.') {
        size_t precision;
        const size_t digits = read_width(p + at + 1, n - at - 1, &precision);
        if (digits == 0)
            return jvm_fail(vm, "Format specifier missing precision");
        /* The bound fits an int. layout_float rejects it. layout_text cuts text at the bound, even
         * if the given precision is larger. */
        how->precision = precision > LAYOUT_MAX_WIDTH ? (int)LAYOUT_MAX_WIDTH : (int)precision;
        at += 1 + digits;
    }
    if (at < n)
        how->type = p[at++];
    if (at < n || how->width > LAYOUT_MAX_WIDTH)
        return jvm_fail(vm, "Invalid format specifier '%.*s'", bn_str_shown(jstr_text(spec), 60),
                        p);
    return true;
}

static bool bad_type(struct jvm *vm, char type, struct jval v)
{
    return jvm_fail(vm, "Unknown format code '%c' for object of type '%s'", type, jkind_name(v));
}

/* An integer with the type c: the character with this code point. */
static bool format_char(struct jbuf *b, int64_t cp, struct layout *how)
{
    struct jbuf one = {.vm = b->vm};
    struct jval text;
    if (how->precision >= 0)
        return jvm_fail(b->vm, "Precision not allowed in integer format specifier");
    if (how->group)
        return jvm_fail(b->vm, "Cannot specify '%c' with 'c'.", how->group);
    if (how->sign || how->alternate)
        return jvm_fail(b->vm, "%s not allowed with integer format specifier 'c'",
                        how->sign ? "Sign" : "Alternate form (#)");
    if (cp < 0 || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        return jvm_fail(b->vm, "%%c arg not in range(0x110000)");
    /* '=' puts the fill after the sign: without a sign, that is the same as '>'. */
    how->align = how->align && how->align != '=' ? how->align : '>';
    return jbuf_cp(&one, (uint32_t)cp, ORIGIN_TEMPLATE) && jbuf_done(&one, &text) &&
           layout_text(b, text.u.s, how);
}

static bool format_number(struct jbuf *b, struct jval v, struct layout *how)
{
    const bool is_int = v.kind != J_FLOAT;
    if (how->fill == '0' && !how->align) /* the flag 0: zeros after the sign */
        how->align = '=';
    if (is_int && how->type == 'c')
        return format_char(b, jval_int(v), how);
    if (is_int && (!how->type || strchr("bdnoxX", how->type))) {
        if (how->precision >= 0)
            return jvm_fail(b->vm, "Precision not allowed in integer format specifier");
        if (how->group == ',' && how->type && strchr("bnoxX", how->type))
            return jvm_fail(b->vm, "Cannot specify ',' with '%c'.", how->type);
        return layout_int(b, jval_int(v), how);
    }
    if (how->type && !strchr("eEfFgGn%", how->type))
        return bad_type(b->vm, how->type, v);
    return layout_float(b, jval_double(v), how);
}

static bool format_value(struct jbuf *b, struct jval v, const struct jstr *spec)
{
    struct layout how;
    struct jval text;
    if (spec->n_bytes == 0)
        return print_str(b, v);
    if (v.kind != J_STR && !jval_is_number(v))
        return jvm_fail(b->vm, "unsupported format string passed to %s.__format__", jkind_name(v));
    if (!read_layout(b->vm, spec, &how))
        return false;
    if (jval_is_number(v))
        return format_number(b, v, &how);
    if ((how.type && how.type != 's') || how.sign || how.alternate || how.group || how.align == '=')
        return bad_type(b->vm, how.type ? how.type : '=', v);
    return jval_to_str(b->vm, v, &text) && layout_text(b, text.u.s, &how);
}

/* ---- fields ---- */

static bool all_digits(struct bn_str s)
{
    for (size_t i = 0; i < s.n_bytes; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return s.n_bytes > 0;
}

/* The argument that a field begins with. `name` is empty, a number or the name of a keyword. */
static bool first_value(struct formatter *f, struct bn_str name, struct jval *out)
{
    int64_t index = 0;
    if (name.n_bytes == 0) {
        if (f->by_number)
            return jvm_fail(
                f->vm,
                "cannot switch from manual field specification to automatic field numbering");
        index = (int64_t)f->n_auto++;
    } else if (all_digits(name)) {
        if (f->n_auto)
            return jvm_fail(
                f->vm,
                "cannot switch from automatic field numbering to manual field specification");
        f->by_number = true;
        if (number_parse_int(name, 10, &index) != NUMBER_OK)
            return jvm_fail(f->vm, "Too many decimal digits in format string");
    } else {
        const struct jkeyword *const kw = jargs_find(f->args, name);
        if (kw) {
            *out = kw->v;
            return true;
        }
        return jvm_fail(f->vm, "format() has no argument '%.*s'", bn_str_shown(name, 60), name.ptr);
    }
    if ((uint64_t)index >= f->args->n_pos)
        return jvm_fail(f->vm, "Replacement index %lld out of range for positional args tuple",
                        (long long)index);
    *out = f->args->pos[index];
    return true;
}

/* The value of a field such as "name.attr[item]". `field` points into the bytes of `text`, from
 * which the names get their origin. */
static bool field_value(struct formatter *f, struct jstr *text, struct bn_str field,
                        struct jval *out)
{
    size_t at = 0;
    while (at < field.n_bytes && field.ptr[at] != '.' && field.ptr[at] != '[')
        at++;
    if (!first_value(f, (struct bn_str){field.ptr, at}, out))
        return false;
    while (at < field.n_bytes) {
        const bool is_attr = field.ptr[at] == '.';
        const size_t b0 = ++at;
        struct jval key;
        int64_t index;
        while (at < field.n_bytes &&
               (is_attr ? field.ptr[at] != '.' && field.ptr[at] != '[' : field.ptr[at] != ']'))
            at++;
        const struct bn_str name = {field.ptr + b0, at - b0};
        if (name.n_bytes == 0)
            return jvm_fail(f->vm, "Empty attribute in format string");
        if (!is_attr && at++ == field.n_bytes) /* at++ skips the ']' */
            return jvm_fail(f->vm, "Missing ']' in format string");
        if (!is_attr && at < field.n_bytes && field.ptr[at] != '.' && field.ptr[at] != '[')
            return jvm_fail(f->vm, "Only '.' or '[' may follow ']' in format field specifier");
        if (!jstr_slice(f->vm, text, (size_t)(name.ptr - text->ptr),
                        (size_t)(name.ptr - text->ptr) + name.n_bytes, &key))
            return false;
        if (!is_attr && all_digits(name)) {
            if (number_parse_int(name, 10, &index) != NUMBER_OK)
                return jvm_fail(f->vm, "Too many decimal digits in format string");
            key = jint(index);
        }
        if (is_attr ? !f->vm->ops->get_attr(f->vm, *out, key, out)
                    : !f->vm->ops->get_item(f->vm, *out, key, out))
            return false;
    }
    return true;
}

/* Offset of the brace that closes the field whose first byte, after '{', is at `at`; n_bytes if
 * there is no such brace. */
static size_t field_end(const struct jstr *s, size_t at)
{
    bool in_item = false;
    size_t depth = 1;
    for (; at < s->n_bytes; at++) {
        const char c = s->ptr[at];
        if (c == '[' && depth == 1)
            in_item = true;
        else if (c == ']')
            in_item = false;
        else if (c == '{' && !in_item)
            depth++;
        else if (c == '}' && !in_item && --depth == 0)
            break;
    }
    return at;
}

/* One field, "name!conversion:spec", in the bytes [bound[0], bound[1]), without its braces. */
static bool format_field(struct formatter *f, struct jbuf *b, struct jstr *text,
                         const size_t bound[2], int depth)
{
    size_t at = bound[0];
    bool in_item = false;
    struct jval v, spec;
    char conversion = '\0';
    for (; at < bound[1]; at++) {
        const char c = text->ptr[at];
        if (c == '[')
            in_item = true;
        else if (c == ']')
            in_item = false;
        else if (!in_item && (c == '!' || c == ':'))
            break;
        else if (c == '{')
            return jvm_fail(f->vm, "unexpected '{' in field name");
    }
    const struct bn_str field = {text->ptr + bound[0], at - bound[0]};
    if (at < bound[1] && text->ptr[at] == '!') {
        conversion = at + 1 < bound[1] ? text->ptr[at + 1] : '\0';
        at += 2;
        if (!conversion || !strchr("rsa", conversion) || (at < bound[1] && text->ptr[at] != ':'))
            return jvm_fail(f->vm, "bad conversion in a format field");
    }
    at = at < bound[1] ? at + 1 : bound[1];
    struct jbuf converted = {.vm = f->vm}, formatted = {.vm = f->vm}, spec_buf = {.vm = f->vm};
    if (!field_value(f, text, field, &v) || !jstr_slice(f->vm, text, at, bound[1], &spec))
        return false;
    if (!format_into(f, &spec_buf, spec.u.s, depth - 1) || !jbuf_done(&spec_buf, &spec))
        return false;
    if (conversion && (!(conversion == 's'   ? print_str(&converted, v)
                         : conversion == 'a' ? print_ascii(&converted, v)
                                             : print_repr(&converted, v)) ||
                       !jbuf_done(&converted, &v)))
        return false;
    if (!f->is_markup || (v.kind == J_STR && v.u.s->is_markup))
        return format_value(b, v, spec.u.s);
    return format_value(&formatted, v, spec.u.s) && jbuf_done(&formatted, &v) &&
           markup_escape(f->vm, v, &v) && jbuf_str(b, v.u.s);
}

static bool format_into(struct formatter *f, struct jbuf *b, struct jstr *text, int depth)
{
    if (depth < 0)
        return jvm_fail(f->vm, "Max string recursion exceeded");
    for (size_t at = 0; at < text->n_bytes;) {
        const size_t b0 = at;
        while (at < text->n_bytes && text->ptr[at] != '{' && text->ptr[at] != '}')
            at++;
        if (!jbuf_slice(b, text, b0, at))
            return false;
        if (at == text->n_bytes)
            break;
        const bool twice = at + 1 < text->n_bytes && text->ptr[at + 1] == text->ptr[at];
        if (twice) {
            if (!jbuf_slice(b, text, at, at + 1))
                return false;
            at += 2;
            continue;
        }
        if (text->ptr[at] == '}')
            return jvm_fail(f->vm, "Single '}' encountered in format string");
        const size_t bound[2] = {at + 1, field_end(text, at + 1)};
        if (bound[1] == text->n_bytes)
            return jvm_fail(f->vm, "Single '{' encountered in format string");
        if (!jvm_steps(f->vm, 1 + (bound[1] - bound[0]) / 4) ||
            !format_field(f, b, text, bound, depth))
            return false;
        at = bound[1] + 1;
    }
    return true;
}

bool format_method(struct jvm *vm, struct jval text, const struct jargs *args, struct jval *out)
{
    struct formatter f = {.vm = vm, .args = args, .is_markup = text.u.s->is_markup};
    struct jbuf b = {.vm = vm};
    if (!format_into(&f, &b, text.u.s, FORMAT_DEPTH) || !jbuf_done(&b, out))
        return false;
    out->u.s->is_markup = text.u.s->is_markup;
    return true;
}
