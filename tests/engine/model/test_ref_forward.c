/*
 * The reference forward pass against the numbers of an independent implementation of the same
 * description (NumPy, double precision), and against itself for all tensor types.
 */
#include "tests/support/ref_forward.h"

#include "engine/base/memory.h"
#include "engine/model/act_scheme.h"
#include "tests/support/synth.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define N_IDS 11
#define N_VOCAB 262
static const int32_t ids[N_IDS] = {256, 84, 104, 101, 32, 113, 117, 105, 99, 107, 10};

static float *logits_with(const struct synth_spec *spec, enum bn_activations activations)
{
    struct synth_model m;
    struct bn_error err;
    float *logits = mem_alloc(N_IDS * N_VOCAB, sizeof(*logits));
    if (!synth_open(spec, &m, &err))
        fail_msg("%s", err.text);
    act_scheme_choose(m.model, activations);
    if (!ref_forward(m.model, NULL, ids, N_IDS, logits, &err))
        fail_msg("%s", err.text);
    synth_close(&m);
    return logits;
}

static float *logits_of(const struct synth_spec *spec)
{
    return logits_with(spec, BN_ACT_AUTO);
}

/* Checks the first logits of the last position, and the sum of squares of all logits. */
static void agrees_with(const struct synth_spec *spec, enum bn_activations activations,
                        const float expected[6], double squares)
{
    float *logits = logits_with(spec, activations);
    double sum = 0.0;
    for (size_t i = 0; i < N_IDS * N_VOCAB; i++)
        sum += (double)logits[i] * (double)logits[i];
    assert_true(fabs(sum - squares) < 1e-6 * squares);
    for (size_t i = 0; i < 6; i++)
        assert_true(fabsf(logits[(N_IDS - 1) * N_VOCAB + i] - expected[i]) < 1e-5f);
    mem_free(logits);
}

static void agrees(const struct synth_spec *spec, const float expected[6], double squares)
{
    agrees_with(spec, BN_ACT_AUTO, expected, squares);
}

static void bitnet_b158_agrees(void **state)
{
    (void)state;
    static const float expected[6] = {-0.307979167f, -0.284519047f, -0.177179426f,
                                      0.638002336f,  -0.396247f,    0.606005788f};
    const struct synth_spec spec = synth_preset("tiny");
    agrees(&spec, expected, 1827.85213);
}

static void llama_with_rope_factors_agrees(void **state)
{
    (void)state;
    static const float expected[6] = {-0.235061198f, 0.615955949f, -0.24750258f,
                                      -0.556055486f, 0.34840548f,  -0.13646771f};
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "llama";
    spec.rope_freqs = true;
    spec.type = TENSOR_TQ2_0;
    agrees(&spec, expected, 1925.57415);
}

static void bitnet_with_scales_and_heads_of_100_agrees(void **state)
{
    (void)state;
    static const float expected[6] = {0.0722942874f, 0.643406212f, -0.305136472f,
                                      1.92761159f,   -1.11247349f, -0.778403878f};
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "bitnet";
    spec.n_embd = 400;
    spec.n_ff = 640;
    spec.type = TENSOR_F16;
    spec.scales = true;
    agrees(&spec, expected, 3007.09516);
}

static void untied_q8_head_and_bf16_layers_agree(void **state)
{
    (void)state;
    static const float expected[6] = {1.72491086f,  -0.844635665f, -0.248860657f,
                                      0.758285463f, -0.980541408f, 0.435868651f};
    struct synth_spec spec = synth_preset("odd");
    spec.untied = true;
    spec.head = TENSOR_Q8_0;
    spec.type = TENSOR_BF16;
    agrees(&spec, expected, 2877.53921);
}

static void heads_wider_than_the_embedding_agree(void **state)
{
    (void)state;
    static const float expected[6] = {0.598473132f, 0.877241254f, 0.247406483f,
                                      0.345669061f, 0.583381295f, 1.60831511f};
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "llama";
    spec.head_dim = 96;
    spec.head = TENSOR_F32;
    spec.seed = 7;
    agrees(&spec, expected, 1852.96768);
}

static void qwen3_with_qk_norms_and_yarn_agrees(void **state)
{
    (void)state;
    static const float token[6] = {0.487014920f, 0.949096024f, 0.639024496f,
                                   0.415240288f, 1.19039917f,  -0.958320677f};
    static const float block[6] = {0.467731565f, 0.97957921f, 0.633599758f,
                                   0.390535116f, 1.1765213f,  -0.963367999f};
    static const float plain[6] = {0.466085851f, 0.980686247f, 0.650187016f,
                                   0.407487869f, 1.16453993f,  -0.95614177f};
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "qwen3";
    spec.head_dim = 96;
    spec.yarn = 4.0f;
    spec.yarn_ctx = 64;
    agrees_with(&spec, BN_ACT_TOKEN, token, 1891.92344);
    agrees_with(&spec, BN_ACT_AUTO, block, 1893.78833);
    agrees_with(&spec, BN_ACT_FLOAT, plain, 1892.71148);
}

/* Ternary embedding and head, too. */
static void activations_in_blocks_agree(void **state)
{
    (void)state;
    static const float block32[6] = {-0.288129091f, -0.576700091f, -1.66755927f,
                                     1.47435546f,   -1.30924809f,  0.466523439f};
    static const float block128[6] = {-0.283207327f, -0.5952245f,  -1.65283287f,
                                      1.50269258f,   -1.29892659f, 0.48625809f};
    static const float block64[6] = {-0.405560434f, -0.606022f,   -1.22449303f,
                                     0.0214417242f, -1.99769187f, 0.794547915f};
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "qwen3";
    spec.type = spec.head = TENSOR_PQ2_0;
    spec.scale_cols = 128;
    agrees_with(&spec, BN_ACT_AUTO, block32, 3333.91551);
    agrees_with(&spec, BN_ACT_BLOCK, block128, 3335.50283);
    spec.type = spec.head = TENSOR_Q2_0;
    spec.scale_cols = 64;
    agrees_with(&spec, BN_ACT_BLOCK, block64, 2916.99044);
}

static void every_container_gives_the_same_logits(void **state)
{
    (void)state;
    static const struct {
        enum tensor_type type;
        enum bn_i2s_layout layout;
    } cases[] = {{TENSOR_I2_S, BN_I2S_B},     {TENSOR_I2_S, BN_I2S_C},   {TENSOR_TQ1_0, BN_I2S_A},
                 {TENSOR_TQ2_0, BN_I2S_A},    {TENSOR_F32, BN_I2S_A},    {TENSOR_F16, BN_I2S_A},
                 {TENSOR_BF16, BN_I2S_A},     {TENSOR_IQ1_BN, BN_I2S_A}, {TENSOR_IQ2_BN, BN_I2S_A},
                 {TENSOR_IQ2_BN_R4, BN_I2S_A}};
    struct synth_spec spec = synth_preset("tiny");
    float *expected = logits_of(&spec);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        spec.type = cases[i].type;
        spec.layout = cases[i].layout;
        float *logits = logits_of(&spec);
        assert_memory_equal(logits, expected, N_IDS * N_VOCAB * sizeof(*logits));
        mem_free(logits);
    }
    mem_free(expected);
}

/* qwen3 with scales per row and per block, with a ternary embedding and head. */
static void every_container_of_fine_scales_gives_the_same_logits(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {TENSOR_PQ2_0,     TENSOR_PTQ1_0, TENSOR_Q2_0,
                                             TENSOR_Q2_0_G128, TENSOR_TQ1_0,  TENSOR_TQ2_0,
                                             TENSOR_F16,       TENSOR_F32,    TENSOR_BF16};
    static const struct {
        size_t scale_cols, block_cols;
        enum ternary_scaling scaling;
    } classes[] = {{256, 256, SCALE_BLOCK},
                   {SYNTH_ROW_SCALES, 0, SCALE_ROW},
                   {128, 128, SCALE_BLOCK},
                   {64, 64, SCALE_BLOCK}};
    for (size_t g = 0; g < sizeof(classes) / sizeof(classes[0]); g++) {
        float *expected = NULL;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
            struct synth_spec spec = synth_preset("tiny");
            spec.arch = "qwen3";
            spec.type = spec.head = types[i];
            spec.ternary_head = true;
            spec.scale_cols = classes[g].scale_cols;
            if (tensor_geometries[types[i]].block_cols > spec.scale_cols)
                continue; /* its blocks are too large */
            struct synth_model m;
            struct bn_error err;
            if (!synth_open(&spec, &m, &err))
                fail_msg("%s", err.text);
            assert_int_equal(m.model->finest.scaling, classes[g].scaling);
            assert_non_null(m.model->head_linear.source.bytes);
            float *logits = mem_alloc(N_IDS * N_VOCAB, sizeof(*logits));
            assert_true(ref_forward(m.model, NULL, ids, N_IDS, logits, &err));
            synth_close(&m);
            if (expected)
                assert_true(ref_rel_l2(logits, expected, N_IDS * N_VOCAB) < 1e-7);
            mem_free(expected);
            expected = logits;
        }
        mem_free(expected);
    }
}

static void a_prefix_gives_the_same_rows(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    struct bn_error err;
    float *all = logits_of(&spec), *some = mem_alloc(4 * N_VOCAB, sizeof(*some));
    assert_true(synth_open(&spec, &m, &err));
    assert_true(ref_forward(m.model, NULL, ids, 4, some, &err));
    assert_memory_equal(some, all, 4 * N_VOCAB * sizeof(*some));
    const int32_t outside[1] = {N_VOCAB};
    assert_false(ref_forward(m.model, NULL, outside, 1, some, &err));
    assert_int_equal(err.code, BN_EARG);
    synth_close(&m);
    mem_free(some);
    mem_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitnet_b158_agrees),
        cmocka_unit_test(llama_with_rope_factors_agrees),
        cmocka_unit_test(bitnet_with_scales_and_heads_of_100_agrees),
        cmocka_unit_test(untied_q8_head_and_bf16_layers_agree),
        cmocka_unit_test(heads_wider_than_the_embedding_agree),
        cmocka_unit_test(qwen3_with_qk_norms_and_yarn_agrees),
        cmocka_unit_test(activations_in_blocks_agree),
        cmocka_unit_test(every_container_gives_the_same_logits),
        cmocka_unit_test(every_container_of_fine_scales_gives_the_same_logits),
        cmocka_unit_test(a_prefix_gives_the_same_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
