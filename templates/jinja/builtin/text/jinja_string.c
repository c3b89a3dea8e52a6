/*
 * Case, strip, replace, pad, join and split. The results of strip and split share the bytes of the
 * string.
 */
#include "templates/jinja/builtin/text/jinja_string.h"

#include "templates/jinja/value/jinja_iter.h"
#include "templates/jinja/value/jinja_print.h"
#include "templates/jinja/value/jinja_unicode.h"

/* ---- case ---- */

/* Whether the nearest character after (forward) or before `at` is cased; Case_Ignorable characters
 * are skipped, as in Unicode's condition Final_Sigma. */
static bool has_cased(const struct jstr *s, size_t at, bool forward)
{
    while (forward ? at < s->n_bytes : at > 0) {
        uint32_t cp;
        if (!forward)
            at = text_back(jstr_text(s), at);
        const size_t n = text_next(jstr_text(s), at, &cp);
        if (!uni_is(cp, UNI_IGNORABLE))
            return uni_is(cp, UNI_CASED);
        if (forward)
            at += n;
    }
    return false;
}

/* Lower case of the character at [at, at + n). A capital sigma at the end of a word becomes the
 * final sigma. */
static size_t lower_at(const struct jstr *s, size_t at, size_t n, uint32_t cp, uint32_t to[3])
{
    if (cp != 0x3a3)
        return uni_convert(UNI_TO_LOWER, cp, to);
    to[0] = has_cased(s, at, false) && !has_cased(s, at + n, true) ? 0x3c2 : 0x3c3;
    return 1;
}

/* Convert the character cp at [at, at + n). inside: CASE_TITLE and CASE_CAPITAL make it lower-case,
 * see string_case_into. Returns the number of code points in `to`. */
static size_t convert_at(const struct jstr *s, size_t at, size_t n, uint32_t cp,
                         enum string_case how, bool inside, uint32_t to[3])
{
    switch (how) {
    case CASE_UPPER:
        return uni_convert(UNI_TO_UPPER, cp, to);
    case CASE_TITLE:
    case CASE_CAPITAL:
        return inside ? lower_at(s, at, n, cp, to) : uni_convert(UNI_TO_TITLE, cp, to);
    case CASE_SWAP:
        if (uni_is(cp, UNI_UPPER))
            return lower_at(s, at, n, cp, to);
        if (uni_is(cp, UNI_LOWER))
            return uni_convert(UNI_TO_UPPER, cp, to);
        to[0] = cp;
        return 1;
    default:
        return lower_at(s, at, n, cp, to);
    }
}

bool string_case_into(struct jbuf *b, const struct jstr *s, size_t b0, size_t b1,
                      enum string_case how)
{
    /* CASE_TITLE: the character before is cased; else: not the first character of [b0, b1). */
    bool inside = false;
    if (!jvm_steps(b->vm, (b1 - b0) / 8))
        return false;
    for (size_t at = b0; at < b1;) {
        uint32_t cp, to[3];
        const size_t n = text_next(jstr_text(s), at, &cp);
        const size_t n_to = convert_at(s, at, n, cp, how, inside, to);
        const uint32_t origin = jstr_origin(s, at);
        for (size_t i = 0; i < n_to; i++)
            if (!jbuf_cp(b, to[i], origin))
                return false;
        inside = how != CASE_TITLE || uni_is(cp, UNI_CASED);
        at += n;
    }
    return true;
}

bool string_case(struct jvm *vm, struct jstr *s, enum string_case how, struct jval *out)
{
    struct jbuf b = {.vm = vm};
    return string_case_into(&b, s, 0, s->n_bytes, how) && jbuf_done(&b, out);
}

bool string_is_one_case(struct jvm *vm, const struct jstr *s, unsigned uni_class, struct jval *out)
{
    bool some = false, other = false;
    for (size_t at = 0; at < s->n_bytes;) {
        uint32_t cp;
        at += text_next(jstr_text(s), at, &cp);
        some = some || uni_is(cp, uni_class);
        other = other || uni_is(cp, UNI_CASED & ~uni_class);
    }
    *out = jbool(some && !other);
    return jvm_steps(vm, s->n_bytes / 8);
}

/* ---- strip ---- */

/* Whether strip removes cp. */
static bool in_set(uint32_t cp, struct jval chars)
{
    if (chars.kind != J_STR)
        return uni_is_space(cp);
    const struct jstr *const set = chars.u.s;
    for (size_t at = 0; at < set->n_bytes;) {
        uint32_t member;
        at += text_next(jstr_text(set), at, &member);
        if (member == cp)
            return true;
    }
    return false;
}

bool string_strip(struct jvm *vm, struct jstr *s, struct jval chars, int sides, struct jval *out)
{
    size_t b0 = 0, b1 = s->n_bytes;
    uint32_t cp;
    if (chars.kind != J_STR && chars.kind != J_NONE && chars.kind != J_MISSING)
        return jvm_fail(vm, "%sstrip arg must be None or str, not %s",
                        sides == STRIP_LEFT    ? "l"
                        : sides == STRIP_RIGHT ? "r"
                                               : "",
                        jkind_name(chars));
    const size_t cost = chars.kind == J_STR ? 1 + chars.u.s->n_bytes / 16 : 1;
    while ((sides & STRIP_LEFT) && b0 < b1) {
        const size_t n = text_next(jstr_text(s), b0, &cp);
        if (!jvm_steps(vm, cost))
            return false;
        if (!in_set(cp, chars))
            break;
        b0 += n;
    }
    while ((sides & STRIP_RIGHT) && b1 > b0) {
        const size_t at = text_back(jstr_text(s), b1);
        (void)text_next(jstr_text(s), at, &cp);
        if (!jvm_steps(vm, cost))
            return false;
        if (!in_set(cp, chars))
            break;
        b1 = at;
    }
    return jstr_slice(vm, s, b0, b1, out);
}

/* ---- replace ---- */

bool string_replace(struct jvm *vm, struct jstr *s, const struct jstr *const pair[2], int64_t count,
                    struct jval *out)
{
    const struct bn_str hay = jstr_text(s), old = jstr_text(pair[0]);
    struct jbuf b = {.vm = vm};
    size_t at = 0;
    if (!jvm_steps(vm, s->n_bytes / 16))
        return false;
    for (; count != 0; count -= count > 0) {
        const size_t found = text_find(hay, old, at, hay.n_bytes);
        uint32_t cp;
        if (found == SIZE_MAX)
            break;
        if (!jvm_steps(vm, 1) || !jbuf_slice(&b, s, at, found) || !jbuf_str(&b, pair[1]))
            return false;
        at = found + old.n_bytes;
        if (old.n_bytes)
            continue;
        if (at == hay.n_bytes) /* the empty string occurs before each character and at the end */
            break;
        const size_t n = text_next(hay, at, &cp);
        if (!jbuf_slice(&b, s, at, at + n))
            return false;
        at += n;
    }
    return jbuf_slice(&b, s, at, hay.n_bytes) && jbuf_done(&b, out);
}

/* ---- pad and join ---- */

bool string_pad(struct jvm *vm, struct jstr *s, enum string_pad how, int64_t width, uint32_t fill,
                struct jval *out)
{
    const size_t n = jstr_chars(s);
    struct jbuf b = {.vm = vm};
    if (width < 0 || (uint64_t)width <= n) {
        *out = jstring(s);
        return true;
    }
    const size_t pad = (size_t)width - n;
    /* As str.center: if the padding is odd, the left side has one character more if the width is
     * odd, else the right side. */
    const size_t left = how == PAD_LEFT    ? 0
                        : how == PAD_RIGHT ? pad
                                           : pad / 2 + (pad & (size_t)width & 1);
    if (!jbuf_repeat(&b, fill, left, ORIGIN_TEMPLATE) || !jbuf_str(&b, s) ||
        !jbuf_repeat(&b, fill, pad - left, ORIGIN_TEMPLATE) || !jbuf_done(&b, out))
        return false;
    out->u.s->is_markup = s->is_markup;
    return true;
}

bool string_join(struct jvm *vm, const struct jstr *sep, struct jval seq, bool convert,
                 struct jval *out)
{
    struct jiter it;
    struct jbuf b = {.vm = vm};
    if (!jiter_open(vm, seq, &it))
        return false;
    for (size_t i = 0;; i++) {
        struct jval v;
        bool more;
        if (!jiter_next(vm, &it, &v, &more))
            return false;
        if (!more)
            return jbuf_done(&b, out);
        if (!convert && v.kind != J_STR)
            return jvm_fail(vm, "sequence item %zu: expected str instance, %s found", i,
                            jkind_name(v));
        if ((i && !jbuf_str(&b, sep)) || !print_str(&b, v))
            return false;
    }
}

/* ---- split ---- */

static bool push_part(struct jvm *vm, struct jstr *s, size_t b0, size_t b1, struct jval list)
{
    struct jval part;
    return jvm_steps(vm, 1) && jstr_slice(vm, s, b0, b1, &part) && jlist_push(vm, list, part);
}

static bool check_sep(struct jvm *vm, struct jval sep)
{
    if (sep.kind != J_STR && sep.kind != J_NONE && sep.kind != J_MISSING)
        return jvm_fail(vm, "must be str or None, not %s", jkind_name(sep));
    if (sep.kind == J_STR && sep.u.s->n_bytes == 0)
        return jvm_fail(vm, "empty separator");
    return true;
}

static size_t skip_word(struct bn_str s, size_t at)
{
    while (at < s.n_bytes) {
        uint32_t cp;
        const size_t n = text_next(s, at, &cp);
        if (uni_is_space(cp))
            break;
        at += n;
    }
    return at;
}

static bool split_blanks(struct jvm *vm, struct jstr *s, int64_t max, struct jval list)
{
    const struct bn_str text = jstr_text(s);
    size_t at = text_skip_space(text, 0);
    while (at < text.n_bytes) {
        if (max >= 0 && max-- == 0) /* the rest keeps the white space at its end */
            return push_part(vm, s, at, text.n_bytes, list);
        const size_t end = skip_word(text, at);
        if (!push_part(vm, s, at, end, list))
            return false;
        at = text_skip_space(text, end);
    }
    return true;
}

bool string_split(struct jvm *vm, struct jstr *s, struct jval sep, int64_t max, struct jval *out)
{
    const struct bn_str text = jstr_text(s);
    size_t at = 0;
    if (!check_sep(vm, sep) || !jvm_steps(vm, text.n_bytes / 16) || !jlist_new(vm, J_LIST, 0, out))
        return false;
    if (sep.kind != J_STR)
        return split_blanks(vm, s, max, *out);
    for (; max != 0; max -= max > 0) {
        const size_t found = text_find(text, jstr_text(sep.u.s), at, text.n_bytes);
        if (found == SIZE_MAX)
            break;
        if (!push_part(vm, s, at, found, *out))
            return false;
        at = found + sep.u.s->n_bytes;
    }
    return push_part(vm, s, at, text.n_bytes, *out);
}

static size_t back_word(struct bn_str s, size_t end)
{
    while (end > 0) {
        uint32_t cp;
        const size_t at = text_back(s, end);
        (void)text_next(s, at, &cp);
        if (uni_is_space(cp))
            break;
        end = at;
    }
    return end;
}

static bool rsplit_blanks(struct jvm *vm, struct jstr *s, int64_t max, struct jval list)
{
    const struct bn_str text = jstr_text(s);
    size_t end = text_trim_space(text, text.n_bytes);
    while (end > 0) {
        if (max >= 0 && max-- == 0)
            return push_part(vm, s, 0, end, list);
        const size_t start = back_word(text, end);
        if (!push_part(vm, s, start, end, list))
            return false;
        end = text_trim_space(text, start);
    }
    return true;
}

bool string_rsplit(struct jvm *vm, struct jstr *s, struct jval sep, int64_t max, struct jval *out)
{
    const struct bn_str text = jstr_text(s);
    size_t end = text.n_bytes;
    bool ok = true;
    if (!check_sep(vm, sep))
        return false;
    /* Unlike text_find, text_rfind compares the separator at each offset. The searches below have
     * no offset in common, so the cost of all of them is known here. */
    const size_t n_sep = sep.kind == J_STR ? sep.u.s->n_bytes : 0;
    if (!jvm_steps(vm, text.n_bytes / 16 * (1 + n_sep / 16)) || !jlist_new(vm, J_LIST, 0, out))
        return false;
    if (sep.kind != J_STR) {
        ok = rsplit_blanks(vm, s, max, *out);
    } else {
        for (; max != 0 && ok; max -= max > 0) {
            const size_t found = text_rfind(text, jstr_text(sep.u.s), 0, end);
            if (found == SIZE_MAX)
                break;
            ok = push_part(vm, s, found + n_sep, end, *out);
            end = found;
        }
        ok = ok && push_part(vm, s, 0, end, *out);
    }
    jlist_reverse(out->u.list); /* the parts were found from the right */
    return ok;
}

/* The characters at which Python's str.splitlines splits. */
static bool is_line_end(uint32_t cp)
{
    return (cp >= 0x0a && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
           cp == 0x2029;
}

bool string_splitlines(struct jvm *vm, struct jstr *s, bool keep_ends, struct jval *out)
{
    size_t start = 0;
    if (!jvm_steps(vm, s->n_bytes / 8) || !jlist_new(vm, J_LIST, 0, out))
        return false;
    for (size_t at = 0; at < s->n_bytes;) {
        uint32_t cp;
        size_t n = text_next(jstr_text(s), at, &cp);
        if (!is_line_end(cp)) {
            at += n;
            continue;
        }
        if (cp == '\r' && at + 1 < s->n_bytes && s->ptr[at + 1] == '\n')
            n = 2;
        if (!push_part(vm, s, start, keep_ends ? at + n : at, *out))
            return false;
        start = at += n;
    }
    return start == s->n_bytes || push_part(vm, s, start, s->n_bytes, *out);
}
