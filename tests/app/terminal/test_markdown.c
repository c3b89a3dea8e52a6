/*
 * Markdown: the look of each character. No character is lost or changed, and only few are pending.
 */
#include "app/common/strbuf.h"
#include "app/terminal/text/markdown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One letter per look, in the order of enum text_look. */
static const char letters[] = ".HBCKFM";

struct output {
    struct strbuf looks, text;
};

static void put_char(void *ud, const struct term_char *c, enum text_look look)
{
    struct output *out = ud;
    assert_true(look < TEXT_DIM);
    strbuf_add_char(&out->looks, c->code == '\n' ? '\n' : letters[look]);
    strbuf_add_char(&out->text, (char)c->code);
}

static void looks_of(const char *text, size_t n_bytes, struct output *out)
{
    struct markdown m = {0};
    const struct markdown_sink sink = {put_char, out};
    for (size_t i = 0; i < n_bytes; i++) {
        markdown_add(&m, (struct bn_str){text + i, 1}, &sink);
        assert_true(m.n_pending < MARKDOWN_MAX_PENDING);
        assert_int_equal(out->text.n_bytes + m.n_pending, i + 1);
    }
    markdown_end(&m, &sink);
    assert_int_equal(out->text.n_bytes, n_bytes);
    markdown_finish(&m);
}

static void output_finish(struct output *out)
{
    strbuf_finish(&out->looks);
    strbuf_finish(&out->text);
}

static void expect(const char *text, const char *looks)
{
    struct output out = {0};
    looks_of(text, strlen(text), &out);
    assert_string_equal(strbuf_text(&out.looks), looks);
    assert_string_equal(strbuf_text(&out.text), text);
    output_finish(&out);
}

static void headings_are_whole_lines(void **state)
{
    (void)state;
    expect("# One\ntwo", "HHHHH\n...");
    expect("###### six\n####### seven", "HHHHHHHHHH\n.............");
    expect("#no # no", "........");
    expect("## a `b` c", "HHHHHCCCHH");
    expect("  # in", "..HHHH");
}

static void bold_begins_before_a_word_and_ends_after_one(void **state)
{
    (void)state;
    expect("a **b c** d", "..BBBBBBB..");
    expect("2 ** 3 ** 4", "...........");
    expect("***x*** y", "BBBBBBB..");
    expect("**open\nnext", "BBBBBB\n....");
    expect("*one* and a*b", ".............");
    expect("\\**no**", "......."); /* without the escaped star, * and ** do not match */
}

static void code_ends_at_as_many_backticks(void **state)
{
    (void)state;
    expect("a `b **c**` d", "..CCCCCCCCC..");
    expect("``a ` b`` c", "CCCCCCCCC..");
    expect("`open\nnext", "CCCCC\n....");
    expect("```one line``` x", "FFFFFFFFFFFCCC..");
    expect("\\`no", "....");
}

static void fenced_code_spans_lines(void **state)
{
    (void)state;
    expect("```c\n# x **y**\n```\nz", "FFFF\nKKKKKKKKK\nFFF\n.");
    expect("````\n```\n````\nz", "FFFF\nKKK\nFFFF\n.");
    expect("~~~\n```\n~~~ \nz", "FFF\nKKK\nFFFF\n.");
    expect("```\n```x\n```", "FFF\nKKKK\nFFF");
    expect("- ```\n  a\n  ```\nz", "M.FFF\nKKK\nKKFFF\n.");
}

static void code_in_a_quote_ends_with_the_quote(void **state)
{
    (void)state;
    expect("> ```\n> x\n> ```\nplain", "..FFF\nKKK\nKKFFF\n.....");
    expect("> ```\n> > x\nplain **b**", "..FFF\nKKKKK\n......BBBBB");
    expect("> ~~~\n\n# a", "..FFF\n\nHHH");
    expect("> ```\n```\ny\n```\nz", "..FFF\nFFF\nK\nFFF\n.");
    expect("```\n> x\n```", "FFF\nKKK\nFFF");
}

static void list_marks_have_a_look(void **state)
{
    (void)state;
    expect("- a\n* b\n+ c\n-d\n---", "M..\nM..\nM..\n..\n...");
    expect("1. a\n12) b\n1.5\n1234567890. c", "MM..\nMMM..\n...\n.............");
    expect("  - **a**", "..M.BBBBB");
    expect("* **a** b", "M.BBBBB..");
    expect("> - a", "..M..");
}

static void a_run_too_long_for_a_mark_is_text(void **state)
{
    char text[200];
    struct output out = {0};
    (void)state;
    memset(text, '`', sizeof(text));
    looks_of(text, sizeof(text), &out);
    for (size_t i = 0; i < out.looks.n_bytes; i++)
        assert_int_equal(out.looks.ptr[i], '.');
    output_finish(&out);
    memset(text, '`', MARKDOWN_MAX_PENDING);
    memset(text + 100, '.', MARKDOWN_MAX_PENDING);
    (void)snprintf(text + MARKDOWN_MAX_PENDING, 60, "**`x`** rest");
    (void)snprintf(text + 100 + MARKDOWN_MAX_PENDING, 60, "BBCCCBB.....");
    expect(text, text + 100);
}

static void random_text_is_unchanged(void **state)
{
    static const char set[] = "`*#-+~1.) \n\\>ab\t";
    uint32_t seed = 1;
    (void)state;
    for (size_t round = 0; round < 2000; round++) {
        char text[120];
        struct output out = {0};
        for (size_t i = 0; i < sizeof(text); i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = set[(seed >> 16) % (sizeof(set) - 1)];
        }
        looks_of(text, sizeof(text), &out);
        assert_memory_equal(out.text.ptr, text, sizeof(text));
        output_finish(&out);
    }
}

static void the_text_after_a_lost_piece_is_shown(void **state)
{
    struct markdown m = {0};
    struct output out = {0};
    const struct markdown_sink sink = {put_char, &out};
    (void)state;
    markdown_add(&m, bn_str_of("a\xc3"), &sink);
    const size_t n_before = strbuf_n_failed();
    markdown_add(&m, (struct bn_str){"b", SIZE_MAX}, &sink); /* more than any memory */
    assert_int_equal(strbuf_n_failed(), n_before + 1);
    markdown_add(&m, bn_str_of("c"), &sink);
    markdown_end(&m, &sink);
    assert_string_equal(strbuf_text(&out.text), "ac");
    markdown_finish(&m);
    output_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headings_are_whole_lines),
        cmocka_unit_test(bold_begins_before_a_word_and_ends_after_one),
        cmocka_unit_test(code_ends_at_as_many_backticks),
        cmocka_unit_test(fenced_code_spans_lines),
        cmocka_unit_test(code_in_a_quote_ends_with_the_quote),
        cmocka_unit_test(list_marks_have_a_look),
        cmocka_unit_test(a_run_too_long_for_a_mark_is_text),
        cmocka_unit_test(random_text_is_unchanged),
        cmocka_unit_test(the_text_after_a_lost_piece_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
