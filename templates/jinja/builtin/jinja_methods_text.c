/*
 * Methods of str that transform text. Searching ones are in jinja_methods_find.c.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/builtin/text/jinja_format.h"
#include "templates/jinja/builtin/text/jinja_string.h"

#define METHOD(name)                                                                               \
    static bool name(struct jvm *vm, struct jval self, const struct jcall *c, struct jval *out)

/* What a method of markup gives is markup. */
static bool keep_mark(struct jval self, struct jval *out)
{
    out->u.s->is_markup = self.u.s->is_markup;
    return true;
}

#define CASE_METHOD(name, how)                                                                     \
    METHOD(name)                                                                                   \
    {                                                                                              \
        (void)c;                                                                                   \
        return string_case(vm, self.u.s, how, out) && keep_mark(self, out);                        \
    }

CASE_METHOD(str_upper, CASE_UPPER)
CASE_METHOD(str_lower, CASE_LOWER)
CASE_METHOD(str_title, CASE_TITLE)
CASE_METHOD(str_capitalize, CASE_CAPITAL)
CASE_METHOD(str_swapcase, CASE_SWAP)

METHOD(str_strip)
{
    return string_strip(vm, self.u.s, c->arg[0], STRIP_LEFT | STRIP_RIGHT, out);
}

METHOD(str_lstrip)
{
    return string_strip(vm, self.u.s, c->arg[0], STRIP_LEFT, out);
}

METHOD(str_rstrip)
{
    return string_strip(vm, self.u.s, c->arg[0], STRIP_RIGHT, out);
}

METHOD(str_replace)
{
    struct jval from, to;
    int64_t count;
    if (!arg_string(vm, c->arg[0], &from) || !arg_string(vm, c->arg[1], &to) ||
        !arg_int(vm, c->arg[2], -1, &count))
        return false;
    const struct jstr *const pair[2] = {from.u.s, to.u.s};
    return string_replace(vm, self.u.s, pair, count, out) && keep_mark(self, out);
}

METHOD(str_split)
{
    int64_t max;
    return arg_int(vm, c->arg[1], -1, &max) && string_split(vm, self.u.s, c->arg[0], max, out);
}

METHOD(str_rsplit)
{
    int64_t max;
    return arg_int(vm, c->arg[1], -1, &max) && string_rsplit(vm, self.u.s, c->arg[0], max, out);
}

METHOD(str_splitlines)
{
    int64_t keep;
    return arg_int(vm, c->arg[0], 0, &keep) && string_splitlines(vm, self.u.s, keep != 0, out);
}

METHOD(str_join)
{
    return string_join(vm, self.u.s, c->arg[0], false, out);
}

METHOD(str_format)
{
    return format_method(vm, self, c->all, out);
}

static bool pad_method(struct jvm *vm, struct jval self, const struct jcall *c, enum string_pad how,
                       struct jval *out)
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
    return string_pad(vm, self.u.s, how, width, fill, out);
}

METHOD(str_ljust)
{
    return pad_method(vm, self, c, PAD_LEFT, out);
}

METHOD(str_rjust)
{
    return pad_method(vm, self, c, PAD_RIGHT, out);
}

METHOD(str_center)
{
    return pad_method(vm, self, c, PAD_CENTER, out);
}

METHOD(str_zfill)
{
    struct jstr *const s = self.u.s;
    int64_t width;
    struct jbuf b;
    if (!arg_int(vm, c->arg[0], 0, &width))
        return false;
    const size_t n = jstr_chars(s);
    const size_t pad = width > 0 && (uint64_t)width > n ? (size_t)width - n : 0;
    const size_t sign = s->n_bytes > 0 && (s->ptr[0] == '-' || s->ptr[0] == '+');
    jbuf_init(&b, vm);
    return jbuf_part(&b, s, 0, sign) && jbuf_repeat(&b, '0', pad, ORIGIN_TEMPLATE) &&
           jbuf_part(&b, s, sign, s->n_bytes) && jbuf_done(&b, out);
}

METHOD(str_expandtabs)
{
    struct jstr *const s = self.u.s;
    struct jbuf b;
    int64_t size;
    size_t column = 0;
    if (!arg_int(vm, c->arg[0], 8, &size))
        return false;
    jbuf_init(&b, vm);
    for (size_t at = 0; at < s->n_bytes;) {
        uint32_t cp;
        const size_t n = text_next(jstr_text(s), at, &cp);
        const size_t pad = size > 0 ? (size_t)size - column % (size_t)size : 0;
        if (cp == '\t' ? !jbuf_repeat(&b, ' ', pad, jstr_origin(s, at))
                       : !jbuf_part(&b, s, at, at + n))
            return false;
        column = cp == '\n' || cp == '\r' ? 0 : column + (cp == '\t' ? pad : 1);
        at += n;
    }
    return jvm_steps(vm, s->n_bytes / 8) && jbuf_done(&b, out);
}

const struct jbuiltin methods_text[] = {
    {"upper", "!", str_upper},
    {"lower", "!", str_lower},
    {"title", "!", str_title},
    {"capitalize", "!", str_capitalize},
    {"swapcase", "!", str_swapcase},
    {"strip", "!chars?", str_strip},
    {"lstrip", "!chars?", str_lstrip},
    {"rstrip", "!chars?", str_rstrip},
    {"replace", "!old,new,count?", str_replace},
    {"split", "sep?,maxsplit?", str_split},
    {"rsplit", "sep?,maxsplit?", str_rsplit},
    {"splitlines", "keepends?", str_splitlines},
    {"join", "!iterable", str_join},
    {"format", "*", str_format},
    {"ljust", "!width,fillchar?", str_ljust},
    {"rjust", "!width,fillchar?", str_rjust},
    {"center", "!width,fillchar?", str_center},
    {"zfill", "!width", str_zfill},
    {"expandtabs", "tabsize?", str_expandtabs},
    {NULL, NULL, NULL},
};
