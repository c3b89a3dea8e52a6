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

static void the_time_left_falls_between_two_reports(void **state)
{
    (void)state;
    struct turn turn = {.prefill_begun = 100, .n_to_prefill = 4096};
    assert_true(turn_seconds_left(&turn, 107) == 0); /* no micro-batch has ended */
    turn.n_prefilled = 512;
    turn.prefilled_at = 108; /* 8 s for 512 of 4096 tokens */
    assert_true(turn_seconds_left(&turn, 108) == 56);
    assert_true(turn_seconds_left(&turn, 113) == 51);
    assert_true(turn_seconds_left(&turn, 200) == 1); /* it takes longer than expected */
    turn.prefilled_at = 100.25;
    assert_true(turn_seconds_left(&turn, 113) == 0); /* the time was too short for an estimate */
    turn.n_prefilled = 4096;
    turn.prefilled_at = 140;
    assert_true(turn_seconds_left(&turn, 140) == 0);
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
        cmocka_unit_test(counts_tokens_of_earlier_turns_that_were_evaluated_again),
        cmocka_unit_test(an_interrupted_prefill_counts_what_it_has_evaluated),
        cmocka_unit_test(at_most_an_eighth_of_the_context_is_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
