/*
 * Streaming text: the output is the same however the stream is cut into pieces.
 */
#include "app/common/term_text.h"
#include "app/terminal/text/flow.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char sample[] =
    "The quick brown fox, a veryveryveryverylongword and \xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2"
    "\xe5\xad\x97 wide ones.\n\n```c\nint   main(void)  { return 0; /* long line */ }\n```\n"
    "- a list item that wraps\n  12) \xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2 in a nested one\n"
    "> a quote that wraps\n> - >>\xe6\xbc\xa2\xe5\xad\x97 in it\n"
    "\ttab  and\x1b[31m controls \xff broken\xe2\x82";

static void flow_all(size_t columns, enum flow_wrap wrap, size_t piece, struct strbuf *out)
{
    struct flow f = {0};
    const struct bn_str all = {sample, sizeof(sample) - 1};
    flow_init(&f, columns, wrap, FLOW_ANSWER, NULL);
    for (size_t at = 0; at < all.n_bytes; at += piece)
        flow_add(&f,
                 (struct bn_str){all.ptr + at, all.n_bytes - at < piece ? all.n_bytes - at : piece},
                 out);
    flow_flush(&f, out);
    flow_finish(&f);
}

static void pieces_give_the_output_of_the_whole(void **state)
{
    (void)state;
    for (size_t columns = 1; columns <= 60; columns++) {
        for (int wrap = FLOW_WRAP; wrap <= FLOW_NO_WRAP; wrap++) {
            struct strbuf whole = {0};
            flow_all(columns, (enum flow_wrap)wrap, sizeof(sample), &whole);
            for (size_t piece = 1; piece <= 7; piece++) {
                struct strbuf cut = {0};
                flow_all(columns, (enum flow_wrap)wrap, piece, &cut);
                assert_string_equal(strbuf_text(&cut), strbuf_text(&whole));
                strbuf_finish(&cut);
            }
            strbuf_finish(&whole);
        }
    }
}

static void no_row_of_prose_is_wider_than_the_terminal(void **state)
{
    (void)state;
    for (size_t columns = 4; columns <= 60; columns++) {
        struct strbuf out = {0};
        struct flow f = {0};
        flow_init(&f, columns, FLOW_WRAP, FLOW_ANSWER, NULL);
        flow_add(&f, (struct bn_str){sample, strstr(sample, "```") - sample}, &out);
        flow_flush(&f, &out);
        for (const char *line = strbuf_text(&out); *line;) {
            const size_t n = strcspn(line, "\n");
            assert_true(term_text_width((struct bn_str){line, n}) <= columns - 1);
            line += n + (line[n] == '\n');
        }
        flow_finish(&f);
        strbuf_finish(&out);
    }
}

static void breaks_between_words_and_never_within(void **state)
{
    struct strbuf out = {0};
    struct flow f = {0};
    (void)state;
    flow_init(&f, 11, FLOW_WRAP, FLOW_ANSWER, NULL);
    flow_add(&f, bn_str_of("one two three four"), &out);
    flow_flush(&f, &out);
    assert_string_equal(strbuf_text(&out), "one two\nthree four");
    flow_finish(&f);
    strbuf_finish(&out);
}

/* Chinese has no blanks between words. Each character is written when the next one is known, and a
 * full stop does not begin a row. */
static void chinese_is_written_character_by_character(void **state)
{
    struct flow f = {0};
    struct strbuf out = {0};
    (void)state;
    flow_init(&f, 9, FLOW_WRAP, FLOW_ANSWER, NULL);
    flow_add(&f, bn_str_of("\xe4\xb8\xad\xe6\x96\x87"), &out); /* two ideographs */
    assert_string_equal(strbuf_text(&out), "\xe4\xb8\xad");
    flow_add(&f, bn_str_of("ab\xe4\xb8\xad"), &out);
    assert_string_equal(strbuf_text(&out), "\xe4\xb8\xad\xe6\x96\x87"
                                           "ab");
    flow_add(&f, bn_str_of("\xe3\x80\x82\xe6\x96\x87"), &out); /* an ideographic full stop */
    flow_flush(&f, &out);
    assert_string_equal(strbuf_text(&out), "\xe4\xb8\xad\xe6\x96\x87"
                                           "ab\n\xe4\xb8\xad\xe3\x80\x82\xe6\x96\x87");
    flow_finish(&f);
    strbuf_finish(&out);
}

static void expect_wrapped(const char *text, size_t columns, enum flow_kind kind,
                           const char *expected)
{
    struct strbuf out = {0};
    struct flow f = {0};
    flow_init(&f, columns, FLOW_WRAP, kind, NULL);
    for (size_t i = 0; text[i]; i++)
        flow_add(&f, (struct bn_str){text + i, 1}, &out);
    flow_flush(&f, &out);
    assert_string_equal(strbuf_text(&out), expected);
    flow_finish(&f);
    strbuf_finish(&out);
}

static void rows_of_items_and_quotes_begin_below_text(void **state)
{
    (void)state;
    expect_wrapped("- one two three\nfour five", 8, FLOW_ANSWER,
                   "- one\n  two\n  three\nfour\nfive");
    expect_wrapped("* a **b c** d e", 8, FLOW_ANSWER, "* a **b\n  c** d\n  e");
    expect_wrapped("+ a\n  + b c d\n", 7, FLOW_ANSWER, "+ a\n  + b\n   c d\n"); /* room is left */
    expect_wrapped("12. a b c d\n10) e f g", 9, FLOW_ANSWER, "12. a b\n    c d\n10) e f\n    g");
    expect_wrapped("1. a\n\n   b c d e f", 9, FLOW_ANSWER, "1. a\n\n   b c d\n   e f");
    expect_wrapped("- - a b c", 10, FLOW_ANSWER, "- - a b c");
    expect_wrapped("- - a b c d", 10, FLOW_ANSWER, "- - a b c\n    d");
    expect_wrapped("- \xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 7, FLOW_ANSWER,
                   "- \xe6\xbc\xa2\xe5\xad\x97\n  \xe6\xbc\xa2");
    expect_wrapped("- abcdefghijklmn op", 8, FLOW_THOUGHT, "- abcde\n  fghij\n  klmn\n  op");
    expect_wrapped("- abcd", 1, FLOW_ANSWER, "-\na\nb\nc\nd");
    expect_wrapped("> one two three\n>four five", 8, FLOW_ANSWER,
                   "> one\n  two\n  three\n>four\n five");
    expect_wrapped("> > a b c d e\n> - a b c d e", 13, FLOW_THOUGHT,
                   "> > a b c d\n    e\n> - a b c d\n    e");
    expect_wrapped(">\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 6, FLOW_ANSWER,
                   ">\xe6\xbc\xa2\xe5\xad\x97\n \xe6\xbc\xa2");
    expect_wrapped("a > b c", 6, FLOW_ANSWER, "a > b\nc");
    /* A word that begins left of the text has the whole row. */
    expect_wrapped(">>>>abcdefgh", 14, FLOW_ANSWER, ">>>>abcdefgh");
    expect_wrapped(">>>>abcdefgh", 13, FLOW_ANSWER, ">>>>abcdefgh");
    expect_wrapped(">>>abcdefgh", 11, FLOW_ANSWER, ">>>abcdefg\n   h");
    expect_wrapped(">https://example.org/a/b", 20, FLOW_ANSWER, ">https://example.or\n g/a/b");
    expect_wrapped(">>>>>>>>https://example.org/a", 30, FLOW_ANSWER,
                   ">>>>>>>>https://example.org/a");
    expect_wrapped("-5 is no list item", 9, FLOW_ANSWER, "-5 is no\nlist\nitem");
    expect_wrapped("- one two three", 8, FLOW_MESSAGE, "- one\ntwo\nthree");
    expect_wrapped("n  12  one two three\n- one", 20, FLOW_TABLE,
                   "n  12  one two\n       three\n- one");
    expect_wrapped("name  one two three", 12, FLOW_TABLE, "name  one\n  two three"); /* narrow */
    expect_wrapped(
        "name  a value and more  one two three", 35, FLOW_TABLE,
        "name  a value and more  one two\n  three"); /* 24 is more than two thirds of 34 */
    expect_wrapped("a  b c", 2, FLOW_TABLE, "a\nb\nc");
}

static void a_deep_quote_is_not_indented(void **state)
{
    (void)state;
    expect_wrapped(">>> a b c d", 10, FLOW_ANSWER, ">>> a b c\nd"); /* more than a third */
    expect_wrapped("> - a b c d", 13, FLOW_ANSWER, "> - a b c d");
    expect_wrapped("> - a b c d e", 13, FLOW_ANSWER, "> - a b c d\n    e");
    expect_wrapped(">>>>>>>>>>>>>> a b c d e", 13, FLOW_ANSWER, ">>>>>>>>>>>>\n>> a b c d e");
    expect_wrapped(">>>>>>>>>>>>>> a b c d e f", 13, FLOW_THOUGHT, ">>>>>>>>>>>>\n>> a b c d e\nf");
    expect_wrapped("> > > > > > > one two three", 12, FLOW_ANSWER, "> > > > > >\n> one two\nthree");
}

/* A message or a saved part of the answer may come within an item. */
static void an_interrupted_list_item_goes_on_below_its_text(void **state)
{
    struct strbuf out = {0};
    struct flow f = {0};
    (void)state;
    flow_init(&f, 12, FLOW_WRAP, FLOW_ANSWER, NULL);
    flow_skip(&f, bn_str_of("- skipped te"));
    flow_add(&f, bn_str_of("xt and more "), &out);
    assert_string_equal(strbuf_text(&out), "  xt and\n  more");
    strbuf_cut(&out, 0);
    flow_pause(&f);
    flow_begin_row(&f);
    flow_add(&f, bn_str_of("behind a message\nb "), &out);
    assert_string_equal(strbuf_text(&out), "  behind a\n  message\nb");
    flow_finish(&f);
    strbuf_finish(&out);
}

/* A message comes between the two texts. */
static void expect_after_pause(const char *before, const char *text, enum flow_wrap wrap,
                               const char *expected)
{
    struct strbuf out = {0};
    struct flow f = {0};
    flow_init(&f, 12, wrap, FLOW_ANSWER, NULL);
    flow_add(&f, bn_str_of(before), &out);
    flow_pause(&f);
    flow_begin_row(&f);
    strbuf_cut(&out, 0);
    flow_add(&f, bn_str_of(text), &out);
    flow_flush(&f, &out);
    assert_string_equal(strbuf_text(&out), expected);
    flow_finish(&f);
    strbuf_finish(&out);
}

static void text_after_a_message_begins_without_blanks(void **state)
{
    (void)state;
    expect_after_pause("- one ", " two three", FLOW_WRAP, "  two three");
    expect_after_pause("- one ", " \n- two", FLOW_WRAP, "- two");
    expect_after_pause("- one", " two", FLOW_WRAP, "  one two"); /* the word was held back */
    expect_after_pause("- one", " \n- two", FLOW_WRAP, "  one\n- two");
    expect_after_pause("one\n ", " two", FLOW_WRAP, "  two"); /* an indentation of the text */
    expect_after_pause("one", " two", FLOW_NO_WRAP, "two");
    expect_after_pause("```\none", "  two\n", FLOW_WRAP, "  two\n");
    expect_after_pause("```\none", "\ntwo\n", FLOW_WRAP, "\ntwo\n");
}

/* The text that follows the skipped text ends its line at once. */
static void a_line_after_a_skipped_one_is_not_indented(void **state)
{
    static const char *const cases[][2] = {
        {"\n- two three four", "- two three\n  four"},
        {"\none two three four", "one two\nthree four"},
        {" \n  one two three four", "  one two\n  three\n  four"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct strbuf out = {0};
        struct flow f = {0};
        flow_init(&f, 12, FLOW_WRAP, FLOW_ANSWER, NULL);
        flow_skip(&f, bn_str_of("- item one"));
        flow_add(&f, bn_str_of(cases[i][0]), &out);
        flow_flush(&f, &out);
        assert_string_equal(strbuf_text(&out), cases[i][1]);
        flow_finish(&f);
        strbuf_finish(&out);
    }
}

static void an_answer_is_not_indented_like_a_skipped_thought(void **state)
{
    struct strbuf out = {0};
    struct flow f = {0};
    (void)state;
    flow_init(&f, 12, FLOW_WRAP, FLOW_THOUGHT, NULL);
    flow_skip(&f, bn_str_of("- thought"));
    flow_set_kind(&f, FLOW_ANSWER, &out);
    flow_skip(&f, bn_str_of("one"));
    flow_add(&f, bn_str_of(" two three four"), &out);
    flow_flush(&f, &out);
    assert_string_equal(strbuf_text(&out), "two three\nfour");
    flow_finish(&f);
    strbuf_finish(&out);
}

static void a_later_row_of_a_list_item_fits_a_new_width(void **state)
{
    struct strbuf out = {0};
    struct flow f = {0};
    (void)state;
    flow_init(&f, 20, FLOW_WRAP, FLOW_ANSWER, NULL);
    flow_add(&f, bn_str_of("12. one two three four five six "), &out);
    assert_string_equal(strbuf_text(&out), "12. one two three\n    four five six");
    strbuf_cut(&out, 0);
    flow_rewrite_row(&f, 6, &out); /* fewer blanks, so that room is left for text */
    assert_string_equal(strbuf_text(&out), "  fou\n  r\n  fiv\n  e\n  six");
    strbuf_cut(&out, 0);
    flow_rewrite_row(&f, 20, &out);
    flow_add(&f, bn_str_of("seven eight "), &out);
    assert_string_equal(strbuf_text(&out), "    six seven eight");
    flow_finish(&f);
    strbuf_finish(&out);
}

static void code_keeps_its_blanks_and_lines(void **state)
{
    struct strbuf out = {0};
    (void)state;
    flow_all(20, FLOW_WRAP, sizeof(sample), &out);
    assert_non_null(strstr(strbuf_text(&out), "int   main(void)  { return 0; /* long line */ }\n"));
    strbuf_finish(&out);
}

static void shows_no_control_and_no_broken_byte(void **state)
{
    struct strbuf out = {0};
    (void)state;
    flow_all(200, FLOW_NO_WRAP, 1, &out);
    assert_null(strchr(strbuf_text(&out), 0x1b));
    assert_null(strchr(strbuf_text(&out), 0xff));
    assert_non_null(strstr(strbuf_text(&out), "and\xef\xbf\xbd[31m"));
    strbuf_finish(&out);
}

static void a_narrower_terminal_gets_the_last_row_again(void **state)
{
    struct strbuf out = {0};
    struct flow f = {0};
    (void)state;
    flow_init(&f, 40, FLOW_WRAP, FLOW_ANSWER, NULL);
    flow_add(&f, bn_str_of("first row\none two three four five six "), &out);
    assert_int_equal(f.column, 27);
    assert_int_equal(flow_rows_up(&f, 10), 2); /* 27 columns take three rows of 10 */
    strbuf_cut(&out, 0);
    flow_rewrite_row(&f, 10, &out);
    assert_string_equal(strbuf_text(&out), "one two\nthree\nfour five\nsix");
    flow_add(&f, bn_str_of("seven"), &out);
    flow_flush(&f, &out);
    assert_string_equal(strbuf_text(&out), "one two\nthree\nfour five\nsix seven");
    flow_finish(&f);
    strbuf_finish(&out);
}

static const struct flow_looks marks = {{"<>", "<h>", "<b>", "<c>", "<c>", "<f>", "<m>", "<d>"}};

static void expect_painted(const char *text, enum flow_kind kind, const char *expected)
{
    struct strbuf out = {0};
    struct flow f = {0};
    flow_init(&f, 12, FLOW_WRAP, kind, &marks);
    for (size_t i = 0; text[i]; i++)
        flow_add(&f, (struct bn_str){text + i, 1}, &out);
    flow_flush(&f, &out);
    flow_reset_look(&f, &out);
    assert_string_equal(strbuf_text(&out), expected);
    flow_finish(&f);
    strbuf_finish(&out);
}

static void looks_are_set_once_and_ended(void **state)
{
    (void)state;
    expect_painted("a **b c** d", FLOW_ANSWER, "a <b>**b c** <>d");
    expect_painted("# a\nb", FLOW_ANSWER, "<h># a\n<>b");
    expect_painted("a\n```\n`\n```\nb", FLOW_ANSWER, "a\n<f>```\n<><c>`\n<><f>```\n<>b");
    expect_painted("`a` **b**", FLOW_THOUGHT, "<d>`a` **b**<>");
    expect_painted("`a` **b**", FLOW_MESSAGE, "`a` **b**");
    expect_painted("**a word or two** b", FLOW_ANSWER, "<b>**a word or\ntwo** <>b");
}

/* Append the characters of `out` as they are seen, each after the look that it has if this is
 * another one than before. The look of a newline is not seen. */
static void add_seen(const char *out, struct strbuf *seen)
{
    char now[8] = "<>", shown[8] = "<>";
    for (const char *at = out; *at; at++) {
        if (*at == '<') {
            const size_t n = strcspn(at, ">") + 1;
            assert_true(n < sizeof(now));
            memcpy(now, at, n);
            now[n] = 0;
            at += n - 1;
            continue;
        }
        if (*at != '\n' && strcmp(now, shown) != 0) {
            strbuf_add_text(seen, now);
            memcpy(shown, now, sizeof(shown));
        }
        strbuf_add_char(seen, *at);
    }
}

/* The status row resets the look when it is painted, which may be after any token. So the blanks,
 * too, must have a look that does not depend on it. */
static void looks_do_not_depend_on_the_pieces(void **state)
{
    static const char text[] = "# a b  c\n- **one** `two`  three\n1. `four` **five six** and more\n"
                               "**bold**\n  in **a b**\n```c\n  int   x;\n```\n> `q`  *r* s";
    (void)state;
    for (size_t columns = 3; columns <= 40; columns++) {
        for (int kind = FLOW_ANSWER; kind <= FLOW_THOUGHT; kind++) {
            struct strbuf whole = {0};
            for (size_t piece = sizeof(text) - 1; piece > 0; piece = piece > 7 ? 7 : piece - 1) {
                struct flow f = {0};
                struct strbuf out = {0}, seen = {0};
                flow_init(&f, columns, FLOW_WRAP, (enum flow_kind)kind, &marks);
                for (const char *at = text; *at;) {
                    const size_t n = strnlen(at, piece);
                    flow_add(&f, (struct bn_str){at, n}, &out);
                    flow_reset_look(&f, &out);
                    at += n;
                }
                flow_flush(&f, &out);
                add_seen(strbuf_text(&out), &seen);
                if (whole.n_bytes == 0)
                    strbuf_add_str(&whole, strbuf_str(&seen));
                assert_string_equal(strbuf_text(&seen), strbuf_text(&whole));
                flow_finish(&f);
                strbuf_finish(&out);
                strbuf_finish(&seen);
            }
            strbuf_finish(&whole);
        }
    }
}

/* Cut the text at every byte: the second painter prints exactly what the first has not printed. A
 * line that the first painter has begun continues behind an indentation. */
static void a_second_painter_prints_the_rest(void **state)
{
    static const char text[] =
        "One *two* **three four** `f\xC3\xA9` 12. x\n- item 1\n  more\n\npara\n"
        "```\nco de\n```\n# End";
    (void)state;
    for (int wrap = FLOW_WRAP; wrap <= FLOW_NO_WRAP; wrap++) {
        for (size_t cut = 0; cut < sizeof(text); cut++) {
            struct flow first = {0}, second = {0};
            struct strbuf shown = {0}, added = {0};
            flow_init(&first, 40, (enum flow_wrap)wrap, FLOW_ANSWER, NULL);
            flow_init(&second, 40, (enum flow_wrap)wrap, FLOW_ANSWER, NULL);
            flow_add(&first, (struct bn_str){text, cut}, &shown);
            const size_t n_shown = cut - flow_n_pending(&first);
            flow_skip(&second, (struct bn_str){text, n_shown});
            assert_int_equal(second.column, 0);
            flow_add(&second, bn_str_of(text + n_shown), &added);
            flow_flush(&second, &added);
            const char *rest = text + n_shown;
            size_t n_indent = 0;
            if (n_shown > 0 && text[n_shown - 1] != '\n') {
                rest += strspn(rest, " ");
                n_indent = strspn(strbuf_text(&added), " ");
                if (*rest == '\n') {
                    rest++;
                    n_indent = 0;
                }
            }
            assert_string_equal(strbuf_text(&added) + n_indent, rest);
            flow_finish(&first);
            flow_finish(&second);
            strbuf_finish(&shown);
            strbuf_finish(&added);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_give_the_output_of_the_whole),
        cmocka_unit_test(no_row_of_prose_is_wider_than_the_terminal),
        cmocka_unit_test(breaks_between_words_and_never_within),
        cmocka_unit_test(chinese_is_written_character_by_character),
        cmocka_unit_test(rows_of_items_and_quotes_begin_below_text),
        cmocka_unit_test(a_deep_quote_is_not_indented),
        cmocka_unit_test(an_interrupted_list_item_goes_on_below_its_text),
        cmocka_unit_test(text_after_a_message_begins_without_blanks),
        cmocka_unit_test(a_line_after_a_skipped_one_is_not_indented),
        cmocka_unit_test(an_answer_is_not_indented_like_a_skipped_thought),
        cmocka_unit_test(a_later_row_of_a_list_item_fits_a_new_width),
        cmocka_unit_test(code_keeps_its_blanks_and_lines),
        cmocka_unit_test(shows_no_control_and_no_broken_byte),
        cmocka_unit_test(a_narrower_terminal_gets_the_last_row_again),
        cmocka_unit_test(looks_are_set_once_and_ended),
        cmocka_unit_test(looks_do_not_depend_on_the_pieces),
        cmocka_unit_test(a_second_painter_prints_the_rest),
    };
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* for character widths */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
