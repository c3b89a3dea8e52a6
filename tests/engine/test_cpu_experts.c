/*
 * The choice of experts: order, ties, weights, and numbers that are not finite.
 */
#include "engine/cpu/cpu_experts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expects(const float *z, size_t n, size_t n_used, const struct expert_choice *want)
{
    struct expert_choice got[MODEL_MAX_USED_EXPERTS];
    experts_pick(z, n, n_used, got);
    for (size_t i = 0; i < n_used; i++) {
        assert_int_equal(got[i].expert, want[i].expert);
        if (!(fabsf(got[i].weight - want[i].weight) < 1e-6f))
            fail_msg("weight %zu is %g, not %g", i, (double)got[i].weight, (double)want[i].weight);
    }
}

static void the_largest_are_chosen_and_renormalised(void **state)
{
    (void)state;
    expects((float[]){2, 1, 0, -1}, 4, 2, (struct expert_choice[]){{0, 0.731059f}, {1, 0.268941f}});
    expects((float[]){-1, 0, 1, 2}, 4, 2, (struct expert_choice[]){{2, 0.268941f}, {3, 0.731059f}});
    expects((float[]){5, -5, 5.5f}, 3, 1, (struct expert_choice[]){{2, 1.0f}});
}

static void ties_go_to_the_lower_index(void **state)
{
    (void)state;
    expects((float[]){1, 3, 3, 3, 1}, 5, 2, (struct expert_choice[]){{1, 0.5f}, {2, 0.5f}});
    expects((float[]){0, 0, 0, 0}, 4, 3,
            (struct expert_choice[]){{0, 1.0f / 3}, {1, 1.0f / 3}, {2, 1.0f / 3}});
}

static void all_may_be_chosen(void **state)
{
    (void)state;
    expects((float[]){0, 100, -100}, 3, 3, (struct expert_choice[]){{0, 0}, {1, 1}, {2, 0}});
}

static void a_nan_is_chosen_last(void **state)
{
    (void)state;
    struct expert_choice got[2];
    expects((float[]){NAN, 1, NAN, 1}, 4, 2, (struct expert_choice[]){{1, 0.5f}, {3, 0.5f}});
    expects((float[]){NAN, NAN, 4}, 3, 2, (struct expert_choice[]){{0, 0}, {2, 1}});
    experts_pick((float[]){NAN, NAN, NAN}, 3, 2, got); /* the NaN reaches the result */
    assert_int_equal(got[0].expert, 0);
    assert_int_equal(got[1].expert, 1);
    assert_true(isnan(got[0].weight) && isnan(got[1].weight));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_are_chosen_and_renormalised),
        cmocka_unit_test(ties_go_to_the_lower_index),
        cmocka_unit_test(all_may_be_chosen),
        cmocka_unit_test(a_nan_is_chosen_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
