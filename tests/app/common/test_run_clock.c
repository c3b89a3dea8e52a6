/*
 * The clock that stops with the process.
 */
#include "app/common/timing/run_clock.h"
#include "engine/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

static void the_clock_runs_without_the_stops(void **state)
{
    const struct timespec pause = {0, 20000000};
    (void)state;
    const double begun = clock_seconds(), run_begun = run_clock_seconds();
    for (int i = 0; i < 3; i++) {
        const double before = run_clock_seconds();
        run_clock_stop();
        const double at_stop = run_clock_seconds();
        assert_true(at_stop >= before);
        assert_int_equal(nanosleep(&pause, NULL), 0);
        assert_true(run_clock_seconds() == at_stop);
        run_clock_continue();
        assert_true(run_clock_seconds() >= at_stop);
    }
    const double run = run_clock_seconds() - run_begun, all = clock_seconds() - begun;
    assert_true(run >= 0);
    assert_true(run < all - 0.059); /* less 1 ms for rounding */
}

static void the_clock_runs(void **state)
{
    const struct timespec pause = {0, 20000000};
    (void)state;
    const double begun = run_clock_seconds();
    assert_int_equal(nanosleep(&pause, NULL), 0);
    assert_true(run_clock_seconds() - begun > 0.019);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_clock_runs_without_the_stops),
        cmocka_unit_test(the_clock_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
