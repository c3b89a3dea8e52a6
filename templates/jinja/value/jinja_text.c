/*
 * Strings with origins. Most strings have one origin and no runs. A substring shares the bytes of
 * its string; a builder copies them.
 */
#define _GNU_SOURCE /* memmem */
#include "templates/jinja/value/jinja_text.h"

#include "engine/base/utf8.h"
#include "templates/jinja/value/jinja_unicode.h"

/* ---- UTF-8 ---- */

static const uint8_t *bytes_of(struct bn_str s)
{
    return (const uint8_t *)s.ptr;
}

size_t text_back(struct bn_str s, size_t at)
{
    ucs4_t cp;
    return (size_t)(u8_prev(&cp, bytes_of(s) + at, bytes_of(s)) - bytes_of(s));
}

bool text_valid(struct bn_str s)
{
    return utf8_valid_bytes(s.ptr, s.n_bytes) == s.n_bytes;
}

/* Counts all bytes but continuation bytes. Compilers vectorise this loop; u8_mbsnlen decodes every
 * character. */
size_t text_count(struct bn_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n_bytes; i++)
        n += !utf8_is_continuation(s.ptr[i]);
    return n;
}

/* ---- strings ---- */

bool jstr_new(struct jvm *vm, struct bn_str text, uint32_t origin, struct jval *out)
{
    struct jstr *const s = jvm_alloc(vm, 1, sizeof *s);
    if (!s)
        return false;
    *s = (struct jstr){.ptr = text.n_bytes ? text.ptr : "",
                       .n_bytes = text.n_bytes,
                       .n_chars = SIZE_MAX,
                       .origin = origin};
    *out = jstring(s);
    return true;
}

bool jstr_copy(struct jvm *vm, struct bn_str text, uint32_t origin, struct jval *out)
{
    char *const p = jvm_alloc(vm, text.n_bytes, 1);
    if (!p)
        return false;
    if (text.n_bytes)
        memcpy(p, text.ptr, text.n_bytes);
    return jstr_new(vm, (struct bn_str){p, text.n_bytes}, origin, out);
}

bool jstr_repair(struct jvm *vm, struct bn_str text, struct jval *out)
{
    struct jbuf b = {.vm = vm};
    for (size_t at = 0; at < text.n_bytes;) {
        ucs4_t cp;
        const int n = u8_mbtoucr(&cp, bytes_of(text) + at, text.n_bytes - at);
        if (!jbuf_cp(&b, n > 0 ? cp : 0xfffd, ORIGIN_TEMPLATE))
            return false;
        at += n > 0 ? (size_t)n : 1;
    }
    return jbuf_done(&b, out);
}

struct jval jstr_lit(struct jvm *vm, const char *text)
{
    struct jval v = {.kind = J_MISSING};
    (void)jstr_new(vm, bn_str_of(text), ORIGIN_TEMPLATE, &v); /* v stays J_MISSING on failure */
    return v;
}

size_t jstr_chars(struct jstr *s)
{
    if (s->n_chars == SIZE_MAX)
        s->n_chars = text_count(jstr_text(s));
    return s->n_chars;
}

/* The run that contains byte `at`: the first run that ends after it. */
static size_t find_run(const struct jstr *s, size_t at)
{
    size_t lo = 0, hi = s->n_runs - 1;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (s->runs[mid].end > at)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

uint32_t jstr_origin(const struct jstr *s, size_t at)
{
    return s->runs ? s->runs[find_run(s, at)].origin : s->origin;
}

size_t jstr_offset(struct jstr *s, size_t index)
{
    if (jstr_chars(s) == s->n_bytes) /* ASCII */
        return index < s->n_bytes ? index : s->n_bytes;
    size_t at = 0;
    for (; at < s->n_bytes; at++)
        if (!utf8_is_continuation(s->ptr[at]) && index-- == 0)
            break;
    return at;
}

bool jstr_slice(struct jvm *vm, const struct jstr *s, size_t b0, size_t b1, struct jval *out)
{
    struct jval v;
    /* The bytes are not copied, but the characters of the new string may be counted later. */
    if (!jvm_steps(vm, (b1 - b0) / 64) ||
        !jstr_new(vm, (struct bn_str){s->ptr + b0, b1 - b0}, s->origin, &v))
        return false;
    v.u.s->is_markup = s->is_markup;
    *out = v;
    if (!s->runs || b0 == b1)
        return true;
    const size_t r0 = find_run(s, b0), r1 = find_run(s, b1 - 1);
    if (r0 == r1) {
        v.u.s->origin = s->runs[r0].origin;
        return true;
    }
    struct jrun *const runs = jvm_alloc(vm, r1 - r0 + 1, sizeof *runs);
    if (!runs)
        return false;
    for (size_t r = r0; r <= r1; r++) {
        const size_t end = s->runs[r].end < b1 ? s->runs[r].end : b1;
        runs[r - r0] = (struct jrun){.end = end - b0, .origin = s->runs[r].origin};
    }
    v.u.s->runs = runs;
    v.u.s->n_runs = r1 - r0 + 1;
    return true;
}

bool jstr_equal(const struct jstr *a, const struct jstr *b)
{
    return a->n_bytes == b->n_bytes && memcmp(a->ptr, b->ptr, a->n_bytes) == 0;
}

int jstr_compare(const struct jstr *a, const struct jstr *b)
{
    const size_t n = a->n_bytes < b->n_bytes ? a->n_bytes : b->n_bytes;
    const int order = memcmp(a->ptr, b->ptr, n);
    return order ? order : (a->n_bytes > b->n_bytes) - (a->n_bytes < b->n_bytes);
}

bool jstr_is(const struct jstr *s, const char *text)
{
    return bn_str_is(jstr_text(s), text);
}

struct bn_str jstr_text(const struct jstr *s)
{
    return (struct bn_str){s->ptr, s->n_bytes};
}

size_t text_find(struct bn_str hay, struct bn_str needle, size_t b0, size_t b1)
{
    if (b0 > b1 || needle.n_bytes > b1 - b0)
        return SIZE_MAX;
    if (needle.n_bytes == 0)
        return b0;
    const char *const p = memmem(hay.ptr + b0, b1 - b0, needle.ptr, needle.n_bytes);
    return p ? (size_t)(p - hay.ptr) : SIZE_MAX;
}

size_t text_rfind(struct bn_str hay, struct bn_str needle, size_t b0, size_t b1)
{
    if (b0 > b1 || needle.n_bytes > b1 - b0)
        return SIZE_MAX;
    for (size_t at = b1 - needle.n_bytes;; at--) {
        if (memcmp(hay.ptr + at, needle.ptr, needle.n_bytes) == 0)
            return at;
        if (at == b0)
            return SIZE_MAX;
    }
}

size_t text_skip_space(struct bn_str s, size_t at)
{
    while (at < s.n_bytes) {
        uint32_t cp;
        const size_t n = text_next(s, at, &cp);
        if (!uni_is_space(cp))
            break;
        at += n;
    }
    return at;
}

size_t text_trim_space(struct bn_str s, size_t end)
{
    while (end > 0) {
        uint32_t cp;
        const size_t at = text_back(s, end);
        (void)text_next(s, at, &cp);
        if (!uni_is_space(cp))
            break;
        end = at;
    }
    return end;
}

/* ---- builder ---- */

bool jbuf_add(struct jbuf *b, const char *p, size_t n, uint32_t origin)
{
    if (n == 0)
        return true;
    if (b->n_runs && b->runs[b->n_runs - 1].origin == origin) {
        b->runs[b->n_runs - 1].end += n;
    } else {
        if (!jvm_grow(b->vm, &b->runs, b->n_runs, &b->cap_runs, b->n_runs + 1, sizeof *b->runs))
            return false;
        b->runs[b->n_runs++] = (struct jrun){.end = b->n + n, .origin = origin};
    }
    if (!jvm_steps(b->vm, n / 64) || !jvm_grow(b->vm, &b->ptr, b->n, &b->cap, b->n + n, 1))
        return false;
    memcpy(b->ptr + b->n, p, n);
    b->n += n;
    return true;
}

bool jbuf_text(struct jbuf *b, const char *text)
{
    return jbuf_add(b, text, strlen(text), ORIGIN_TEMPLATE);
}

bool jbuf_cp(struct jbuf *b, uint32_t cp, uint32_t origin)
{
    uint8_t c[4];
    return jbuf_add(b, (const char *)c, (size_t)u8_uctomb(c, cp, sizeof c), origin);
}

bool jbuf_repeat(struct jbuf *b, uint32_t cp, size_t n, uint32_t origin)
{
    if (!jvm_steps(b->vm, n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!jbuf_cp(b, cp, origin))
            return false;
    return true;
}

bool jbuf_slice(struct jbuf *b, const struct jstr *s, size_t b0, size_t b1)
{
    if (!s->runs)
        return jbuf_add(b, s->ptr + b0, b1 - b0, s->origin);
    for (size_t r = b0 < b1 ? find_run(s, b0) : s->n_runs; b0 < b1; r++) {
        const size_t end = s->runs[r].end < b1 ? s->runs[r].end : b1;
        if (!jbuf_add(b, s->ptr + b0, end - b0, s->runs[r].origin))
            return false;
        b0 = end;
    }
    return true;
}

bool jbuf_str(struct jbuf *b, const struct jstr *s)
{
    return jbuf_slice(b, s, 0, s->n_bytes);
}

bool jbuf_done(struct jbuf *b, struct jval *out)
{
    if (!jstr_new(b->vm, (struct bn_str){b->ptr, b->n}, ORIGIN_TEMPLATE, out))
        return false;
    if (b->n_runs == 1) {
        out->u.s->origin = b->runs[0].origin;
    } else if (b->n_runs > 1) {
        out->u.s->runs = b->runs;
        out->u.s->n_runs = b->n_runs;
    }
    return true;
}
