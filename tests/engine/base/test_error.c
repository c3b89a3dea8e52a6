/*
 * Errors: code and text are set, prefixes are added in front, long texts are cut without overflow.
 */
#include "engine/base/error.h"
#include "engine/base/utf8.h"

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

/* The character has two bytes. With 0 and 1 byte before it, one of the cuts is inside it. */
static void a_cut_keeps_characters_whole(void **state)
{
    (void)state;
    struct bn_error err = {0};
    char text[1001];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = "\xc3\xa9"[i % 2];
    text[sizeof(text) - 1] = 0;
    for (int n_before = 0; n_before < 2; n_before++) {
        (void)bn_fail(&err, BN_EARG, "%.*s%s", n_before, "a", text);
        assert_int_equal(utf8_valid_bytes(err.text, strlen(err.text)), strlen(err.text));
        assert_in_range(strlen(err.text), sizeof(err.text) - 2, sizeof(err.text) - 1);
        (void)bn_fail(&err, BN_EARG, "%.*s", 400, text);
        (void)bn_fail_prefix(&err, "%.*s%.*s", n_before, "a", 200, text);
        assert_int_equal(utf8_valid_bytes(err.text, strlen(err.text)), strlen(err.text));
        assert_in_range(strlen(err.text), sizeof(err.text) - 2, sizeof(err.text) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_sets_code_and_message),
        cmocka_unit_test(prefix_keeps_code_and_message),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(a_cut_keeps_characters_whole),
    };
    return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
