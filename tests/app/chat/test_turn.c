/*
 * Numbers of one turn: the time until the prompt is evaluated, tokens that were evaluated again,
 * and tokens that are reserved for the answer.
 */
#include "app/chat/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* `done` of `total` tokens are evaluated in whole micro-batches. Prefill began at second 100. */
static void whole(struct turn *turn, size_t done, size_t total, double time)
{
    turn_prefilled(turn, &(struct answer_prefill){total, 100, done, time, done, time});
}

/* A part of the next micro-batch is done, too. */
static void part(struct turn *turn, size_t done, double time)
{
    struct answer_prefill report = turn->prefill;
    report.n_done = done;
    report.done_at = time;
    turn_prefilled(turn, &report);
}

static void the_time_left_falls_between_two_reports(void **state)
{
    (void)state;
    struct turn turn = {0}, fast = {0};
    whole(&turn, 0, 4096, 100);
    assert_true(turn_seconds_left(&turn, 107) == 0); /* nothing is evaluated */
    whole(&turn, 512, 4096, 108);                    /* 8 s for 512 of 4096 tokens */
    assert_true(turn_seconds_left(&turn, 108) == 56);
    assert_true(turn_seconds_left(&turn, 113) == 51);
    assert_true(turn_seconds_left(&turn, 200) == 1); /* it takes longer than expected */
    whole(&turn, 4096, 4096, 140);
    assert_true(turn_seconds_left(&turn, 140) == 0);
    whole(&fast, 0, 4096, 100);
    whole(&fast, 512, 4096, 100.25);
    assert_true(turn_seconds_left(&fast, 113) == 0); /* the time was too short for an estimate */
}

static void a_part_of_a_micro_batch_gives_a_time(void **state)
{
    (void)state;
    struct turn turn = {0};
    whole(&turn, 0, 1024, 100);
    part(&turn, 64, 100.25);
    assert_true(turn_seconds_left(&turn, 100.25) == 0); /* too short for an estimate */
    part(&turn, 128, 102);
    assert_true(turn_seconds_left(&turn, 102) == 14);
    assert_true(turn_seconds_left(&turn, 105) == 11);
    whole(&turn, 512, 1024, 108);
    assert_true(turn_seconds_left(&turn, 108) == 8);
    part(&turn, 768, 120); /* slow, but only whole micro-batches set the cost of a token */
    assert_true(turn_seconds_left(&turn, 120) == 4);
}

/* The main thread reads only the last of several reports. */
static void the_time_left_needs_no_report_of_the_start(void **state)
{
    (void)state;
    struct turn turn = {0};
    whole(&turn, 1024, 4096, 108);
    assert_true(turn_seconds_left(&turn, 108) == 24);
}

/* The estimate after `done` of 8192 tokens, if token m costs a + b * m seconds. */
static double left_after(size_t done, double a, double b)
{
    struct turn turn = {0};
    for (size_t n = 0; n <= done; n += 512)
        whole(&turn, n, 8192, 100 + a * (double)n + b * (double)(n * n) / 2);
    return turn_seconds_left(&turn, turn.prefill.done_at);
}

static void the_time_left_counts_that_later_tokens_cost_more(void **state)
{
    (void)state;
    for (size_t done = 4096; done < 8192; done += 512) { /* eight micro-batches */
        const double n = (double)(8192 - done), sum = n * (double)(8192 + done) / 2;
        assert_float_equal(left_after(done, 0.002, 0), 0.002 * n, 0.01);
        assert_float_equal(left_after(done, 0.002, 1e-6), 0.002 * n + 1e-6 * sum, 0.01);
        assert_float_equal(left_after(done, 0, 1e-6), 1e-6 * sum, 0.01);
    }
    /* A first micro-batch that is slower, as with a cold cache, makes later ones not cheaper. */
    struct turn turn = {0};
    for (size_t i = 0; i <= 8; i++)
        whole(&turn, 512 * i, 8192, i > 0 ? 102 + (double)i : 100);
    assert_float_equal(turn_seconds_left(&turn, 110), 10, 0.01);
    /* Nor do ever dearer tokens make the first ones cost less than nothing. */
    struct turn steep = {0};
    for (size_t i = 0; i <= 8; i++)
        whole(&steep, 512 * i, 8192, 100 + (double)(i * i * i) / 10);
    assert_in_range((uintmax_t)turn_seconds_left(&steep, 100 + 51.2), 100, 205);
}

/* A long prompt multiplies a small error. Micro-batches of 1 s vary by 10 % up and down. */
static void noise_makes_no_estimate_far_too_long(void **state)
{
    uint32_t random = 1;
    (void)state;
    for (size_t run = 0; run < 200; run++) {
        struct turn turn = {0};
        double time = 100;
        for (size_t done = 512; done <= 20480; done += 512) {
            random = random * 1664525 + 1013904223; /* Numerical Recipes */
            time += 0.9 + 0.2 * (double)(random >> 8) / (1 << 24);
            whole(&turn, done, 131072, time);
            const double left = (double)(131072 - done) / 512;
            assert_true(turn_seconds_left(&turn, time) > 0.8 * left);
            assert_true(turn_seconds_left(&turn, time) < 3 * left);
        }
    }
    struct turn turn = {0}; /* another program runs for two micro-batches */
    for (size_t i = 1; i <= 8; i++)
        whole(&turn, 512 * i, 131072, 100 + (double)(i < 7 ? i : 2 * i - 6));
    assert_true(turn_seconds_left(&turn, 110) <= 4 * 248 * 10 / 8);
}

/* The engine ends a micro-batch early where it saves a state. */
static void a_pass_of_one_token_does_not_set_the_cost(void **state)
{
    (void)state;
    struct turn turn = {0}, first = {0};
    whole(&turn, 512, 8192, 101);
    whole(&turn, 513, 8192, 101.06);
    assert_float_equal(turn_seconds_left(&turn, 101.06), 15, 0.01);
    for (size_t i = 1; i <= 8; i++)
        whole(&turn, 513 + 512 * i, 8192, 101.06 + (double)i);
    assert_float_equal(turn_seconds_left(&turn, 109.06), 7, 0.1);
    whole(&first, 1, 8192, 100.06);
    for (size_t i = 1; i <= 9; i++)
        whole(&first, 1 + 512 * i, 8192, 100.06 + (double)i);
    assert_float_equal(turn_seconds_left(&first, 109.06), 7, 0.1);
}

static void counts_tokens_of_earlier_turns_that_were_evaluated_again(void **state)
{
    (void)state;
    struct turn turn = {.n_earlier = 50,
                        .result = {.n_held = 60, .n_reused = 50, .n_evaluated = 9}};
    assert_int_equal(turn_reevaluated(&turn), 0);
    turn.result.n_reused = 30; /* the cache held 60, and the prompt differs from token 30 on */
    turn.result.n_evaluated = 29;
    assert_int_equal(turn_reevaluated(&turn), 20);
    turn.result.n_held = 40;
    assert_int_equal(turn_reevaluated(&turn), 10);
    turn.result.n_reevaluated = 15; /* behind the nearest saved state */
    assert_int_equal(turn_reevaluated(&turn), 15);
}

static void an_interrupted_prefill_counts_what_it_has_evaluated(void **state)
{
    (void)state;
    struct turn turn = {.n_earlier = 50, .result = {.n_held = 60}};
    assert_int_equal(turn_reevaluated(&turn), 0);
    turn.result.n_reused = 30;
    assert_int_equal(turn_reevaluated(&turn), 0);
    turn.result.n_evaluated = 8;
    assert_int_equal(turn_reevaluated(&turn), 8);
    turn.result.n_evaluated = 32; /* also a part of the new question */
    assert_int_equal(turn_reevaluated(&turn), 20);
}

static void at_most_an_eighth_of_the_context_is_reserved(void **state)
{
    (void)state;
    struct turn turn = {.max_tokens = 20};
    assert_int_equal(turn_reserve(&turn, 800), 20);
    turn.max_tokens = 200;
    assert_int_equal(turn_reserve(&turn, 800), 100);
    turn.max_tokens = 0; /* no limit */
    assert_int_equal(turn_reserve(&turn, 800), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_left_falls_between_two_reports),
        cmocka_unit_test(a_part_of_a_micro_batch_gives_a_time),
        cmocka_unit_test(the_time_left_needs_no_report_of_the_start),
        cmocka_unit_test(the_time_left_counts_that_later_tokens_cost_more),
        cmocka_unit_test(noise_makes_no_estimate_far_too_long),
        cmocka_unit_test(a_pass_of_one_token_does_not_set_the_cost),
        cmocka_unit_test(counts_tokens_of_earlier_turns_that_were_evaluated_again),
        cmocka_unit_test(an_interrupted_prefill_counts_what_it_has_evaluated),
        cmocka_unit_test(at_most_an_eighth_of_the_context_is_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
