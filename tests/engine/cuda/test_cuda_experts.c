/*
 * Compares the CUDA backend with the CPU's reference kernels for models with a mixture of experts
 * and window layers, byte for byte: prompts in any parts, decoding, saved states, saved sessions,
 * memory. In the test suite, fake_cuda.c runs the kernels.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/engine.h"
#include "tests/engine/test_engine_kit.h"
#include "tests/support/memory_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_IDS 130      /* three position blocks; more than a window and a micro-batch */
#define MAX_IDS 220    /* of the random steps */
#define MAX_COUNTS 300 /* layers times experts */

static bool plain; /* launch every kernel by itself, as a profile does; from the command line */

static struct bn_model_config config(const char *device, size_t n_ubatch)
{
    return (struct bn_model_config){.device = device,
                                    .isa = strcmp(device, "cpu") == 0 ? "ref" : NULL,
                                    .n_threads = 1,
                                    .n_ubatch = n_ubatch,
                                    .profile = plain};
}

/* The same model on both devices. */
static void open_both(struct kit *kits, const struct synth_spec *spec, size_t n_ubatch,
                      enum bn_activations activations)
{
    struct bn_model_config cpu = config("cpu", 64), cuda = config("cuda", n_ubatch);
    cpu.activations = cuda.activations = activations;
    kit_open(&kits[0], spec, &cpu);
    kit_open(&kits[1], spec, &cuda);
}

static void assert_same_counts(const struct kit *kits)
{
    uint64_t counts[2][MAX_COUNTS];
    const size_t n = bn_model_expert_counts(kits[0].model, counts[0], MAX_COUNTS);
    assert_true(n > 0 && n <= MAX_COUNTS);
    assert_int_equal(bn_model_expert_counts(kits[1].model, counts[1], MAX_COUNTS), n);
    assert_memory_equal(counts[0], counts[1], n * sizeof counts[0][0]);
}

/* Compares every logit of n ids. */
static void check_model(const struct synth_spec *spec, size_t n, size_t n_ubatch,
                        enum bn_activations activations)
{
    struct kit kits[2];
    int32_t ids[N_IDS];
    open_both(kits, spec, n_ubatch, activations);
    kit_ids(ids, n, 7);
    float *const cpu = kit_logits(&kits[0], ids, n), *const cuda = kit_logits(&kits[1], ids, n);
    for (size_t i = 0; i < n; i++)
        if (memcmp(cpu + i * kits[0].n_vocab, cuda + i * kits[0].n_vocab,
                   kits[0].n_vocab * sizeof *cpu) != 0)
            fail_msg("token %zu of %zu differs: width %zu, %zu experts, window %zu, micro-batch "
                     "%zu, activations %d",
                     i, n, spec->n_embd, spec->n_experts, spec->window, n_ubatch, (int)activations);
    assert_same_counts(kits);
    mem_free(cpu);
    mem_free(cuda);
    kit_close(&kits[0]);
    kit_close(&kits[1]);
}

static void any_parts_of_a_prompt_match_the_cpu(void **state)
{
    (void)state;
    static const size_t ubatches[] = {1, 7, 512};
    struct synth_spec spec = synth_preset("maple-tiny");
    spec.n_ctx = 4096; /* so that there are rings with any micro-batch */
    for (size_t i = 0; i < sizeof ubatches / sizeof ubatches[0]; i++)
        check_model(&spec, N_IDS, ubatches[i], BN_ACT_AUTO);
}

static void every_scheme_of_activations_matches_the_cpu(void **state)
{
    (void)state;
    static const enum bn_activations all[] = {BN_ACT_TOKEN, BN_ACT_BLOCK, BN_ACT_16, BN_ACT_FLOAT};
    const struct synth_spec spec = synth_preset("maple-tiny");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        check_model(&spec, 20, 20, all[i]);
        check_model(&spec, 6, 3, all[i]);
        check_model(&spec, 2, 1, all[i]);
    }
}

/* Experts with an odd number of row groups, one expert, all experts in use, more than a warp has
 * lanes, biases, rows that are not a whole number of blocks, windows at the edges of blocks, a
 * cache of all positions. */
static void other_shapes_match_the_cpu(void **state)
{
    (void)state;
    static const struct {
        size_t n_embd, n_ff, n_experts, n_used, window, n_ctx, n_rot;
        bool biases;
        enum tensor_type type, head;
    } rows[] = {
        {96, 48, 1, 1, 1, 4096, 16, false, TENSOR_F32, TENSOR_F16},
        {160, 16, 70, 64, 64, 4096, 32, true, TENSOR_F32, TENSOR_Q8_0},
        {208, 112, 5, 5, 65, 4096, 2, true, TENSOR_F16, TENSOR_F32},
        {256, 256, 40, 2, 128, 4096, 64, false, TENSOR_TQ1_0, TENSOR_Q4_K},
        {256, 256, 8, 3, 40, 64, 32, false, TENSOR_TQ2_0, TENSOR_Q6_K},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct synth_spec spec = synth_preset("maple-tiny");
        spec.n_embd = rows[i].n_embd;
        spec.n_ff = rows[i].n_ff;
        spec.n_experts = rows[i].n_experts;
        spec.n_used_experts = rows[i].n_used;
        spec.window = rows[i].window;
        spec.n_ctx = rows[i].n_ctx;
        spec.n_rot = rows[i].n_rot;
        spec.biases = rows[i].biases;
        spec.type = rows[i].type;
        spec.head = rows[i].head;
        if (spec.type == TENSOR_F32 || spec.type == TENSOR_F16)
            spec.scale_cols = i % 2 == 0 ? 64 : SYNTH_ROW_SCALES;
        /* With few experts in use, past the window and the first position block. */
        const size_t n = rows[i].n_used > 8 ? 20 : size_min(100, spec.n_ctx);
        check_model(&spec, n, 64, BN_ACT_AUTO);
        check_model(&spec, 4, 1, BN_ACT_AUTO);
    }
}

static void both_window_rules_match_the_cpu(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("maple-tiny");
    int32_t ids[N_IDS];
    float *logits[2][2]; /* of each rule and device */
    struct kit kit;
    kit_ids(ids, N_IDS, 9);
    for (size_t i = 0; i < 4; i++) {
        struct bn_model_config cfg = config(i % 2 == 0 ? "cpu" : "cuda", 64);
        cfg.window_rule = i < 2 ? BN_WINDOW_REFERENCE : BN_WINDOW_MAINLINE;
        kit_open(&kit, &spec, &cfg);
        logits[i / 2][i % 2] = kit_logits(&kit, ids, N_IDS);
        if (i < 3)
            kit_close(&kit);
    }
    const size_t n = N_IDS * kit.n_vocab * sizeof(float);
    assert_memory_equal(logits[0][0], logits[0][1], n);
    assert_memory_equal(logits[1][0], logits[1][1], n);
    assert_true(memcmp(logits[0][0], logits[1][0], n) != 0);
    for (size_t i = 0; i < 4; i++)
        mem_free(logits[i / 2][i % 2]);
    kit_close(&kit);
}

/* ---- memory ---- */

static void both_devices_plan_the_same_states(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("maple-tiny");
    struct kit kits[2];
    spec.n_ctx = 4096;
    open_both(kits, &spec, 64, BN_ACT_AUTO);
    const struct bn_model_info *cpu = bn_model_info(kits[0].model);
    const struct bn_model_info *cuda = bn_model_info(kits[1].model);
    assert_true(cuda->state_bytes > 0);
    assert_int_equal(cuda->state_bytes, cpu->state_bytes);
    assert_int_equal(cuda->seq_fixed_bytes, cpu->seq_fixed_bytes);
    /* One of four layers has a cache, and 0.2 % more are for partial results. */
    assert_true(cuda->kv_bytes_per_token >= cpu->kv_bytes_per_token);
    assert_true(cuda->kv_bytes_per_token < 2 * cpu->kv_bytes_per_token);
    assert_true(cuda->bytes_per_token < cuda->weight_bytes); /* three of eight experts */
    kit_close(&kits[0]);
    kit_close(&kits[1]);
}

/* ---- random steps ---- */

struct walk {
    int32_t ids[MAX_IDS];
    size_t n_ids;
    uint32_t random;
};

static uint32_t draw(struct walk *w, uint32_t n)
{
    w->random = w->random * 1664525u + 1013904223u;
    return (w->random >> 8) % n;
}

static void add_ids(struct walk *w, size_t n)
{
    for (size_t i = 0; i < n && w->n_ids < MAX_IDS; i++)
        w->ids[w->n_ids++] = (int32_t)draw(w, 256);
}

static struct bn_session *open_session(const struct kit *kit, size_t n_states)
{
    const size_t state_bytes = bn_model_info(kit->model)->state_bytes;
    const struct bn_session_config cfg = {.n_ctx = MAX_IDS,
                                          .state_memory = size_max(n_states * state_bytes, 1)};
    struct bn_session *s;
    struct bn_error err;
    if (!bn_session_open(kit->model, &cfg, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

/* Ctrl-C between two layers or micro-batches. */
static void cancel_later(void *ud, size_t n_done, size_t n_total)
{
    struct bn_cancel *cancel = ud;
    if (n_done > n_total / 2)
        bn_cancel_request(cancel);
}

static void sync(struct bn_session *s, const struct walk *w, struct head_row *row,
                 struct bn_sync_stats *stats)
{
    const struct head_request all = {.kind = HEAD_ALL};
    struct bn_error err;
    if (!bn_session_sync(s, w->ids, w->n_ids, &all, row, NULL, stats, &err))
        fail_msg("%s", err.text);
}

static void cancelled_sync(struct bn_session *s, const struct walk *w, struct head_row *row)
{
    const struct head_request all = {.kind = HEAD_ALL};
    struct bn_cancel cancel = {.requested = false};
    const struct bn_control control = {.progress = {cancel_later, &cancel}, .cancel = &cancel};
    struct bn_error err;
    (void)bn_session_sync(s, w->ids, w->n_ids, &all, row, &control, NULL, &err);
}

/* Undo, edit, interruption, question: each ends with the logits of a CPU session that has rings of
 * another size. States of the sequence are saved and restored. */
static void restored_states_match_the_cpu(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("maple-tiny");
    struct kit kits[2];
    struct walk w = {.random = 1};
    struct bn_sync_stats stats;
    size_t n_reevaluated = 0;
    spec.n_ctx = 4096;
    open_both(kits, &spec, 16, BN_ACT_AUTO);
    struct bn_session *s = open_session(&kits[1], 10);
    struct head_row *rows[2] = {kit_rows(&kits[0], 1), kit_rows(&kits[0], 1)};
    add_ids(&w, 130);
    for (size_t i = 0; i < 9; i++) {
        const uint32_t step = draw(&w, 5);
        if (step < 2)
            w.n_ids = 1 + draw(&w, (uint32_t)w.n_ids);
        if (step == 2) {
            add_ids(&w, 60);
            cancelled_sync(s, &w, rows[1]);
        }
        add_ids(&w, 1 + draw(&w, 30));
        if (w.n_ids == MAX_IDS)
            w.n_ids = 100;
        sync(s, &w, rows[1], &stats);
        n_reevaluated += stats.n_reevaluated;
        sync(kits[0].session, &w, rows[0], NULL);
        assert_int_equal(rows[0]->n, rows[1]->n);
        assert_memory_equal(rows[0]->cands, rows[1]->cands, rows[0]->n * sizeof *rows[0]->cands);
    }
    assert_true(n_reevaluated > 0);
    kit_free_rows(rows[0], 1);
    kit_free_rows(rows[1], 1);
    bn_session_close(s);
    kit_close(&kits[0]);
    kit_close(&kits[1]);
}

/* ---- saved sessions ---- */

/* Both devices save the same bytes, and each continues from the bytes of the other. */
static void check_saved(const struct synth_spec *spec, size_t n)
{
    struct kit kits[2];
    struct memory_stream saved[2] = {{0}, {0}};
    struct walk w = {.random = 3};
    struct bn_session *s[2];
    struct bn_error err;
    open_both(kits, spec, 64, BN_ACT_AUTO);
    struct head_row *rows[2] = {kit_rows(&kits[0], 1), kit_rows(&kits[0], 1)};
    add_ids(&w, n);
    for (size_t i = 0; i < 2; i++) {
        const struct bn_stream out = memory_stream_writer(&saved[i]);
        s[i] = open_session(&kits[i], 0);
        sync(s[i], &w, rows[i], NULL);
        assert_true(bn_session_save(s[i], &out, &err));
    }
    assert_int_equal(saved[0].n_bytes, saved[1].n_bytes);
    assert_memory_equal(saved[0].bytes, saved[1].bytes, saved[0].n_bytes);
    add_ids(&w, 20);
    for (size_t i = 0; i < 2; i++) {
        struct memory_stream *other = &saved[1 - i];
        const struct bn_stream in = memory_stream_reader(other);
        struct bn_sync_stats stats;
        bn_session_truncate(s[i], 0);
        if (!bn_session_load(s[i], &in, &err))
            fail_msg("%s", err.text);
        sync(s[i], &w, rows[i], &stats);
        assert_int_equal(stats.n_reused, n);
    }
    assert_memory_equal(rows[0]->cands, rows[1]->cands, rows[0]->n * sizeof *rows[0]->cands);
    struct memory_stream part = saved[0];
    const struct bn_stream short_in = memory_stream_reader(&part);
    part.n_bytes -= 100;
    part.at = 0;
    assert_false(bn_session_load(s[1], &short_in, &err));
    assert_int_equal(err.code, BN_EIO);
    sync(s[1], &w, rows[1], NULL);
    assert_memory_equal(rows[0]->cands, rows[1]->cands, rows[0]->n * sizeof *rows[0]->cands);
    for (size_t i = 0; i < 2; i++) {
        kit_free_rows(rows[i], 1);
        bn_session_close(s[i]);
        kit_close(&kits[i]);
        mem_free(saved[i].bytes);
    }
}

static void saved_sessions_continue_on_the_other_device(void **state)
{
    (void)state;
    static const size_t lengths[] = {127, 190};
    struct synth_spec spec = synth_preset("maple-tiny");
    spec.n_ctx = 4096;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        spec.window = i % 2 == 0 ? 40 : 65;
        check_saved(&spec, lengths[i]);
    }
}

/* Arguments: no_graph; few: only the first tests, for runs with other settings of the device. */
int main(int argc, char **argv)
{
    const struct CMUnitTest first[] = {
        cmocka_unit_test(any_parts_of_a_prompt_match_the_cpu),
        cmocka_unit_test(every_scheme_of_activations_matches_the_cpu),
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(other_shapes_match_the_cpu),
        cmocka_unit_test(both_window_rules_match_the_cpu),
        cmocka_unit_test(both_devices_plan_the_same_states),
        cmocka_unit_test(restored_states_match_the_cpu),
        cmocka_unit_test(saved_sessions_continue_on_the_other_device),
    };
    bool few = false;
    for (int i = 1; i < argc; i++) {
        plain |= strcmp(argv[i], "no_graph") == 0;
        few |= strcmp(argv[i], "few") == 0;
    }
    const int failed = cmocka_run_group_tests_name("first", first, NULL, NULL);
    return few ? failed : failed + cmocka_run_group_tests_name("others", others, NULL, NULL);
}
