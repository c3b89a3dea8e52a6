/*
 * split, rsplit and splitlines. The pieces share the bytes of the string they are cut from.
 */
#include "templates/jinja_case.h"
#include "templates/jinja_string.h"

static bool push_part(struct jvm *vm, struct jstr *s, size_t b0, size_t b1, struct jval list)
{
    struct jval part;
    return jvm_steps(vm, 1) && jstr_part(vm, s, b0, b1, &part) && jlist_push(vm, list, part);
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
        const size_t n = utf8_next(s.ptr + at, s.n_bytes - at, &cp);
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
        if (max >= 0 && max-- == 0) /* the rest keeps the blanks at its end */
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

static void reverse(struct jlist *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        const struct jval swap = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = swap;
    }
}

static size_t back_word(struct bn_str s, size_t end)
{
    while (end > 0) {
        uint32_t cp;
        const size_t at = utf8_back(s.ptr, end);
        (void)utf8_next(s.ptr + at, end - at, &cp);
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
    if (!check_sep(vm, sep) || !jvm_steps(vm, text.n_bytes / 16) || !jlist_new(vm, J_LIST, 0, out))
        return false;
    if (sep.kind != J_STR) {
        ok = rsplit_blanks(vm, s, max, *out);
    } else {
        for (; max != 0 && ok; max -= max > 0) {
            const size_t found = text_rfind(text, jstr_text(sep.u.s), 0, end);
            if (found == SIZE_MAX)
                break;
            ok = jvm_steps(vm, (end - found) * (1 + sep.u.s->n_bytes / 16) / 16) &&
                 push_part(vm, s, found + sep.u.s->n_bytes, end, *out);
            end = found;
        }
        ok = ok && push_part(vm, s, 0, end, *out);
    }
    reverse(out->u.list);
    return ok;
}

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
        size_t n = utf8_next(s->ptr + at, s->n_bytes - at, &cp);
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
