/*
 * The scheme for the inputs of ternary layers: by option, architecture and scales.
 */
#include "engine/model/act_scheme.h"
#include "tests/support/synth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A model of this architecture whose finest scales are `finest` gets this scheme and reason. */
static void scheme_of(const char *arch, enum ternary_scaling finest, enum bn_activations requested,
                      enum act_scheme scheme, const char *reason)
{
    struct synth_model m;
    struct bn_error err;
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = arch;
    if (!synth_open(&spec, &m, &err))
        fail_msg("%s", err.text);
    assert_int_equal(m.model->finest.scaling, SCALE_TENSOR);
    m.model->finest.scaling = finest;
    act_scheme_choose(m.model, requested);
    if (m.model->act_scheme != scheme || !strstr(m.model->act_reason, reason))
        fail_msg("%s: %s, %s", arch, act_scheme_name(m.model->act_scheme), m.model->act_reason);
    synth_close(&m);
}

static void scheme_is(const char *arch, enum bn_activations requested, enum act_scheme scheme,
                      const char *reason)
{
    scheme_of(arch, SCALE_TENSOR, requested, scheme, reason);
}

static void bitnet_models_use_the_int8_of_their_training(void **state)
{
    (void)state;
    scheme_is("bitnet-b1.58", BN_ACT_AUTO, ACT_TOKEN, "training of this architecture");
    scheme_is("bitnet-25", BN_ACT_AUTO, ACT_TOKEN, "training of this architecture");
    scheme_is("bitnet", BN_ACT_AUTO, ACT_TOKEN, "training of this architecture");
}

static void llama_with_one_scale_per_matrix_counts_as_trained_with_int8(void **state)
{
    (void)state;
    scheme_is("llama", BN_ACT_AUTO, ACT_TOKEN, "each matrix has one scale");
}

static void finer_scales_mean_blocks(void **state)
{
    (void)state;
    scheme_of("llama", SCALE_ROW, BN_ACT_AUTO, ACT_BLOCK32, "a scale per row");
    scheme_of("llama", SCALE_BLOCK, BN_ACT_AUTO, ACT_BLOCK32, "a scale per block");
    scheme_of("bitnet", SCALE_BLOCK, BN_ACT_AUTO, ACT_TOKEN, "training of this architecture");
    scheme_of("llama", SCALE_BLOCK, BN_ACT_TOKEN, ACT_TOKEN, "as requested");
}

static void qwen3_uses_blocks_even_with_one_scale_per_matrix(void **state)
{
    (void)state;
    scheme_is("qwen3", BN_ACT_AUTO, ACT_BLOCK32, "16-bit activations");
}

static void a_request_replaces_the_rule(void **state)
{
    (void)state;
    static const char *const archs[] = {"bitnet-b1.58", "llama", "qwen3"};
    for (size_t i = 0; i < 3; i++) {
        scheme_is(archs[i], BN_ACT_TOKEN, ACT_TOKEN, "as requested");
        scheme_is(archs[i], BN_ACT_BLOCK, ACT_BLOCK128, "as requested");
        scheme_is(archs[i], BN_ACT_16, ACT_16, "as requested");
        scheme_is(archs[i], BN_ACT_FLOAT, ACT_FLOAT, "as requested");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitnet_models_use_the_int8_of_their_training),
        cmocka_unit_test(llama_with_one_scale_per_matrix_counts_as_trained_with_int8),
        cmocka_unit_test(finer_scales_mean_blocks),
        cmocka_unit_test(qwen3_uses_blocks_even_with_one_scale_per_matrix),
        cmocka_unit_test(a_request_replaces_the_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
