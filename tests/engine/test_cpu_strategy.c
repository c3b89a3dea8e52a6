/*
 * The strategies for two models on machines with different numbers of threads.
 */
#include "engine/cpu/cpu_strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Kernel tables without functions. */
static const struct cpu_kernels amx = {.isa = ISA_AMX, .medium_from = 6, .many_from = 17};
static const struct cpu_kernels vnni = {.isa = ISA_AVX512VNNI, .medium_from = 7, .many_from = 7};
static const struct cpu_kernels i8mm = {.isa = ISA_I8MM, .medium_from = 2};

/* 2B4T: 2,084 million weights, a head of 128,256 rows screened at four bits. */
static struct strategy_model model_2b4t(const struct cpu_kernels *k, size_t n_threads)
{
    return (struct strategy_model){.k = k,
                                   .line_bytes = 521011200,
                                   .head_bytes = 174000000,
                                   .n_kv_heads = 5,
                                   .n_threads = n_threads,
                                   .n_ubatch = 512,
                                   .head_form = "screened at four bits",
                                   .kv_form = "F16",
                                   .kv_bytes_per_token = 76800};
}

/* 256 wide, 6 layers, 2,048 tokens of vocabulary. */
static struct strategy_model model_small(size_t n_threads)
{
    struct strategy_model m = model_2b4t(&amx, n_threads);
    m.line_bytes = 1032192;
    m.head_bytes = 300000;
    m.n_kv_heads = 2;
    return m;
}

static struct strategy decode(struct strategy_model m)
{
    return strategy_for_pass(
        &m, &(struct strategy_work){.n_tokens = 1, .n_token_blocks = 1, .n_requested_rows = 1});
}

static struct strategy prefill(struct strategy_model m, size_t n_tokens)
{
    return strategy_for_pass(&m, &(struct strategy_work){n_tokens, (n_tokens + 31) / 32, 1});
}

static struct strategy batch(struct strategy_model m, size_t n)
{
    return strategy_for_pass(&m, &(struct strategy_work){n, n, n});
}

static void decodes_one_token_with_all_threads(void **state)
{
    (void)state;
    const struct strategy p = decode(model_2b4t(&amx, 2));
    assert_int_equal(p.n_active, 2);
    assert_int_equal(p.linear, LINEAR_MATVEC);
    assert_int_equal(p.attn, ATTN_SPLIT);
    assert_int_equal(decode(model_2b4t(&amx, 64)).n_active, 64);
}

static void the_calling_thread_does_tiny_work(void **state)
{
    (void)state;
    const struct strategy p = decode(model_small(16));
    assert_int_equal(p.n_active, 1);
    assert_int_equal(p.linear, LINEAR_MATVEC);
    assert_int_equal(p.attn, ATTN_TOKEN_BLOCKS);
    assert_int_equal(prefill(model_small(16), 16).n_active, 1);
}

static void uses_all_threads_if_requested(void **state)
{
    (void)state;
    struct strategy_model m = model_small(4);
    m.all_threads = true;
    assert_int_equal(decode(m).n_active, 4);
}

static void divides_a_long_prompt_of_a_small_model(void **state)
{
    (void)state;
    assert_int_equal(prefill(model_small(2), 512).n_active, 2);
    assert_int_equal(prefill(model_small(64), 512).n_active, 31);
}

static void each_thread_reads_at_least_four_megabytes(void **state)
{
    (void)state;
    struct strategy_model m = model_small(64);
    m.line_bytes = (size_t)40 << 20;
    m.head_bytes = 0;
    assert_int_equal(decode(m).n_active, 10);
}

static void picks_kernels_by_the_number_of_tokens(void **state)
{
    (void)state;
    const struct strategy_model m = model_2b4t(&amx, 2), w = model_2b4t(&vnni, 2);
    assert_int_equal(prefill(m, 5).linear, LINEAR_FEW);
    assert_int_equal(prefill(m, 6).linear, LINEAR_MEDIUM);
    assert_int_equal(prefill(m, 16).linear, LINEAR_MEDIUM);
    assert_int_equal(prefill(m, 17).linear, LINEAR_MANY);
    assert_int_equal(prefill(w, 6).linear, LINEAR_FEW);
    assert_int_equal(prefill(w, 7).linear, LINEAR_MANY);
}

static void splits_positions_only_for_few_sequences(void **state)
{
    (void)state;
    const struct strategy_model m = model_2b4t(&amx, 2);
    assert_int_equal(batch(m, 1).attn, ATTN_SPLIT);
    assert_int_equal(batch(m, 2).attn, ATTN_TOKEN_BLOCKS); /* ten items for two threads */
    assert_int_equal(prefill(m, 16).attn, ATTN_TOKEN_BLOCKS);
    assert_int_equal(batch(model_2b4t(&amx, 16), 8).attn, ATTN_SPLIT);
}

static void packs_small_models_on_one_thread(void **state)
{
    (void)state;
    assert_int_equal(strategy_load_threads(0, 8), 1);
    assert_int_equal(strategy_load_threads(2000000, 8), 1);
    assert_int_equal(strategy_load_threads(521011200, 8), 8);
}

static void explains_a_pass(void **state)
{
    (void)state;
    char text[1000], cut[20];
    const struct strategy_model m = model_2b4t(&amx, 2), small = model_small(2);
    const size_t n = strategy_explain(&m, &(struct strategy_work){1, 1, 1}, text, sizeof text);
    assert_int_equal(n, strlen(text));
    assert_string_equal(text,
                        "tokens           1 at once, 512 at most\n"
                        "threads          2 of 2\n"
                        "linear layers    rows split over the threads, AVX-512 VNNI, 521.0 MB\n"
                        "attention        blocks of 64 positions split over the threads\n"
                        "KV cache         F16, 76.8 kB a token\n"
                        "head             1 row, screened at four bits, 174.0 MB\n");
    (void)strategy_explain(&small, &(struct strategy_work){1, 1, 1}, text, sizeof text);
    assert_non_null(strstr(text, "threads          1 of 2, more would have too little work\n"));
    struct strategy_model groups = model_2b4t(&amx, 2);
    groups.uses_r16 = groups.is_quantised = true;
    (void)strategy_explain(&groups, &(struct strategy_work){8, 8, 1}, text, sizeof text);
    assert_non_null(
        strstr(text, "  rows split over the threads, one token at a time, AVX-512 VNNI, "));
    (void)strategy_explain(&groups, &(struct strategy_work){9, 9, 1}, text, sizeof text);
    assert_non_null(strstr(text, "  panels of 32 rows by 32 tokens, AMX, "));
    groups.is_quantised = false;
    (void)strategy_explain(&groups, &(struct strategy_work){9, 9, 1}, text, sizeof text);
    assert_non_null(strstr(text, ", one token at a time, "));
    assert_int_equal(strategy_explain(&m, &(struct strategy_work){1, 1, 1}, cut, sizeof cut), n);
    assert_int_equal(strlen(cut), sizeof cut - 1);
}

static void assert_explains(struct strategy_model m, size_t n_tokens, const char *words)
{
    char text[1000];
    (void)strategy_explain(&m, &(struct strategy_work){n_tokens, n_tokens, 1}, text, sizeof text);
    if (!strstr(text, words))
        fail_msg("no '%s' in '%s'", words, text);
}

/* i8mm has no kernels for one token, nor for R16. */
static void names_dotprod_where_i8mm_has_no_kernel(void **state)
{
    (void)state;
    struct strategy_model m = model_2b4t(&i8mm, 2);
    char dotprod[60], own[60];
    (void)snprintf(dotprod, sizeof dotprod, ", %s, 521.0 MB", cpu_isa_title(ISA_DOTPROD));
    (void)snprintf(own, sizeof own, ", %s, 521.0 MB", cpu_isa_title(ISA_I8MM));
    assert_explains(m, 1, dotprod);
    assert_explains(m, 2, own);
    assert_explains(m, 100, own);
    m.uses_r16 = m.is_quantised = true;
    assert_explains(m, 1, dotprod);
    assert_explains(m, 4, dotprod);
    assert_explains(m, 100, dotprod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_one_token_with_all_threads),
        cmocka_unit_test(the_calling_thread_does_tiny_work),
        cmocka_unit_test(uses_all_threads_if_requested),
        cmocka_unit_test(divides_a_long_prompt_of_a_small_model),
        cmocka_unit_test(each_thread_reads_at_least_four_megabytes),
        cmocka_unit_test(picks_kernels_by_the_number_of_tokens),
        cmocka_unit_test(splits_positions_only_for_few_sequences),
        cmocka_unit_test(packs_small_models_on_one_thread),
        cmocka_unit_test(explains_a_pass),
        cmocka_unit_test(names_dotprod_where_i8mm_has_no_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
