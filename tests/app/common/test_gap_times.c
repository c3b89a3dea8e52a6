/*
 * Percentiles from the histogram of times between tokens.
 */
#include "app/common/timing/gap_times.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_ERROR (1.0 / 128)

static void is_near(double x, double expected)
{
    if (fabs(x - expected) > MAX_ERROR * expected + 1e-9)
        fail_msg("%.12g is not %.12g", x, expected);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void nothing_was_added(void **state)
{
    (void)state;
    const struct gap_times g = {0};
    const struct gap_percentiles p = gap_times_percentiles(&g);
    assert_true(p.p50 == 0 && p.p95 == 0 && p.p99 == 0);
}

/* From one nanosecond to GAP_MAX_SECONDS, in steps that meet every bucket and its borders. */
static void one_time_is_each_percentile(void **state)
{
    (void)state;
    for (double t = 1e-9; t < GAP_MAX_SECONDS; t *= 1.003) {
        struct gap_times g = {0};
        gap_times_add(&g, t);
        const struct gap_percentiles p = gap_times_percentiles(&g);
        is_near(p.p50, t);
        assert_true(p.p95 == p.p50 && p.p99 == p.p50);
    }
}

static void times_out_of_range_are_clamped(void **state)
{
    (void)state;
    static const double odd[] = {-1, 0, NAN, 1e9, INFINITY, GAP_MAX_SECONDS};
    struct gap_times g = {0};
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
        gap_times_add(&g, odd[i]);
    assert_true(g.n == 6);
    assert_true(gap_times_percentile(&g, 50) == 0); /* the first three */
    is_near(gap_times_percentile(&g, 99), GAP_MAX_SECONDS);
}

static void rank_is_the_nearest_one(void **state)
{
    (void)state;
    struct gap_times g = {0};
    for (int i = 1; i <= 20; i++)
        gap_times_add(&g, i);
    is_near(gap_times_percentile(&g, 50), 10);
    is_near(gap_times_percentile(&g, 95), 19);
    is_near(gap_times_percentile(&g, 99), 20); /* fewer than 100 times: the longest */
    is_near(gap_times_percentile(&g, 5), 1);
}

/* As sorting all times would give, within the stated error. */
static void many_times_agree_with_sorting(void **state)
{
    enum { N = 100000 };
    (void)state;
    static struct gap_times g;
    double *times = calloc(N, sizeof(*times));
    uint32_t x = 1;
    assert_non_null(times);
    for (size_t i = 0; i < N; i++) {
        x = x * 1103515245u + 12345u;
        times[i] = pow(10, -6 + 7 * (double)(x >> 8) / (1 << 24)); /* from 1 microsecond to 10 s */
        gap_times_add(&g, times[i]);
    }
    qsort(times, N, sizeof(*times), compare);
    const struct gap_percentiles p = gap_times_percentiles(&g);
    is_near(p.p50, times[N / 2 - 1]);
    is_near(p.p95, times[N / 100 * 95 - 1]);
    is_near(p.p99, times[N / 100 * 99 - 1]);
    free(times);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_was_added),
        cmocka_unit_test(one_time_is_each_percentile),
        cmocka_unit_test(times_out_of_range_are_clamped),
        cmocka_unit_test(rank_is_the_nearest_one),
        cmocka_unit_test(many_times_agree_with_sorting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
