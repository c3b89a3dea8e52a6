/*
 * Alternatives to a token come from the same logits as the token: they need no further evaluation
 * and do not change the choice. Also the reports of prefill. MODEL is a generated file; a trace
 * counts the evaluated tokens.
 */
#include "app/chat/answer/answer_run.h"
#include "app/chat/answer/generator.h"
#include "engine/base/memory.h"
#include "engine/engine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX_TOKENS 24
#define N_ALTS 5

static const char *model_path;
static const struct sampler_params plain = {
    .temp = 1.0f, .top_p = 1.0f, .typical = 1.0f, .repeat_penalty = 1.0f, .seed = 7};

struct fixture {
    struct bn_file *file;
    struct tokenizer *tokenizer;
    struct generator *g;
    size_t n_evaluated; /* tokens */
};

struct recorded {
    int32_t ids[MAX_TOKENS];
    struct generator_alt alts[MAX_TOKENS][N_ALTS + 1];
    size_t n, n_alts;
};

/* Each evaluated token has one step "embd". */
static void count(void *ud, const char *step, size_t layer, const float *x, size_t n)
{
    struct fixture *f = ud;
    (void)layer;
    (void)x;
    (void)n;
    f->n_evaluated += strcmp(step, "embd") == 0;
}

static int open_all(void **state)
{
    static struct fixture f;
    struct bn_error err;
    const struct tokenizer_config tokenizer = {0};
    const struct bn_model_config cfg = {
        .device = "cpu", .n_threads = 2, .trace = count, .trace_ud = &f};
    f = (struct fixture){0};
    *state = &f;
    if (bn_file_open(model_path, &f.file, &err) &&
        tokenizer_open(f.file, &tokenizer, &f.tokenizer, &err) &&
        generator_open(f.file, &cfg, &(struct bn_session_config){0}, &f.g, &err))
        return 0;
    print_error("%s\n", err.text);
    return 1;
}

static int close_all(void **state)
{
    struct fixture *f = *state;
    generator_close(f->g);
    tokenizer_close(f->tokenizer);
    bn_file_close(f->file);
    return 0;
}

static void on_prefill(void *ud, const struct answer_prefill *p)
{
    (void)ud;
    assert_true(p->n_evaluated <= p->n_done && p->n_done <= p->n_total);
}

static bool on_token(void *ud, const struct answer_token *token)
{
    struct recorded *h = ud;
    if (token->id == TOKEN_NONE) /* only text that the detokeniser held back */
        return true;
    assert_true(h->n < MAX_TOKENS);
    h->n_alts = token->n_alts;
    if (token->n_alts > 0)
        memcpy(h->alts[h->n], token->alts, token->n_alts * sizeof(*token->alts));
    h->ids[h->n++] = token->id;
    return true;
}

/* Generate an answer with an empty KV cache. Returns the number of evaluated tokens. */
static size_t answer(struct fixture *f, const struct sampler_params *params, size_t n_alts,
                     struct recorded *out)
{
    static const int32_t prompt[] = {'a', ' ', 'q', 'u', 'e', 's', 't', 'i', 'o', 'n'};
    const struct answer_job job = {.prompt = prompt,
                                   .n_prompt = sizeof(prompt) / sizeof(prompt[0]),
                                   .max_tokens = MAX_TOKENS,
                                   .n_alts = n_alts,
                                   .at_start = true,
                                   .sampler = *params};
    const struct answer_sink sink = {.prefill = on_prefill, .token = on_token, .ud = out};
    struct bn_cancel cancel = {false};
    struct answer_result result;
    struct bn_error err;
    *out = (struct recorded){0};
    generator_truncate(f->g, 0);
    f->n_evaluated = 0;
    if (!answer_run(f->g, f->tokenizer, &job, &sink, &cancel, &result, &err))
        fail_msg("%s", err.text);
    assert_true(result.n_tokens > 4);
    /* The last chosen id is not evaluated. If it ends the answer, it does not count in n_tokens. */
    const size_t n_ends = result.finish == FINISH_STOP;
    assert_int_equal(f->n_evaluated, job.n_prompt + result.n_tokens - 1 + n_ends);
    return f->n_evaluated;
}

static void alternatives_cost_no_evaluation_and_change_nothing(void **state)
{
    struct fixture *f = *state;
    static const struct sampler_bias bias = {'e', 2.0f};
    struct sampler_params rows[5] = {plain, plain, plain, plain, plain};
    struct recorded without, with;
    rows[0].temp = 0; /* greedy */
    rows[1].top_k = 8;
    rows[2].top_p = 0.9f;
    rows[2].min_p = 0.05f;
    rows[3].repeat_penalty = 1.3f;
    rows[3].repeat_last_n = 16;
    rows[3].biases = &bias;
    rows[3].n_biases = 1; /* rows[4] stays plain: the output head makes the draw (HEAD_GUMBEL) */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t n_evaluated = answer(f, &rows[i], 0, &without);
        assert_int_equal(without.n_alts, 0);
        assert_int_equal(answer(f, &rows[i], N_ALTS, &with), n_evaluated);
        assert_int_equal(with.n_alts, N_ALTS + 1);
        assert_int_equal(with.n, without.n);
        assert_memory_equal(with.ids, without.ids, with.n * sizeof(with.ids[0]));
    }
}

static void alternatives_are_the_best_in_order_and_the_chosen_one(void **state)
{
    struct fixture *f = *state;
    struct sampler_params greedy = plain;
    struct recorded h;
    greedy.temp = 0;
    (void)answer(f, &greedy, N_ALTS, &h); /* the count does not matter here */
    for (size_t i = 0; i < h.n; i++) {
        double sum = 0;
        const struct generator_alt *alts = h.alts[i];
        assert_int_equal(alts[0].id, h.ids[i]);
        assert_int_equal(alts[N_ALTS].id, h.ids[i]);
        assert_true(alts[0].logprob == alts[N_ALTS].logprob);
        for (size_t k = 0; k < N_ALTS; k++) {
            sum += exp((double)alts[k].logprob);
            assert_true(k == 0 || alts[k].logprob <= alts[k - 1].logprob);
            for (size_t j = 0; j < k; j++)
                assert_int_not_equal(alts[j].id, alts[k].id);
        }
        assert_true(sum > 0 && sum < 1);
    }
}

struct prefill_reports {
    struct answer_prefill last;
    size_t n_whole, n_parts; /* reports after whole micro-batches, and within them */
};

static void count_prefill(void *ud, const struct answer_prefill *p)
{
    struct prefill_reports *r = ud;
    const bool is_first = r->last.n_total == 0;
    assert_true(is_first ? p->n_done == 0 : p->n_done > r->last.n_done);
    assert_true(p->n_evaluated <= p->n_done && p->n_done <= p->n_total);
    assert_true(p->begun <= p->evaluated_at && p->evaluated_at <= p->done_at);
    r->n_whole += p->n_evaluated > r->last.n_evaluated;
    r->n_parts += p->n_done > p->n_evaluated;
    r->last = *p;
}

static bool ignore_token(void *ud, const struct answer_token *token)
{
    (void)ud, (void)token;
    return true;
}

/* All micro-batches, but few of their parts: each report costs time. */
static void reports_of_prefill_are_limited_in_rate(void **state)
{
    const struct fixture *f = *state;
    static int32_t prompt[400];
    const struct bn_model_config cfg = {.device = "cpu", .n_threads = 1, .n_ubatch = 2};
    const struct answer_job job = {
        .prompt = prompt, .n_prompt = 400, .max_tokens = 1, .sampler = plain};
    struct prefill_reports reports = {0};
    const struct answer_sink sink = {
        .prefill = count_prefill, .token = ignore_token, .ud = &reports};
    struct bn_cancel cancel = {false};
    struct answer_result result;
    struct bn_error err;
    struct generator *g;
    for (size_t i = 0; i < 400; i++)
        prompt[i] = 'a' + (int32_t)(i % 26);
    assert_true(generator_open(f->file, &cfg, &(struct bn_session_config){.n_ctx = 500}, &g, &err));
    assert_true(answer_run(g, f->tokenizer, &job, &sink, &cancel, &result, &err));
    generator_close(g);
    assert_int_equal(result.n_evaluated, 400);
    assert_int_equal(reports.last.n_evaluated, 400);
    assert_int_equal(reports.n_whole, 200);
    assert_true((double)reports.n_parts <= result.prefill_s * 10);
}

/* Two sequences in a batch, one with alternatives. */
static void alternatives_do_not_change_a_sequence_of_a_batch(void **state)
{
    struct fixture *f = *state;
    struct generator_seq *seqs[2];
    struct generator_item steps[2];
    struct bn_error err;
    struct generator_alt alts[N_ALTS + 1];
    int32_t ids[2][32] = {{'h', 'i'}, {'h', 'i'}};
    const struct bn_control control = {0};
    for (size_t i = 0; i < 2; i++) {
        assert_true(generator_seq_open(f->g, 1, &seqs[i], &err));
        assert_true(generator_seq_set(seqs[i], &plain, i * N_ALTS, &err));
        assert_true(generator_seq_step(seqs[i], ids[i], 2, &control, NULL, &ids[i][2], &err));
        steps[i] = (struct generator_item){.seq = seqs[i], .ids = ids[i]};
    }
    for (size_t n = 3; n < 20; n++) {
        assert_int_equal(ids[0][n - 1], ids[1][n - 1]);
        generator_seq_alts(seqs[1], alts);
        assert_int_equal(alts[N_ALTS].id, ids[1][n - 1]);
        steps[0].n_ids = steps[1].n_ids = n;
        assert_true(generator_step_all(steps, 2, &control, &err));
        ids[0][n] = steps[0].next;
        ids[1][n] = steps[1].next;
    }
    generator_seq_close(seqs[0]);
    generator_seq_close(seqs[1]);
}

/* A model can have more rows than its tokenizer has tokens. */
static void an_id_beyond_the_vocabulary_ends_the_answer(void **state)
{
    const struct fixture *f = *state;
    const size_t n_vocab = tokenizer_info(f->tokenizer)->n_vocab;
    for (size_t id = n_vocab - 1; id <= n_vocab; id++) {
        struct answer_state s = {.tokenizer = f->tokenizer, .n_ctx = 100};
        struct bn_str text;
        struct bn_error err;
        assert_true(detok_open(f->tokenizer, &(struct detok_config){0}, &s.detok, &err));
        assert_true(answer_state_add(&s, (int32_t)id, &text, &err));
        assert_int_equal(s.ids.n, id < n_vocab);
        assert_int_equal(s.finish, id < n_vocab ? FINISH_NONE : FINISH_STOP);
        answer_state_finish(&s);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alternatives_cost_no_evaluation_and_change_nothing),
        cmocka_unit_test(alternatives_are_the_best_in_order_and_the_chosen_one),
        cmocka_unit_test(reports_of_prefill_are_limited_in_rate),
        cmocka_unit_test(alternatives_do_not_change_a_sequence_of_a_batch),
        cmocka_unit_test(an_id_beyond_the_vocabulary_ends_the_answer),
    };
    if (argc != 2) {
        (void)fprintf(stderr, "usage: test_generator MODEL\n");
        return 2;
    }
    model_path = argv[1];
    return cmocka_run_group_tests(tests, open_all, close_all);
}
