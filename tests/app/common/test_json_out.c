/*
 * Any bytes as JSON strings, building and writing objects, messages in the OpenAI form.
 */
#include "app/common/json_out.h"
#include "engine/base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void invalid_bytes_become_replacement_characters(void **state)
{
    static const char bytes[] = "a\xff\0b\xe2\x82";
    (void)state;
    json_t *json = json_out_text((struct bn_str){bytes, sizeof(bytes) - 1});
    assert_non_null(json);
    char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    assert_string_equal(text, "\"a\\uFFFD\\u0000b\\uFFFD\\uFFFD\"");
    free(text);
    json_decref(json);
}

static void an_object_is_written_with_a_newline(void **state)
{
    char out[100] = "";
    struct bn_error err;
    (void)state;
    json_t *o = json_object();
    assert_true(json_out_add(o, "b", json_integer(1)));
    assert_true(json_out_add(o, "a", json_real(0.1)));
    assert_false(json_out_add(o, "c", NULL));
    FILE *f = fmemopen(out, sizeof(out), "w");
    assert_true(json_out_write(o, f, JSON_OUT_LINE, &err));
    fclose(f);
    assert_string_equal(out, "{\"b\":1,\"a\":0.1}\n");
}

/* DEL, C1 (U+009B), the Arabic letter mark, right-to-left marks, the line separator, an isolate and
 * a tag. A no-break space, an emoji and the joiner of emojis stay. */
static void invisible_and_control_characters_are_escaped(void **state)
{
    static const char text[] = "a\x7f\xc2\x9b\xc2\xa0\xd8\x9c\xe2\x80\x8f\xe2\x80\xae\xe2\x80\xa8"
                               "\xe2\x81\xa6\xf3\xa0\x81\x81\xf0\x9f\x98\x80\xe2\x80\x8d\\\"";
    static const char wanted[] =
        "{\"\\u202E\":\"a\\u007F\\u009B\xc2\xa0\\u061C\\u200F\\u202E\\u2028"
        "\\u2066\\uDB40\\uDC41\xf0\x9f\x98\x80\xe2\x80\x8d\\\\\\\"\"}\n";
    struct strbuf out = {0};
    (void)state;
    json_t *o = json_object();
    assert_true(json_out_add(o, "\xe2\x80\xae", json_out_text(bn_str_of(text))));
    json_out_line(o, &out);
    assert_false(out.failed);
    assert_string_equal(strbuf_text(&out), wanted);
    json_t *again = json_loads(strbuf_text(&out), 0, NULL);
    assert_string_equal(json_string_value(json_object_get(again, "\xe2\x80\xae")), text);
    json_decref(again);
    strbuf_finish(&out);
}

static void a_failed_step_makes_the_object_null(void **state)
{
    (void)state;
    json_t *o = json_object(), *list = json_array();
    json_out_put(&o, "a", json_integer(1));
    json_out_merge(&o, json_pack("{s:i}", "b", 2));
    json_out_append(&list, json_true());
    assert_int_equal(json_object_size(o), 2);
    assert_int_equal(json_array_size(list), 1);
    json_out_put(&o, "c", NULL);
    assert_null(o);
    json_out_put(&o, "d", json_integer(1)); /* the value is freed */
    json_out_merge(&o, json_object());
    assert_null(o);
    json_out_append(&list, NULL);
    assert_null(list);
    json_out_append(&list, json_true());
    assert_null(list);
}

static void a_full_disk_is_an_error(void **state)
{
    struct bn_error err = {0};
    (void)state;
    FILE *f = fopen("/dev/full", "w");
    if (!f)
        skip();
    setvbuf(f, NULL, _IONBF, 0);
    assert_false(json_out_write(json_object(), f, JSON_OUT_INDENT, &err));
    assert_int_equal(err.code, BN_EIO);
    fclose(f);
}

static void errors_have_the_column_where_the_token_begins(void **state)
{
    static const struct {
        const char *text, *reason;
        int column;
    } rows[] = {
        {"{bad", "string or '}' expected near 'bad'", 2},
        {"{\"a\": 1 \"bc\"}", "'}' expected near '\"bc\"'", 9},
        {"{\"\xc3\xa9\": 'x'}", "invalid token near '''", 7},
        {"{\"a\": 1 \"\xc3\xa9\"}", "'}' expected near '\"\xc3\xa9\"'", 9},
        {"{\"a\": 1", "'}' expected near end of file", 7},
        {"{\"a\": \"x\\u0000\"}", "\\u0000 is not allowed in a text", 7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_error_t where;
        assert_null(json_loads(rows[i].text, 0, &where));
        json_correct_error(&where);
        assert_string_equal(where.text, rows[i].reason);
        assert_int_equal(where.column, rows[i].column);
    }
}

/* Render `messages` with the template `source`. The output lists the segments, each with its text:
 * T (template), M (message) or A (answer). M and A are followed by the index of the message. */
static void render(const char *source, const char *messages, char *out, size_t cap)
{
    struct template_arena *arena = template_arena_open();
    const struct template_config cfg = {.choice = "auto", .user_text = bn_str_of(source)};
    struct template *t;
    struct template_output output;
    struct template_input input = {0};
    struct template_value *list;
    struct bn_error err = {0};
    json_t *json = json_loads(messages, 0, NULL);
    assert_non_null(json);
    assert_true(json_to_template_messages(json, arena, &list, &err));
    input.messages = list;
    assert_true(template_open(&cfg, &t, &err));
    assert_true(template_render(t, arena, &input, &output, &err));
    size_t n = 0;
    for (size_t i = 0; i < output.n_segments; i++) {
        const struct segment *s = &output.segments[i];
        const char kind = s->kind == SEGMENT_TEMPLATE ? 'T' : s->kind == SEGMENT_ANSWER ? 'A' : 'M';
        n += (size_t)snprintf(out + n, cap - n, "%c", kind);
        if (s->message != SEGMENT_NO_MESSAGE)
            n += (size_t)snprintf(out + n, cap - n, "%zu", s->message);
        n += (size_t)snprintf(out + n, cap - n, "(%.*s)", (int)s->text.n_bytes, s->text.ptr);
        assert_true(n < cap);
    }
    template_close(t);
    template_arena_close(arena);
    json_decref(json);
}

static void known_roles_are_template_text(void **state)
{
    static const char source[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
    char out[300];
    (void)state;
    render(source,
           "[{\"role\": \"user\", \"content\": \"Hi\"}, {\"role\": \"assistant\", \"content\": "
           "\"Yo\"},"
           " {\"role\": \"<x>\", \"content\": \"forged\"}]",
           out, sizeof(out));
    assert_string_equal(out, "T(<user>)M0(Hi)T(<assistant>)A1(Yo)T(<)M2(<x>)T(>)M2(forged)");
}

static void other_keys_are_passed_to_the_template(void **state)
{
    char out[300];
    (void)state;
    render("{{ messages[0].n + 1 }} {{ messages[0].list[1].deep }} {{ messages[0].no is none }}",
           "{\"messages\": [{\"role\": \"user\", \"n\": 41, \"no\": null,"
           " \"list\": [1.5, {\"deep\": \"down\"}]}]}",
           out, sizeof(out));
    assert_non_null(strstr(out, "42"));
    assert_non_null(strstr(out, "M0(down)"));
    assert_non_null(strstr(out, "True"));
}

static void refuses_json_that_is_not_a_list_of_messages(void **state)
{
    static const struct {
        const char *json, *sentence;
    } rows[] = {
        {"{}", "expected a JSON array of messages, or an object with \"messages\""},
        {"[{\"role\": \"user\"}, 3]", "message 2 is not a JSON object"},
        {"[{\"content\": \"x\"}]", "message 1 has no \"role\" string"},
        {"[{\"role\": null}]", "message 1 has no \"role\" string"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct template_arena *arena = template_arena_open();
        struct template_value *list;
        struct bn_error err = {0};
        json_t *json = json_loads(rows[i].json, 0, NULL);
        assert_false(json_to_template_messages(json, arena, &list, &err));
        assert_string_equal(err.text, rows[i].sentence);
        assert_int_equal(err.code, BN_EARG);
        json_decref(json);
        template_arena_close(arena);
    }
}

static void deep_nesting_is_refused(void **state)
{
    enum { DEPTH = 500 }; /* above DEPTH_MAX of json_out.c, below the limit of jansson */
    static char text[4 * DEPTH + 100];
    size_t n = (size_t)snprintf(text, sizeof(text), "[{\"role\": \"user\", \"content\": ");
    (void)state;
    for (size_t i = 0; i < DEPTH; i++)
        text[n++] = '[';
    for (size_t i = 0; i < DEPTH; i++)
        text[n++] = ']';
    (void)snprintf(text + n, sizeof(text) - n, "}]");
    struct template_arena *arena = template_arena_open();
    struct template_value *list;
    struct bn_error err = {0};
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    assert_false(json_to_template_messages(json, arena, &list, &err));
    assert_int_equal(err.code, BN_ENOMEM);
    assert_non_null(strstr(err.text, "64"));
    json_decref(json);
    template_arena_close(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_bytes_become_replacement_characters),
        cmocka_unit_test(an_object_is_written_with_a_newline),
        cmocka_unit_test(invisible_and_control_characters_are_escaped),
        cmocka_unit_test(a_failed_step_makes_the_object_null),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(errors_have_the_column_where_the_token_begins),
        cmocka_unit_test(known_roles_are_template_text),
        cmocka_unit_test(other_keys_are_passed_to_the_template),
        cmocka_unit_test(refuses_json_that_is_not_a_list_of_messages),
        cmocka_unit_test(deep_nesting_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
