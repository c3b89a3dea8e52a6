/*
 * Finding code blocks in an answer.
 */
#include "app/terminal/clipboard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(const char *text, size_t number, const char *code)
{
    struct bn_str block;
    assert_true(clipboard_code_block(bn_str_of(text), number, &block));
    assert_true(bn_str_is(block, code));
}

static void blocks_are_found_in_order(void **state)
{
    static const char text[] = "Try:\n```c\nint x;\n```\nor\n~~~\na\nb\n~~~\nend";
    (void)state;
    assert_int_equal(clipboard_code_count(bn_str_of(text)), 2);
    expect(text, 1, "int x;\n");
    expect(text, 2, "a\nb\n");
}

static void a_fence_within_a_longer_one_is_code(void **state)
{
    static const char text[] = "````md\n```\nx\n```\n````\n";
    (void)state;
    assert_int_equal(clipboard_code_count(bn_str_of(text)), 1);
    expect(text, 1, "```\nx\n```\n");
    expect("```\n~~~\n```", 1, "~~~\n");
    expect("```\n```c\n```\n", 1, "```c\n");
}

static void a_block_that_is_cut_off_goes_to_the_end(void **state)
{
    (void)state;
    expect("```\nhalf a li", 1, "half a li");
    expect("```", 1, "");
    expect("   ```sh\nls\n   ```  \n", 1, "ls\n");
}

static void other_numbers_have_no_block(void **state)
{
    struct bn_str block;
    (void)state;
    assert_false(clipboard_code_block(bn_str_of("```\nx\n```"), 2, &block));
    assert_false(clipboard_code_block(bn_str_of("```\nx\n```"), 0, &block));
    assert_int_equal(clipboard_code_count(bn_str_of("a ``` b\n``\n    ```\n")), 0);
    assert_int_equal(clipboard_code_count((struct bn_str){0}), 0);
    assert_int_equal(clipboard_code_count(bn_str_of("```x``` is inline\n```\ny\n```\n")), 1);
    expect("```x``` is inline\n~~~c `d`\ny\n~~~\n", 1, "y\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_found_in_order),
        cmocka_unit_test(a_fence_within_a_longer_one_is_code),
        cmocka_unit_test(a_block_that_is_cut_off_goes_to_the_end),
        cmocka_unit_test(other_numbers_have_no_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
