/*
 * The CPU backend against the reference forward pass in double precision: every graph, container,
 * table type and awkward shape. A correct row of logits has a relative L2 error below 1e-5, or 1e-3
 * to 2e-2 where one rounding to int8 or F16 went the other way. A wrong graph has about 1.
 */
#include "engine/base/memory.h"
#include "engine/model/act_scheme.h"
#include "tests/engine/test_engine_kit.h"
#include "tests/support/ref_forward.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define N_IDS 20

/* Bounds of the error of a position: without a rounding that goes the other way, and with several.
 * A step of 16 bits and of F16 is much smaller than one of int8. */
static const struct bounds {
    double close, far;
} int8_bounds = {1e-5, 5e-2}, fine_bounds = {2e-4, 1e-3};

/* Positions of all models of a test. */
struct agreement {
    size_t n_close; /* with an error below bounds.close */
    size_t n_positions;
};

/* Compare a model with the reference, and add its positions to *a. All errors must be below `far`.
 * With one scale per token the first position must be close. A model that --thin leaves out counts
 * as close: the share that assert_close expects is that of all models, not of each one. */
static void compare_with(struct agreement *a, const struct synth_spec *spec,
                         enum bn_activations activations)
{
    a->n_positions += N_IDS;
    if (!kit_takes_case()) {
        a->n_close += N_IDS;
        return;
    }
    const struct bn_model_config cfg = {.n_threads = 2, .activations = activations};
    struct kit kit;
    struct bn_error err;
    int32_t ids[N_IDS];
    kit_open(&kit, spec, &cfg);
    act_scheme_choose(kit.synth.model, activations);
    const enum act_scheme scheme = kit.synth.model->act_scheme;
    const struct bounds bounds = scheme < ACT_16 ? int8_bounds : fine_bounds;
    kit_ids(ids, N_IDS, 7);
    float *got = kit_logits(&kit, ids, N_IDS);
    float *expected = mem_alloc(N_IDS * kit.n_vocab, sizeof *expected);
    if (!ref_forward(kit.synth.model, NULL, ids, N_IDS, expected, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < N_IDS; i++) {
        const double d = ref_rel_l2(got + i * kit.n_vocab, expected + i * kit.n_vocab, kit.n_vocab);
        if (!(d < (i == 0 && scheme == ACT_TOKEN ? bounds.close : bounds.far)))
            fail_msg("%s, %s, %s tables, %s: position %zu is off by %g", spec->arch,
                     tensor_geometries[spec->type].name, tensor_geometries[spec->head].name,
                     act_scheme_name(scheme), i, d);
        a->n_close += d < bounds.close;
    }
    mem_free(got);
    mem_free(expected);
    kit_close(&kit);
}

static void compare(struct agreement *a, const struct synth_spec *spec)
{
    compare_with(a, spec, BN_ACT_AUTO);
}

/* More than this share of the positions must be close: an error in the arithmetic may be too small
 * for `far`, but it makes nearly all positions worse than `close`. */
static void assert_close(const struct agreement *a, double share)
{
    if ((double)a->n_close <= share * (double)a->n_positions)
        fail_msg("only %zu of %zu positions are close", a->n_close, a->n_positions);
}

static void every_architecture_agrees(void **state)
{
    (void)state;
    struct agreement a = {0};
    static const char *const names[] = {"bitnet-b1.58", "bitnet-25", "bitnet", "llama"};
    for (size_t i = 0; i < 4; i++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.arch = names[i];
        compare(&a, &spec);
    }
    assert_close(&a, 0.5);
}

static void every_ternary_container_agrees(void **state)
{
    (void)state;
    struct agreement a = {0};
    static const enum tensor_type types[] = {
        TENSOR_I2_S, TENSOR_TQ1_0,     TENSOR_TQ2_0,  TENSOR_F16,      TENSOR_BF16,
        TENSOR_F32,  TENSOR_Q2_0_G128, TENSOR_PQ2_0,  TENSOR_PTQ1_0,   TENSOR_Q2_0,
        TENSOR_Q1_0, TENSOR_IQ1_BN,    TENSOR_IQ2_BN, TENSOR_IQ2_BN_R4};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.type = types[i];
        compare(&a, &spec);
    }
    assert_close(&a, 0.5);
}

/* Embedding and output head have the type of the layers. */
static void scales_per_row_and_block_agree(void **state)
{
    (void)state;
    struct agreement a = {0};
    static const struct {
        enum tensor_type type;
        size_t scale_cols;
    } cases[] = {{TENSOR_TQ1_0, 256},
                 {TENSOR_TQ2_0, SYNTH_ROW_SCALES},
                 {TENSOR_PQ2_0, 128},
                 {TENSOR_Q2_0_G128, 128},
                 {TENSOR_PTQ1_0, SYNTH_ROW_SCALES},
                 {TENSOR_Q2_0, 64},
                 {TENSOR_Q2_0, 128},
                 {TENSOR_F16, 64},
                 {TENSOR_Q1_0, 128},
                 {TENSOR_PQ2_0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.arch = i % 2 == 0 ? "qwen3" : "bitnet-b1.58";
        spec.type = spec.head = cases[i].type;
        spec.scale_cols = cases[i].scale_cols;
        spec.ternary_head = true;
        spec.untied = i % 3 == 1;
        compare_with(&a, &spec, BN_ACT_TOKEN);
    }
    assert_close(&a, 0.5);
}

/* Scales of 64 and 128 columns, which have different spans, and one scale per tensor. */
static void every_kind_of_activations_agrees(void **state)
{
    (void)state;
    struct agreement a = {0};
    static const struct {
        enum tensor_type type;
        size_t scale_cols;
    } cases[] = {{TENSOR_PQ2_0, 128}, {TENSOR_Q2_0, 64}, {TENSOR_F16, 0}};
    for (enum bn_activations act = BN_ACT_AUTO; act <= BN_ACT_FLOAT; act++)
        for (size_t i = 0; i < 3; i++) {
            struct synth_spec spec = synth_preset("tiny");
            spec.arch = "qwen3";
            spec.type = spec.head = cases[i].type;
            spec.scale_cols = cases[i].scale_cols;
            spec.n_layers = 1;
            compare_with(&a, &spec, act);
        }
    assert_close(&a, 0.75);
}

static void every_table_type_agrees(void **state)
{
    (void)state;
    struct agreement a = {0};
    static const enum tensor_type types[] = {TENSOR_F32,  TENSOR_F16,  TENSOR_BF16, TENSOR_Q8_0,
                                             TENSOR_Q4_0, TENSOR_Q4_K, TENSOR_Q6_K};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.head = types[i];
        spec.untied = i % 2 == 1;
        spec.arch = spec.untied ? "llama" : "bitnet-b1.58";
        compare(&a, &spec);
    }
    assert_close(&a, 0.5);
}

static void scales_biases_and_rope_factors_agree(void **state)
{
    (void)state;
    struct agreement a = {0};
    struct synth_spec spec = synth_preset("odd");
    spec.arch = "bitnet";
    spec.type = TENSOR_F16;
    spec.scales = true;
    spec.biases = true;
    compare(&a, &spec);
    spec = synth_preset("tiny");
    spec.arch = "llama";
    spec.rope_freqs = true;
    spec.biases = true;
    compare(&a, &spec);
    assert_close(&a, 0.5);
}

/* Two query heads for each KV head, together wider than the embedding. */
static void qk_norms_and_yarn_agree(void **state)
{
    (void)state;
    struct agreement a = {0};
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "qwen3";
    compare(&a, &spec);
    spec.head_dim = 96;
    spec.untied = true;
    spec.yarn = 4.0f;
    spec.yarn_ctx = 64;
    compare(&a, &spec);
    assert_close(&a, 0.5);
}

/* A window that the ids cross, layers without RoPE, values at the limit; scales per row and block,
 * and floats. */
static void experts_and_windows_agree(void **state)
{
    (void)state;
    struct agreement a = {0};
    static const struct {
        enum tensor_type type;
        size_t scale_cols, n_ff;
    } cases[] = {{TENSOR_TQ2_0, SYNTH_ROW_SCALES, 256},
                 {TENSOR_Q2_0, 64, 64},
                 {TENSOR_F16, 0, 48},
                 {TENSOR_IQ2_BN, SYNTH_ROW_SCALES, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_spec spec = synth_preset("maple-tiny");
        spec.type = cases[i].type;
        spec.scale_cols = cases[i].scale_cols;
        spec.n_ff = cases[i].n_ff;
        spec.window = 4 + i;
        spec.clamp = i % 2 == 0 ? 0.3f : 0.0f;
        compare_with(&a, &spec, i < 2 ? BN_ACT_16 : BN_ACT_FLOAT);
        compare(&a, &spec);
    }
    assert_close(&a, 0.75);
}

/* R1-256 and R16, with sub-norms, QK norm and neither, tables of floats and ternary ones. */
static void rotated_inputs_agree(void **state)
{
    (void)state;
    struct agreement a = {0};
    static const struct {
        const char *arch;
        enum tensor_type type, head;
        size_t scale_cols, block;
        unsigned version;
        enum bn_activations activations;
    } cases[] = {
        {"bitnet-b1.58", TENSOR_I2_S, TENSOR_F16, 0, 256, 2, BN_ACT_AUTO},
        {"llama", TENSOR_TQ2_0, TENSOR_Q8_0, 0, 128, 1, BN_ACT_AUTO},
        {"llama", TENSOR_PQ2_0, TENSOR_PQ2_0, 0, 64, 1, BN_ACT_TOKEN},
        {"qwen3", TENSOR_PQ2_0, TENSOR_PQ2_0, 128, 128, 1, BN_ACT_AUTO},
        {"qwen3", TENSOR_Q2_0, TENSOR_Q2_0, 64, 32, 2, BN_ACT_BLOCK},
        {"qwen3", TENSOR_PTQ1_0, TENSOR_PTQ1_0, 128, 4, 2, BN_ACT_16},
        {"qwen3", TENSOR_PQ2_0, TENSOR_F32, 128, 8, 2, BN_ACT_FLOAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.arch = cases[i].arch;
        spec.type = cases[i].type;
        spec.head = cases[i].head;
        spec.scale_cols = cases[i].scale_cols;
        spec.rotated_block = cases[i].block;
        spec.rotated_version = cases[i].version;
        spec.no_signs = i % 3 == 2;
        spec.untied = cases[i].version == 1;
        compare_with(&a, &spec, cases[i].activations);
    }
    assert_close(&a, 0.5);
}

/* Delta nets and gated attention: heads that do not fill a block of columns, one key head and many,
 * an attention layer first, extra layers that are ignored; rotated, with grouped values. */
static void delta_nets_agree(void **state)
{
    (void)state;
    struct agreement a = {0};
    static const struct {
        enum tensor_type type;
        size_t scale_cols, rotated;
        struct delta_shape delta;
    } cases[] = {{TENSOR_PQ2_0, 128, 0, {2, 4, 64, 4}},
                 {TENSOR_F16, 0, 0, {1, 3, 48, 2}},
                 {TENSOR_PTQ1_0, SYNTH_ROW_SCALES, 0, {4, 4, 32, 1}},
                 {TENSOR_F16, 0, 0, {2, 6, 80, 3}},
                 {TENSOR_PQ2_0, 128, 64, {2, 6, 128, 4}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_spec spec = synth_preset("qwen35-tiny");
        spec.type = cases[i].type;
        spec.scale_cols = cases[i].scale_cols;
        spec.rotated_block = cases[i].rotated;
        spec.delta = cases[i].delta;
        spec.n_extra_layers = i % 3;
        spec.extra_layers_count = i == 1;
        compare_with(&a, &spec, i < 2 ? BN_ACT_16 : BN_ACT_FLOAT);
        compare(&a, &spec);
    }
    assert_close(&a, 0.5);
}

/* Widths that are not a multiple of a line, a register or a cache line; one head and many heads;
 * one KV head for all heads and one for each. */
static void awkward_shapes_agree(void **state)
{
    (void)state;
    struct agreement a = {0};
    struct synth_spec spec;
    for (size_t i = 0; synth_awkward(i, &spec); i++)
        compare(&a, &spec);
    assert_close(&a, 0.5);
}

int main(int argc, char **argv)
{
    kit_read_arguments(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_agrees),
        cmocka_unit_test(every_ternary_container_agrees),
        cmocka_unit_test(scales_per_row_and_block_agree),
        cmocka_unit_test(every_kind_of_activations_agrees),
        cmocka_unit_test(every_table_type_agrees),
        cmocka_unit_test(scales_biases_and_rope_factors_agree),
        cmocka_unit_test(qk_norms_and_yarn_agree),
        cmocka_unit_test(experts_and_windows_agree),
        cmocka_unit_test(rotated_inputs_agree),
        cmocka_unit_test(delta_nets_agree),
        cmocka_unit_test(awkward_shapes_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
