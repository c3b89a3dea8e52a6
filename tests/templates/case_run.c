/*
 * Converts JSON to template values, and segments to JSON.
 */
#include "tests/templates/case_run.h"

#include "templates/template.h"

#include <jansson.h>
#include <stdlib.h>

static struct template_value *convert(struct template_arena *a, json_t *j)
{
    struct template_value *v;
    const char *key;
    json_t *item;
    size_t i;
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        v = template_dict(a);
        json_object_foreach(j, key, item) v = template_set(a, v, key, convert(a, item));
        return v;
    case JSON_ARRAY:
        v = template_list(a);
        json_array_foreach(j, i, item) v = template_push(a, v, convert(a, item));
        return v;
    case JSON_STRING:
        return template_string(a, (struct bn_str){json_string_value(j), json_string_length(j)});
    case JSON_INTEGER:
        return template_int(a, json_integer_value(j));
    case JSON_REAL:
        return template_float(a, json_real_value(j));
    case JSON_NULL:
        return template_null(a);
    default:
        return template_bool(a, json_is_true(j));
    }
}

static json_t *failure(const struct bn_error *err)
{
    return json_pack("{s:s, s:i}", "error", err->text, "code", (int)err->code);
}

static json_t *success(const struct template_output *out)
{
    static const char *const kinds[] = {[SEGMENT_TEMPLATE] = "template",
                                        [SEGMENT_MESSAGE] = "message",
                                        [SEGMENT_ANSWER] = "answer",
                                        [SEGMENT_IDS] = "ids"};
    json_t *const list = json_array();
    size_t n_bytes = 0;
    for (size_t i = 0; i < out->n_segments; i++)
        n_bytes += out->segments[i].text.n_bytes;
    char *const all = malloc(n_bytes + 1);
    n_bytes = 0;
    for (size_t i = 0; i < out->n_segments; i++) {
        const struct segment *const s = &out->segments[i];
        const long long message = s->message == SEGMENT_NO_MESSAGE ? -1 : (long long)s->message;
        json_array_append_new(list, json_pack("[s, I, s%]", kinds[s->kind], (json_int_t)message,
                                              s->text.ptr, s->text.n_bytes));
        memcpy(all + n_bytes, s->text.ptr, s->text.n_bytes);
        n_bytes += s->text.n_bytes;
    }
    json_t *const result = json_pack("{s:s%, s:o, s:b}", "text", all, n_bytes, "segments", list,
                                     "thought", (int)out->starts_in_thought);
    free(all);
    return result;
}

static struct bn_str text_of(json_t *in, const char *key)
{
    json_t *const j = json_object_get(in, key);
    return (struct bn_str){json_string_value(j), json_string_length(j)};
}

json_t *case_run(json_t *in)
{
    struct bn_error err = {.code = BN_OK};
    struct template *t;
    struct template_output out;
    const char *const choice = json_string_value(json_object_get(in, "choice"));
    const struct template_config cfg = {.choice = choice ? choice : "auto",
                                        .user_text = text_of(in, "template"),
                                        .model_text = text_of(in, "model_template"),
                                        .bos_token = text_of(in, "bos_token"),
                                        .eos_token = text_of(in, "eos_token")};
    if (!template_open(&cfg, &t, &err))
        return failure(&err);
    struct template_arena *const a = template_arena_open();
    json_t *const messages = json_object_get(in, "messages");
    json_t *const args = json_object_get(in, "args"), *const now = json_object_get(in, "now");
    const struct template_input input = {
        .messages = messages ? convert(a, messages) : template_list(a),
        .args = args ? convert(a, args) : NULL,
        .add_generation_prompt = json_is_true(json_object_get(in, "generation")),
        .now = (time_t)json_integer_value(now),
    };
    json_t *const result =
        template_render(t, a, &input, &out, &err) ? success(&out) : failure(&err);
    template_arena_close(a);
    template_close(t);
    return result;
}
