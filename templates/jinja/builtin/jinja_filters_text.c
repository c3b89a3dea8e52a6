/*
 * Filters for text. BUILTIN (jinja_builtin.h) begins the definition of a filter: v is the filtered
 * value, c->arg has the arguments (c->all those of `format`), and *out receives the result.
 */
#include "templates/jinja/builtin/jinja_builtin.h"
#include "templates/jinja/builtin/text/jinja_format.h"
#include "templates/jinja/builtin/text/jinja_markup.h"
#include "templates/jinja/builtin/text/jinja_string.h"
#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_print.h"
#include "templates/jinja/value/jinja_unicode.h"

/* upper, lower, capitalize. The result for markup (text that is safe HTML, see jinja_markup.h) is
 * markup. */
BUILTIN(do_case)
{
    struct jval text;
    if (!jval_to_str(vm, v, &text) || !string_case(vm, text.u.s, (enum string_case)c->variant, out))
        return false;
    out->u.s->is_markup = text.u.s->is_markup;
    return true;
}

static bool separates_words(uint32_t cp)
{
    return cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<' || uni_is_space(cp);
}

/* Words begin after white space, '-' and opening brackets, so "it's" becomes "It's". */
BUILTIN(do_title)
{
    struct jval text;
    struct jbuf b = {.vm = vm};
    if (!jval_to_str(vm, v, &text))
        return false;
    struct jstr *const s = text.u.s;
    for (size_t at = 0; at < s->n_bytes;) {
        uint32_t cp;
        size_t end = at;
        size_t n = text_next(jstr_text(s), at, &cp);
        const bool is_break = separates_words(cp);
        do {
            end += n;
            if (end < s->n_bytes)
                n = text_next(jstr_text(s), end, &cp);
        } while (end < s->n_bytes && separates_words(cp) == is_break);
        const size_t first = at + text_next(jstr_text(s), at, &cp);
        /* As in jinja2, the rest is converted as a string of its own. So the first letter of the
         * word does not count when a sigma is tested for the end of a word. */
        struct jval rest;
        if (!string_case_into(&b, s, at, first, CASE_UPPER) ||
            !jstr_slice(vm, s, first, end, &rest) ||
            !string_case_into(&b, rest.u.s, 0, rest.u.s->n_bytes, CASE_LOWER))
            return false;
        at = end;
    }
    return jbuf_done(&b, out);
}

BUILTIN(do_trim)
{
    struct jval text;
    return jval_to_str(vm, v, &text) &&
           string_strip(vm, text.u.s, c->arg[0], STRIP_LEFT | STRIP_RIGHT, out);
}

BUILTIN(do_replace)
{
    struct jval text, from, to;
    int64_t count = -1;
    if (!jval_to_str(vm, v, &text) || !jval_to_str(vm, c->arg[0], &from) ||
        !jval_to_str(vm, c->arg[1], &to))
        return false;
    if (c->arg[2].kind != J_NONE && !arg_int(vm, c->arg[2], -1, &count))
        return false;
    const struct jstr *const pair[2] = {from.u.s, to.u.s};
    return string_replace(vm, text.u.s, pair, count, out);
}

BUILTIN(do_string)
{
    return jval_to_str(vm, v, out);
}

BUILTIN(do_safe)
{
    struct jval text;
    return jval_to_str(vm, v, &text) && markup_mark(vm, text, true, out);
}

BUILTIN(do_escape)
{
    return markup_escape(vm, v, out);
}

BUILTIN(do_forceescape)
{
    struct jval text;
    return jval_to_str(vm, v, &text) && markup_mark(vm, text, false, &text) &&
           markup_escape(vm, text, out);
}

/* The text before each indented line. `width` is a number of spaces (4 if missing) or this text. */
static bool indentation(struct jvm *vm, struct jval width, struct jval *out)
{
    struct jbuf b = {.vm = vm};
    int64_t n;
    if (width.kind == J_STR) {
        *out = width;
        return true;
    }
    if (!arg_int(vm, width, 4, &n))
        return false;
    return jbuf_repeat(&b, ' ', n > 0 ? (size_t)n : 0, ORIGIN_TEMPLATE) && jbuf_done(&b, out);
}

BUILTIN(do_indent)
{
    struct jval before, text, lines, newline = jstr_lit(vm, "\n");
    struct jbuf b = {.vm = vm};
    const bool first = arg_flag(c->arg[1]), blank = arg_flag(c->arg[2]);
    /* splitlines drops an empty last line. One more newline keeps the last newline of the text. */
    if (newline.kind == J_MISSING || !indentation(vm, c->arg[0], &before) ||
        !jval_binary(vm, OP_ADD, v, newline, &text) ||
        !string_splitlines(vm, text.u.s, false, &lines))
        return false;
    for (size_t i = 0; i < lines.u.list->n; i++) {
        const struct jstr *const line = lines.u.list->items[i].u.s;
        const bool indent = i ? blank || line->n_bytes > 0 : first;
        if ((i && !jbuf_str(&b, newline.u.s)) || (indent && !jbuf_str(&b, before.u.s)) ||
            !jbuf_str(&b, line))
            return false;
    }
    if (!jbuf_done(&b, out))
        return false;
    out->u.s->is_markup = text.u.s->is_markup;
    return true;
}

BUILTIN(do_truncate)
{
    struct jval end = c->arg[2], begin;
    int64_t length, leeway;
    size_t n_chars;
    if (!arg_given(end))
        end = jstr_lit(vm, "...");
    if (end.kind == J_MISSING || !arg_int(vm, c->arg[0], 255, &length) ||
        !arg_string(vm, end, &end))
        return false;
    leeway = 5; /* jinja2's policy truncate.leeway */
    if (c->arg[3].kind != J_NONE && !arg_int(vm, c->arg[3], 5, &leeway))
        return false;
    const int64_t n_end = (int64_t)jstr_chars(end.u.s);
    if (length < n_end || leeway < 0)
        return jvm_fail(vm, "expected length >= %lld and leeway >= 0, got %lld and %lld",
                        (long long)n_end, (long long)length, (long long)leeway);
    if (!jval_length(vm, v, &n_chars))
        return false;
    if (n_chars == SIZE_MAX)
        return jvm_fail(vm, "object of type '%s' has no len()", jkind_name(v));
    if (leeway > INT64_MAX - length || (int64_t)n_chars <= length + leeway) {
        *out = v;
        return true;
    }
    if (v.kind != J_STR)
        return jvm_fail(vm, "only text can be truncated");
    if (!jvm_steps(vm, v.u.s->n_bytes / 16))
        return false;
    size_t cut = jstr_offset(v.u.s, (size_t)(length - n_end));
    if (!arg_flag(c->arg[1])) {
        const size_t space = text_rfind(jstr_text(v.u.s), bn_str_of(" "), 0, cut);
        cut = space == SIZE_MAX ? cut : space;
    }
    return jstr_slice(vm, v.u.s, 0, cut, &begin) && jval_binary(vm, OP_ADD, begin, end, out);
}

BUILTIN(do_center)
{
    struct jval text;
    int64_t width;
    return jval_to_str(vm, v, &text) && arg_int(vm, c->arg[0], 80, &width) &&
           string_pad(vm, text.u.s, PAD_CENTER, width, ' ', out);
}

BUILTIN(do_format)
{
    struct jval text, args;
    const struct jargs *const all = c->all;
    if (all->n_pos && all->n_kw)
        return jvm_fail(vm, "can't handle positional and keyword arguments at the same time");
    if (!jval_to_str(vm, v, &text))
        return false;
    if (all->n_kw) {
        if (!jdict_new(vm, J_DICT, &args))
            return false;
        for (size_t i = 0; i < all->n_kw; i++)
            if (!jdict_set(vm, args.u.dict, jstring(all->kw[i].name), all->kw[i].v))
                return false;
    } else {
        if (!jlist_of(vm, J_TUPLE, all->pos, all->n_pos, &args))
            return false;
    }
    return format_percent(vm, text, args, out);
}

BUILTIN(do_wordcount)
{
    struct jval text;
    int64_t n = 0;
    bool inside = false;
    if (!jval_to_str(vm, v, &text) || !jvm_steps(vm, text.u.s->n_bytes / 8))
        return false;
    for (size_t at = 0; at < text.u.s->n_bytes;) {
        uint32_t cp;
        at += text_next(jstr_text(text.u.s), at, &cp);
        const bool is_word = cp == '_' || (uni_is(cp, UNI_ALPHA | UNI_NUMERIC));
        n += is_word && !inside;
        inside = is_word;
    }
    *out = jint(n);
    return true;
}

/* Percent-encode s. In a query '/' is encoded too, and a space becomes '+'. */
static bool quote_url(struct jbuf *b, const struct jstr *s, bool is_query)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t at = 0; at < s->n_bytes; at++) {
        const unsigned char c = (unsigned char)s->ptr[at];
        const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                           (c >= 'A' && c <= 'Z') || c == '_' || c == '.' || c == '-' || c == '~' ||
                           (c == '/' && !is_query);
        const char coded[3] = {'%', hex[c >> 4], hex[c & 15]};
        const uint32_t origin = jstr_origin(s, at);
        const bool ok = plain                  ? jbuf_add(b, s->ptr + at, 1, origin)
                        : c == ' ' && is_query ? jbuf_add(b, "+", 1, origin)
                                               : jbuf_add(b, coded, 3, origin);
        if (!ok)
            return false;
    }
    return jvm_steps(b->vm, s->n_bytes / 4);
}

static bool quote_pair(struct jbuf *b, struct jval pair)
{
    struct jval list, text;
    if (!jval_to_list(b->vm, pair, &list))
        return false;
    if (list.u.list->n != 2)
        return jvm_fail(b->vm, "urlencode needs pairs");
    for (size_t i = 0; i < 2; i++)
        if ((i && !jbuf_text(b, "=")) || !jval_to_str(b->vm, list.u.list->items[i], &text) ||
            !quote_url(b, text.u.s, true))
            return false;
    return true;
}

BUILTIN(do_urlencode)
{
    struct jval text, pairs = v;
    struct jiter it;
    struct jbuf b = {.vm = vm};
    if (v.kind == J_STR || !jval_is_iterable(v))
        return jval_to_str(vm, v, &text) && quote_url(&b, text.u.s, false) && jbuf_done(&b, out);
    if (v.kind == J_DICT) {
        if (!jview_new(vm, v.u.dict, VIEW_ITEMS, &pairs))
            return false;
    }
    if (!jiter_open(vm, pairs, &it))
        return false;
    for (size_t i = 0;; i++) {
        struct jval pair;
        bool more;
        if (!jiter_next(vm, &it, &pair, &more))
            return false;
        if (!more)
            return jbuf_done(&b, out);
        if ((i && !jbuf_text(&b, "&")) || !quote_pair(&b, pair))
            return false;
    }
}

const struct jbuiltin filters_text[] = {
    {"upper", "", do_case, CASE_UPPER},
    {"lower", "", do_case, CASE_LOWER},
    {"capitalize", "", do_case, CASE_CAPITAL},
    {"title", "", do_title, 0},
    {"trim", "chars?", do_trim, 0},
    {"replace", "old,new,count?", do_replace, 0},
    {"string", "", do_string, 0},
    {"safe", "", do_safe, 0},
    {"escape", "", do_escape, 0},
    {"e", "", do_escape, 0},
    {"forceescape", "", do_forceescape, 0},
    {"indent", "width?,first?,blank?", do_indent, 0},
    {"truncate", "length?,killwords?,end?,leeway?", do_truncate, 0},
    {"center", "width?", do_center, 0},
    {"format", "*", do_format, 0},
    {"wordcount", "", do_wordcount, 0},
    {"urlencode", "", do_urlencode, 0},
    {0},
};
