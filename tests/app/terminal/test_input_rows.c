/*
 * Rows of the line editor and the place of its cursor. test_scroll.c and the tests of the painters
 * cover the rest.
 */
#include "app/terminal/line/input_rows.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The cursor with this text, point and width, without a prompt. The bytes before the cursor in its
 * row are `before`. */
static void expect(const char *text, size_t point, size_t columns, size_t row, size_t column,
                   const char *before)
{
    struct input_rows r = {0};
    input_rows_make(&r, "", bn_str_of(text), point, columns);
    assert_int_equal(r.cursor_row, row);
    assert_int_equal(r.cursor_column, column);
    const struct bn_str got = input_rows_before(&r);
    assert_int_equal(got.n_bytes, strlen(before));
    assert_memory_equal(got.ptr, before, got.n_bytes);
    input_rows_finish(&r);
}

static void the_cursor_is_at_its_character(void **state)
{
    (void)state;
    expect("abc", 1, 6, 0, 1, "a");
    expect("abc", 3, 6, 0, 3, "abc");
    expect("abcdefg", 6, 6, 1, 0, "");
    expect("abcdefg", 7, 6, 1, 1, "g");
    expect("abcdef", 6, 6, 1, 0, ""); /* the row is full */
    expect("ab\ncd", 2, 6, 0, 2, "ab");
    expect("ab\ncd", 3, 6, 1, 0, "");
}

/* One column is left in the row, and the character needs two. */
static void the_cursor_goes_with_a_character_into_its_row(void **state)
{
    (void)state;
    expect("abcde\xe4\xb8\xad"
           "x",
           5, 6, 1, 0, "");
    expect("abcde\xe4\xb8\xad"
           "x",
           8, 6, 1, 2, "\xe4\xb8\xad");
    expect("abcde\001", 5, 6, 0, 5, "abcde"); /* the ^ of ^A still fits */
    expect("abcde\n\xe4\xb8\xad", 5, 6, 0, 5, "abcde");
}

int main(void)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8"); /* for character widths */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cursor_is_at_its_character),
        cmocka_unit_test(the_cursor_goes_with_a_character_into_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
