/*
 * The bounded reader: little-endian values, failure after a short read, lengths that would
 * overflow.
 */
#include "engine/base/reader.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void reads_little_endian_in_order(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,
                             0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f};
    struct reader r;
    reader_init(&r, bytes, sizeof(bytes));
    assert_int_equal(reader_u8(&r), 0x01);
    assert_int_equal(reader_u16(&r), 0x0302);
    assert_int_equal(reader_u32(&r), 0x07060504);
    assert_true(reader_u64(&r) == 0x0f0e0d0c0b0a0908u);
    assert_false(r.failed);
    assert_int_equal(reader_left(&r), 0);
}

static void reads_after_a_short_read_give_zero(void **state)
{
    (void)state;
    const uint8_t bytes[] = {1, 2, 3};
    struct reader r;
    reader_init(&r, bytes, sizeof(bytes));
    assert_int_equal(reader_u32(&r), 0);
    assert_true(r.failed);
    assert_int_equal(reader_u8(&r), 0); /* although one byte is left */
    assert_null(reader_bytes(&r, 0));
}

static void huge_string_length_is_refused(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'a', 'b'};
    struct reader r;
    reader_init(&r, bytes, sizeof(bytes));
    const struct bn_str s = reader_string(&r);
    assert_true(r.failed);
    assert_int_equal(s.n_bytes, 0);
}

static void strings_point_into_the_memory(void **state)
{
    (void)state;
    const uint8_t bytes[] = {2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'};
    struct reader r;
    reader_init(&r, bytes, sizeof(bytes));
    const struct bn_str s = reader_string(&r);
    assert_false(r.failed);
    assert_ptr_equal(s.ptr, bytes + 8);
    assert_true(bn_str_is(s, "ab"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_little_endian_in_order),
        cmocka_unit_test(reads_after_a_short_read_give_zero),
        cmocka_unit_test(huge_string_length_is_refused),
        cmocka_unit_test(strings_point_into_the_memory),
    };
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
