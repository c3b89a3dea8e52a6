/*
 * Figures of the benchmark from given times and shapes.
 */
#include "app/bench/bench.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void is_about(double x, double expected)
{
    if (fabs(x - expected) > 1e-9 * fabs(expected))
        fail_msg("%g is not %g", x, expected);
}

static void median_is_the_middle_value(void **state)
{
    (void)state;
    double odd[] = {9, 1, 5}, even[] = {4, 1, 3, 100}, one[] = {7};
    is_about(bench_median(odd, 3), 5);
    is_about(odd[0], 1); /* sorted: slowest and fastest are at the ends */
    is_about(odd[2], 9);
    is_about(bench_median(even, 4), 3.5);
    is_about(bench_median(one, 1), 7);
}

static const struct bn_model_info info = {.macs_per_token = 2304};

static void rows_are_compared_with_the_limiting_peak(void **state)
{
    (void)state;
    const struct bench_row tg = {
        .test = BENCH_TG, .tokens_per_s = 30, .bytes_per_token = 7e8, .peak = 25e9};
    is_about(bench_row_rate(&info, &tg), 21e9);
    is_about(bench_row_percent(&info, &tg), 84);
    const struct bench_row pp = {
        .test = BENCH_PP, .tokens_per_s = 1000, .bytes_per_token = 7e8, .peak = 9216e3};
    is_about(bench_row_rate(&info, &pp), 2304e3);
    is_about(bench_row_percent(&info, &pp), 25);
    const struct bench_row unknown = {.test = BENCH_PP, .tokens_per_s = 1000};
    is_about(bench_row_percent(&info, &unknown), 0);
}

static void steps_are_compared_with_the_nearer_peak(void **state)
{
    (void)state;
    static const double peaks[BENCH_N_PEAKS] = {
        [PEAK_READ] = 40e9, [PEAK_INT8] = 400e9, [PEAK_F32] = 100e9};
    const struct bn_profile_step products = {.seconds = 2, .n_bytes = 8000000000u, .n_macs = 40};
    is_about(bench_step_percent(&products, peaks), 10);
    const struct bn_profile_step tiles = {.seconds = 2, .n_bytes = 80, .n_macs = 400000000000u};
    is_about(bench_step_percent(&tiles, peaks), 50);
    const struct bn_profile_step attention = {
        .seconds = 1, .n_macs = 60000000000u, .mac = BN_MAC_F32};
    is_about(bench_step_percent(&attention, peaks), 60);
    const struct bn_profile_step norm = {.seconds = 1}, untimed = {.n_bytes = 5};
    is_about(bench_step_percent(&norm, peaks), 0);
    is_about(bench_step_percent(&untimed, peaks), 0);
    static const double unknown[BENCH_N_PEAKS] = {[PEAK_READ] = 40e9};
    is_about(bench_step_percent(&attention, unknown), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_is_the_middle_value),
        cmocka_unit_test(rows_are_compared_with_the_limiting_peak),
        cmocka_unit_test(steps_are_compared_with_the_nearer_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
