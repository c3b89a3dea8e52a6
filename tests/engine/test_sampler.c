/*
 * The sampler: exact results of each step, requests for logits, and the distribution of draws. A
 * simple implementation of the requests replaces the engine.
 */
#include "engine/sampler/sampler.h"

#include "engine/base/noise.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_VOCAB 64

static const struct sampler_params plain = {
    .temp = 1.0f, .top_p = 1.0f, .typical = 1.0f, .repeat_penalty = 1.0f, .repeat_last_n = -1};

struct fixture {
    struct sampler *s;
    float z[N_VOCAB]; /* (N_VOCAB) logits of the next token */
    struct head_request request;
};

static int open_fixture(void **state)
{
    static struct fixture f;
    struct bn_error err;
    f = (struct fixture){0};
    *state = &f;
    return sampler_open(N_VOCAB, &f.s, &err) ? 0 : -1;
}

static int close_fixture(void **state)
{
    struct fixture *f = *state;
    sampler_close(f->s);
    return 0;
}

static void set(struct fixture *f, const struct sampler_params *p)
{
    struct bn_error err;
    if (!sampler_set(f->s, p, &err))
        fail_msg("%s", err.text);
}

/* Uniform in [0, 1) with 24 bits, from the noise that the sampler uses. */
static float uniform(uint64_t seed, uint64_t position, uint64_t number)
{
    return (float)(noise_bits(noise_key(seed, position), number) >> 40) * (1.0f / 16777216.0f);
}

static void random_logits(struct fixture *f, uint64_t salt)
{
    for (size_t i = 0; i < N_VOCAB; i++)
        f->z[i] = 8.0f * uniform(salt, 0, i) - 4.0f;
}

static bool is_requested(const struct head_request *r, const float *z, size_t id)
{
    float best = -INFINITY;
    size_t n_before = 0;
    for (size_t i = 0; i < N_VOCAB; i++) {
        best = fmaxf(best, z[i]);
        n_before += z[i] > z[id] || (z[i] == z[id] && i < id);
    }
    bool listed = false;
    for (size_t i = 0; i < r->n_ids; i++)
        listed = listed || (size_t)r->ids[i] == id;
    return r->kind == HEAD_ALL || n_before < r->k || listed ||
           (r->gap > 0.0f && z[id] >= best - r->gap);
}

static void swap_if_before(struct head_cand *a, struct head_cand *b)
{
    if (b->logit > a->logit || (b->logit == a->logit && b->id < a->id)) {
        const struct head_cand old = *a;
        *a = *b;
        *b = old;
    }
}

/* Fill a row with exactly the requested logits, as a backend does. */
static void fill_row(const struct head_request *r, const float *z, uint64_t position,
                     struct head_row *row)
{
    row->n = 0;
    if (r->kind == HEAD_GUMBEL) {
        double best = -INFINITY;
        const uint64_t key = noise_key(r->seed, position);
        for (size_t i = 0; i < N_VOCAB; i++) {
            const double noisy = (double)z[i] * (1.0 / (double)r->temp) + noise_gumbel(key, i);
            if (noisy > best) {
                best = noisy;
                row->cands[0] = (struct head_cand){(int32_t)i, z[i]};
            }
        }
        row->n = 1;
        return;
    }
    for (size_t i = 0; i < N_VOCAB; i++) {
        if (is_requested(r, z, i))
            row->cands[row->n++] = (struct head_cand){(int32_t)i, z[i]};
    }
    for (size_t i = 0; r->kind == HEAD_TOP && i < row->n; i++) {
        for (size_t j = i + 1; j < row->n; j++)
            swap_if_before(&row->cands[i], &row->cands[j]);
    }
}

static int32_t next_id(struct fixture *f, const int32_t *ids, size_t n_ids)
{
    struct head_row *row = NULL;
    sampler_request(f->s, ids, n_ids, &f->request, &row);
    fill_row(&f->request, f->z, n_ids, row);
    return sampler_pick(f->s, row, ids, n_ids);
}

static int32_t next_with(struct fixture *f, const struct sampler_params *p, const int32_t *ids,
                         size_t n_ids)
{
    set(f, p);
    return next_id(f, ids, n_ids);
}

/* The same parameters, but with a row of all logits. */
static int32_t next_id_from_all_logits(struct fixture *f, const int32_t *ids, size_t n_ids)
{
    struct head_row *row = NULL;
    const struct head_request all = {.kind = HEAD_ALL};
    sampler_request(f->s, ids, n_ids, &f->request, &row);
    fill_row(&all, f->z, n_ids, row);
    return sampler_pick(f->s, row, ids, n_ids);
}

/* ---- the requests ---- */

static void requests_follow_the_parameters(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    random_logits(f, 1);
    p.temp = 0.0f;
    (void)next_with(f, &p, NULL, 0);
    assert_int_equal(f->request.kind, HEAD_TOP);
    assert_int_equal(f->request.k, 1);

    p = plain;
    (void)next_with(f, &p, NULL, 0);
    assert_int_equal(f->request.kind, HEAD_GUMBEL);

    p.min_p = 0.1f;
    (void)next_with(f, &p, NULL, 0);
    assert_int_equal(f->request.kind, HEAD_TOP);
    assert_true(f->request.gap > 2.302f && f->request.gap < 2.4f); /* ln 10 */

    p.top_p = 0.9f;
    (void)next_with(f, &p, NULL, 0);
    assert_int_equal(f->request.kind, HEAD_ALL);

    p.top_k = 5;
    p.typical = 0.9f;
    (void)next_with(f, &p, NULL, 0);
    assert_int_equal(f->request.kind, HEAD_TOP);
    assert_int_equal(f->request.k, 5);

    p.top_k = N_VOCAB;
    (void)next_with(f, &p, NULL, 0);
    assert_int_equal(f->request.kind, HEAD_ALL);
}

static void penalties_widen_the_request(void **state)
{
    struct fixture *f = *state;
    const struct sampler_bias biases[] = {{9, 1.0f}, {20, -INFINITY}};
    const int32_t ids[] = {3, 9, 3, 4, 4, 4};
    struct sampler_params p = plain;
    p.top_k = 4;
    p.repeat_penalty = 1.5f;
    p.biases = biases;
    p.n_biases = 2;
    (void)next_with(f, &p, ids, 6);
    assert_int_equal(f->request.n_ids, 4); /* ids 3, 4, 9, 20, each once */
    assert_int_equal(f->request.k, 8);
    p.repeat_last_n = 3;
    (void)next_with(f, &p, ids, 6);
    assert_int_equal(f->request.n_ids, 3); /* the penalty window holds only id 4 */
    p.repeat_last_n = 0;
    (void)next_with(f, &p, ids, 6);
    assert_int_equal(f->request.n_ids, 2);
    p.top_k = 0; /* HEAD_GUMBEL cannot apply penalties */
    (void)next_with(f, &p, ids, 6);
    assert_int_equal(f->request.kind, HEAD_ALL);
}

/* ---- greedy ---- */

static void greedy_picks_the_largest_logit_then_the_lower_id(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    p.temp = 0.0f;
    random_logits(f, 2);
    f->z[40] = f->z[17] = 9.0f;
    for (uint64_t seed = 0; seed < 5; seed++) {
        p.seed = seed;
        assert_int_equal(next_with(f, &p, NULL, 0), 17);
        assert_int_equal(next_id_from_all_logits(f, NULL, 0), 17);
    }
}

static void penalties_are_exact_for_greedy(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    const int32_t ids[] = {5, 6, 6};
    p.temp = 0.0f;
    memset(f->z, 0, sizeof(f->z));
    f->z[5] = 10.0f;
    f->z[6] = 9.9f;
    f->z[7] = 6.0f;
    p.repeat_penalty = 1.25f; /* logits of ids 5, 6, 7: 8, 7.92, 6 */
    assert_int_equal(next_with(f, &p, ids, 3), 5);
    p.frequency_penalty = 1.5f; /* 6.5, 4.92, 6 */
    assert_int_equal(next_with(f, &p, ids, 3), 5);
    p.presence_penalty = 0.75f; /* 5.75, 4.17, 6 */
    assert_int_equal(next_with(f, &p, ids, 3), 7);
    p.repeat_last_n = 2; /* 10, 4.17, 6 */
    assert_int_equal(next_with(f, &p, ids, 3), 5);
    for (size_t i = 0; i < N_VOCAB; i++)
        f->z[i] = -9.0f;
    f->z[5] = -4.0f; /* negative logits are multiplied: -5, then - 2.25 */
    f->z[8] = -7.2f;
    p.repeat_last_n = -1;
    assert_int_equal(next_with(f, &p, ids, 3), 8);
}

static void biases_add_and_ban(void **state)
{
    struct fixture *f = *state;
    const struct sampler_bias biases[] = {{1, -INFINITY}, {2, 2.0f}, {2, 2.0f}};
    struct sampler_params p = plain;
    p.temp = 0.0f;
    memset(f->z, 0, sizeof(f->z));
    f->z[1] = 5.0f;
    f->z[2] = 1.0f;
    f->z[3] = 4.5f;
    p.biases = biases;
    p.n_biases = 1;
    assert_int_equal(next_with(f, &p, NULL, 0), 3);
    p.n_biases = 3; /* logit of id 2: 1 + 2 + 2 */
    assert_int_equal(next_with(f, &p, NULL, 0), 2);
    p.n_biases = 0; /* the old biases are gone */
    assert_int_equal(next_with(f, &p, NULL, 0), 1);
    p.temp = 5.0f;
    p.n_biases = 1;
    for (uint64_t seed = 0; seed < 200; seed++) {
        p.seed = seed;
        assert_int_not_equal(next_with(f, &p, NULL, 0), 1);
    }
}

/* ---- candidates: with many draws at a high temperature each of them occurs ---- */

static uint64_t candidates(struct fixture *f, struct sampler_params p)
{
    uint64_t seen = 0;
    p.temp = 100.0f;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        p.seed = seed;
        const int32_t id = next_with(f, &p, NULL, 0);
        assert_int_equal(id, next_id_from_all_logits(f, NULL, 0));
        seen |= (uint64_t)1 << id;
    }
    return seen;
}

/* Probabilities 0.4, 0.3, 0.15, 0.1, 0.05 of ids 10 to 14; the others are near 0. */
static void known_logits(struct fixture *f)
{
    static const double probabilities[5] = {0.4, 0.3, 0.15, 0.1, 0.05};
    for (size_t i = 0; i < N_VOCAB; i++)
        f->z[i] = -60.0f;
    for (size_t i = 0; i < 5; i++)
        f->z[10 + i] = (float)log(probabilities[i]);
}

static uint64_t bits(size_t lo, size_t hi)
{
    return (((uint64_t)1 << (hi - lo)) - 1) << lo;
}

static void top_k_keeps_the_k_best(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    known_logits(f);
    p.top_k = 3;
    assert_true(candidates(f, p) == bits(10, 13));
    f->z[13] = f->z[12]; /* equal logits at the limit: the lower id remains */
    assert_true(candidates(f, p) == bits(10, 13));
}

static void top_p_keeps_the_smallest_set_that_reaches_p(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    known_logits(f);
    p.top_p = 0.69f;
    assert_true(candidates(f, p) == bits(10, 12));
    p.top_p = 0.71f;
    assert_true(candidates(f, p) == bits(10, 13));
    p.top_p = 0.01f;
    assert_true(candidates(f, p) == bits(10, 11));
    p.top_k = 2; /* renormalised over two: 0.571, 0.429 */
    p.top_p = 0.56f;
    assert_true(candidates(f, p) == bits(10, 11));
    p.top_p = 0.58f;
    assert_true(candidates(f, p) == bits(10, 12));
    f->z[11] = f->z[10]; /* one half each: the first one reaches p exactly */
    p.top_p = 0.5f;
    assert_true(candidates(f, p) == bits(10, 11));
}

static void min_p_is_relative_to_the_best(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    known_logits(f);
    p.min_p = 0.3f; /* limit 0.12 */
    assert_true(candidates(f, p) == bits(10, 13));
    p.min_p = 0.2f; /* limit 0.08 */
    assert_true(candidates(f, p) == bits(10, 14));
    p.min_p = 1.0f;
    assert_true(candidates(f, p) == bits(10, 11));
}

static void typical_keeps_surprises_near_the_entropy(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    known_logits(f);
    /* Entropy 1.3924; distances of -ln p: 0.476, 0.188, 0.505, 0.910, 1.603. */
    p.typical = 0.25f;
    assert_true(candidates(f, p) == bits(11, 12));
    p.typical = 0.65f;
    assert_true(candidates(f, p) == bits(10, 12));
    p.typical = 0.80f;
    assert_true(candidates(f, p) == bits(10, 13));
    p.min_p = 0.9f; /* limit 0.9 * 0.3, because typical has removed 0.4 */
    p.typical = 0.25f;
    assert_true(candidates(f, p) == bits(11, 12));
    p.min_p = 0.0f; /* a banned id does not count in the entropy */
    p.biases = &(struct sampler_bias){.id = 20, .bias = -INFINITY};
    p.n_biases = 1;
    assert_true(candidates(f, p) == bits(11, 12));
}

/* ---- any request gives the same id as the whole row ---- */

static void short_rows_give_the_same_id_as_full_rows(void **state)
{
    struct fixture *f = *state;
    static const struct sampler_bias biases[] = {{7, 1.5f}, {11, -INFINITY}, {50, -2.0f}};
    int32_t ids[40];
    for (uint64_t round = 0; round < 3000; round++) {
        const uint64_t r = noise_bits(77, round);
        random_logits(f, round);
        for (size_t i = 0; i < 40; i++)
            ids[i] = (int32_t)(noise_bits(round, i) % N_VOCAB);
        const struct sampler_params p = {
            .temp = (r & 1)   ? 0.7f
                    : (r & 2) ? 0.0f
                              : 1.3f,
            .top_k = (r & 4) ? (int32_t)(r >> 32 & 31) : 0,
            .top_p = (r & 8) ? 0.9f : 1.0f,
            .min_p = (r & 16) ? 0.05f : 0.0f,
            .typical = (r & 32) ? 0.8f : 1.0f,
            .repeat_penalty = (r & 64) ? 1.3f : 1.0f,
            .presence_penalty = (r & 128) ? 0.5f : 0.0f,
            .frequency_penalty = (r & 256) ? -0.3f : 0.0f,
            .repeat_last_n = (int32_t)(r >> 40 & 63) - 1,
            .seed = round,
            .biases = biases,
            .n_biases = (r & 512) ? 3 : 0,
        };
        set(f, &p);
        const size_t n_ids = r >> 50 & 31;
        const int32_t id = next_id(f, ids, n_ids);
        assert_int_equal(id, next_id_from_all_logits(f, ids, n_ids));
    }
}

/* HEAD_GUMBEL draws in the engine. With a min-p that keeps all candidates the sampler itself draws
 * from the same logits. */
static void engine_and_sampler_draw_the_same_id(void **state)
{
    struct fixture *f = *state;
    const int32_t ids[64] = {0};
    struct sampler_params p = plain;
    size_t n_best = 0;
    for (uint64_t round = 0; round < 2000; round++) {
        random_logits(f, round);
        p.temp = 0.3f + uniform(round, 1, 0);
        p.seed = round;
        p.min_p = 0.0f;
        const int32_t id = next_with(f, &p, ids, round % 64);
        assert_int_equal(f->request.kind, HEAD_GUMBEL);
        p.min_p = 1e-30f;
        assert_int_equal(next_with(f, &p, ids, round % 64), id);
        assert_int_equal(f->request.kind, HEAD_TOP);
        p.temp = 0.0f;
        n_best += next_with(f, &p, ids, round % 64) == id;
    }
    assert_true(n_best < 1500); /* draws are not always the best id */
}

/* ---- draws ---- */

static void draws_follow_the_probabilities(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    static const double expected[5] = {0.4, 0.3, 0.15, 0.1, 0.05};
    size_t n_seen[5] = {0};
    const size_t n = 40000;
    known_logits(f);
    p.top_k = 5;
    p.seed = 3;
    set(f, &p);
    static int32_t ids[40000];
    for (size_t i = 0; i < n; i++)
        n_seen[next_id(f, ids, i) - 10]++;
    double chi2 = 0.0;
    for (size_t i = 0; i < 5; i++)
        chi2 += pow((double)n_seen[i] - expected[i] * (double)n, 2) / (expected[i] * (double)n);
    assert_true(chi2 < 18.47); /* p = 0.001 for four degrees of freedom */
}

static void temperature_sharpens(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    static int32_t ids[20000];
    size_t n_best = 0;
    known_logits(f);
    p.temp = 0.5f; /* squared probabilities: 0.16 of 0.285 for id 10 */
    set(f, &p);
    for (size_t i = 0; i < 20000; i++)
        n_best += next_id(f, ids, i) == 10;
    assert_true(fabs((double)n_best / 20000.0 - 0.16 / 0.285) < 0.012);
}

static void draw_depends_only_on_seed_and_position(void **state)
{
    struct fixture *f = *state;
    struct sampler_params p = plain;
    int32_t ids[32] = {0}, first[32];
    size_t n_same = 0;
    random_logits(f, 5);
    set(f, &p);
    for (size_t i = 0; i < 32; i++)
        first[i] = next_id(f, ids, i);
    for (size_t i = 32; i-- > 0;)
        assert_int_equal(next_id(f, ids, i), first[i]); /* the order does not matter */
    for (size_t i = 0; i < 32; i++)
        ids[i] = (int32_t)i;
    for (size_t i = 0; i < 32; i++)
        assert_int_equal(next_id(f, ids, i), first[i]); /* nor does the text */
    p.seed = 1;
    set(f, &p);
    for (size_t i = 0; i < 32; i++)
        n_same += next_id(f, ids, i) == first[i];
    assert_true(n_same < 16);
}

static void uniform_numbers_are_uniform(void **state)
{
    (void)state;
    double sum = 0.0;
    size_t n_low = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        const float u = uniform(i / 1000, i % 1000, i % 7);
        assert_true(u >= 0.0f && u < 1.0f);
        sum += (double)u;
        n_low += u < 0.1f;
    }
    assert_true(fabs(sum / 100000.0 - 0.5) < 0.004);
    assert_true(n_low > 9600 && n_low < 10400);
}

/* ---- parameters out of range ---- */

static void bad_parameters_leave_the_old_ones(void **state)
{
    struct fixture *f = *state;
    static const struct sampler_bias outside = {N_VOCAB, 1.0f}, not_a_number = {1, NAN};
    struct sampler_params bad[16];
    struct bn_error err;
    for (size_t i = 0; i < 16; i++)
        bad[i] = plain;
    bad[0].temp = -0.1f;
    bad[1].temp = NAN;
    bad[2].temp = 101.0f;
    bad[3].top_k = -1;
    bad[4].top_p = 0.0f;
    bad[5].top_p = 1.01f;
    bad[6].min_p = -0.1f;
    bad[7].min_p = 1.1f;
    bad[8].typical = 0.0f;
    bad[9].repeat_penalty = 0.0f;
    bad[10].repeat_last_n = -2;
    bad[11].presence_penalty = INFINITY;
    bad[12].frequency_penalty = NAN;
    bad[13].typical = 2.0f;
    bad[14].biases = &outside;
    bad[15].biases = &not_a_number;
    bad[14].n_biases = bad[15].n_biases = 1;
    struct sampler_params p = plain;
    p.temp = 0.0f;
    random_logits(f, 9);
    const int32_t best = next_with(f, &p, NULL, 0);
    for (size_t i = 0; i < 16; i++) {
        assert_false(sampler_set(f->s, &bad[i], &err));
        assert_int_equal(err.code, BN_EARG);
        assert_int_equal(next_id(f, NULL, 0), best);
    }
}

static void all_ids_banned_still_returns_an_id(void **state)
{
    struct fixture *f = *state;
    struct sampler_bias biases[N_VOCAB];
    struct sampler_params p = plain;
    for (size_t i = 0; i < N_VOCAB; i++)
        biases[i] = (struct sampler_bias){(int32_t)i, -INFINITY};
    p.biases = biases;
    p.n_biases = N_VOCAB;
    const int32_t id = next_with(f, &p, NULL, 0);
    assert_true(id >= 0 && id < N_VOCAB);
}

static void an_impossible_vocabulary_is_an_argument_error(void **state)
{
    (void)state;
    const size_t sizes[] = {0, (size_t)INT32_MAX + 1};
    for (size_t i = 0; i < 2; i++) {
        struct sampler *s = NULL;
        struct bn_error err;
        assert_false(sampler_open(sizes[i], &s, &err));
        assert_int_equal(err.code, BN_EARG);
        assert_non_null(strstr(err.text, "a sampler needs 1 to 2147483647 tokens, not "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_impossible_vocabulary_is_an_argument_error),
        cmocka_unit_test(requests_follow_the_parameters),
        cmocka_unit_test(penalties_widen_the_request),
        cmocka_unit_test(greedy_picks_the_largest_logit_then_the_lower_id),
        cmocka_unit_test(penalties_are_exact_for_greedy),
        cmocka_unit_test(biases_add_and_ban),
        cmocka_unit_test(top_k_keeps_the_k_best),
        cmocka_unit_test(top_p_keeps_the_smallest_set_that_reaches_p),
        cmocka_unit_test(min_p_is_relative_to_the_best),
        cmocka_unit_test(typical_keeps_surprises_near_the_entropy),
        cmocka_unit_test(short_rows_give_the_same_id_as_full_rows),
        cmocka_unit_test(engine_and_sampler_draw_the_same_id),
        cmocka_unit_test(draws_follow_the_probabilities),
        cmocka_unit_test(temperature_sharpens),
        cmocka_unit_test(draw_depends_only_on_seed_and_position),
        cmocka_unit_test(uniform_numbers_are_uniform),
        cmocka_unit_test(bad_parameters_leave_the_old_ones),
        cmocka_unit_test(all_ids_banned_still_returns_an_id),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
