/*
 * Methods of str that search, cut the string at a match, or classify its characters.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/builtin/text/jinja_string.h"
#include "templates/jinja/value/jinja_unicode.h"

enum { FROM_RIGHT = 1, MUST_FIND = 2 }; /* variants of str_find; FROM_RIGHT also of str_partition */

/* The slice that the arguments start and end select, in bytes. */
struct span {
    size_t b0, b1;
    bool is_invalid; /* start is after end: not even the empty string is found */
};

static bool span_bound(struct jvm *vm, struct jval v, int64_t fallback, int64_t *out)
{
    *out = fallback;
    return v.kind == J_NONE || arg_int(vm, v, fallback, out);
}

/* arg: the arguments start and end. As in Python, a negative one counts from the end. */
static bool span_of(struct jvm *vm, struct jstr *s, const struct jval *arg, struct span *out)
{
    const int64_t n = (int64_t)jstr_chars(s);
    int64_t start, end;
    if (!jvm_steps(vm, 1 + s->n_bytes / 16) || !span_bound(vm, arg[0], 0, &start) ||
        !span_bound(vm, arg[1], n, &end))
        return false;
    start = start < 0 && (start += n) < 0 ? 0 : start;
    end = end < 0 ? ((end += n) < 0 ? 0 : end) : end > n ? n : end;
    out->is_invalid = start > end || start > n;
    out->b0 = jstr_offset(s, out->is_invalid ? 0 : (size_t)start);
    out->b1 = jstr_offset(s, out->is_invalid ? 0 : (size_t)end);
    return true;
}

/* Offset of the needle in the span, or SIZE_MAX. */
static size_t search(struct bn_str hay, struct bn_str needle, struct span span, int variant)
{
    if (span.is_invalid)
        return SIZE_MAX;
    return variant & FROM_RIGHT ? text_rfind(hay, needle, span.b0, span.b1)
                                : text_find(hay, needle, span.b0, span.b1);
}

BUILTIN(str_find)
{
    struct jval needle;
    struct span span;
    if (!arg_string(vm, c->arg[0], &needle) || !span_of(vm, v.u.s, c->arg + 1, &span))
        return false;
    const struct bn_str hay = jstr_text(v.u.s), text = jstr_text(needle.u.s);
    /* text_rfind compares the needle at each offset; span_of has counted the bytes of hay. */
    if ((c->variant & FROM_RIGHT) && !jvm_steps(vm, hay.n_bytes * (text.n_bytes / 16) / 16))
        return false;
    const size_t at = search(hay, text, span, c->variant);
    if (at == SIZE_MAX && (c->variant & MUST_FIND))
        return jvm_fail(vm, "substring not found");
    *out = jint(at == SIZE_MAX ? -1 : (int64_t)text_count((struct bn_str){hay.ptr, at}));
    return true;
}

BUILTIN(str_count)
{
    struct jval needle;
    struct span span;
    int64_t n = 0;
    if (!arg_string(vm, c->arg[0], &needle) || !span_of(vm, v.u.s, c->arg + 1, &span))
        return false;
    const struct bn_str hay = jstr_text(v.u.s), text = jstr_text(needle.u.s);
    if (!span.is_invalid && text.n_bytes == 0)
        n = (int64_t)text_count((struct bn_str){hay.ptr + span.b0, span.b1 - span.b0}) + 1;
    else if (!span.is_invalid)
        for (size_t at = span.b0; (at = text_find(hay, text, at, span.b1)) != SIZE_MAX;
             at += text.n_bytes)
            n++;
    *out = jint(n);
    return true;
}

/* Whether the span starts or ends (at_end) with the affix. */
static bool has_affix(const struct jstr *s, struct span span, const struct jstr *affix, bool at_end)
{
    if (span.is_invalid || affix->n_bytes > span.b1 - span.b0)
        return false;
    const size_t at = at_end ? span.b1 - affix->n_bytes : span.b0;
    return memcmp(s->ptr + at, affix->ptr, affix->n_bytes) == 0;
}

/* The affix is a string or a tuple of strings. The variant is at_end, as in str_remove_affix. */
BUILTIN(str_has_affix)
{
    const struct jval affix = c->arg[0];
    struct span span;
    bool result = false;
    if (!span_of(vm, v.u.s, c->arg + 1, &span))
        return false;
    const struct jval *const all = affix.kind == J_TUPLE ? affix.u.list->items : &affix;
    const size_t n = affix.kind == J_TUPLE ? affix.u.list->n : 1;
    for (size_t i = 0; i < n && !result; i++) {
        if (all[i].kind != J_STR)
            return jvm_fail(vm, "the argument must be str or a tuple of str, not %s",
                            jkind_name(all[i]));
        if (!jvm_steps(vm, 1 + all[i].u.s->n_bytes / 64))
            return false;
        result = has_affix(v.u.s, span, all[i].u.s, c->variant);
    }
    *out = jbool(result);
    return true;
}

BUILTIN(str_remove_affix)
{
    const struct jstr *const s = v.u.s;
    const struct span whole = {.b0 = 0, .b1 = s->n_bytes};
    struct jval affix;
    if (!arg_string(vm, c->arg[0], &affix) || !jvm_steps(vm, affix.u.s->n_bytes / 64))
        return false;
    const size_t n = has_affix(s, whole, affix.u.s, c->variant) ? affix.u.s->n_bytes : 0;
    return jstr_slice(vm, s, c->variant ? 0 : n, c->variant ? s->n_bytes - n : s->n_bytes, out);
}

BUILTIN(str_partition)
{
    const struct jstr *const s = v.u.s;
    const bool from_right = c->variant == FROM_RIGHT;
    struct jval sep, part[3];
    if (!arg_string(vm, c->arg[0], &sep))
        return false;
    const struct bn_str text = jstr_text(sep.u.s);
    if (text.n_bytes == 0)
        return jvm_fail(vm, "empty separator");
    /* text_rfind: see str_find */
    if (!jvm_steps(vm, 1 + s->n_bytes / 16 * (1 + (from_right ? text.n_bytes / 16 : 0))))
        return false;
    const size_t at = search(jstr_text(s), text, (struct span){.b1 = s->n_bytes}, c->variant);
    const size_t uncut = from_right ? 0 : s->n_bytes; /* b0 and b1 if the separator is not found */
    const size_t b0 = at == SIZE_MAX ? uncut : at;
    const size_t b1 = at == SIZE_MAX ? uncut : at + text.n_bytes;
    if (!jstr_slice(vm, s, 0, b0, &part[0]) || !jstr_slice(vm, s, b0, b1, &part[1]) ||
        !jstr_slice(vm, s, b1, s->n_bytes, &part[2]))
        return false;
    return jlist_of(vm, J_TUPLE, part, 3, out);
}

/* ---- classes ---- */

/* Whether each character is in one of the classes in the variant. For "" only isprintable is true
 * among the methods that use this function. */
BUILTIN(str_all_in_class)
{
    const struct bn_str s = jstr_text(v.u.s);
    bool all = s.n_bytes > 0 || c->variant == UNI_PRINTABLE;
    for (size_t at = 0; at < s.n_bytes && all;) {
        uint32_t cp;
        at += text_next(s, at, &cp);
        all = uni_is(cp, (unsigned)c->variant);
    }
    *out = jbool(all);
    return jvm_steps(vm, s.n_bytes / 8);
}

BUILTIN(str_isspace)
{
    const struct bn_str s = jstr_text(v.u.s);
    *out = jbool(s.n_bytes > 0 && text_skip_space(s, 0) == s.n_bytes);
    return jvm_steps(vm, s.n_bytes / 8);
}

BUILTIN(str_isascii)
{
    *out = jbool(jstr_chars(v.u.s) == v.u.s->n_bytes);
    return jvm_steps(vm, v.u.s->n_bytes / 16);
}

BUILTIN(str_is_one_case)
{
    return string_is_one_case(vm, v.u.s, (unsigned)c->variant, out);
}

/* Whether capitals are only at the beginning and after characters without case, and small letters
 * only after cased ones; at least one character must have a case. */
BUILTIN(str_istitle)
{
    const struct bn_str s = jstr_text(v.u.s);
    bool inside = false, some = false, good = true;
    for (size_t at = 0; at < s.n_bytes && good;) {
        uint32_t cp;
        at += text_next(s, at, &cp);
        if (uni_is(cp, UNI_UPPER | UNI_TITLE))
            good = !inside;
        else if (uni_is(cp, UNI_LOWER))
            good = inside;
        inside = uni_is(cp, UNI_CASED);
        some = some || inside;
    }
    *out = jbool(good && some);
    return jvm_steps(vm, s.n_bytes / 8);
}

const struct jbuiltin methods_find[] = {
    {"startswith", "!prefix,start?,end?", str_has_affix, false},
    {"endswith", "!suffix,start?,end?", str_has_affix, true},
    {"find", "!sub,start?,end?", str_find, 0},
    {"rfind", "!sub,start?,end?", str_find, FROM_RIGHT},
    {"index", "!sub,start?,end?", str_find, MUST_FIND},
    {"rindex", "!sub,start?,end?", str_find, FROM_RIGHT | MUST_FIND},
    {"count", "!sub,start?,end?", str_count, 0},
    {"removeprefix", "!prefix", str_remove_affix, false},
    {"removesuffix", "!suffix", str_remove_affix, true},
    {"partition", "!sep", str_partition, 0},
    {"rpartition", "!sep", str_partition, FROM_RIGHT},
    {"isalpha", "!", str_all_in_class, UNI_ALPHA},
    {"isdecimal", "!", str_all_in_class, UNI_DECIMAL},
    {"isdigit", "!", str_all_in_class, UNI_DIGIT},
    {"isnumeric", "!", str_all_in_class, UNI_NUMERIC},
    {"isalnum", "!", str_all_in_class, UNI_ALPHA | UNI_DECIMAL | UNI_DIGIT | UNI_NUMERIC},
    {"isprintable", "!", str_all_in_class, UNI_PRINTABLE},
    {"isspace", "!", str_isspace, 0},
    {"isascii", "!", str_isascii, 0},
    {"islower", "!", str_is_one_case, UNI_LOWER},
    {"isupper", "!", str_is_one_case, UNI_UPPER},
    {"istitle", "!", str_istitle, 0},
    {0},
};
