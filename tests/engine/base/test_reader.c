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
    const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    struct reader r;
    reader_init(&r, bytes, sizeof(bytes));
    assert_int_equal(reader_u32(&r), 0x04030201);
    assert_true(reader_u64(&r) == 0x0c0b0a0908070605u);
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
    assert_null(reader_bytes(&r, 1)); /* although three bytes are left */
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
