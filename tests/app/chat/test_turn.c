/*
 * Numbers of one turn: tokens that were evaluated again, and tokens that are reserved for the
 * answer.
 */
#include "app/chat/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void counts_tokens_of_earlier_turns_that_were_evaluated_again(void **state)
{
    (void)state;
    struct turn turn = {.n_earlier = 50,
                        .result = {.n_held = 60, .n_reused = 50, .n_evaluated = 9}};
    assert_int_equal(turn_reevaluated(&turn), 0);
    turn.result.n_reused = 30; /* the cache held 60, and the prompt differs from token 30 on */
    assert_int_equal(turn_reevaluated(&turn), 20);
    turn.result.n_held = 40;
    assert_int_equal(turn_reevaluated(&turn), 10);
    turn.result.n_reevaluated = 15; /* behind the nearest saved state */
    assert_int_equal(turn_reevaluated(&turn), 15);
}

static void an_interrupted_prefill_counts_nothing(void **state)
{
    (void)state;
    const struct turn turn = {.n_earlier = 50, .result = {.n_held = 60}};
    assert_int_equal(turn_reevaluated(&turn), 0);
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
        cmocka_unit_test(counts_tokens_of_earlier_turns_that_were_evaluated_again),
        cmocka_unit_test(an_interrupted_prefill_counts_nothing),
        cmocka_unit_test(at_most_an_eighth_of_the_context_is_reserved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
