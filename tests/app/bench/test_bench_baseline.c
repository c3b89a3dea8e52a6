/*
 * When a row counts as slower or faster than its baseline, and which baselines are accepted.
 */
#include "app/bench/bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void interval_of_the_median_needs_nine_runs_to_leave_out_one(void **state)
{
    (void)state;
    /* The ranks of the 95 % interval of the sign test, counted from 0: of 20 values the 6th and the
     * 15th. */
    static const struct {
        size_t n, bound;
    } cases[] = {{1, 0},  {2, 0},  {5, 0},  {6, 0},  {8, 0},  {9, 1},   {11, 1},
                 {12, 2}, {14, 2}, {15, 3}, {20, 5}, {25, 7}, {100, 39}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(bench_median_bound(cases[i].n), cases[i].bound);
    assert_in_range(bench_median_bound(1000), 460, 475);
}

/* A baseline of 100 tokens/s from `low` to `high`, peak 40e9. */
static enum bench_verdict verdict(double low, double high, const struct bench_row *row)
{
    struct bench_change c = {
        .old_tokens_per_s = 100, .old_low = low, .old_high = high, .old_peak = 40e9};
    bench_baseline_compare(&c, row);
    return c.verdict;
}

static void only_a_loss_beyond_the_noise_counts(void **state)
{
    (void)state;
    const struct bench_row slow = {.tokens_per_s = 92, .low = 91, .high = 93, .peak = 40e9};
    assert_int_equal(verdict(99, 101, &slow), BENCH_SLOWER);
    assert_int_equal(verdict(97, 101, &slow), BENCH_SAME); /* 93 / 97 is above 0.95 */
    const struct bench_row noisy = {.tokens_per_s = 92, .low = 50, .high = 96, .peak = 40e9};
    assert_int_equal(verdict(99, 101, &noisy), BENCH_SAME);
    const struct bench_row little = {.tokens_per_s = 96, .low = 96, .high = 96, .peak = 40e9};
    assert_int_equal(verdict(100, 100, &little), BENCH_SAME); /* 4 %, without noise */
    const struct bench_row fast = {.tokens_per_s = 110, .low = 108, .high = 111, .peak = 40e9};
    assert_int_equal(verdict(99, 101, &fast), BENCH_FASTER);
    assert_int_equal(verdict(99, 105, &fast), BENCH_SAME);
}

static void a_slower_machine_explains_a_slower_row(void **state)
{
    (void)state;
    struct bench_row row = {.tokens_per_s = 80, .low = 79, .high = 81, .peak = 32e9};
    assert_int_equal(verdict(99, 101, &row), BENCH_SAME); /* the peak fell by 20 %, too */
    row.peak = 38e9;
    assert_int_equal(verdict(99, 101, &row), BENCH_SLOWER);
    row.peak = 60e9; /* a faster machine does not make a slower row worse */
    assert_int_equal(verdict(99, 101, &row), BENCH_SLOWER);
    row.peak = 0; /* unknown */
    assert_int_equal(verdict(99, 101, &row), BENCH_SLOWER);
    row = (struct bench_row){.tokens_per_s = 130, .low = 129, .high = 131, .peak = 52e9};
    assert_int_equal(verdict(99, 101, &row), BENCH_SAME);
}

static void an_error_in_the_json_names_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place;
    } cases[] = {
        {"{\"rows\":\n [1, nul]}", ": line 2, column 6: invalid token near 'nul'"},
        {"{\"runs\":1, \"runs\":2}", ": line 1, column 12: duplicate object key near '\"runs\"'"},
        {"{\"processor\":\"A\\u0000\"}", ": line 1, column 14: \\u0000 is not allowed in a text"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bn_error err;
        json_t *baseline;
        assert_false(bench_baseline_parse("b", bn_str_of(cases[i].text), &baseline, &err));
        assert_int_equal(err.code, BN_EARG);
        assert_string_equal(strchr(err.text, ':'), cases[i].place);
    }
}

/* A baseline with the row of the test, and the settings of this run. */
static bool matches(const char *baseline_text, const char *processor, struct bn_error *err)
{
    const struct bench_row row = {.test = BENCH_TG, .n_tokens = 4, .batch = 1};
    struct bench_change change;
    json_t *const baseline = json_loads(baseline_text, 0, NULL);
    json_t *const settings = json_pack("{s:s}", "processor", processor);
    assert_true(baseline && settings);
    const bool ok = bench_baseline_match(baseline, settings, &row, 1, &change, err);
    json_decref(baseline);
    json_decref(settings);
    return ok;
}

#define ROW                                                                                        \
    "{\"test\":\"tg4\",\"depth\":0,\"batch\":1,\"tokens_per_s\":5,\"median_low\":4,"               \
    "\"median_high\":6,\"peak_per_s\":null,\"checksum\":\"0\"}"

static void unknown_processors_are_not_taken_as_equal(void **state)
{
    (void)state;
    struct bn_error err;
    assert_true(matches("{\"processor\":\"A\",\"runs\":5,\"rows\":[" ROW "]}", "A", &err));
    assert_false(matches("{\"processor\":\"A\",\"runs\":5,\"rows\":[" ROW "]}", "B", &err));
    assert_non_null(strstr(err.text, "\"processor\""));
    assert_false(matches("{\"processor\":\"\",\"runs\":5,\"rows\":[" ROW "]}", "", &err));
    assert_int_equal(err.code, BN_EARG);
    assert_non_null(strstr(err.text, "this processor has no name"));
}

static void baselines_of_few_runs_are_refused(void **state)
{
    (void)state;
    static const char *const few[] = {"", "\"runs\":4,", "\"runs\":-9,", "\"runs\":7.5,",
                                      "\"runs\":\"9\","};
    struct bn_error err;
    for (size_t i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
        char text[400];
        (void)snprintf(text, sizeof(text), "{\"processor\":\"A\",%s\"rows\":[" ROW "]}", few[i]);
        assert_false(matches(text, "A", &err));
        assert_int_equal(err.code, BN_EARG);
        assert_non_null(strstr(err.text, "measure it again with -r 5 or more"));
    }
}

static void rates_that_nothing_can_have_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *low, *rate, *high, *peak;
        bool is_accepted;
    } cases[] = {{"1e-9", "1e-9", "1e18", "1e18", true}, {"9e-10", "1", "1", "null", false},
                 {"1e-308", "1e-308", "1", "1", false},  {"5e-324", "1", "1", "1", false},
                 {"1", "1", "1.1e18", "1", false},       {"1", "1", "1", "1e-308", false},
                 {"1", "1", "1", "1e308", false}};
    struct bn_error err;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[400];
        (void)snprintf(text, sizeof(text),
                       "{\"processor\":\"A\",\"runs\":5,\"rows\":[{\"test\":\"tg4\",\"depth\":0,"
                       "\"batch\":1,\"median_low\":%s,\"tokens_per_s\":%s,\"median_high\":%s,"
                       "\"peak_per_s\":%s,\"checksum\":\"0\"}]}",
                       cases[i].low, cases[i].rate, cases[i].high, cases[i].peak);
        assert_int_equal(matches(text, "A", &err), cases[i].is_accepted);
        if (!cases[i].is_accepted)
            assert_string_equal(err.text, "the row tg4 of the baseline is broken");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interval_of_the_median_needs_nine_runs_to_leave_out_one),
        cmocka_unit_test(only_a_loss_beyond_the_noise_counts),
        cmocka_unit_test(a_slower_machine_explains_a_slower_row),
        cmocka_unit_test(an_error_in_the_json_names_its_place),
        cmocka_unit_test(unknown_processors_are_not_taken_as_equal),
        cmocka_unit_test(baselines_of_few_runs_are_refused),
        cmocka_unit_test(rates_that_nothing_can_have_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
