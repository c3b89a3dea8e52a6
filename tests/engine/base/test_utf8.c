/*
 * UTF-8: every code point there and back, and the ill-formed sequences of the standard.
 */
#include "engine/base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void decodes_every_code_point(void **state)
{
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        char bytes[4];
        uint32_t back = UINT32_MAX;
        const size_t n = utf8_encode(cp, bytes);
        const size_t n_read = utf8_decode(bytes, n, &back);
        if (cp >= 0xD800 && cp <= 0xDFFF) {
            assert_int_equal(n, 0);
            continue;
        }
        assert_int_equal(n_read, n);
        assert_int_equal(back, cp);
        assert_int_equal(utf8_decode(bytes, n - 1, NULL), 0);
    }
    char bytes[4];
    assert_int_equal(utf8_encode(0x110000, bytes), 0);
}

static void refuses_ill_formed_bytes(void **state)
{
    (void)state;
    const char *const bad[] = {"\x80",
                               "\xC0\x80",
                               "\xC1\xBF",
                               "\xE0\x9F\xBF",
                               "\xED\xA0\x80",
                               "\xF0\x8F\xBF\xBF",
                               "\xF4\x90\x80\x80",
                               "\xF5\x80\x80",
                               "\xFF",
                               "\xC3(",
                               "\xE2\x82(",
                               "\xF0\x9F\x98("};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(utf8_decode(bad[i], 4, NULL), 0);
}

static void valid_bytes_end_at_the_first_fault(void **state)
{
    (void)state;
    assert_int_equal(utf8_valid_bytes("plain ascii text", 16), 16);
    assert_int_equal(utf8_valid_bytes("plain ascii text\xFF more text", 27), 16);
    assert_int_equal(utf8_valid_bytes("12345678\xC3\xA4\xE2\x82", 12), 10);
    assert_int_equal(utf8_valid_bytes("", 0), 0);
}

static void partial_bytes_may_become_a_character(void **state)
{
    (void)state;
    assert_int_equal(utf8_partial_bytes("a\xF0\x9F\x98", 4), 3);
    assert_int_equal(utf8_partial_bytes("a\xF0\x9F", 3), 2);
    assert_int_equal(utf8_partial_bytes("a\xC3", 2), 1);
    assert_int_equal(utf8_partial_bytes("\xC3\xA4", 2), 0);
    assert_int_equal(utf8_partial_bytes("\xE0\x80", 2),
                     0); /* overlong: no further byte can complete it */
    assert_int_equal(utf8_partial_bytes("\x80\x80\x80\x80", 4), 0);
    assert_int_equal(utf8_partial_bytes("\xF4", 1), 1);
    for (int byte = 0xF5; byte <= 0xFF; byte++)
        assert_int_equal(utf8_partial_bytes(&(const char){(char)byte}, 1), 0);
    assert_int_equal(utf8_partial_bytes("", 0), 0);
}

static void continuation_bytes_are_80_to_bf(void **state)
{
    (void)state;
    for (int byte = 0; byte <= 0xFF; byte++) {
        const bool expected = byte >= 0x80 && byte <= 0xBF;
        assert_int_equal(utf8_is_continuation(byte), expected);
        assert_int_equal(utf8_is_continuation((signed char)byte), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_every_code_point),
        cmocka_unit_test(refuses_ill_formed_bytes),
        cmocka_unit_test(valid_bytes_end_at_the_first_fault),
        cmocka_unit_test(partial_bytes_may_become_a_character),
        cmocka_unit_test(continuation_bytes_are_80_to_bf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
