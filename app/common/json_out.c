/*
 * JSON with jansson: see json_out.h.
 */
#include "app/common/json_out.h"

#include "app/common/term_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64 /* of a template value; the limit of jansson is 2048 */

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

void json_out_merge(json_t **object, json_t *other)
{
    drop_if_failed(json_object_update(*object, other) == 0, object);
    json_decref(other);
}

void json_out_append(json_t **list, json_t *item)
{
    drop_if_failed(json_array_append_new(*list, item) == 0, list);
}

/* Releases the reference. Returns text, to be freed with free. NULL: out of memory. */
static char *dump(json_t *object, enum json_layout layout)
{
    const size_t flags = JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9) |
                         (layout == JSON_OUT_INDENT ? JSON_INDENT(2) : JSON_COMPACT);
    char *text = object ? json_dumps(object, flags) : NULL;
    json_decref(object);
    return text;
}

void json_out_line(json_t *object, struct strbuf *out)
{
    char *text = dump(object, JSON_OUT_LINE);
    if (text)
        strbuf_addf(out, "%s\n", text);
    else
        out->failed = true;
    free(text);
}

bool json_out_write(json_t *object, FILE *out, enum json_layout layout, struct bn_error *err)
{
    char *text = dump(object, layout);
    if (!text)
        return bn_fail(err, BN_ENOMEM, "out of memory for JSON output");
    const bool ok = fputs(text, out) >= 0 && fputc('\n', out) != EOF;
    free(text);
    return ok || bn_fail(err, BN_EIO, "cannot write JSON output");
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
        void *iter = json_object_iter((json_t *)(uintptr_t)json); /* is not changed */
        for (; dict && iter; iter = json_object_iter_next((json_t *)(uintptr_t)json, iter)) {
            struct template_value *item = value_at(json_object_iter_value(iter), a, depth + 1);
            dict = template_set(a, dict, json_object_iter_key(iter), item);
        }
        return dict;
    }
    }
    return NULL;
}

struct template_value *json_out_value(const json_t *json, struct template_arena *arena)
{
    return value_at(json, arena, 0);
}

bool json_out_messages(const json_t *json, struct template_arena *arena,
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
        list = template_push(arena, list, json_out_value(m, arena));
    }
    if (!list)
        return bn_fail(err, BN_ENOMEM, "out of memory, or messages nested more than %d deep",
                       DEPTH_MAX);
    *out = list;
    return true;
}
