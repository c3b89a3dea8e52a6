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
    for (size_t done = 1024; done < 8192; done += 512) {
        const double n = (double)(8192 - done), sum = n * (double)(8192 + done) / 2;
        assert_float_equal(left_after(done, 0.002, 0), 0.002 * n, 0.01);
        assert_float_equal(left_after(done, 0.002, 1e-6), 0.002 * n + 1e-6 * sum, 0.01);
        assert_float_equal(left_after(done, 0, 1e-6), 1e-6 * sum, 0.01);
    }
    /* A first micro-batch that is slower, as with a cold cache, makes later ones not cheaper. */
    struct turn turn = {0};
    whole(&turn, 0, 4096, 100);
    whole(&turn, 1024, 4096, 104);
    whole(&turn, 2048, 4096, 106);
    assert_float_equal(turn_seconds_left(&turn, 106), 6, 0.01);
    /* Nor do ever dearer tokens make the first ones cost less than nothing. */
    whole(&turn, 3072, 4096, 130);
    assert_in_range((uintmax_t)turn_seconds_left(&turn, 130), 20, 40);
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
        cmocka_unit_test(counts_tokens_of_earlier_turns_that_were_evaluated_again),
        cmocka_unit_test(an_interrupted_prefill_counts_what_it_has_evaluated),
        cmocka_unit_test(at_most_an_eighth_of_the_context_is_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
