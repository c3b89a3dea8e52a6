/*
 * Speculative decoding: the ids are the same as without it for every draft and every kind of
 * sampling, and wrong drafts leave nothing in the session. Also the search for drafts and the draft
 * policy.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/spec/spec.h"
#include "engine/spec/spec_policy.h"
#include "tests/engine/test_engine_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define N_PROMPT 9
#define N_STEPS 40
#define ALL_RIGHT (SPEC_MAX_DRAFT + 1) /* oracle.n_right: more tokens than a draft has */

static struct kit kit;

static int setup(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.n_threads = 1, .n_ubatch = 16};
    spec.n_ctx = N_PROMPT + N_STEPS;
    kit_open(&kit, &spec, &cfg);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kit_close(&kit);
    return 0;
}

/* A clock that advances by half a second per call, so that every pass takes the same time. */
static double seconds;
static double tick(void)
{
    seconds += 0.5;
    return seconds;
}

/* A source of drafts: the true continuation, but only n_right tokens of each draft are right. */
struct oracle {
    int32_t ids[N_PROMPT + N_STEPS + SPEC_MAX_DRAFT + 1];
    size_t n_right;
};

static size_t draft_from_oracle(void *ud, const int32_t *ids, size_t n_ids, int32_t *out, size_t n)
{
    struct oracle *o = ud;
    (void)ids;
    for (size_t i = 0; i < n; i++)
        out[i] = o->ids[n_ids + i] ^ (i >= o->n_right ? 1 : 0);
    return SPEC_MATCH_MAX;
}

static struct sampler *open_sampler(const struct sampler_params *params)
{
    struct sampler *s;
    struct bn_error err;
    if (!sampler_open(kit.n_vocab, &s, &err) || !sampler_set(s, params, &err))
        fail_msg("%s", err.text);
    return s;
}

/* Generate N_STEPS tokens after the prompt; together they fill the context. */
static void generate_plain(const struct sampler_params *params, int32_t *ids)
{
    struct sampler *sampler = open_sampler(params);
    struct bn_session *s = kit_session(&kit, N_PROMPT + N_STEPS);
    struct bn_error err;
    for (size_t n = N_PROMPT; n < N_PROMPT + N_STEPS; n++) {
        struct head_request head;
        struct head_row *row;
        sampler_request(sampler, ids, n, &head, &row);
        if (!bn_session_sync(s, ids, n, &head, row, NULL, NULL, &err))
            fail_msg("%s", err.text);
        ids[n] = sampler_pick(sampler, row, ids, n);
    }
    bn_session_close(s);
    sampler_close(sampler);
}

/* Speculative decoding of one sequence. */
struct run {
    struct sampler *sampler;
    struct bn_session *s;
    struct spec *sp;
};

static void open_run(struct run *r, const struct sampler_params *params, struct oracle *oracle)
{
    struct bn_error err;
    r->sampler = open_sampler(params);
    r->s = kit_session(&kit, N_PROMPT + N_STEPS);
    const struct spec_config cfg = {.session = r->s,
                                    .sampler = r->sampler,
                                    .n_vocab = kit.n_vocab,
                                    .n_ubatch = 16,
                                    .mode = SPEC_ON,
                                    .draft = oracle ? draft_from_oracle : NULL,
                                    .draft_ud = oracle,
                                    .now = tick};
    if (!spec_open(&cfg, &r->sp, &err))
        fail_msg("%s", err.text);
}

static void close_run(struct run *r)
{
    spec_close(r->sp);
    bn_session_close(r->s);
    sampler_close(r->sampler);
}

static struct spec_stats check_same(const struct sampler_params *params, struct oracle *oracle,
                                    const int32_t *expected)
{
    struct run r;
    int32_t ids[N_PROMPT + N_STEPS];
    struct bn_error err;
    open_run(&r, params, oracle);
    memcpy(ids, expected, N_PROMPT * sizeof(*ids));
    for (size_t n = N_PROMPT; n < N_PROMPT + N_STEPS; n++) {
        size_t n_held;
        if (!spec_step(r.sp, ids, n, NULL, NULL, &ids[n], &err))
            fail_msg("%s", err.text);
        const int32_t *held = bn_session_ids(r.s, &n_held);
        assert_true(n_held >= n);
        assert_memory_equal(held, expected, size_min(n_held, N_PROMPT + N_STEPS) * sizeof(*held));
        assert_true(spec_row(r.sp)->n > 0);
    }
    assert_memory_equal(ids, expected, sizeof(ids));
    const struct spec_stats stats = spec_stats_of(r.sp);
    close_run(&r);
    return stats;
}

static void ids_are_the_same_as_without_speculation(void **state)
{
    (void)state;
    static const struct sampler_bias biases[] = {{65, 3.0f}, {66, -2.0f}};
    static const struct sampler_params kinds[] = {
        {.temp = 0, .top_p = 1, .typical = 1, .repeat_penalty = 1},
        {.temp = 0.8f,
         .top_k = 40,
         .top_p = 0.95f,
         .min_p = 0.05f,
         .typical = 1,
         .repeat_penalty = 1},
        {.temp = 0.5f, .top_p = 1, .typical = 1, .repeat_penalty = 1},
        {.temp = 1.5f, .top_p = 1, .min_p = 0.1f, .typical = 1, .repeat_penalty = 1},
        {.temp = 0.9f, .top_p = 0.9f, .typical = 0.9f, .repeat_penalty = 1},
        {.temp = 0, .top_p = 1, .typical = 1, .repeat_penalty = 1.3f, .repeat_last_n = 7},
        {.temp = 0.7f,
         .top_k = 5,
         .top_p = 1,
         .typical = 1,
         .repeat_penalty = 1.1f,
         .presence_penalty = 0.5f,
         .frequency_penalty = 0.2f,
         .repeat_last_n = -1},
        {.temp = 0.7f,
         .top_k = 5,
         .top_p = 1,
         .typical = 1,
         .repeat_penalty = 1,
         .biases = biases,
         .n_biases = 2},
    };
    static const size_t n_right[] = {0, 1, 2, 6, ALL_RIGHT};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (uint64_t seed = 1; seed <= 2; seed++) {
            struct sampler_params params = kinds[k];
            struct oracle oracle = {.n_right = 0};
            params.seed = seed;
            kit_ids(oracle.ids, N_PROMPT, (uint32_t)seed);
            generate_plain(&params, oracle.ids);
            (void)check_same(&params, NULL, oracle.ids);
            for (size_t i = 0; i < sizeof(n_right) / sizeof(n_right[0]); i++) {
                oracle.n_right = n_right[i];
                const struct spec_stats stats = check_same(&params, &oracle, oracle.ids);
                assert_true(stats.n_drafted > 0 && stats.n_accepted <= stats.n_drafted);
                assert_true(n_right[i] > 0 || stats.n_accepted == 0);
                assert_true(n_right[i] < ALL_RIGHT || stats.n_accepted == stats.n_drafted);
            }
        }
}

/* Tokens that a draft confirmed are used only if the caller continues the same text. */
static void another_text_does_not_use_confirmed_tokens(void **state)
{
    (void)state;
    const struct sampler_params params = {.top_p = 1, .typical = 1, .repeat_penalty = 1};
    struct oracle oracle = {.n_right = ALL_RIGHT};
    struct run r;
    int32_t ids[N_PROMPT + N_STEPS], next;
    struct bn_error err;
    open_run(&r, &params, &oracle);
    kit_ids(oracle.ids, N_PROMPT, 3);
    generate_plain(&params, oracle.ids);
    memcpy(ids, oracle.ids, sizeof(ids));
    for (size_t n = N_PROMPT; n < N_PROMPT + 6; n++)
        assert_true(spec_step(r.sp, ids, n, NULL, NULL, &next, &err));
    for (size_t n = 5; n < N_PROMPT + 9; n++) { /* texts of other lengths with other ids[4] */
        struct head_request head;
        struct head_row *row = kit_rows(&kit, 1);
        struct bn_session *fresh = kit_session(&kit, N_PROMPT + N_STEPS);
        struct sampler *plain = open_sampler(&params);
        ids[4] = (int32_t)(97 + n % 3);
        sampler_request_draft(plain, ids, n, 0, &head);
        assert_true(bn_session_sync(fresh, ids, n, &head, row, NULL, NULL, &err));
        assert_true(spec_step(r.sp, ids, n, NULL, NULL, &next, &err));
        assert_int_equal(next, sampler_pick(plain, row, ids, n));
        sampler_close(plain);
        bn_session_close(fresh);
        kit_free_rows(row, 1);
    }
    close_run(&r);
}

/* The first ids of a session are a prompt, even if they are as few as those after a wrong draft. */
static void a_short_first_prompt_is_not_evaluated_again(void **state)
{
    (void)state;
    static const struct sampler_params params = {.top_p = 1, .typical = 1, .repeat_penalty = 1};
    struct run r;
    struct bn_sync_stats stats;
    struct bn_error err;
    int32_t ids[5], next;
    kit_ids(ids, 5, 1);
    open_run(&r, &params, NULL);
    assert_true(spec_step(r.sp, ids, 5, NULL, &stats, &next, &err));
    assert_int_equal(stats.n_evaluated, 5);
    assert_int_equal(stats.n_reevaluated, 0);
    close_run(&r);
}

/* With recurrent states, a wrong draft takes the session back to the length before the pass. If the
 * text continues with the lost ids, they are evaluated again; those of a new prompt are not. */
static void a_prompt_after_a_wrong_draft_is_not_evaluated_again(void **state)
{
    (void)state;
    static const struct sampler_params params = {.top_p = 1, .typical = 1, .repeat_penalty = 1};
    const struct kit attention_kit = kit;
    const struct bn_model_config cfg = {.n_threads = 1, .n_ubatch = 16};
    struct synth_spec spec = synth_preset("qwen35-tiny");
    struct oracle oracle = {.n_right = 2};
    struct bn_error err;
    spec.n_ctx = N_PROMPT + N_STEPS;
    kit_open(&kit, &spec, &cfg);
    kit_ids(oracle.ids, N_PROMPT, 3);
    generate_plain(&params, oracle.ids);
    for (size_t n_other = 0; n_other <= 3; n_other++) { /* ids that are not those of the draft */
        struct bn_sync_stats stats = {0};
        struct run r;
        int32_t ids[N_PROMPT + N_STEPS], next;
        size_t n = N_PROMPT, n_held;
        memcpy(ids, oracle.ids, sizeof ids);
        open_run(&r, &params, &oracle);
        do { /* until a draft was made and its right ids are lost */
            assert_true(spec_step(r.sp, ids, n++, NULL, &stats, &next, &err));
            (void)bn_session_ids(r.s, &n_held);
        } while (n_held + 1 >= n);
        for (size_t i = 0; i < oracle.n_right; i++) { /* the draft has confirmed these ids */
            assert_true(spec_step(r.sp, ids, n++, NULL, &stats, &next, &err));
            assert_int_equal(stats.n_evaluated, 0);
        }
        for (size_t i = 0; i < n_other; i++)
            ids[n_held + i] ^= 1;
        assert_true(spec_step(r.sp, ids, n, NULL, &stats, &next, &err));
        assert_int_equal(stats.n_reevaluated > 0, n_other == 0);
        close_run(&r);
    }
    kit_close(&kit);
    kit = attention_kit;
}

static void a_cancelled_draft_changes_nothing(void **state)
{
    (void)state;
    const struct sampler_params params = {.top_p = 1, .typical = 1, .repeat_penalty = 1};
    struct oracle oracle = {.n_right = ALL_RIGHT};
    struct run r;
    struct bn_cancel cancel = {.requested = true};
    const struct bn_control control = {.cancel = &cancel};
    struct bn_error err;
    int32_t next;
    size_t n_held;
    open_run(&r, &params, &oracle);
    kit_ids(oracle.ids, N_PROMPT, 5);
    generate_plain(&params, oracle.ids);
    for (size_t n = N_PROMPT; n < N_PROMPT + 2; n++)
        assert_true(spec_step(r.sp, oracle.ids, n, NULL, NULL, &next, &err));
    assert_false(spec_step(r.sp, oracle.ids, N_PROMPT + 2, &control, NULL, &next, &err));
    assert_int_equal(err.code, BN_ECANCELLED);
    (void)bn_session_ids(r.s, &n_held);
    assert_int_equal(n_held, N_PROMPT + 1);
    for (size_t n = N_PROMPT + 2; n < N_PROMPT + N_STEPS; n++) {
        assert_true(spec_step(r.sp, oracle.ids, n, NULL, NULL, &next, &err));
        assert_int_equal(next, oracle.ids[n]);
    }
    assert_true(spec_stats_of(r.sp).n_accepted > 0);
    close_run(&r);
}

static void the_longest_short_match_is_used(void **state)
{
    (void)state;
    int32_t out[8];
    const int32_t words[] = {1, 2, 3, 9, 5, 2, 3, 7, 1, 2, 3};
    assert_int_equal(spec_policy_find(words, 11, out, 4), 3);
    assert_memory_equal(out, ((int32_t[]){9, 5, 2, 3}), 4 * sizeof(*out));
    assert_int_equal(spec_policy_find(words + 4, 7, out, 2), 2); /* without the first 1 2 3 */
    assert_memory_equal(out, ((int32_t[]){7, 1}), 2 * sizeof(*out));
    const int32_t round[] = {4, 6, 8, 6, 8}; /* the draft repeats 6 8 */
    assert_int_equal(spec_policy_find(round, 5, out, 8), 2);
    assert_memory_equal(out, ((int32_t[]){6, 8, 6, 8, 6, 8, 6, 8}), sizeof(out));
    assert_int_equal(spec_policy_find(words, 3, out, 4), 0); /* 3 occurs only once */
    assert_int_equal(spec_policy_find(words, 1, out, 4), 0);
    int32_t same[100] = {0};
    assert_int_equal(spec_policy_find(same, 100, out, 8), SPEC_MATCH_MAX);
}

/* The earlier match 8 1 2 3 4 is longer and followed by 6; the later match 1 2 3 4 is followed by
 * 5. */
static void the_latest_long_match_is_used(void **state)
{
    (void)state;
    int32_t out[2];
    const int32_t ids[] = {8, 1, 2, 3, 4, 6, 1, 2, 3, 4, 5, 8, 1, 2, 3, 4};
    assert_int_equal(spec_policy_find(ids, 16, out, 2), 4);
    assert_memory_equal(out, ((int32_t[]){5, 8}), sizeof(out));
}

#define N_MATCH 20 /* tokens: length of the match of every draft in the simulations */
/* Drafts may lose 2 % of the total time (MAX_LOSS in spec_policy.c) and the time of one token. */
#define MAX_SLOWDOWN 1.03

/* Simulate decoding n tokens: a pass of one token takes 1 s, a pass with a draft cost_s. Drafts for
 * the first n_unpredictable tokens are always wrong, the others always right. Returns the total
 * time in seconds. */
static double simulate(struct spec_policy *p, double cost_s, size_t n_unpredictable, size_t n)
{
    double spent = 0;
    for (size_t at = 0; at < n;) {
        const bool is_right = at >= n_unpredictable;
        const size_t n_draft = spec_policy_choose(p, N_MATCH, SPEC_MAX_DRAFT);
        const size_t n_accepted = is_right ? n_draft : 0;
        for (size_t i = 0; i < (n_draft == 0 ? 1 : n_draft); i++)
            spec_policy_trial(p, N_MATCH, is_right);
        const double took = n_draft > 0 ? cost_s : 1.0;
        spec_policy_pass(p, 1, n_draft, n_accepted, took);
        spent += took;
        at += 1 + n_accepted;
    }
    return spent;
}

static void text_without_repeats_costs_nothing(void **state)
{
    (void)state;
    struct spec_policy p;
    spec_policy_init(&p, SPEC_AUTO);
    assert_true(simulate(&p, 3.0, 1000, 1000) == 1000.0);
}

static void repeating_text_is_faster(void **state)
{
    (void)state;
    struct spec_policy p;
    spec_policy_init(&p, SPEC_AUTO);
    /* 100 s without drafts, then 500 tokens in passes of 16 tokens and 2 s: 163 s. The rest is for
     * passes with short drafts, until the policy has seen that drafts are right. */
    assert_true(simulate(&p, 2.0, 100, 600) < 250.0);
}

static void drafts_that_cost_too_much_are_not_made(void **state)
{
    (void)state;
    struct spec_policy p;
    spec_policy_init(&p, SPEC_AUTO);
    /* The first draft takes 20 s: the policy does not have its cost yet. */
    assert_true(simulate(&p, 20.0, 100, 600) < 600.0 * MAX_SLOWDOWN + 20.0);
}

/* The worst text: tokens are predictable only while the policy does not draft. */
static void loss_stays_within_the_bound(void **state)
{
    (void)state;
    struct spec_policy p;
    double spent = 0;
    spec_policy_init(&p, SPEC_AUTO);
    size_t n = 0;
    while (n < 5000) {
        const size_t n_draft = spec_policy_choose(&p, N_MATCH, SPEC_MAX_DRAFT);
        spec_policy_trial(&p, N_MATCH, n_draft == 0);
        spec_policy_pass(&p, 1, n_draft, 0, n_draft > 0 ? 3.0 : 1.0);
        spent += n_draft > 0 ? 3.0 : 1.0;
        n++;
    }
    assert_true(spent <= MAX_SLOWDOWN * 5000.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_the_same_as_without_speculation),
        cmocka_unit_test(another_text_does_not_use_confirmed_tokens),
        cmocka_unit_test(a_short_first_prompt_is_not_evaluated_again),
        cmocka_unit_test(a_prompt_after_a_wrong_draft_is_not_evaluated_again),
        cmocka_unit_test(a_cancelled_draft_changes_nothing),
        cmocka_unit_test(the_longest_short_match_is_used),
        cmocka_unit_test(the_latest_long_match_is_used),
        cmocka_unit_test(text_without_repeats_costs_nothing),
        cmocka_unit_test(repeating_text_is_faster),
        cmocka_unit_test(drafts_that_cost_too_much_are_not_made),
        cmocka_unit_test(loss_stays_within_the_bound),
    };
    return cmocka_run_group_tests_name("spec", tests, setup, teardown);
}
