/*
 * Cleaning, measuring and cutting text for a terminal.
 */
#include "app/common/term_text.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void expect_clean(const char *in, size_t n_bytes, const char *out)
{
    struct strbuf b = {0};
    term_text_clean((struct bn_str){in, n_bytes}, TERM_KEEP_LINES, &b);
    assert_string_equal(strbuf_text(&b), out);
    strbuf_finish(&b);
}
#define R "\xef\xbf\xbd" /* U+FFFD */

static void controls_and_overrides_are_replaced(void **state)
{
    (void)state;
    expect_clean("a\x1b[2Jb", 6, "a" R "[2Jb");
    expect_clean("\r\n\t\0\x7f", 5, R "\n\t" R R);
    expect_clean("\xc2\x9b" /* CSI of C1 */
                 "31m",
                 5, R "31m");
    expect_clean("\xe2\x80\xae" /* override, then isolate */
                 "x\xe2\x81\xa6",
                 7, R "x" R);
    expect_clean("\xe2\x80\xa8", 3, R);     /* line separator */
    expect_clean("\xf3\xa0\x81\x81", 4, R); /* tag */
}

static void invalid_utf8_becomes_one_replacement_per_byte(void **state)
{
    (void)state;
    expect_clean("\xff\xfe", 2, R R);
    expect_clean("\xe6\xbc", 2, R R);
    expect_clean("\xc0\xaf", 2, R R);       /* overlong */
    expect_clean("\xed\xa0\x80", 3, R R R); /* surrogate */
    expect_clean("\xf4\x90\x80\x80", 4, R R R R);
    expect_clean("\xe6\xbc\xa2", 3, "\xe6\xbc\xa2");
}

static void every_byte_pair_comes_out_as_valid_text_without_controls(void **state)
{
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            const char in[2] = {(char)a, (char)b};
            struct strbuf out = {0}, again = {0};
            term_text_clean((struct bn_str){in, 2}, TERM_KEEP_LINES, &out);
            for (size_t i = 0; i < out.n_bytes; i++)
                assert_true((unsigned char)out.ptr[i] >= 0x20 || out.ptr[i] == '\n' ||
                            out.ptr[i] == '\t');
            assert_int_equal(term_text_repair(strbuf_str(&out), &again), SIZE_MAX);
            strbuf_finish(&out);
            strbuf_finish(&again);
        }
    }
}

static void escaped_texts_differ_if_the_texts_do(void **state)
{
    (void)state;
    struct strbuf b = {0};
    term_text_escape(bn_str_of("a\n\\n\t\\t \xc3\xb6"), &b);
    assert_string_equal(strbuf_text(&b), "a\\n\\\\n\\t\\\\t \xc3\xb6");
    strbuf_cut(&b, 0);
    term_text_escape(bn_str_of("\x1b[\x7f\xc2\x9b\xe2\x80\xa8\xc3"), &b);
    assert_string_equal(strbuf_text(&b), "\\x1B[\\x7F\\xC2\\x9B\\xE2\\x80\\xA8\\xC3");
    strbuf_cut(&b, 0);
    term_text_escape(bn_str_of("\xef\xbf\xbd"), &b); /* U+FFFD itself is harmless */
    assert_string_equal(strbuf_text(&b), "\xef\xbf\xbd");
    strbuf_finish(&b);
}

static void widths_are_columns_of_the_terminal(void **state)
{
    (void)state;
    assert_int_equal(term_text_width(bn_str_of("abc")), 3);
    assert_int_equal(term_text_width(bn_str_of("\xe6\xbc\xa2\xe5\xad\x97")), 4);
    assert_int_equal(term_text_width(bn_str_of("e\xcc\x81")), 1);
    assert_int_equal(term_text_width(bn_str_of("\x1b")), 1);
}

static void cuts_between_characters(void **state)
{
    (void)state;
    assert_int_equal(term_text_fit(bn_str_of("\xe6\xbc\xa2\xe5\xad\x97"), 3), 3);
    assert_int_equal(term_text_fit(bn_str_of("abc"), 10), 3);
    for (size_t width = 0; width <= 12; width++) {
        struct strbuf b = {0};
        term_text_brief(bn_str_of("one two\nthree"), width, &b);
        assert_true(term_text_width(strbuf_str(&b)) <= width);
        strbuf_finish(&b);
    }
}

static void a_cut_text_has_one_mark(void **state)
{
    (void)state;
    for (size_t width = 9; width <= 11; width++) {
        struct strbuf b = {0};
        term_text_brief(bn_str_of("one l ... end"), width, &b);
        assert_string_equal(strbuf_text(&b), "one l ...");
        strbuf_finish(&b);
    }
}

static void repair_returns_the_first_invalid_offset(void **state)
{
    struct strbuf b = {0};
    (void)state;
    assert_int_equal(term_text_repair(bn_str_of("ab\xff\x1b"), &b), 2);
    assert_string_equal(strbuf_text(&b), "ab" R "\x1b");
    strbuf_finish(&b);
}

static void a_cluster_is_a_character_with_all_that_combines(void **state)
{
    static const struct {
        const char *text;
        size_t n_bytes; /* of the first cluster */
    } cases[] = {
        {"ab", 1},
        {"e\xcc\x81x", 3}, /* e with an accent */
        {"\n\xcc\x81", 1},
        {"a\xe2\x80\x8d\xf0\x9f\x98\x80x", 8},                   /* a, a joiner, an emoji */
        {"\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbdx", 8},                /* a thumb with a skin tone */
        {"\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xf0\x9f\x87\xab", 8}, /* a flag, half of another */
        {"a\xe2\x80\x8d\nb", 4}, /* a newline or a tab never joins */
        {"a\xe2\x80\x8d\tb", 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(term_text_cluster(bn_str_of(cases[i].text), 0), cases[i].n_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_and_overrides_are_replaced),
        cmocka_unit_test(invalid_utf8_becomes_one_replacement_per_byte),
        cmocka_unit_test(every_byte_pair_comes_out_as_valid_text_without_controls),
        cmocka_unit_test(escaped_texts_differ_if_the_texts_do),
        cmocka_unit_test(widths_are_columns_of_the_terminal),
        cmocka_unit_test(cuts_between_characters),
        cmocka_unit_test(a_cut_text_has_one_mark),
        cmocka_unit_test(repair_returns_the_first_invalid_offset),
        cmocka_unit_test(a_cluster_is_a_character_with_all_that_combines),
    };
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* for character widths */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
