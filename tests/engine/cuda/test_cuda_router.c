/*
 * Compares the router of a mixture of experts and the choice of experts with the CPU's functions,
 * byte for byte, on the twin (the kernels compiled for the host): equal logits, zeros of both
 * signs, NaN, infinities, and the largest numbers of experts. The grouping of pairs is checked by
 * its definition.
 */
#include "engine/base/size.h"
#include "engine/cpu/cpu_experts.h"
#include "engine/cpu/ref/kernels_ref.h"
#include "tests/engine/cuda/twin_kit.h"

#include <math.h>

static const enum twin_order orders[] = {TWIN_ASCENDING, TWIN_DESCENDING};

static void check_router(uint32_t n, uint32_t n_experts, uint32_t n_tokens, enum twin_order order)
{
    struct random r = {n + n_tokens};
    const uint32_t stride = (uint32_t)size_round_up(n, 16);
    float *rows = floats(&r, (size_t)n_experts * n), *x = floats(&r, (size_t)n_tokens * stride);
    float *z = zeros((size_t)n_tokens * n_experts, sizeof *z);
    const struct router_args a = {.rows = rows,
                                  .x = x,
                                  .z = z,
                                  .n = n,
                                  .n_experts = n_experts,
                                  .n_tokens = n_tokens,
                                  .x_stride = stride};
    launch("router_logits", (n_experts + ROUTER_THREADS / 8 - 1) / (ROUTER_THREADS / 8),
           (n_tokens + ROUTER_TILE - 1) / ROUTER_TILE, 1, 0, &a, order);
    for (size_t t = 0; t < n_tokens; t++)
        for (size_t e = 0; e < n_experts; e++) {
            const float expected = dot64_ref(rows + e * n, x + t * stride, n);
            assert_same(&z[t * n_experts + e], &expected, sizeof expected, "a logit");
        }
    FREE_ALL(rows, x, z);
}

static void router_logits_match_the_reference(void **state)
{
    (void)state;
    static const uint32_t widths[] = {1, 3, 64, 100, 258, 2048};
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (uint32_t n_tokens = 1; n_tokens <= 9; n_tokens += 4) {
            check_router(widths[i], 1, n_tokens, orders[i % 2]);
            check_router(widths[i], 21, n_tokens, orders[i % 2]);
        }
}

/* Few different values, so that many are equal. */
static float draw_logit(struct random *r, uint32_t kind)
{
    static const float special[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, 1.0f, 1.0f, 2.0f};
    if (kind == 0)
        return next_float(r);
    if (kind == 1)
        return (float)(next_u32(r) % 5) - 2.0f;
    /* Without +infinity the weights are numbers. The bits of a NaN are not specified. */
    const float z = special[next_u32(r) % 8];
    return z == INFINITY ? 0.5f : z;
}

static void check_choice(uint32_t n_experts, uint32_t n_used, uint32_t kind, enum twin_order order)
{
    enum { TOKENS = 3 };
    struct random r = {n_experts + n_used + kind};
    float *z = zeros((size_t)TOKENS * n_experts, sizeof *z);
    struct cuda_choice *chosen = zeros((size_t)TOKENS * n_used, sizeof *chosen);
    struct expert_choice *expected = zeros(n_used, sizeof *expected);
    uint32_t *counts = zeros((size_t)n_experts * 2, sizeof *counts);
    uint32_t *expected_counts = zeros((size_t)n_experts * 2, sizeof *counts);
    for (size_t i = 0; i < (size_t)TOKENS * n_experts; i++)
        z[i] = draw_logit(&r, kind);
    for (size_t t = 0; t < TOKENS; t++)
        z[t * n_experts + t % n_experts] = 3.0f; /* not all are NaN */
    counts[0] = expected_counts[0] = UINT32_MAX; /* the next choice carries into the high half */
    const struct choose_args a = {
        .z = z, .chosen = chosen, .counts = counts, .n_experts = n_experts, .n_used = n_used};
    launch("choose_experts", TOKENS, 1, 1, 0, &a, order);
    for (size_t t = 0; t < TOKENS; t++) {
        experts_pick(z + t * n_experts, n_experts, n_used, expected);
        for (size_t i = 0; i < n_used; i++) {
            assert_int_equal(chosen[t * n_used + i].expert, expected[i].expert);
            assert_same(&chosen[t * n_used + i].weight, &expected[i].weight, sizeof(float),
                        "a weight");
            uint32_t *count = &expected_counts[2 * expected[i].expert];
            count[1] += ++count[0] == 0;
        }
    }
    assert_same(counts, expected_counts, (size_t)n_experts * 2 * sizeof *counts, "the counts");
    FREE_ALL(z, chosen, expected, counts, expected_counts);
}

static void choices_match_the_cpu(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{1, 1},   {5, 5},   {31, 2},    {33, 8},
                                         {64, 64}, {256, 8}, {1000, 64}, {1024, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (uint32_t kind = 0; kind < 3; kind++)
            for (size_t j = 0; j < 2; j++)
                check_choice(shapes[i][0], shapes[i][1], kind, orders[j]);
}

static void check_grouping(uint32_t n_experts, uint32_t n_pairs, enum twin_order order)
{
    struct random r = {n_experts + n_pairs};
    struct cuda_choice *chosen = zeros(n_pairs, sizeof *chosen);
    uint32_t *starts = zeros((size_t)n_experts + 1, sizeof *starts);
    uint32_t *pairs = zeros(n_pairs, sizeof *pairs), *n = zeros(n_experts, sizeof *n);
    uint8_t *seen = zeros(n_pairs, 1);
    uint32_t n_active = 0, place = 0, n_expected = 0;
    for (size_t i = 0; i < n_pairs; i++) {
        chosen[i].expert = next_u32(&r) % n_experts;
        n[chosen[i].expert]++;
    }
    const struct sort_pairs_args a = {.chosen = chosen,
                                      .starts = starts,
                                      .pairs = pairs,
                                      .n_active = &n_active,
                                      .n_pairs = n_pairs,
                                      .n_experts = n_experts};
    launch("sort_pairs", 1, 1, 1, 0, &a, order);
    for (size_t e = 0; e < n_experts; e++) {
        assert_int_equal(starts[e], place);
        n_expected += n[e] > 0;
        for (const uint32_t end = place + n[e]; place < end; place++) {
            assert_true(pairs[place] < n_pairs && !seen[pairs[place]]);
            seen[pairs[place]] = 1;
            assert_int_equal(chosen[pairs[place]].expert, e);
        }
    }
    assert_int_equal(starts[n_experts], n_pairs);
    assert_int_equal(n_active, n_expected);
    FREE_ALL(chosen, starts, pairs, n, seen);
}

static void pairs_are_grouped_by_expert(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{1, 1},      {1, 40},   {8, 3},      {33, 100},
                                         {256, 4096}, {1023, 5}, {1024, 3000}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t j = 0; j < 2; j++)
            check_grouping(shapes[i][0], shapes[i][1], orders[j]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(router_logits_match_the_reference),
        cmocka_unit_test(choices_match_the_cpu),
        cmocka_unit_test(pairs_are_grouped_by_expert),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
