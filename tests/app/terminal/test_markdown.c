/*
 * The looks of Markdown: what each character gets, and that none is lost, changed or held for long.
 */
#include "app/common/strbuf.h"
#include "app/terminal/text/markdown.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One letter a look, in the order of enum text_look. */
static const char letters[] = ".HBCKFM";

static void looks_of(const char *text, size_t n_bytes, struct strbuf *looks, struct strbuf *same)
{
    struct markdown m = {0};
    struct markdown_char out[MARKDOWN_OUT];
    for (size_t i = 0; i <= n_bytes; i++) {
        const size_t n =
            i < n_bytes ? markdown_take(&m, (unsigned char)text[i], out) : markdown_flush(&m, out);
        assert_true(n <= MARKDOWN_OUT);
        for (size_t k = 0; k < n; k++) {
            assert_true(out[k].look < TEXT_DIM);
            strbuf_add_char(looks, out[k].code == '\n' ? '\n' : letters[out[k].look]);
            strbuf_add_char(same, (char)out[k].code);
        }
        assert_true(m.n_held < MARKDOWN_HELD);
        assert_int_equal(same->n_bytes + m.n_held, i < n_bytes ? i + 1 : n_bytes);
    }
}

static void expect(const char *text, const char *looks)
{
    struct strbuf got = {0}, same = {0};
    looks_of(text, strlen(text), &got, &same);
    assert_string_equal(strbuf_text(&got), looks);
    assert_string_equal(strbuf_text(&same), text);
    strbuf_finish(&got);
    strbuf_finish(&same);
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
    expect("\\**no**", "......."); /* the first mark is escaped, the second has one star */
}

static void code_runs_between_equal_runs_of_backticks(void **state)
{
    (void)state;
    expect("a `b **c**` d", "..CCCCCCCCC..");
    expect("``a ` b`` c", "CCCCCCCCC..");
    expect("`open\nnext", "CCCCC\n....");
    expect("```one line``` x", "FFFFFFFFFFFCCC..");
    expect("\\`no", "....");
}

static void fences_go_on_over_lines(void **state)
{
    (void)state;
    expect("```c\n# x **y**\n```\nz", "FFFF\nKKKKKKKKK\nFFF\n.");
    expect("````\n```\n````\nz", "FFFF\nKKK\nFFFF\n.");
    expect("~~~\n```\n~~~ \nz", "FFF\nKKK\nFFFF\n.");
    expect("```\n```x\n```", "FFF\nKKKK\nFFF");
    expect("- ```\n  a\n  ```\nz", "M.FFF\nKKK\nKKFFF\n.");
}

static void marks_of_items_stand_out(void **state)
{
    (void)state;
    expect("- a\n* b\n+ c\n-d\n---", "M..\nM..\nM..\n..\n...");
    expect("1. a\n12) b\n1.5\n1234567890. c", "MM..\nMMM..\n...\n.............");
    expect("  - **a**", "..M.BBBBB");
    expect("* **a** b", "M.BBBBB..");
    expect("> - a", "..M..");
}

static void a_mark_too_long_is_none(void **state)
{
    char text[200];
    struct strbuf looks = {0}, same = {0};
    (void)state;
    memset(text, '`', sizeof(text));
    looks_of(text, sizeof(text), &looks, &same);
    for (size_t i = 0; i < looks.n_bytes; i++)
        assert_int_equal(looks.ptr[i], '.');
    strbuf_finish(&looks);
    strbuf_finish(&same);
}

static void noise_comes_out_as_it_went_in(void **state)
{
    static const char set[] = "`*#-+~1.) \n\\>ab\t";
    uint32_t seed = 1;
    (void)state;
    for (size_t round = 0; round < 2000; round++) {
        char text[120];
        struct strbuf looks = {0}, same = {0};
        for (size_t i = 0; i < sizeof(text); i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = set[(seed >> 16) % (sizeof(set) - 1)];
        }
        looks_of(text, sizeof(text), &looks, &same);
        assert_memory_equal(same.ptr, text, sizeof(text));
        strbuf_finish(&looks);
        strbuf_finish(&same);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headings_are_whole_lines),
        cmocka_unit_test(bold_begins_before_a_word_and_ends_after_one),
        cmocka_unit_test(code_runs_between_equal_runs_of_backticks),
        cmocka_unit_test(fences_go_on_over_lines),
        cmocka_unit_test(marks_of_items_stand_out),
        cmocka_unit_test(a_mark_too_long_is_none),
        cmocka_unit_test(noise_comes_out_as_it_went_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
