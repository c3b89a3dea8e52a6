/*
 * How many sequences are decoded together: as many as half of the free memory holds, from 1 to 16.
 */
#include "engine/base/size.h"
#include "engine/batch_width.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define KV_BYTES 76800 /* a token of the 2B4T model */
#define MB ((size_t)1 << 20)

static void takes_half_of_what_is_free(void **state)
{
    (void)state;
    assert_int_equal(batch_width(1200 * MB, KV_BYTES, 4096), 2);
    assert_int_equal(batch_width(6000 * MB, KV_BYTES, 4096), 10);
    assert_int_equal(batch_width((size_t)KV_BYTES * 4096 * 6, KV_BYTES, 4096), 3);
    assert_int_equal(batch_width((size_t)KV_BYTES * 4096 * 6 - 1, KV_BYTES, 4096), 2);
}

static void a_shorter_context_gives_more(void **state)
{
    (void)state;
    assert_int_equal(batch_width(1200 * MB, KV_BYTES, 1024), 8);
    assert_int_equal(batch_width(1200 * MB, KV_BYTES, 512), 16);
}

static void stays_from_one_to_sixteen(void **state)
{
    (void)state;
    assert_int_equal(batch_width(0, KV_BYTES, 4096), 1);
    assert_int_equal(batch_width(100 * MB, KV_BYTES, 4096), 1);
    assert_int_equal(batch_width(SIZE_MAX, KV_BYTES, 4096), 16);
    assert_int_equal(batch_width(SIZE_MAX, 0, 0), 16);
    assert_int_equal(batch_width(SIZE_MAX - 1, SIZE_MAX, 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_half_of_what_is_free),
        cmocka_unit_test(a_shorter_context_gives_more),
        cmocka_unit_test(stays_from_one_to_sixteen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
