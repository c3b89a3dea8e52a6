/*
 * Methods of str that search or classify: find, count, startswith, partition, isdigit and their
 * kin.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/builtin/text/jinja_string.h"
#include "templates/jinja/value/jinja_compare.h"
#include "templates/jinja/value/jinja_unicode.h"

#define METHOD(name)                                                                               \
    static bool name(struct jvm *vm, struct jval self, const struct jcall *c, struct jval *out)

/* The part of the string that start and end arguments name, in bytes. */
struct span {
    size_t b0, b1;
    bool empty; /* start is beyond the end: not even an empty text is there */
};

static bool span_part(struct jvm *vm, struct jval v, int64_t fallback, int64_t *out)
{
    *out = fallback;
    return v.kind == J_NONE || arg_int(vm, v, fallback, out);
}

static bool span_of(struct jvm *vm, struct jstr *s, const struct jval *arg, struct span *out)
{
    const int64_t n = (int64_t)jstr_chars(s);
    int64_t start, end;
    if (!jvm_steps(vm, 1 + s->n_bytes / 16) || !span_part(vm, arg[0], 0, &start) ||
        !span_part(vm, arg[1], n, &end))
        return false;
    start = start < 0 && (start += n) < 0 ? 0 : start;
    end = end < 0 ? ((end += n) < 0 ? 0 : end) : end > n ? n : end;
    out->empty = start > end || start > n;
    out->b0 = jstr_offset(s, out->empty ? 0 : (size_t)start);
    out->b1 = jstr_offset(s, out->empty ? 0 : (size_t)end);
    return true;
}

static bool find_in(struct jvm *vm, struct jval self, const struct jcall *c, bool from_right,
                    struct jval *out)
{
    struct jval needle;
    struct span span;
    if (!arg_string(vm, c->arg[0], &needle) || !span_of(vm, self.u.s, c->arg + 1, &span))
        return false;
    const struct bn_str hay = jstr_text(self.u.s), text = jstr_text(needle.u.s);
    if (from_right && !jvm_steps(vm, hay.n_bytes * (text.n_bytes / 16) / 16))
        return false;
    const size_t at = span.empty   ? SIZE_MAX
                      : from_right ? text_rfind(hay, text, span.b0, span.b1)
                                   : text_find(hay, text, span.b0, span.b1);
    *out = jint(at == SIZE_MAX ? -1 : (int64_t)text_count((struct bn_str){hay.ptr, at}));
    return true;
}

METHOD(str_find)
{
    return find_in(vm, self, c, false, out);
}

METHOD(str_rfind)
{
    return find_in(vm, self, c, true, out);
}

static bool index_in(struct jvm *vm, struct jval self, const struct jcall *c, bool from_right,
                     struct jval *out)
{
    return find_in(vm, self, c, from_right, out) &&
           (out->u.i >= 0 || jvm_fail(vm, "substring not found"));
}

METHOD(str_index)
{
    return index_in(vm, self, c, false, out);
}

METHOD(str_rindex)
{
    return index_in(vm, self, c, true, out);
}

METHOD(str_count)
{
    struct jval needle;
    struct span span;
    int64_t n = 0;
    if (!arg_string(vm, c->arg[0], &needle) || !span_of(vm, self.u.s, c->arg + 1, &span))
        return false;
    const struct bn_str hay = jstr_text(self.u.s), text = jstr_text(needle.u.s);
    if (span.empty) {
        *out = jint(0);
        return true;
    }
    if (text.n_bytes == 0) {
        *out = jint((int64_t)text_count((struct bn_str){hay.ptr + span.b0, span.b1 - span.b0}) + 1);
        return true;
    }
    for (size_t at = span.b0; (at = text_find(hay, text, at, span.b1)) != SIZE_MAX;
         at += text.n_bytes)
        n++;
    *out = jint(n);
    return true;
}

static bool ends_with(struct jvm *vm, struct jstr *s, struct span span, struct jval affix,
                      bool at_end)
{
    const struct jstr *const a = affix.u.s;
    (void)vm; /* for symmetry with the caller */
    if (span.empty || a->n_bytes > span.b1 - span.b0)
        return false;
    const size_t at = at_end ? span.b1 - a->n_bytes : span.b0;
    return memcmp(s->ptr + at, a->ptr, a->n_bytes) == 0;
}

/* startswith and endswith: a string or a tuple of them. */
static bool affix_test(struct jvm *vm, struct jval self, const struct jcall *c, bool at_end,
                       struct jval *out)
{
    const struct jval affix = c->arg[0];
    struct span span;
    bool result = false;
    if (!span_of(vm, self.u.s, c->arg + 1, &span))
        return false;
    const struct jval one[1] = {affix};
    const struct jval *const all = affix.kind == J_TUPLE ? affix.u.list->items : one;
    const size_t n = affix.kind == J_TUPLE ? affix.u.list->n : 1;
    for (size_t i = 0; i < n && !result; i++) {
        if (all[i].kind != J_STR)
            return jvm_fail(vm, "the argument must be str or a tuple of str, not %s",
                            jkind_name(all[i]));
        result = ends_with(vm, self.u.s, span, all[i], at_end);
    }
    *out = jbool(result);
    return true;
}

METHOD(str_startswith)
{
    return affix_test(vm, self, c, false, out);
}

METHOD(str_endswith)
{
    return affix_test(vm, self, c, true, out);
}

static bool remove_affix(struct jvm *vm, struct jval self, const struct jcall *c, bool at_end,
                         struct jval *out)
{
    struct jstr *const s = self.u.s;
    const struct span span = {.b0 = 0, .b1 = s->n_bytes};
    struct jval affix;
    if (!arg_string(vm, c->arg[0], &affix))
        return false;
    const size_t n = ends_with(vm, s, span, affix, at_end) ? affix.u.s->n_bytes : 0;
    return jstr_part(vm, s, at_end ? 0 : n, at_end ? s->n_bytes - n : s->n_bytes, out);
}

METHOD(str_removeprefix)
{
    return remove_affix(vm, self, c, false, out);
}

METHOD(str_removesuffix)
{
    return remove_affix(vm, self, c, true, out);
}

static bool partition(struct jvm *vm, struct jval self, const struct jcall *c, bool from_right,
                      struct jval *out)
{
    struct jstr *const s = self.u.s;
    struct jval sep, part[3];
    if (!arg_string(vm, c->arg[0], &sep))
        return false;
    const struct bn_str text = jstr_text(sep.u.s);
    if (text.n_bytes == 0)
        return jvm_fail(vm, "empty separator");
    if (!jvm_steps(vm, 1 + s->n_bytes / 16 * (1 + (from_right ? text.n_bytes / 16 : 0))))
        return false;
    const size_t at = from_right ? text_rfind(jstr_text(s), text, 0, s->n_bytes)
                                 : text_find(jstr_text(s), text, 0, s->n_bytes);
    const size_t whole = from_right ? 0 : s->n_bytes; /* where the cut is if there is none */
    const size_t b0 = at == SIZE_MAX ? whole : at;
    const size_t b1 = at == SIZE_MAX ? whole : at + text.n_bytes;
    if (!jstr_part(vm, s, 0, b0, &part[0]) || !jstr_part(vm, s, b0, b1, &part[1]) ||
        !jstr_part(vm, s, b1, s->n_bytes, &part[2]) || !jlist_new(vm, J_TUPLE, 3, out))
        return false;
    for (size_t i = 0; i < 3; i++)
        if (!jlist_push(vm, *out, part[i]))
            return false;
    return true;
}

METHOD(str_partition)
{
    return partition(vm, self, c, false, out);
}

METHOD(str_rpartition)
{
    return partition(vm, self, c, true, out);
}

/* ---- classes ---- */

/* Every character has one of the classes, and there is one. */
static bool all_of(struct jvm *vm, const struct jstr *s, unsigned kinds, struct jval *out)
{
    bool all = s->n_bytes > 0;
    for (size_t at = 0; at < s->n_bytes && all;) {
        uint32_t cp;
        at += text_next(jstr_text(s), at, &cp);
        all = uni_is(cp, kinds);
    }
    *out = jbool(all);
    return jvm_steps(vm, s->n_bytes / 8);
}

#define CLASS_METHOD(name, kinds)                                                                  \
    METHOD(name)                                                                                   \
    {                                                                                              \
        (void)c;                                                                                   \
        return all_of(vm, self.u.s, kinds, out);                                                   \
    }

CLASS_METHOD(str_isalpha, UNI_ALPHA)
CLASS_METHOD(str_isdecimal, UNI_DECIMAL)
CLASS_METHOD(str_isdigit, UNI_DIGIT)
CLASS_METHOD(str_isnumeric, UNI_NUMERIC)
CLASS_METHOD(str_isalnum, UNI_ALPHA | UNI_DECIMAL | UNI_DIGIT | UNI_NUMERIC)

METHOD(str_isprintable)
{
    (void)c; /* no arguments */
    if (!all_of(vm, self.u.s, UNI_PRINTABLE, out))
        return false;
    *out = jbool(out->u.b || self.u.s->n_bytes == 0);
    return true;
}

METHOD(str_isspace)
{
    const struct bn_str s = jstr_text(self.u.s);
    (void)c; /* no arguments */
    *out = jbool(s.n_bytes > 0 && text_skip_space(s, 0) == s.n_bytes);
    return jvm_steps(vm, s.n_bytes / 8);
}

METHOD(str_isascii)
{
    bool all = true;
    (void)c; /* no arguments */
    for (size_t at = 0; at < self.u.s->n_bytes && all; at++)
        all = (unsigned char)self.u.s->ptr[at] < 0x80;
    *out = jbool(all);
    return jvm_steps(vm, self.u.s->n_bytes / 16);
}

METHOD(str_islower)
{
    const struct jargs none = {0};
    (void)c; /* no arguments */
    return builtin_call(vm, builtin_test(bn_str_of("lower")), self, &none, out);
}

METHOD(str_isupper)
{
    const struct jargs none = {0};
    (void)c; /* no arguments */
    return builtin_call(vm, builtin_test(bn_str_of("upper")), self, &none, out);
}

/* Capitals only after what has no case, small letters only after letters. */
METHOD(str_istitle)
{
    const struct jstr *const s = self.u.s;
    bool inside = false, some = false, good = true;
    (void)c; /* no arguments */
    for (size_t at = 0; at < s->n_bytes && good;) {
        uint32_t cp;
        at += text_next(jstr_text(s), at, &cp);
        if (uni_is(cp, UNI_UPPER | UNI_TITLE))
            good = !inside;
        else if (uni_is(cp, UNI_LOWER))
            good = inside;
        inside = uni_is(cp, UNI_CASED);
        some = some || inside;
    }
    *out = jbool(good && some);
    return jvm_steps(vm, s->n_bytes / 8);
}

const struct jbuiltin methods_find[] = {
    {"startswith", "!prefix,start?,end?", str_startswith},
    {"endswith", "!suffix,start?,end?", str_endswith},
    {"find", "!sub,start?,end?", str_find},
    {"rfind", "!sub,start?,end?", str_rfind},
    {"index", "!sub,start?,end?", str_index},
    {"rindex", "!sub,start?,end?", str_rindex},
    {"count", "!sub,start?,end?", str_count},
    {"removeprefix", "!prefix", str_removeprefix},
    {"removesuffix", "!suffix", str_removesuffix},
    {"partition", "!sep", str_partition},
    {"rpartition", "!sep", str_rpartition},
    {"isalpha", "!", str_isalpha},
    {"isdecimal", "!", str_isdecimal},
    {"isdigit", "!", str_isdigit},
    {"isnumeric", "!", str_isnumeric},
    {"isalnum", "!", str_isalnum},
    {"isprintable", "!", str_isprintable},
    {"isspace", "!", str_isspace},
    {"isascii", "!", str_isascii},
    {"islower", "!", str_islower},
    {"isupper", "!", str_isupper},
    {"istitle", "!", str_istitle},
    {NULL, NULL, NULL},
};
