/*
 * Strings without a terminator: lines are split at newlines, cuts keep characters whole.
 */
#include "engine/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check_lines(struct bn_str text, size_t n, const struct bn_str *expected)
{
    struct bn_str line = {0}; /* gcc does not see that it is always set */
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        assert_true(bn_str_next_line(text, &at, &line));
        assert_true(bn_str_equal(line, expected[i]));
    }
    assert_int_equal(at, text.n_bytes);
    assert_false(bn_str_next_line(text, &at, &line));
    assert_int_equal(at, text.n_bytes);
}

static void a_text_is_split_at_newlines(void **state)
{
    (void)state;
    const struct bn_str a = bn_str_of("a"), b = bn_str_of("b\r"), empty = bn_str_of("");
    check_lines((struct bn_str){0}, 0, NULL);
    check_lines(bn_str_of("a"), 1, &a);
    check_lines(bn_str_of("a\n"), 1, &a);
    check_lines(bn_str_of("\n"), 1, &empty);
    check_lines(bn_str_of("a\nb\r"), 2, (const struct bn_str[]){a, b});
    check_lines(bn_str_of("\na\n\nb\r\n\n"), 5, (const struct bn_str[]){empty, a, empty, b, empty});
    check_lines((struct bn_str){"a\nb", 2}, 1, &a); /* the text ends before b */
    check_lines((struct bn_str){"x\0y\na", 5}, 2, (const struct bn_str[]){{"x\0y", 3}, a});
}

static void a_shown_length_ends_between_characters(void **state)
{
    (void)state;
    const struct bn_str text = bn_str_of("a\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80z");
    static const int shown[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11};
    for (size_t most = 0; most < sizeof(shown) / sizeof(shown[0]); most++)
        assert_int_equal(bn_str_shown(text, most), shown[most]);
    assert_int_equal(bn_str_shown((struct bn_str){0}, 5), 0);
    /* Continuation bytes without a first byte are not text: the result stays near the limit. */
    assert_int_equal(bn_str_shown(bn_str_of("\x80\x80\x80\x80\x80\x80\x80"), 6), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_split_at_newlines),
        cmocka_unit_test(a_shown_length_ends_between_characters),
    };
    return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
