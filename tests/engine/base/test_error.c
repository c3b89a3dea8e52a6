/*
 * Errors: code and text are set, prefixes are added in front, long texts are cut without overflow.
 */
#include "engine/base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void fail_sets_code_and_message(void **state)
{
    (void)state;
    struct bn_error err = {0};
    assert_false(bn_fail(&err, BN_EFORMAT, "tensor '%s' needs %d bytes", "x", 7));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_string_equal(err.text, "tensor 'x' needs 7 bytes");
}

static void prefix_keeps_code_and_message(void **state)
{
    (void)state;
    struct bn_error err = {0};
    (void)bn_fail(&err, BN_EIO, "no space");
    assert_false(bn_fail_prefix(&err, "writing %s", "a.json"));
    assert_int_equal(err.code, BN_EIO);
    assert_string_equal(err.text, "writing a.json: no space");
}

static void long_messages_are_cut(void **state)
{
    (void)state;
    struct bn_error err = {0};
    char text[2000];
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    (void)bn_fail(&err, BN_EARG, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    (void)bn_fail_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    (void)bn_fail(&err, BN_EARG, "short");
    (void)bn_fail_prefix(&err, "%.490s", text);
    assert_int_equal(strlen(err.text), 490 + strlen(": short"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_sets_code_and_message),
        cmocka_unit_test(prefix_keeps_code_and_message),
        cmocka_unit_test(long_messages_are_cut),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
