/*
 * The candidates of a row of logits, compared with sorting all logits; draws with Gumbel noise, and
 * the functions of noise.h.
 */
#include "engine/cpu/cpu_pick.h"

#include "engine/base/noise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N 1000 /* logits of a row */

struct fixture {
    float z[N];
    struct head_cand cands[N];
    struct head_row row;
    uint64_t seen[N / 64 + 1]; /* one bit per id, the scratch memory of pick_top */
    float best;                /* the largest of z */
};

/* Logits with at most n_values distinct values; a small number gives many ties. */
static void fill(struct fixture *f, uint32_t seed, uint32_t n_values)
{
    *f = (struct fixture){.best = -INFINITY};
    f->row = (struct head_row){.cands = f->cands, .cap = N};
    for (size_t i = 0; i < N; i++) {
        f->z[i] = (float)(noise_bits(seed, i) % n_values) / 8.0f - 4.0f;
        f->best = fmaxf(f->best, f->z[i]);
    }
}

static int comes_before(const void *a, const void *b)
{
    const struct head_cand *x = a, *y = b;
    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The expected candidates, found by sorting. */
static size_t plain_top(const struct fixture *f, const struct head_request *head,
                        struct head_cand *out)
{
    struct head_cand all[N];
    bool chosen[N] = {false};
    for (size_t i = 0; i < N; i++)
        all[i] = (struct head_cand){(int32_t)i, f->z[i]};
    qsort(all, N, sizeof all[0], comes_before);
    for (size_t i = 0; i < N; i++)
        chosen[all[i].id] =
            i < head->k || (head->gap > 0.0f && all[i].logit >= f->best - head->gap);
    for (size_t i = 0; i < head->n_ids; i++)
        chosen[head->ids[i]] = true;
    size_t n = 0;
    for (size_t i = 0; i < N; i++)
        if (chosen[all[i].id])
            out[n++] = all[i];
    return n;
}

static void check_top(struct fixture *f, const struct head_request *head)
{
    static const uint64_t zeros[N / 64 + 1] = {0};
    struct head_cand expected[N];
    const size_t n = plain_top(f, head, expected);
    size_t n_found = 0;
    assert_true(pick_top(f->z, N, f->best, head, &f->row, f->seen, &n_found));
    assert_int_equal(n_found, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(f->cands[i].id, expected[i].id);
        assert_true(f->cands[i].logit == expected[i].logit);
    }
    assert_memory_equal(f->seen, zeros, sizeof zeros);
}

static void top_is_the_same_as_sorting(void **state)
{
    (void)state;
    static const size_t ks[] = {1, 2, 7, 40, 999, 1000, 5000};
    static const uint32_t n_values[] = {1, 3, 50, 1000000};
    for (size_t v = 0; v < 4; v++)
        for (size_t i = 0; i < sizeof ks / sizeof ks[0]; i++) {
            struct fixture f;
            fill(&f, (uint32_t)(v * 100 + i), n_values[v]);
            check_top(&f, &(struct head_request){.kind = HEAD_TOP, .k = ks[i]});
        }
}

static void top_adds_the_gap_and_requested_ids(void **state)
{
    (void)state;
    /* with duplicates, and first and last bits of the words of `seen` */
    static const int32_t ids[] = {5, 999, 0, 5, 64, 63, 128, 999};
    static const float gaps[] = {0.0f, 0.125f, 1.0f, 3.0f, 100.0f};
    for (size_t g = 0; g < 5; g++)
        for (size_t k = 1; k < 300; k += 59) {
            struct fixture f;
            fill(&f, (uint32_t)(g + k), 64);
            check_top(&f, &(struct head_request){
                              .kind = HEAD_TOP, .k = k, .gap = gaps[g], .ids = ids, .n_ids = 8});
        }
}

static void a_top_of_0_has_only_the_requested_ids(void **state)
{
    (void)state;
    static const int32_t ids[] = {5, 999, 0, 5, 64, 63, 128, 999};
    struct fixture f;
    fill(&f, 9, 64);
    check_top(&f, &(struct head_request){.kind = HEAD_TOP, .k = 0, .ids = ids, .n_ids = 8});
    assert_int_equal(plain_top(&f, &(struct head_request){.ids = ids, .n_ids = 8}, f.cands), 6);
}

static void a_row_that_is_too_small_is_refused(void **state)
{
    (void)state;
    static const int32_t ids[] = {7, 8, 9};
    struct fixture f;
    size_t n = 0;
    fill(&f, 3, 1000000);
    f.row.cap = 9;
    assert_false(pick_all(f.z, N, &f.row, &n));
    assert_int_equal(n, N);
    assert_false(pick_top(f.z, N, f.best, &(struct head_request){.k = 10}, &f.row, f.seen, &n));
    assert_int_equal(n, 10);
    struct head_request wide = {.k = 1, .gap = 1e9f};
    assert_false(pick_top(f.z, N, f.best, &wide, &f.row, f.seen, &n));
    assert_int_equal(n, N);
    struct head_request with_ids = {.k = 8, .ids = ids, .n_ids = 3};
    assert_false(pick_top(f.z, N, f.best, &with_ids, &f.row, f.seen, &n));
    assert_true(n > f.row.cap); /* a lower bound of the number needed */
    for (size_t i = 0; i < N / 64 + 1; i++)
        assert_true(f.seen[i] == 0);
}

static int32_t draw(const struct fixture *f, float temp, uint64_t seed, uint64_t position,
                    size_t n_parts)
{
    const struct head_request head = {.kind = HEAD_GUMBEL, .temp = temp, .seed = seed};
    double best = -INFINITY;
    int32_t id = -1;
    for (size_t i = 0; i < n_parts; i++) {
        const size_t begin = N * i / n_parts, end = N * (i + 1) / n_parts;
        pick_gumbel(f->z + begin, begin, end - begin, &head, position, &best, &id);
    }
    return id;
}

static void a_draw_depends_only_on_seed_and_position(void **state)
{
    (void)state;
    struct fixture f;
    fill(&f, 1, 1000);
    size_t n_same = 0;
    for (uint64_t pos = 0; pos < 50; pos++) {
        const int32_t id = draw(&f, 1.0f, 42, pos, 1);
        assert_int_equal(draw(&f, 1.0f, 42, pos, 7), id);
        n_same += draw(&f, 1.0f, 43, pos, 1) == id;
    }
    assert_true(n_same < 10); /* of 50: another seed mostly draws another id */
}

/* 20,000 draws of four logits against softmax, within 3.5 standard deviations. The other logits are
 * too low to be drawn. */
static void draws_follow_the_softmax(void **state)
{
    (void)state;
    enum { N_DRAWS = 20000 };
    struct fixture f;
    fill(&f, 1, 2);
    const float z[4] = {0.0f, 1.0f, 2.0f, -1.0f}, temp = 0.8f;
    double weight[4], total = 0.0;
    size_t count[4] = {0};
    for (size_t i = 0; i < N; i++)
        f.z[i] = i < 4 ? z[i] : -1000.0f;
    for (size_t i = 0; i < 4; i++)
        total += weight[i] = exp((double)z[i] / (double)temp);
    for (uint64_t pos = 0; pos < N_DRAWS; pos++) {
        const int32_t id = draw(&f, temp, 9, pos, 1);
        assert_in_range(id, 0, 3);
        count[id]++;
    }
    for (size_t i = 0; i < 4; i++) {
        const double p = weight[i] / total, sigma = sqrt(N_DRAWS * p * (1.0 - p));
        assert_true(fabs((double)count[i] - N_DRAWS * p) < 3.5 * sigma);
    }
}

/* The lowest temperatures that a float can have, where z / temp exceeds the range of a float. */
static void the_coldest_draw_is_the_best_logit(void **state)
{
    (void)state;
    struct fixture f;
    fill(&f, 5, 1000000);
    size_t top = 0;
    for (size_t i = 0; i < N; i++)
        if (f.z[i] > f.z[top])
            top = i;
    assert_int_equal(draw(&f, 1e-38f, 1, 1, 3), top);
    for (size_t i = 0; i < N; i++)
        f.z[i] = -3e38f;
    assert_in_range(draw(&f, 1e-45f, 1, 1, 3), 0, N - 1);
}

static void noise_log_is_close_to_log(void **state)
{
    (void)state;
    for (double x = 1e-9; x < 1e9; x *= 1.37)
        assert_true(fabs(noise_log(x) - log(x)) <= 1e-12 * fabs(log(x)) + 1e-15);
    for (uint64_t i = 0; i < 10000; i++)
        assert_true(noise_gumbel(noise_key(1, 2), i) < NOISE_GUMBEL_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_is_the_same_as_sorting),
        cmocka_unit_test(top_adds_the_gap_and_requested_ids),
        cmocka_unit_test(a_top_of_0_has_only_the_requested_ids),
        cmocka_unit_test(a_row_that_is_too_small_is_refused),
        cmocka_unit_test(a_draw_depends_only_on_seed_and_position),
        cmocka_unit_test(draws_follow_the_softmax),
        cmocka_unit_test(the_coldest_draw_is_the_best_logit),
        cmocka_unit_test(noise_log_is_close_to_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
