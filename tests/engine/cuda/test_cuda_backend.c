/*
 * Compares the CUDA backend with the CPU's reference kernels through backend_ops, byte for byte:
 * every architecture, container, table type and kind of request. In the test suite, fake_cuda.c
 * runs the kernels; on a machine with a GPU, the same program runs on the device.
 */
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_backend.h"
#include "engine/cuda/cuda_backend.h"
#include "engine/cuda/cuda_state.h"
#include "engine/model/rope.h"
#include "tests/engine/test_engine_kit.h"
#include "tests/support/memory_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_IDS 70 /* two position blocks, the second partly filled */

static int forced_scheme = -1;         /* enum act_scheme instead of the model's own, or -1 */
static bool no_graph, no_early_launch; /* switches of the backend, from the command line */

/* A model on both devices with one sequence each. */
struct pair {
    struct synth_model synth;
    const struct backend_ops *ops[2];
    struct backend *backend[2];
    struct seq *seq[2];
    size_t n_vocab;
};

static void open_pair(struct pair *p, const struct synth_spec *spec, size_t n_ubatch)
{
    struct bn_error err;
    const struct backend_control control = {0};
    *p = (struct pair){.ops = {&cpu_backend_ops, &cuda_backend_ops}};
    if (!synth_open(spec, &p->synth, &err))
        fail_msg("%s", err.text);
    if (forced_scheme >= 0)
        p->synth.model->act_scheme = (enum act_scheme)forced_scheme;
    for (size_t i = 0; i < 2; i++) {
        const struct backend_config cfg = {.isa = i == 0 ? "ref" : NULL,
                                           .n_threads = 1,
                                           .n_ubatch = n_ubatch,
                                           .no_graph = no_graph,
                                           .no_early_launch = no_early_launch};
        if (!p->ops[i]->open(p->synth.model, &cfg, &control, &p->backend[i], &err) ||
            !p->ops[i]->seq_open(p->backend[i], 200, &p->seq[i], &err))
            fail_msg("%s", err.text);
    }
    p->n_vocab = p->synth.model->hp.n_vocab;
}

static void close_pair(struct pair *p)
{
    for (size_t i = 0; i < 2; i++) {
        p->ops[i]->seq_close(p->seq[i]);
        p->ops[i]->close(p->backend[i]);
    }
    synth_close(&p->synth);
}

static struct head_row *make_rows(size_t n_rows, size_t cap)
{
    struct head_row *rows = mem_alloc(n_rows, sizeof *rows);
    for (size_t i = 0; i < n_rows; i++)
        rows[i] = (struct head_row){mem_alloc(cap, sizeof(struct head_cand)), cap, 0};
    return rows;
}

static void assert_same_rows(const struct head_row *a, const struct head_row *b, size_t n_rows,
                             const char *what)
{
    for (size_t i = 0; i < n_rows; i++)
        if (a[i].n != b[i].n || memcmp(a[i].cands, b[i].cands, a[i].n * sizeof *a[i].cands) != 0)
            fail_msg("%s: row %zu of %zu differs", what, i, n_rows);
}

/* Appends ids to both sequences and compares the results of the last n_rows. */
static void append_to_both(struct pair *p, const int32_t *ids, size_t n_ids, size_t n_rows,
                           const struct head_request *head, const char *what)
{
    struct head_row *rows[2];
    for (size_t i = 0; i < 2; i++) {
        struct bn_error err;
        uint64_t n_bytes;
        rows[i] = make_rows(n_rows, p->n_vocab);
        struct eval_item item = {p->seq[i], ids, n_ids, n_rows, *head, rows[i]};
        if (!p->ops[i]->eval(p->backend[i], &item, 1, NULL, &n_bytes, &err))
            fail_msg("%s: %s", what, err.text);
        assert_true(n_bytes > 0);
    }
    assert_same_rows(rows[0], rows[1], n_rows, what);
    kit_free_rows(rows[0], n_rows);
    kit_free_rows(rows[1], n_rows);
}

/* Compares every logit of n ids, n_ubatch tokens at a time. */
static void check_model(const struct synth_spec *spec, size_t n_ids, size_t n_ubatch)
{
    static const struct head_request all = {.kind = HEAD_ALL};
    struct pair p;
    char what[120];
    int32_t ids[N_IDS];
    (void)snprintf(what, sizeof what, "%s, %s, %s tables, width %zu, %zu at a time", spec->arch,
                   tensor_geometries[spec->type].name, tensor_geometries[spec->head].name,
                   spec->n_embd, n_ubatch);
    open_pair(&p, spec, n_ubatch);
    kit_ids(ids, N_IDS, 7);
    for (size_t i = 0; i < n_ids; i += n_ubatch) {
        const size_t n = size_min(n_ubatch, n_ids - i);
        append_to_both(&p, ids + i, n, n, &all, what);
    }
    close_pair(&p);
}

/* Decodes with one requested row per pass, past the end of a position block. */
static void check_requests(struct synth_spec spec)
{
    static const int32_t named_ids[] = {5, 261, 5, 0, 77};
    const struct head_request requests[] = {
        {.kind = HEAD_TOP, .k = 1},
        {.kind = HEAD_TOP, .k = 40, .gap = 2.0f},
        {.kind = HEAD_TOP, .k = 3, .ids = named_ids, .n_ids = 5},
        {.kind = HEAD_TOP, .k = 0, .ids = named_ids, .n_ids = 5},
        {.kind = HEAD_TOP, .k = 1, .gap = 1e9f},
        {.kind = HEAD_TOP, .k = 100000, .ids = named_ids, .n_ids = 5},
        {.kind = HEAD_TOP, .k = 2, .gap = 1e-3f, .ids = named_ids, .n_ids = 1},
        {.kind = HEAD_GUMBEL, .temp = 0.7f, .seed = 11},
        {.kind = HEAD_GUMBEL, .temp = 5.0f, .seed = 12},
        {.kind = HEAD_ALL},
        {.kind = HEAD_NONE},
    };
    const size_t n_requests = sizeof requests / sizeof requests[0];
    struct pair p;
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 3);
    open_pair(&p, &spec, 60);
    append_to_both(&p, ids, 60, 1, &requests[0], "a prompt");
    for (size_t i = 60; i < N_IDS; i++)
        append_to_both(&p, ids + i, 1, requests[i % n_requests].kind == HEAD_NONE ? 0 : 1,
                       &requests[i % n_requests], "a token");
    for (size_t i = 0; i < n_requests - 1; i++) /* also with more rows than HEAD_PASS_ROWS */
        append_to_both(&p, ids, 5 + i % 3 * 7, 4 + i % 3 * 7, &requests[i], "several rows");
    close_pair(&p);
}

static void every_architecture_matches_the_cpu(void **state)
{
    (void)state;
    static const char *const names[] = {"bitnet-b1.58", "bitnet-25", "bitnet", "llama", "minicpm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.arch = names[i];
        check_model(&spec, N_IDS, N_IDS);
        check_model(&spec, 9, 1);
        check_model(&spec, 20, 7);
    }
}

static void every_ternary_container_matches_the_cpu(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {
        TENSOR_I2_S, TENSOR_TQ1_0, TENSOR_TQ2_0,  TENSOR_F16,    TENSOR_BF16,
        TENSOR_F32,  TENSOR_Q1_0,  TENSOR_IQ1_BN, TENSOR_IQ2_BN, TENSOR_IQ2_BN_R4};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.type = types[i];
        check_model(&spec, 4, 4);
    }
}

static void every_table_type_matches_the_cpu(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q8_0,
                                             TENSOR_Q4_0, TENSOR_Q4_K, TENSOR_Q6_K};
    static const struct head_request top = {.kind = HEAD_TOP, .k = 40};
    static const int32_t ids[4] = {70, 5, 99, 5};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct synth_spec spec = synth_preset("tiny");
        struct pair p;
        spec.head = types[i];
        spec.untied = i % 2 == 1;
        spec.arch = spec.untied ? "llama" : "bitnet-b1.58";
        check_model(&spec, 5, 5);
        open_pair(&p, &spec, 4);
        assert_true(p.backend[1]->coarse.n_blocks > 0); /* the logits do not show this */
        append_to_both(&p, ids, 4, 4, &top, "the screened head");
        close_pair(&p);
    }
}

static void scales_and_biases_match_the_cpu(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("odd");
    spec.arch = "bitnet";
    spec.type = TENSOR_F16;
    spec.scales = true;
    spec.biases = true;
    check_model(&spec, 18, 18);
    check_model(&spec, 3, 1);
    spec = synth_preset("tiny");
    spec.arch = "llama";
    spec.rope_freqs = spec.biases = true;
    spec.head_dim = SPLIT_HEAD + 4; /* attn_apply also decodes */
    check_model(&spec, 7, 3);
}

/* R1-256 and R16; tables of floats and ternary ones; signs and none; an input that does not fit
 * into shared memory. */
static void rotated_inputs_match_the_cpu(void **state)
{
    (void)state;
    static const struct {
        const char *arch;
        enum tensor_type type, head;
        size_t block, n_ff;
        unsigned version;
    } cases[] = {
        {"bitnet-b1.58", TENSOR_I2_S, TENSOR_F16, 256, 768, 2},
        {"llama", TENSOR_TQ2_0, TENSOR_Q8_0, 128, 768, 1},
        {"qwen3", TENSOR_PQ2_0, TENSOR_PQ2_0, 4, 768, 1},
        {"qwen3", TENSOR_PTQ1_0, TENSOR_F32, 64, 8448, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.arch = cases[i].arch;
        spec.type = cases[i].type;
        spec.head = cases[i].head;
        spec.n_ff = cases[i].n_ff;
        spec.n_layers = 1;
        spec.rotated_block = cases[i].block;
        spec.rotated_version = cases[i].version;
        spec.untied = cases[i].version == 1;
        spec.no_signs = i == 2;
        check_model(&spec, 20, 20);
        check_model(&spec, 3, 1);
    }
}

/* A model with QK norm, a wide q, YaRN, and a ternary embedding and head. */
static void every_scheme_of_activations_matches_the_cpu(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("qwen3-tiny");
    spec.yarn = 4.0f;
    spec.yarn_ctx = 64;
    for (forced_scheme = ACT_TOKEN; forced_scheme <= ACT_FLOAT; forced_scheme++) {
        check_model(&spec, 20, 20);
        check_model(&spec, 3, 1);
        check_model(&spec, 6, 3);
    }
    forced_scheme = -1;
    check_model(&spec, N_IDS, N_IDS);
}

/* Factors of embedding, residuals and logits, with all ways to store and multiply the weights. With
 * three layers of width 384, none of the factors is 1. */
static void scaled_models_match_the_cpu(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("odd");
    spec.arch = "minicpm";
    for (forced_scheme = ACT_TOKEN; forced_scheme <= ACT_FLOAT; forced_scheme++) {
        check_model(&spec, 5, 5);
        check_model(&spec, 2, 1);
    }
    forced_scheme = -1;
    spec.type = spec.head = TENSOR_PQ2_0; /* rows of the embedding are decoded on the host */
    spec.scale_cols = 128;
    spec.ternary_head = true;
    check_model(&spec, 5, 3);
    spec.head = TENSOR_Q8_0;
    spec.ternary_head = false;
    spec.scale_cols = 0;
    spec.type = TENSOR_I2_S;
    check_requests(spec); /* the screened head */
}

/* The sequences have a context of 200 tokens. */
static void both_tables_of_longrope_match_the_cpu(void **state)
{
    (void)state;
    static const char *const names[] = {"llama", "minicpm"};
    static const size_t limits[] = {199, 200};
    struct pair p;
    struct synth_spec spec = synth_preset("tiny");
    for (size_t i = 0; i < 4; i++) {
        spec.arch = names[i % 2];
        spec.longrope = limits[i / 2];
        open_pair(&p, &spec, 4);
        assert_true(rope_is_long(p.synth.model, 200) == (i < 2));
        close_pair(&p);
        check_model(&spec, 20, 20);
        check_model(&spec, 3, 1);
    }
}

/* Heads with more than one block of columns, or with part of one; one key head and many; an
 * attention layer first; rotated, with grouped values; prompts in parts. */
static void delta_nets_match_the_cpu(void **state)
{
    (void)state;
    static const struct {
        enum tensor_type type;
        size_t scale_cols, rotated;
        struct delta_shape delta;
    } cases[] = {{TENSOR_PQ2_0, 128, 0, {2, 4, 64, 4}},
                 {TENSOR_F16, 0, 0, {1, 3, 48, 2}},
                 {TENSOR_PTQ1_0, SYNTH_ROW_SCALES, 0, {4, 4, 32, 1}},
                 {TENSOR_PQ2_0, 128, 0, {4, 8, 144, 2}},
                 {TENSOR_PQ2_0, 128, 64, {2, 6, 128, 4}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_spec spec = synth_preset("qwen35-tiny");
        spec.type = cases[i].type;
        spec.scale_cols = cases[i].scale_cols;
        spec.rotated_block = cases[i].rotated;
        spec.delta = cases[i].delta;
        check_model(&spec, 20, 20);
        check_model(&spec, 5, 1);
        check_model(&spec, 12, 5);
    }
}

static void every_class_of_scales_matches_the_cpu(void **state)
{
    (void)state;
    static const struct {
        enum tensor_type type;
        size_t cols;
        bool untied;
    } rows[] = {{TENSOR_Q2_0, 64, true},
                {TENSOR_Q2_0_G128, 128, false},
                {TENSOR_TQ2_0, 256, true},
                {TENSOR_F16, SYNTH_ROW_SCALES, false},
                {TENSOR_F16, 64, true},
                {TENSOR_F32, 0, false},
                {TENSOR_TQ1_0, 256, true},
                {TENSOR_Q1_0, 128, false},
                {TENSOR_IQ1_BN, SYNTH_ROW_SCALES, true},
                {TENSOR_IQ2_BN, SYNTH_ROW_SCALES, false},
                {TENSOR_IQ2_BN_R4, SYNTH_ROW_SCALES, true}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct synth_spec spec = synth_preset("qwen3-tiny");
        spec.type = rows[i].type;
        spec.head = i < 2 ? rows[i].type : TENSOR_F16;
        spec.ternary_head = i % 2 == 0;
        spec.scale_cols = rows[i].cols;
        spec.untied = rows[i].untied;
        spec.biases = i % 2;
        if (tensor_geometries[rows[i].type].block_cols == 256) /* as many as a block has */
            spec.n_embd = 256;
        check_model(&spec, 19, 19);
        check_model(&spec, 3, 1);
    }
}

static void awkward_shapes_match_the_cpu(void **state)
{
    (void)state;
    struct synth_spec spec;
    for (size_t i = 0; synth_awkward(i, &spec); i++) {
        check_model(&spec, 17, 17);
        check_model(&spec, 3, 1);
    }
}

static void head_requests_match_the_cpu(void **state)
{
    (void)state;
    check_requests(synth_preset("tiny"));
    check_requests(synth_preset("qwen3-tiny")); /* a ternary head */
}

static void check_batch(struct synth_spec spec)
{
    enum { N = 3 };
    static const size_t before[N] = {3, 64, 20};
    const struct head_request heads[N] = {{.kind = HEAD_ALL},
                                          {.kind = HEAD_GUMBEL, .temp = 1, .seed = 4},
                                          {.kind = HEAD_TOP, .k = 9}};
    struct pair p;
    struct bn_error err;
    uint64_t n_bytes;
    int32_t ids[N][N_IDS];
    struct seq *seqs[2][N];
    open_pair(&p, &spec, N_IDS);
    for (size_t round = 0; round < 2; round++) {
        struct head_row *rows[2][N];
        for (size_t d = 0; d < 2; d++) {
            struct eval_item items[N];
            for (size_t i = 0; i < N; i++) {
                const size_t n_new = round == 0 ? 1 : i + 1;
                kit_ids(ids[i], N_IDS, 20 + (uint32_t)i);
                rows[d][i] = make_rows(n_new, p.n_vocab);
                items[i] = (struct eval_item){NULL, ids[i], before[i], 0, {0}, NULL};
                if (round == 0 && !p.ops[d]->seq_open(p.backend[d], 100, &seqs[d][i], &err))
                    fail_msg("%s", err.text);
                items[i].seq = seqs[d][i];
                if (round == 0 && !p.ops[d]->eval(p.backend[d], &items[i], 1, NULL, &n_bytes, &err))
                    fail_msg("%s", err.text);
                items[i] = (struct eval_item){
                    seqs[d][i], ids[i] + before[i] + round, n_new, n_new, heads[i], rows[d][i]};
            }
            if (!p.ops[d]->eval(p.backend[d], items, N, NULL, &n_bytes, &err))
                fail_msg("%s", err.text);
        }
        for (size_t i = 0; i < N; i++) {
            const size_t n_new = round == 0 ? 1 : i + 1;
            assert_same_rows(rows[0][i], rows[1][i], n_new, "a batch");
            kit_free_rows(rows[0][i], n_new);
            kit_free_rows(rows[1][i], n_new);
        }
    }
    for (size_t i = 0; i < 2 * N; i++)
        p.ops[i / N]->seq_close(seqs[i / N][i % N]);
    close_pair(&p);
}

static void batches_match_the_cpu(void **state)
{
    (void)state;
    check_batch(synth_preset("qwen3-tiny"));
    check_batch(synth_preset("qwen35-tiny"));
    check_batch(synth_preset("maple-tiny"));
}

/* The saved bytes of a sequence, which depend only on its tokens. Free `bytes` with mem_free. */
static struct memory_stream save(const struct backend_ops *ops, struct seq *s)
{
    struct memory_stream saved = {0};
    struct bn_error err;
    const struct bn_stream out = memory_stream_writer(&saved);
    if (!ops->seq_save(s, &out, &err))
        fail_msg("%s", err.text);
    assert_int_equal(saved.n_bytes, ops->seq_save_bytes(s));
    return saved;
}

/* Truncates and refills; saves on one device and loads on the other. */
static void rolling_back_and_saving_change_no_bit(void **state)
{
    (void)state;
    static const struct head_request all = {.kind = HEAD_ALL};
    struct synth_spec spec = synth_preset("tiny");
    struct pair p;
    struct bn_error err;
    struct memory_stream saved[2];
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 9);
    open_pair(&p, &spec, N_IDS);
    append_to_both(&p, ids, N_IDS, 1, &all, "a prompt");
    for (size_t i = 0; i < 2; i++)
        p.ops[i]->truncate(p.seq[i], 50);
    append_to_both(&p, ids, 17, 17, &all, "after going back");
    for (size_t i = 0; i < 2; i++) {
        p.ops[i]->truncate(p.seq[i], 66);
        saved[i] = save(p.ops[i], p.seq[i]);
    }
    assert_int_equal(saved[0].n_bytes, saved[1].n_bytes);
    assert_memory_equal(saved[0].bytes, saved[1].bytes, saved[0].n_bytes);
    assert_string_equal(p.ops[0]->info(p.backend[0])->kv_version,
                        p.ops[1]->info(p.backend[1])->kv_version);
    for (size_t i = 0; i < 2; i++) {
        struct memory_stream *other = &saved[1 - i];
        const struct bn_stream in = memory_stream_reader(other);
        p.ops[i]->truncate(p.seq[i], 0);
        if (!p.ops[i]->seq_load(p.seq[i], 66, &in, &err))
            fail_msg("%s", err.text);
    }
    append_to_both(&p, ids, 3, 3, &all, "after restoring");
    const struct bn_stream in = memory_stream_reader(&saved[0]);
    assert_false(p.ops[1]->seq_load(p.seq[1], 66, &in, &err)); /* the stream has no bytes left */
    assert_int_equal(err.code, BN_EIO);
    assert_int_equal(save(p.ops[1], p.seq[1]).n_bytes, 0); /* the sequence is empty */
    assert_false(p.ops[1]->seq_load(p.seq[1], 201, &in, &err));
    assert_int_equal(err.code, BN_ECONTEXT);
    mem_free(saved[0].bytes);
    mem_free(saved[1].bytes);
    close_pair(&p);
}

/* Both devices can return to the length before the last pass, and to 0. */
static void check_reachable(const struct pair *p, size_t last, size_t before)
{
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(p->ops[i]->reachable(p->seq[i], last), last);
        assert_int_equal(p->ops[i]->reachable(p->seq[i], last - 1), before);
        assert_int_equal(p->ops[i]->reachable(p->seq[i], before - 1), 0);
    }
}

/* Recurrent states: each device loads what the other has saved, truncates to the length before the
 * last pass, starts again at 0, and restores a whole sequence. */
static void recurrent_states_move_between_devices(void **state)
{
    (void)state;
    static const struct head_request all = {.kind = HEAD_ALL};
    struct synth_spec spec = synth_preset("qwen35-tiny");
    struct pair p;
    struct bn_error err;
    struct backend_plan plans[2];
    struct memory_stream saved[2];
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 9);
    open_pair(&p, &spec, N_IDS);
    for (size_t i = 0; i < 2; i++)
        plans[i] = p.ops[i]->info(p.backend[i])->plan;
    assert_int_equal(plans[0].state_bytes, plans[1].state_bytes);
    assert_int_equal(plans[1].seq_fixed_bytes, 2 * plans[1].state_bytes);
    uint8_t *states[2] = {mem_alloc(plans[0].state_bytes, 1), mem_alloc(plans[1].state_bytes, 1)};
    assert_true(states[0] && states[1]);

    append_to_both(&p, ids, 40, 1, &all, "a prompt");
    for (size_t i = 0; i < 2; i++)
        assert_true(p.ops[i]->state_save(p.seq[i], states[i]));
    assert_memory_equal(states[0], states[1], plans[0].state_bytes);
    append_to_both(&p, ids + 40, 10, 10, &all, "more");
    check_reachable(&p, 50, 40);
    append_to_both(&p, ids + 50, 5, 5, &all, "the end");
    for (size_t i = 0; i < 2; i++)
        p.ops[i]->truncate(p.seq[i], 50);
    append_to_both(&p, ids, 6, 6, &all, "after truncation");
    for (size_t i = 0; i < 2; i++)
        assert_true(p.ops[i]->state_load(p.seq[i], states[1 - i], 40));
    append_to_both(&p, ids + 40, 10, 10, &all, "after a saved state");
    check_reachable(&p, 50, 40);

    for (size_t i = 0; i < 2; i++)
        saved[i] = save(p.ops[i], p.seq[i]);
    assert_int_equal(saved[0].n_bytes, saved[1].n_bytes);
    assert_memory_equal(saved[0].bytes, saved[1].bytes, saved[0].n_bytes);
    for (size_t i = 0; i < 2; i++) {
        struct memory_stream *other = &saved[1 - i];
        const struct bn_stream in = memory_stream_reader(other);
        p.ops[i]->truncate(p.seq[i], 0);
        if (!p.ops[i]->seq_load(p.seq[i], 50, &in, &err))
            fail_msg("%s", err.text);
    }
    append_to_both(&p, ids, 3, 3, &all, "after restoring");
    for (size_t i = 0; i < 2; i++)
        p.ops[i]->truncate(p.seq[i], 0);
    append_to_both(&p, ids, 9, 9, &all, "from the beginning");
    for (size_t i = 0; i < 2; i++) {
        mem_free(states[i]);
        mem_free(saved[i].bytes);
    }
    close_pair(&p);
}

struct steps {
    char *text;                  /* name, layer and values of each step */
    size_t n_bytes, cap, n_late; /* n_late, with `cancel`: steps of layers after 0 */
    atomic_bool *cancel;         /* set at the end of layer 0 */
};
static void record(void *ud, const char *step, size_t layer, const float *x, size_t n)
{
    struct steps *s = ud;
    const size_t head_bytes = strlen(step) + 1 + sizeof layer;
    assert_true(mem_grow(&s->text, &s->cap, s->n_bytes + head_bytes + n * sizeof *x, 1));
    memcpy(s->text + s->n_bytes, step, strlen(step) + 1);
    memcpy(s->text + s->n_bytes + strlen(step) + 1, &layer, sizeof layer);
    memcpy(s->text + s->n_bytes + head_bytes, x, n * sizeof *x);
    s->n_bytes += head_bytes + n * sizeof *x;
    s->n_late += s->cancel && layer > 0;
    if (s->cancel && layer == 0 && strcmp(step, "ffn_residual") == 0)
        atomic_store(s->cancel, true);
}

static void check_trace(struct synth_spec spec)
{
    struct synth_model m;
    struct bn_error err;
    struct steps steps[2] = {0};
    int32_t ids[N_IDS];
    kit_ids(ids, N_IDS, 5);
    assert_true(synth_open(&spec, &m, &err));
    for (size_t i = 0; i < 2; i++) {
        const struct backend_ops *ops = i == 0 ? &cpu_backend_ops : &cuda_backend_ops;
        const struct backend_config cfg = {
            .n_threads = 1, .n_ubatch = N_IDS, .trace = record, .trace_ud = &steps[i]};
        const struct backend_control control = {0};
        struct backend *b = NULL;
        struct seq *s = NULL;
        uint64_t n_bytes;
        if (!ops->open(m.model, &cfg, &control, &b, &err) || !ops->seq_open(b, 99, &s, &err))
            fail_msg("%s", err.text);
        static const size_t cuts[] = {0, 20, 21, N_IDS};
        for (size_t j = 0; j + 1 < sizeof cuts / sizeof cuts[0]; j++) {
            struct eval_item item = {s, ids + cuts[j], cuts[j + 1] - cuts[j], 0, {0}, NULL};
            if (!ops->eval(b, &item, 1, &control, &n_bytes, &err))
                fail_msg("%s", err.text);
        }
        ops->seq_close(s);
        ops->close(b);
    }
    assert_int_equal(steps[0].n_bytes, steps[1].n_bytes);
    assert_memory_equal(steps[0].text, steps[1].text, steps[0].n_bytes);
    mem_free(steps[0].text);
    mem_free(steps[1].text);
    synth_close(&m);
}

static void every_trace_step_matches_the_cpu(void **state)
{
    (void)state;
    check_trace(synth_preset("tiny"));
    check_trace(synth_preset("qwen35-tiny"));
    check_trace(synth_preset("maple-tiny"));
}

static void cancel_stops_after_a_layer(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    struct bn_error err;
    atomic_bool flag = false;
    struct steps steps = {.cancel = &flag};
    const struct backend_config cfg = {.n_ubatch = 4, .trace = record, .trace_ud = &steps};
    const struct backend_control control = {.cancel = &flag};
    const int32_t ids[4] = {256, 1, 2, 3};
    struct backend *b = NULL;
    struct seq *s = NULL;
    uint64_t n_bytes;
    assert_true(synth_open(&spec, &m, &err));
    if (!cuda_backend_ops.open(m.model, &cfg, &control, &b, &err) ||
        !cuda_backend_ops.seq_open(b, 99, &s, &err))
        fail_msg("%s", err.text);
    struct eval_item item = {s, ids, 4, 0, {0}, NULL};
    assert_false(cuda_backend_ops.eval(b, &item, 1, &control, &n_bytes, &err));
    assert_int_equal(err.code, BN_ECANCELLED);
    assert_int_equal(steps.n_late, 0);
    assert_int_equal(save(&cuda_backend_ops, s).n_bytes, 0); /* the sequence is empty */
    atomic_store(&flag, false);
    steps.cancel = NULL;
    if (!cuda_backend_ops.eval(b, &item, 1, &control, &n_bytes, &err))
        fail_msg("%s", err.text);
    cuda_backend_ops.seq_close(s);
    cuda_backend_ops.close(b);
    mem_free(steps.text);
    synth_close(&m);
}

static void refuses_a_context_of_zero_tokens(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct pair p;
    open_pair(&p, &spec, 4);
    for (size_t i = 0; i < 2; i++) {
        struct seq *s = NULL;
        struct bn_error err;
        assert_false(p.ops[i]->seq_open(p.backend[i], 0, &s, &err));
        assert_int_equal(err.code, BN_EARG);
        assert_string_equal(err.text, "a context needs at least 1 token");
    }
    close_pair(&p);
}

static void assert_eval_fails(struct pair *p, struct eval_item item,
                              const struct backend_control *control, enum bn_errcode code,
                              const char *words)
{
    struct bn_error err;
    uint64_t n_bytes;
    const struct memory_stream before = save(p->ops[1], item.seq);
    assert_false(p->ops[1]->eval(p->backend[1], &item, 1, control, &n_bytes, &err));
    assert_int_equal(err.code, code);
    if (!strstr(err.text, words))
        fail_msg("'%s' does not contain '%s'", err.text, words);
    const struct memory_stream after = save(p->ops[1], item.seq);
    assert_int_equal(after.n_bytes, before.n_bytes);
    assert_memory_equal(after.bytes, before.bytes, before.n_bytes);
    mem_free(before.bytes);
    mem_free(after.bytes);
}

static void a_failed_eval_changes_nothing(void **state)
{
    (void)state;
    static const struct head_request all = {.kind = HEAD_ALL}, top = {.kind = HEAD_TOP, .k = 5};
    static const int32_t more[] = {1, 2, 3};
    struct synth_spec spec = synth_preset("tiny");
    struct pair p;
    int32_t ids[N_IDS];
    struct head_row *rows = make_rows(1, 5);
    atomic_bool flag = true;
    const struct backend_control cancelled = {.cancel = &flag};
    kit_ids(ids, N_IDS, 2);
    open_pair(&p, &spec, 30);
    append_to_both(&p, ids, 10, 1, &all, "a prompt");
    const struct eval_item plain = {p.seq[1], ids, 5, 1, top, rows};
    struct eval_item item = plain;
    assert_eval_fails(&p, item, &cancelled, BN_ECANCELLED, "cancelled");
    item.n_ids = 31;
    assert_eval_fails(&p, item, NULL, BN_EARG, "micro-batch of 30");
    item = plain;
    rows->cap = 4;
    assert_eval_fails(&p, item, NULL, BN_EARG, "room for at least 5");
    rows->cap = 5;
    item.head.gap = 1e9f;
    assert_eval_fails(&p, item, NULL, BN_EARG, "room for at least");
    item = plain;
    item.head.ids = more;
    item.head.n_ids = 3;
    assert_eval_fails(&p, item, NULL, BN_EARG, "room for at least");
    item.head = all;
    assert_eval_fails(&p, item, NULL, BN_EARG, "room for at least 262");
    for (size_t i = 0; i < 6; i++)
        append_to_both(&p, ids, 30, 0, &all, "filling up");
    item = plain;
    item.n_ids = 11;
    assert_eval_fails(&p, item, NULL, BN_ECONTEXT, "context of 200");
    append_to_both(&p, ids, 10, 1, &all, "to the last position");
    kit_free_rows(rows, 1);
    close_pair(&p);
}

static void info_has_device_name_and_sizes(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct pair p;
    open_pair(&p, &spec, 4);
    const struct backend_info *info = p.ops[1]->info(p.backend[1]);
    assert_non_null(strstr(info->text, "CUDA, "));
    assert_true(info->plan.weight_bytes > 0 && info->bytes_per_token > 0);
    close_pair(&p);
}

/* Arguments: no_graph, no_early_launch, only=PATTERN (a pattern of cmocka's test filter). */
int main(int argc, char **argv)
{
    char text[160];
    const struct backend_config cfg = {0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_matches_the_cpu),
        cmocka_unit_test(every_ternary_container_matches_the_cpu),
        cmocka_unit_test(every_table_type_matches_the_cpu),
        cmocka_unit_test(scales_and_biases_match_the_cpu),
        cmocka_unit_test(rotated_inputs_match_the_cpu),
        cmocka_unit_test(every_scheme_of_activations_matches_the_cpu),
        cmocka_unit_test(scaled_models_match_the_cpu),
        cmocka_unit_test(both_tables_of_longrope_match_the_cpu),
        cmocka_unit_test(delta_nets_match_the_cpu),
        cmocka_unit_test(every_class_of_scales_matches_the_cpu),
        cmocka_unit_test(awkward_shapes_match_the_cpu),
        cmocka_unit_test(head_requests_match_the_cpu),
        cmocka_unit_test(batches_match_the_cpu),
        cmocka_unit_test(rolling_back_and_saving_change_no_bit),
        cmocka_unit_test(recurrent_states_move_between_devices),
        cmocka_unit_test(every_trace_step_matches_the_cpu),
        cmocka_unit_test(cancel_stops_after_a_layer),
        cmocka_unit_test(a_failed_eval_changes_nothing),
        cmocka_unit_test(refuses_a_context_of_zero_tokens),
        cmocka_unit_test(info_has_device_name_and_sizes),
    };
    for (int i = 1; i < argc; i++) {
        no_graph |= strcmp(argv[i], "no_graph") == 0;
        no_early_launch |= strcmp(argv[i], "no_early_launch") == 0;
        if (strncmp(argv[i], "only=", 5) == 0)
            cmocka_set_test_filter(argv[i] + 5);
    }
    if (!cuda_backend_ops.probe(&cfg, text, sizeof text)) {
        printf("skipped: %s\n", text);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
