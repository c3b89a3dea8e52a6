/*
 * Half precision: the round trip of every half, and rounding to nearest even, tested on every
 * midpoint between neighbouring halves and on the values next to it.
 */
#include "engine/base/fp16.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void every_half_survives_the_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000u; h++) {
        const float f = f16_to_f32((uint16_t)h);
        if (isnan(f))
            assert_true(isnan(f16_to_f32(f32_to_f16(f))));
        else
            assert_int_equal(f32_to_f16(f), h);
    }
}

static void known_values_are_converted(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00u; h++) {
        const int exponent = (int)(h >> 10), mantissa = (int)(h & 0x3ffu);
        const double expected =
            exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
        assert_true((double)f16_to_f32((uint16_t)h) == expected);
        assert_true((double)f16_to_f32((uint16_t)(h | 0x8000u)) == -expected);
    }
    assert_true(isinf(f16_to_f32(0x7c00)));
}

static void midpoints_go_to_the_even_neighbour(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bffu; h++) {
        const double low = (double)f16_to_f32((uint16_t)h);
        const double high = (double)f16_to_f32((uint16_t)(h + 1));
        const float middle = (float)((low + high) / 2); /* exact: needs one bit more than a half */
        assert_int_equal(f32_to_f16(middle), h + (h & 1u));
        assert_int_equal(f32_to_f16(nextafterf(middle, 0)), h);
        assert_int_equal(f32_to_f16(nextafterf(middle, INFINITY)), h + 1);
    }
}

static void too_large_becomes_infinity_and_too_small_zero(void **state)
{
    (void)state;
    /* 65520 is in the middle between the largest half, 65504, and the next power of two. */
    assert_int_equal(f32_to_f16(65519.0f), 0x7bff);
    assert_int_equal(f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(f32_to_f16(-1e30f), 0xfc00);
    assert_int_equal(f32_to_f16(ldexpf(1, -25)), 0);
    assert_int_equal(f32_to_f16(nextafterf(ldexpf(1, -25), 1)), 1);
    assert_int_equal(f32_to_f16(-0.0f), 0x8000);
}

static void bf16_is_the_upper_half_of_a_float(void **state)
{
    (void)state;
    assert_true(bf16_to_f32(0x3f80) == 1.0f);
    assert_true(bf16_to_f32(0xc049) == -3.140625f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_survives_the_round_trip),
        cmocka_unit_test(known_values_are_converted),
        cmocka_unit_test(midpoints_go_to_the_even_neighbour),
        cmocka_unit_test(too_large_becomes_infinity_and_too_small_zero),
        cmocka_unit_test(bf16_is_the_upper_half_of_a_float),
    };
    return cmocka_run_group_tests_name("fp16", tests, NULL, NULL);
}
