/*
 * Splitting a stream into thought and answer, with pieces of every length.
 */
#include "app/chat/conversation/thought.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct parts {
    struct strbuf text[2]; /* by enum answer_part */
};

static void collect(void *ud, enum answer_part part, struct bn_str text)
{
    struct parts *p = ud;
    strbuf_add_str(&p->text[part], text);
}

static void expect(enum thought_mode mode, const char *stream, const char *thought,
                   const char *answer)
{
    for (size_t piece = 1; piece <= strlen(stream) + 1; piece++) {
        struct thought_splitter t = {0};
        struct parts p = {0};
        thought_init(&t, mode);
        for (size_t at = 0; at < strlen(stream); at += piece) {
            const size_t left = strlen(stream) - at;
            thought_feed(&t, (struct bn_str){stream + at, left < piece ? left : piece}, collect,
                         &p);
        }
        thought_end(&t, collect, &p);
        assert_string_equal(strbuf_text(&p.text[PART_THOUGHT]), thought);
        assert_string_equal(strbuf_text(&p.text[PART_ANSWER]), answer);
        strbuf_finish(&p.text[0]);
        strbuf_finish(&p.text[1]);
    }
}

static void a_thought_ends_at_its_marker(void **state)
{
    (void)state;
    expect(THOUGHT_MAYBE, "\n<think>hm < a </thin> b</think>\n\nyes", "hm < a </thin> b", "yes");
    expect(THOUGHT_RUNNING, "hm</think>yes</think>", "hm", "yes</think>");
}

static void an_answer_without_thought_is_whole(void **state)
{
    (void)state;
    expect(THOUGHT_MAYBE, "  yes <think>no</think>", "", "  yes <think>no</think>");
    expect(THOUGHT_MAYBE, "<thinner", "", "<thinner");
    expect(THOUGHT_NONE, "<think>a</think>", "", "<think>a</think>");
}

static void an_incomplete_marker_stays_text(void **state)
{
    (void)state;
    expect(THOUGHT_RUNNING, "half </thi", "half </thi", "");
    expect(THOUGHT_MAYBE, "<thi", "", "<thi");
}

static void a_stored_answer_is_split(void **state)
{
    static const struct {
        const char *text;
        enum thought_mode mode;
        const char *thought, *answer;
    } cases[] = {
        {"<think>hm</think>\n\nyes", THOUGHT_MAYBE, "hm", "yes"},
        {"hm</think>\n\nyes", THOUGHT_MAYBE, "hm", "yes"}, /* <think> was in the prompt */
        {"\n<think>half", THOUGHT_MAYBE, "half", ""},
        {"yes", THOUGHT_MAYBE, "", "yes"},
        {"The mark </think> ends it.", THOUGHT_MAYBE, "", "The mark </think> ends it."},
        {"<think> and\n</think>\n are", THOUGHT_MAYBE, " and\n", "are"},
        {"Use <think> and\n</think>\n.", THOUGHT_MAYBE, "", "Use <think> and\n</think>\n."},
        {"", THOUGHT_MAYBE, "", ""},
        {"half", THOUGHT_RUNNING, "half", ""},
        {"hm</think> yes", THOUGHT_RUNNING, "hm", "yes"},
        {"<think>hm</think>yes", THOUGHT_NONE, "", "<think>hm</think>yes"}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct strbuf thought = {0}, answer = {0};
        thought_split(bn_str_of(cases[i].text), cases[i].mode, &thought, &answer);
        assert_string_equal(strbuf_text(&thought), cases[i].thought);
        assert_string_equal(strbuf_text(&answer), cases[i].answer);
        strbuf_finish(&thought);
        strbuf_finish(&answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thought_ends_at_its_marker),
        cmocka_unit_test(an_answer_without_thought_is_whole),
        cmocka_unit_test(an_incomplete_marker_stays_text),
        cmocka_unit_test(a_stored_answer_is_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
