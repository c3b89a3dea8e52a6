/*
 * Methods of str that transform text. Methods that search, including those that cut at a match, are
 * in jinja_methods_find.c.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/builtin/text/jinja_format.h"
#include "templates/jinja/builtin/text/jinja_string.h"

/* Make the result markup if the string is. Returns true, so that it can end a chain of &&. */
static bool copy_mark(struct jval from, struct jval *out)
{
    out->u.s->is_markup = from.u.s->is_markup;
    return true;
}

BUILTIN(str_case)
{
    return string_case(vm, v.u.s, (enum string_case)c->variant, out) && copy_mark(v, out);
}

BUILTIN(str_strip)
{
    return string_strip(vm, v.u.s, c->arg[0], c->variant, out);
}

BUILTIN(str_replace)
{
    struct jval from, to;
    int64_t count;
    if (!arg_string(vm, c->arg[0], &from) || !arg_string(vm, c->arg[1], &to) ||
        !arg_int(vm, c->arg[2], -1, &count))
        return false;
    const struct jstr *const pair[2] = {from.u.s, to.u.s};
    return string_replace(vm, v.u.s, pair, count, out) && copy_mark(v, out);
}

BUILTIN(str_split)
{
    int64_t max;
    return arg_int(vm, c->arg[1], -1, &max) && string_split(vm, v.u.s, c->arg[0], max, out);
}

BUILTIN(str_rsplit)
{
    int64_t max;
    return arg_int(vm, c->arg[1], -1, &max) && string_rsplit(vm, v.u.s, c->arg[0], max, out);
}

BUILTIN(str_splitlines)
{
    int64_t keep_ends;
    return arg_int(vm, c->arg[0], 0, &keep_ends) &&
           string_splitlines(vm, v.u.s, keep_ends != 0, out);
}

BUILTIN(str_join)
{
    return string_join(vm, v.u.s, c->arg[0], false, out);
}

BUILTIN(str_format)
{
    return format_method(vm, v, c->all, out);
}

BUILTIN(str_pad)
{
    int64_t width;
    uint32_t fill = ' ';
    if (!arg_int(vm, c->arg[0], 0, &width))
        return false;
    if (arg_given(c->arg[1])) {
        if (c->arg[1].kind != J_STR || jstr_chars(c->arg[1].u.s) != 1)
            return jvm_fail(vm, "the fill character must be exactly one character long");
        (void)text_next(jstr_text(c->arg[1].u.s), 0, &fill);
    }
    return string_pad(vm, v.u.s, (enum string_pad)c->variant, width, fill, out);
}

BUILTIN(str_zfill)
{
    struct jstr *const s = v.u.s;
    int64_t width;
    struct jbuf b = {.vm = vm};
    if (!arg_int(vm, c->arg[0], 0, &width))
        return false;
    const size_t n = jstr_chars(s);
    const size_t pad = width > 0 && (uint64_t)width > n ? (size_t)width - n : 0;
    const size_t sign = s->n_bytes > 0 && (s->ptr[0] == '-' || s->ptr[0] == '+');
    return jbuf_slice(&b, s, 0, sign) && jbuf_repeat(&b, '0', pad, ORIGIN_TEMPLATE) &&
           jbuf_slice(&b, s, sign, s->n_bytes) && jbuf_done(&b, out) && copy_mark(v, out);
}

BUILTIN(str_expandtabs)
{
    struct jstr *const s = v.u.s;
    struct jbuf b = {.vm = vm};
    int64_t tab_width;
    size_t column = 0;
    if (!arg_int(vm, c->arg[0], 8, &tab_width))
        return false;
    for (size_t at = 0; at < s->n_bytes;) {
        uint32_t cp;
        const size_t n = text_next(jstr_text(s), at, &cp);
        const size_t pad = tab_width > 0 ? (size_t)tab_width - column % (size_t)tab_width : 0;
        if (cp == '\t' ? !jbuf_repeat(&b, ' ', pad, jstr_origin(s, at))
                       : !jbuf_slice(&b, s, at, at + n))
            return false;
        column = cp == '\n' || cp == '\r' ? 0 : column + (cp == '\t' ? pad : 1);
        at += n;
    }
    return jvm_steps(vm, s->n_bytes / 8) && jbuf_done(&b, out) && copy_mark(v, out);
}

const struct jbuiltin methods_text[] = {
    {"upper", "!", str_case, CASE_UPPER},
    {"lower", "!", str_case, CASE_LOWER},
    {"title", "!", str_case, CASE_TITLE},
    {"capitalize", "!", str_case, CASE_CAPITAL},
    {"swapcase", "!", str_case, CASE_SWAP},
    {"strip", "!chars?", str_strip, STRIP_LEFT | STRIP_RIGHT},
    {"lstrip", "!chars?", str_strip, STRIP_LEFT},
    {"rstrip", "!chars?", str_strip, STRIP_RIGHT},
    {"replace", "!old,new,count?", str_replace, 0},
    {"split", "sep?,maxsplit?", str_split, 0},
    {"rsplit", "sep?,maxsplit?", str_rsplit, 0},
    {"splitlines", "keepends?", str_splitlines, 0},
    {"join", "!iterable", str_join, 0},
    {"format", "*", str_format, 0},
    {"ljust", "!width,fillchar?", str_pad, PAD_LEFT},
    {"rjust", "!width,fillchar?", str_pad, PAD_RIGHT},
    {"center", "!width,fillchar?", str_pad, PAD_CENTER},
    {"zfill", "!width", str_zfill, 0},
    {"expandtabs", "tabsize?", str_expandtabs, 0},
    {0},
};
