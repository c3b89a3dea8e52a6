/*
 * JSON with jansson: see json_out.h.
 */
#include "app/common/json_out.h"

#include "app/common/term_text.h"
#include "engine/base/utf8.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define DEPTH_MAX 64 /* lists and objects around a template value; jansson reads up to 2048 */

void json_correct_error(json_error_t *where)
{
    static const char near[] = " near '"; /* then the token, of any characters, and a quote */
    const char *at = strstr(where->text, near);
    int n_chars = 0;
    if (at)
        for (const char *c = at + sizeof(near) - 1; c[0] && c[1]; c++)
            n_chars += !utf8_is_continuation(*c);
    if (n_chars > 0 && where->column >= n_chars)
        where->column -= n_chars - 1;
    if (json_error_code(where) == json_error_null_character)
        (void)snprintf(where->text, sizeof(where->text) - 1, "\\u0000 is not allowed in a text");
}

json_t *json_out_text(struct bn_str text)
{
    struct strbuf valid = {0};
    (void)term_text_repair(text, &valid); /* the offset of an invalid byte is not needed */
    json_t *json = valid.failed ? NULL : json_stringn_nocheck(strbuf_text(&valid), valid.n_bytes);
    strbuf_finish(&valid);
    return json;
}

bool json_out_add(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

/* After a failed step, free the target and set it to NULL. */
static void drop_if_failed(bool ok, json_t **target)
{
    if (!ok) {
        json_decref(*target);
        *target = NULL;
    }
}

void json_out_put(json_t **object, const char *key, json_t *value)
{
    drop_if_failed(json_out_add(*object, key, value), object);
}

void json_out_put_count(json_t **object, const char *key, uint64_t n)
{
    json_out_put(object, key, json_integer((json_int_t)n));
}

void json_out_merge(json_t **object, json_t *other)
{
    drop_if_failed(json_object_update(*object, other) == 0, object);
    json_decref(other);
}

void json_out_append(json_t **list, json_t *item)
{
    drop_if_failed(json_array_append_new(*list, item) == 0, list);
}

/* Characters that are legal in JSON but can change how a terminal or an editor shows the text: DEL
 * and C1 (U+009B begins a control sequence), bidirectional controls, line separators, tags. */
static bool is_unsafe(uint32_t c)
{
    return (c >= 0x7F && c <= 0x9F) || c == 0x061C || c == 0x200E || c == 0x200F ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
           (c >= 0xE0000 && c <= 0xE007F);
}

/* Append \uXXXX; a character above U+FFFF becomes a surrogate pair. */
static void add_escape(struct strbuf *out, uint32_t c)
{
    if (c > 0xFFFF) {
        strbuf_addf(out, "\\u%04X", (unsigned)(0xD800 + ((c - 0x10000) >> 10)));
        c = 0xDC00 + (c & 0x3FF);
    }
    strbuf_addf(out, "\\u%04X", (unsigned)c);
}

/* A json_dump_callback_t. jansson passes whole characters, and unsafe characters occur only within
 * strings, so each of them can be escaped. */
static int add_dumped(const char *bytes, size_t n_bytes, void *ud)
{
    struct strbuf *out = ud;
    /* n_plain: bytes before `at` that are not appended yet; n: bytes of the character at `at`. */
    size_t n_plain = 0, n = 1;
    for (size_t at = 0; at < n_bytes; at += n) {
        uint32_t c = (unsigned char)bytes[at];
        n = c < 0x80 ? 1 : utf8_decode(bytes + at, n_bytes - at, &c);
        n = n > 0 ? n : 1; /* 0: invalid UTF-8, which jansson excludes; the loop must end anyway */
        if (!is_unsafe(c)) {
            n_plain += n;
            continue;
        }
        strbuf_add(out, bytes + at - n_plain, n_plain);
        add_escape(out, c);
        n_plain = 0;
    }
    strbuf_add(out, bytes + n_bytes - n_plain, n_plain);
    return out->failed ? -1 : 0;
}

/* Append the object as text with a newline, and release the reference. False, with out->failed set:
 * out of memory, or object is NULL. */
static bool dump(json_t *object, enum json_layout layout, struct strbuf *out)
{
    const size_t flags = JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9) |
                         (layout == JSON_OUT_INDENT ? JSON_INDENT(2) : JSON_COMPACT);
    const bool ok = object && json_dump_callback(object, add_dumped, out, flags) == 0;
    json_decref(object);
    strbuf_add_char(out, '\n');
    out->failed |= !ok;
    return !out->failed;
}

bool json_out_exact(const json_t *object, struct strbuf *out)
{
    const size_t flags =
        JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17) | JSON_ENCODE_ANY;
    return json_dump_callback(object, add_dumped, out, flags) == 0 && !out->failed;
}

void json_out_line(json_t *object, struct strbuf *out)
{
    (void)dump(object, JSON_OUT_LINE, out); /* a failure sets out->failed */
}

void json_out_line_with(json_t *object, const char *key, const json_t *value, struct strbuf *out)
{
    if (!dump(object, JSON_OUT_LINE, out) || !value)
        return;
    strbuf_cut(out, out->n_bytes - 2); /* the brace and the newline */
    strbuf_addf(out, ",\"%s\":", key);
    if (!json_out_exact(value, out))
        out->failed = true;
    strbuf_add_text(out, "}\n");
}

bool json_out_write(json_t *object, FILE *out, enum json_layout layout, struct bn_error *err)
{
    struct strbuf text = {0};
    if (!dump(object, layout, &text)) {
        strbuf_finish(&text);
        return bn_fail(err, BN_ENOMEM, "out of memory for JSON output");
    }
    const bool ok = fwrite(text.ptr, 1, text.n_bytes, out) == text.n_bytes;
    if (!ok)
        (void)bn_fail(err, BN_EIO, "cannot write JSON output: %s", strerror(errno));
    strbuf_finish(&text);
    return ok;
}

static struct bn_str text_of(const json_t *json)
{
    return (struct bn_str){json_string_value(json), json_string_length(json)};
}

static struct template_value *value_at(const json_t *json, struct template_arena *a, size_t depth)
{
    if (depth > DEPTH_MAX)
        return NULL;
    switch (json_typeof(json)) {
    case JSON_STRING:
        return template_string(a, text_of(json));
    case JSON_INTEGER:
        return template_int(a, json_integer_value(json));
    case JSON_REAL:
        return template_float(a, json_real_value(json));
    case JSON_TRUE:
    case JSON_FALSE:
        return template_bool(a, json_is_true(json));
    case JSON_NULL:
        return template_null(a);
    case JSON_ARRAY: {
        struct template_value *list = template_list(a);
        for (size_t i = 0; list && i < json_array_size(json); i++)
            list = template_push(a, list, value_at(json_array_get(json, i), a, depth + 1));
        return list;
    }
    case JSON_OBJECT: {
        struct template_value *dict = template_dict(a);
        /* The casts remove const: jansson's iterators have no const form, but change nothing. */
        void *iter = json_object_iter((json_t *)(uintptr_t)json);
        for (; dict && iter; iter = json_object_iter_next((json_t *)(uintptr_t)json, iter)) {
            struct template_value *item = value_at(json_object_iter_value(iter), a, depth + 1);
            dict = template_set(a, dict, json_object_iter_key(iter), item);
        }
        return dict;
    }
    }
    return NULL;
}

struct template_value *json_to_template_value(const json_t *json, struct template_arena *arena)
{
    return value_at(json, arena, 0);
}

bool json_to_template_messages(const json_t *json, struct template_arena *arena,
                               struct template_value **out, struct bn_error *err)
{
    if (json_is_object(json))
        json = json_object_get(json, "messages");
    if (!json_is_array(json))
        return bn_fail(err, BN_EARG,
                       "expected a JSON array of messages, or an object with \"messages\"");
    struct template_value *list = template_list(arena);
    for (size_t i = 0; i < json_array_size(json); i++) {
        const json_t *m = json_array_get(json, i);
        if (!json_is_object(m))
            return bn_fail(err, BN_EARG, "message %zu is not a JSON object", i + 1);
        if (!json_is_string(json_object_get(m, "role")))
            return bn_fail(err, BN_EARG, "message %zu has no \"role\" string", i + 1);
        list = template_push(arena, list, json_to_template_value(m, arena));
    }
    if (!list)
        return bn_fail(err, BN_ENOMEM, "out of memory, or messages nested more than %d deep",
                       DEPTH_MAX);
    *out = list;
    return true;
}
