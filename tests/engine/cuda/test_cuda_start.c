/*
 * Tests machines where the backend cannot run (no GPU, an old GPU, an old driver, too little
 * memory), a GPU that fails during a chat, and the numbers that the backend reports. FAKE_CUDA
 * selects the machine that fake_cuda.c simulates.
 */
#include "engine/base/memory.h"
#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/cuda_state.h"
#include "engine/model/act_scheme.h"
#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/test_engine_kit.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct backend_ops *const ops = &cuda_backend_ops;

/* Counters of the stand-in for the driver; zeros for a real driver. */
static struct fake_cuda_counts counts(void)
{
    void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    void *const symbol = library ? dlsym(library, "fake_cuda_counts") : NULL;
    struct fake_cuda_counts (*read)(void) = NULL;
    memcpy(&read, &symbol, sizeof read);
    const struct fake_cuda_counts n = read ? read() : (struct fake_cuda_counts){0, 0, 0};
    if (library)
        (void)dlclose(library);
    return n;
}

/* Device memory that has not been freed; 0 for a real driver. */
static size_t used_bytes(void)
{
    return counts().n_used_bytes;
}

static void assert_contains(const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("'%s' does not contain '%s'", text, words);
}

static void each_probe_failure_is_one_line(void **state)
{
    (void)state;
    static const char *const machines[][2] = {
        {"no_device", "CUDA_VISIBLE_DEVICES"},
        {"hidden", "CUDA_VISIBLE_DEVICES"},
        {"broken", "driver and library do not match"},
        {"old_driver", "driver is too old: it supports CUDA 11.4"},
        {"old_gpu", "compute capability 7.5, at least 8.0"},
        {"wrong", "Twin GPU computes wrong results"},
    };
    const struct backend_config cfg = {0}, second = {.index = 1}, with_isa = {.isa = "avx2"};
    char text[160];
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        (void)setenv("FAKE_CUDA", machines[i][0], 1);
        assert_false(ops->probe(&cfg, text, sizeof text));
        assert_contains(text, machines[i][1]);
        assert_null(strchr(text, '\n'));
        assert_int_equal(used_bytes(), 0);
    }
    (void)unsetenv("FAKE_CUDA");
    assert_true(ops->probe(&cfg, text, sizeof text));
    assert_contains(text, "Twin GPU");
    assert_false(ops->probe(&second, text, sizeof text));
    assert_contains(text, "there is no GPU 1: the driver shows 1");
    assert_false(ops->probe(&with_isa, text, sizeof text));
    assert_contains(text, "avx2");
}

static bool try_open(const struct synth_model *m, struct backend **b, struct bn_error *err)
{
    const struct backend_config cfg = {.n_ubatch = 8};
    const struct backend_control control = {0};
    return ops->open(m->model, &cfg, &control, b, err);
}

static void set_bytes(size_t n)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%zu", n);
    (void)setenv("FAKE_CUDA_BYTES", text, 1);
}

static void memory_errors_contain_the_sizes(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    struct bn_error err;
    struct backend *b = NULL;
    struct seq *s = NULL;
    assert_true(synth_open(&spec, &m, &err));
    set_bytes(500000);
    assert_false(try_open(&m, &b, &err));
    assert_int_equal(err.code, BN_ENOMEM);
    assert_contains(err.text, "MB for weights");
    assert_contains(err.text, "MB for scratch");
    assert_contains(err.text, "no context would fit");
    assert_int_equal(used_bytes(), 0);

    set_bytes((size_t)1 << 30);
    if (!try_open(&m, &b, &err))
        fail_msg("%s", err.text);
    const struct backend_plan plan = ops->info(b)->plan;
    set_bytes(used_bytes() + 1000 * plan.kv_bytes_per_token);
    assert_false(ops->seq_open(b, 100000, &s, &err));
    assert_int_equal(err.code, BN_ENOMEM);
    assert_contains(err.text, "context of 100000 tokens needs");
    assert_contains(err.text, "MB are used for weights");
    assert_contains(err.text, "--ctx 960 would fit"); /* 15 position blocks of 64 */
    if (!ops->seq_open(b, 960, &s, &err))
        fail_msg("the context that should fit does not: %s", err.text);
    ops->seq_close(s);
    set_bytes(used_bytes() + 10 * plan.kv_bytes_per_token); /* less than a position block */
    assert_false(ops->seq_open(b, 64, &s, &err));
    assert_int_equal(err.code, BN_ENOMEM);
    assert_contains(err.text, "are free: no context would fit");
    ops->close(b);
    assert_int_equal(used_bytes(), 0);
    (void)unsetenv("FAKE_CUDA_BYTES");
    synth_close(&m);
}

struct watcher {
    size_t last, total;
};
static void watch(void *ud, size_t n_done, size_t n_total)
{
    struct watcher *w = ud;
    assert_true(n_done > w->last && n_done <= n_total);
    w->last = n_done;
    w->total = n_total;
}

/* The embedding is the head or is not; each is a table or packed. */
static void loading_reports_progress_up_to_the_total(void **state)
{
    (void)state;
    static const struct {
        const char *preset;
        enum tensor_type head;
        bool ternary_head, untied;
    } cases[] = {
        {"qwen3-tiny", TENSOR_F16, true, false},    {"qwen3-tiny", TENSOR_F16, true, true},
        {"qwen3-tiny", TENSOR_PQ2_0, true, false},  {"qwen3-tiny", TENSOR_PQ2_0, true, true},
        {"qwen3-tiny", TENSOR_F16, false, false},   {"qwen3-tiny", TENSOR_F16, false, true},
        {"qwen3-tiny", TENSOR_Q8_0, false, false},  {"tiny", TENSOR_F32, true, false},
        {"qwen35-tiny", TENSOR_PQ2_0, true, false}, {"maple-tiny", TENSOR_F16, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_spec spec = synth_preset(cases[i].preset);
        const struct backend_config cfg = {.n_ubatch = 8};
        struct watcher w = {0};
        const struct backend_control control = {.progress = watch, .ud = &w};
        struct synth_model m;
        struct bn_error err;
        struct backend *b = NULL;
        spec.head = cases[i].head;
        spec.ternary_head = cases[i].ternary_head;
        spec.untied = cases[i].untied;
        if (!synth_open(&spec, &m, &err) || !ops->open(m.model, &cfg, &control, &b, &err))
            fail_msg("case %zu: %s", i, err.text);
        assert_int_equal(m.model->head_linear.source.bytes != NULL, cases[i].ternary_head);
        assert_true(w.total > 0);
        assert_int_equal(w.last, w.total);
        ops->close(b);
        synth_close(&m);
    }
}

static void check_failed_opens(const char *preset, size_t step)
{
    const struct synth_spec spec = synth_preset(preset);
    struct synth_model m;
    struct bn_error err;
    struct backend *b = NULL;
    struct seq *s = NULL;
    size_t n_failed = 0, n_failed_seqs = 0, n_opened = 0;
    assert_true(synth_open(&spec, &m, &err));
    for (size_t n = 0; n_opened < 2; n += step) {
        set_bytes(n);
        if (!try_open(&m, &b, &err)) {
            assert_int_equal(err.code, BN_ENOMEM);
            n_failed++;
        } else {
            if (ops->seq_open(b, 512, &s, &err)) {
                ops->seq_close(s);
                n_opened++;
            } else {
                assert_int_equal(err.code, BN_ENOMEM);
                n_failed_seqs++;
            }
            ops->close(b);
        }
        assert_int_equal(used_bytes(), 0);
    }
    assert_true(n_failed > 3 && n_failed_seqs > 3);
    (void)unsetenv("FAKE_CUDA_BYTES");
    synth_close(&m);
}

static void a_failed_open_frees_all_memory(void **state)
{
    (void)state;
    check_failed_opens("tiny", 50000);
    check_failed_opens("maple-tiny", 40000);
}

/* A sequence shorter than the ring has a shorter ring. */
static void the_context_that_fits_is_told_for_rings_too(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("maple-tiny");
    struct synth_model m;
    struct bn_error err;
    struct backend *b = NULL;
    struct seq *s = NULL;
    char words[60];
    assert_true(synth_open(&spec, &m, &err));
    if (!try_open(&m, &b, &err))
        fail_msg("%s", err.text);
    const struct backend_plan plan = ops->info(b)->plan;
    const size_t n_used = used_bytes(), block = KV_BLOCK * plan.kv_bytes_per_token;
    assert_int_equal(plan.seq_fixed_bytes,
                     plan.state_bytes); /* window 40, passes of 8: one block */
    for (size_t n_fit = 1; n_fit <= 3; n_fit++) {
        set_bytes(n_used + plan.seq_fixed_bytes + n_fit * block + block / 2);
        assert_false(ops->seq_open(b, 512, &s, &err));
        assert_int_equal(err.code, BN_ENOMEM);
        (void)snprintf(words, sizeof words, "--ctx %zu would fit", n_fit * KV_BLOCK);
        assert_contains(err.text, words);
        if (!ops->seq_open(b, n_fit * KV_BLOCK, &s, &err))
            fail_msg("the context that should fit does not: %s", err.text);
        assert_true(used_bytes() - n_used <= plan.seq_fixed_bytes + n_fit * block);
        ops->seq_close(s);
    }
    ops->close(b);
    assert_int_equal(used_bytes(), 0);
    (void)unsetenv("FAKE_CUDA_BYTES");
    synth_close(&m);
}

static bool discard(void *ud, void *at, size_t n_bytes)
{
    (void)ud;
    (void)at;
    (void)n_bytes;
    return true;
}

/* After a permanent failure every call returns the error and changes nothing. Closing frees all
 * memory, and a new backend works. */
static void a_lost_device_changes_nothing(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    const int32_t ids[5] = {256, 1, 2, 3, 4};
    struct synth_model m;
    struct bn_error err;
    struct backend *b = NULL;
    struct seq *s = NULL;
    uint64_t n_bytes;
    struct head_cand cands[262];
    struct head_row row = {cands, 262, 0};
    assert_true(synth_open(&spec, &m, &err));
    if (!try_open(&m, &b, &err) || !ops->seq_open(b, 64, &s, &err))
        fail_msg("%s", err.text);
    struct eval_item item = {s, ids, 5, 1, {.kind = HEAD_TOP, .k = 3}, &row};
    if (!ops->eval(b, &item, 1, NULL, &n_bytes, &err))
        fail_msg("%s", err.text);
    const int32_t best = cands[0].id;
    (void)setenv("FAKE_CUDA_BREAK", "0", 1);
    row.n = 77;
    for (size_t i = 0; i < 3; i++) {
        assert_false(ops->eval(b, &item, 1, NULL, &n_bytes, &err));
        assert_int_equal(err.code, BN_ELOST);
        assert_contains(err.text, "illegal memory access");
        assert_contains(err.text, "restart this program");
        assert_int_equal(row.n, 77);
        assert_int_equal(s->length, 5);
        (void)unsetenv("FAKE_CUDA_BREAK"); /* the device remains broken */
    }
    struct seq *other = NULL;
    const struct bn_stream stream = {discard, NULL};
    assert_false(ops->seq_open(b, 64, &other, &err));
    assert_int_equal(err.code, BN_ELOST);
    assert_false(ops->seq_save(s, &stream, &err));
    assert_int_equal(err.code, BN_ELOST);
    ops->seq_close(s);
    ops->close(b);
    assert_int_equal(used_bytes(), 0);
    if (!try_open(&m, &b, &err) || !ops->seq_open(b, 64, &s, &err))
        fail_msg("%s", err.text);
    item.seq = s;
    if (!ops->eval(b, &item, 1, NULL, &n_bytes, &err))
        fail_msg("%s", err.text);
    assert_int_equal(cands[0].id, best);
    ops->seq_close(s);
    ops->close(b);
    assert_int_equal(used_bytes(), 0);
    synth_close(&m);
}

/* Decodes five tokens on a machine of this kind and stores the rows of logits, (5, 262). Returns
 * what the driver counted. */
static struct fake_cuda_counts decode_five(const char *machine, struct backend_config cfg,
                                           struct head_cand *out, char *text)
{
    const struct synth_spec spec = synth_preset("tiny");
    const struct backend_control control = {0};
    const int32_t ids[5] = {256, 1, 2, 3, 4};
    struct synth_model m;
    struct bn_error err;
    struct backend *b = NULL;
    struct seq *s = NULL;
    uint64_t n_bytes;
    assert_true(synth_open(&spec, &m, &err));
    assert_int_equal(m.model->hp.n_vocab, 262);
    (void)setenv("FAKE_CUDA", machine, 1);
    const struct fake_cuda_counts before = counts();
    cfg.n_ubatch = 8;
    if (!ops->open(m.model, &cfg, &control, &b, &err) || !ops->seq_open(b, 64, &s, &err))
        fail_msg("%s: %s", machine, err.text);
    for (size_t i = 0; i < 5; i++) {
        struct head_row row = {out + 262 * i, 262, 0};
        struct eval_item item = {s, ids + i, 1, 1, {.kind = HEAD_ALL}, &row};
        if (!ops->eval(b, &item, 1, NULL, &n_bytes, &err))
            fail_msg("%s: %s", machine, err.text);
    }
    strcpy(text, ops->info(b)->text);
    ops->seq_close(s);
    ops->close(b);
    struct fake_cuda_counts n = counts();
    assert_int_equal(n.n_used_bytes, 0);
    n.n_early -= before.n_early;
    n.n_graphs -= before.n_graphs;
    (void)unsetenv("FAKE_CUDA");
    synth_close(&m);
    return n;
}

/* Without graphs or early launches the backend computes the same bytes, and its description has the
 * reason. */
static void missing_graphs_are_replaced_and_noted(void **state)
{
    (void)state;
    static const struct {
        const char *machine, *note;
        bool no_graph, no_early_launch; /* of the configuration */
        bool early, graphs;             /* expected */
    } rows[] = {
        {"normal", NULL, false, false, true, true},
        {"normal", NULL, true, false, true, false},
        {"normal", NULL, false, true, false, true},
        {"normal", NULL, true, true, false, false},
        {"old_ptx", NULL, false, false, false, true},
        {"no_early_capture", ", graphs wait (", false, false, true, true},
        {"no_capture", ", no graphs (capturing a graph: ", false, false, true, false},
        {"no_instance", ", no graphs (creating a graph: out of memory)", false, false, true, false},
    };
    static struct head_cand expected[5 * 262], found[5 * 262];
    char text[200];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct backend_config cfg = {.no_graph = rows[i].no_graph,
                                           .no_early_launch = rows[i].no_early_launch};
        memset(found, 0, sizeof found);
        const struct fake_cuda_counts n =
            decode_five(rows[i].machine, cfg, i == 0 ? expected : found, text);
        if (i > 0)
            assert_memory_equal(found, expected, sizeof found);
        assert_int_equal(n.n_early > 0, rows[i].early);
        assert_int_equal(n.n_graphs, rows[i].graphs ? 5 : 0);
        if (rows[i].note)
            assert_contains(text, rows[i].note);
        else
            assert_string_equal(text, "CUDA, Twin GPU");
    }
}

static void a_capture_that_breaks_the_device_is_an_error(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    struct bn_error err;
    struct backend *b = NULL;
    assert_true(synth_open(&spec, &m, &err));
    (void)setenv("FAKE_CUDA", "fatal_capture", 1);
    assert_false(try_open(&m, &b, &err));
    assert_int_equal(err.code, BN_EDEVICE);
    assert_contains(err.text, "illegal memory access");
    (void)unsetenv("FAKE_CUDA");
    assert_int_equal(used_bytes(), 0);
    synth_close(&m);
}

static void the_largest_batch_is_planned(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    const struct backend_config cfg = {.n_ubatch = BN_MAX_UBATCH};
    struct synth_model m;
    struct backend_plan plan;
    struct bn_error err;
    assert_true(synth_open(&spec, &m, &err));
    assert_true(ops->plan(m.model, &cfg, &plan, &err));
    synth_close(&m);
}

static void auto_uses_the_cpu_if_the_gpu_is_too_small(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct bn_model_config cfg = {0};
    struct kit kit;
    set_bytes(500000);
    kit_open(&kit, &spec, &cfg);
    assert_contains(bn_model_info(kit.model)->device, "CPU");
    assert_contains(bn_model_info(kit.model)->skip_reason, "cuda is not used: Twin GPU has 0 MB");
    kit_close(&kit);
    assert_int_equal(used_bytes(), 0);
    (void)unsetenv("FAKE_CUDA_BYTES");
}

/* "auto" selects the GPU, unless the model or a setting needs a part of the CPU backend. */
static void auto_uses_the_cpu_for_parts_without_kernels(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct bn_model_config cfg = {0};
    struct kit kit;
    kit_open(&kit, &spec, &cfg);
    assert_contains(bn_model_info(kit.model)->device, "Twin GPU");
    assert_string_equal(bn_model_info(kit.model)->skip_reason, "");
    kit_close(&kit);
    const struct synth_spec maple = synth_preset("maple-tiny");
    kit_open(&kit, &maple, &cfg);
    assert_contains(bn_model_info(kit.model)->device, "Twin GPU");
    kit_close(&kit);
    struct synth_spec gates = synth_preset("qwen35-tiny"); /* more than a thread block can hold */
    gates.n_heads = 80;
    gates.n_kv_heads = 1;
    kit_open(&kit, &gates, &cfg);
    assert_contains(bn_model_info(kit.model)->device, "CPU");
    assert_contains(bn_model_info(kit.model)->skip_reason,
                    "for each KV head of 64 elements in models with delta nets, and this one has "
                    "80");
    kit_close(&kit);
    struct synth_spec rotated = synth_preset("tiny");
    rotated.arch = "minicpm";
    rotated.rotated_block = 64;
    rotated.untied = true;
    kit_open(&kit, &rotated, &cfg);
    assert_contains(bn_model_info(kit.model)->device, "CPU");
    assert_contains(bn_model_info(kit.model)->skip_reason,
                    "cuda is not used: the CUDA backend does not support rotated files");
    kit_close(&kit);
    cfg.head = BN_HEAD_Q8;
    kit_open(&kit, &spec, &cfg);
    assert_contains(bn_model_info(kit.model)->device, "CPU");
    assert_contains(bn_model_info(kit.model)->skip_reason,
                    "cuda is not used: the CUDA backend has no 8-bit output head");
    kit_close(&kit);
    struct synth_model m;
    struct bn_model *model = NULL;
    struct bn_error err;
    assert_true(synth_open(&spec, &m, &err));
    cfg.device = "cuda"; /* an explicit request is not replaced */
    assert_false(bn_model_open(m.file, &cfg, &model, &err));
    assert_int_equal(err.code, BN_EUNSUPPORTED);
    assert_contains(err.text, "no 8-bit output head");
    synth_close(&m);
}

/* More launches than events: the times are read in between. */
static void a_profile_counts_every_launch(void **state)
{
    (void)state;
    enum { N_TOKENS = 40 };
    const struct synth_spec spec = synth_preset("tiny");
    const struct backend_config cfg = {.n_ubatch = 8, .profile = true};
    const struct backend_control control = {0};
    struct bn_profile_step steps[BN_PROFILE_STEPS];
    struct synth_model m;
    struct bn_error err;
    struct backend *b = NULL;
    struct seq *s = NULL;
    uint64_t n_bytes, n_linear = 0;
    assert_true(synth_open(&spec, &m, &err));
    if (!ops->open(m.model, &cfg, &control, &b, &err) || !ops->seq_open(b, 64, &s, &err))
        fail_msg("%s", err.text);
    (void)ops->profile(b, steps, BN_PROFILE_STEPS);
    for (int32_t i = 0; i < N_TOKENS; i++) {
        struct eval_item item = {s, &i, 1, 0, {.kind = HEAD_NONE}, NULL};
        if (!ops->eval(b, &item, 1, NULL, &n_bytes, &err))
            fail_msg("%s", err.text);
    }
    const size_t n = ops->profile(b, steps, BN_PROFILE_STEPS);
    for (size_t i = 0; i < n; i++) {
        assert_true(steps[i].n_calls > 0);
        assert_true(steps[i].seconds > 0.9e-3 * (double)steps[i].n_calls); /* 1 ms each */
        if (strcmp(steps[i].name, "linear_one") == 0)
            n_linear = steps[i].n_calls;
    }
    assert_int_equal(n_linear, 4 * m.model->hp.n_layers * N_TOKENS);
    assert_int_equal(ops->profile(b, steps, BN_PROFILE_STEPS), 0);
    ops->seq_close(s);
    ops->close(b);
    assert_int_equal(used_bytes(), 0);
    synth_close(&m);
}

/* The bytes that the device reads for 16 tokens of an empty sequence and the logits of the last
 * n_rows. */
static uint64_t bytes_read(struct backend *b, struct seq *s, size_t n_vocab, size_t n_rows)
{
    struct bn_error err;
    uint64_t n_bytes = 0;
    int32_t ids[16];
    struct head_row rows[16];
    struct head_cand *cands = mem_alloc(n_rows * n_vocab, sizeof *cands);
    for (size_t i = 0; i < n_rows; i++)
        rows[i] = (struct head_row){cands + i * n_vocab, n_vocab, 0};
    struct eval_item item = {s, ids, 16, n_rows, {.kind = HEAD_ALL}, rows};
    kit_ids(ids, 16, 4);
    ops->truncate(s, 0);
    if (!ops->eval(b, &item, 1, NULL, &n_bytes, &err))
        fail_msg("%s", err.text);
    mem_free(cands);
    return n_bytes;
}

/* One load of a table serves four requested rows, one load of a head in R16 serves 16. Without
 * quantisation each requested row loads the head. */
static void bytes_count_each_load_of_the_head(void **state)
{
    (void)state;
    static const struct {
        enum tensor_type head;
        enum bn_activations activations;
        size_t n_loads[2];
    } cases[] = {{TENSOR_F16, BN_ACT_AUTO, {2, 4}},
                 {TENSOR_PQ2_0, BN_ACT_AUTO, {1, 1}},
                 {TENSOR_PQ2_0, BN_ACT_FLOAT, {5, 16}}};
    static const size_t n_rows[] = {5, 16};
    const struct backend_config cfg = {.n_ubatch = 16};
    const struct backend_control control = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_spec spec = synth_preset("qwen3-tiny");
        struct synth_model m;
        struct bn_error err;
        struct backend *b = NULL;
        struct seq *s = NULL;
        spec.head = cases[i].head;
        spec.ternary_head = spec.head != TENSOR_F16;
        assert_true(synth_open(&spec, &m, &err));
        act_scheme_choose(m.model, cases[i].activations);
        if (!ops->open(m.model, &cfg, &control, &b, &err) || !ops->seq_open(b, 64, &s, &err))
            fail_msg("%s", err.text);
        const uint64_t one = bytes_read(b, s, m.model->hp.n_vocab, 1);
        for (size_t k = 0; k < 2; k++)
            assert_int_equal(bytes_read(b, s, m.model->hp.n_vocab, n_rows[k]),
                             one + (cases[i].n_loads[k] - 1) * m.model->head.n_bytes);
        ops->seq_close(s);
        ops->close(b);
        synth_close(&m);
    }
}

static void a_thousand_evals_leak_no_memory(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    const int32_t ids[2] = {256, 1};
    struct synth_model m;
    struct bn_error err;
    struct backend *b = NULL;
    struct seq *s = NULL;
    uint64_t n_bytes;
    struct head_cand cands[262];
    struct head_row row = {cands, 262, 0};
    spec.n_layers = 1;
    spec.n_embd = 64;
    spec.n_heads = spec.n_kv_heads = 1;
    spec.n_ff = 64;
    spec.type = TENSOR_F32;
    assert_true(synth_open(&spec, &m, &err));
    if (!try_open(&m, &b, &err) || !ops->seq_open(b, 64, &s, &err))
        fail_msg("%s", err.text);
    struct eval_item item = {s, ids, 1, 1, {.kind = HEAD_TOP, .k = 3}, &row};
    const size_t n_before = used_bytes();
    for (size_t i = 0; i < 1000; i++) {
        if (i % 50 == 0)
            ops->truncate(s, 0);
        if (!ops->eval(b, &item, 1, NULL, &n_bytes, &err))
            fail_msg("%s", err.text);
        assert_int_equal(used_bytes(), n_before);
    }
    ops->seq_close(s);
    ops->close(b);
    synth_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_probe_failure_is_one_line),
        cmocka_unit_test(memory_errors_contain_the_sizes),
        cmocka_unit_test(loading_reports_progress_up_to_the_total),
        cmocka_unit_test(a_failed_open_frees_all_memory),
        cmocka_unit_test(the_context_that_fits_is_told_for_rings_too),
        cmocka_unit_test(a_lost_device_changes_nothing),
        cmocka_unit_test(missing_graphs_are_replaced_and_noted),
        cmocka_unit_test(a_capture_that_breaks_the_device_is_an_error),
        cmocka_unit_test(the_largest_batch_is_planned),
        cmocka_unit_test(auto_uses_the_cpu_if_the_gpu_is_too_small),
        cmocka_unit_test(auto_uses_the_cpu_for_parts_without_kernels),
        cmocka_unit_test(a_profile_counts_every_launch),
        cmocka_unit_test(bytes_count_each_load_of_the_head),
        cmocka_unit_test(a_thousand_evals_leak_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
