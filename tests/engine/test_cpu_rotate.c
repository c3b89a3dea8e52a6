/*
 * Rotated inputs on the CPU: the kernels against the matrix of the transform, and models that are
 * stored with and without rotation.
 */
#include "engine/base/memory.h"
#include "engine/cpu/kernels.h"
#include "tests/engine/test_engine_kit.h"
#include "tests/support/ref_forward.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define N_IDS 12

/* Kernels of each instruction set of this machine. */
static bool kernels_of(enum cpu_isa isa, struct cpu_kernels *k)
{
    struct cpu_caps caps;
    struct bn_error err;
    cpu_caps_detect(&caps);
    if (!caps.has[isa] || !cpu_caps_limit(&caps, cpu_isa_name(isa), &err))
        return false;
    cpu_kernels_init(k, &caps);
    return true;
}

/* y = H (signs * x) of one block: H has the signs (-1)^(bits that row and column share). */
static void matrix_times(const float *x, const float *signs, size_t block, double *y)
{
    for (size_t i = 0; i < block; i++) {
        y[i] = 0.0;
        for (size_t k = 0; k < block; k++) {
            const double v = (double)x[k] * (signs ? (double)signs[k] : 1.0);
            y[i] += __builtin_parityll(i & k) ? -v : v;
        }
        y[i] /= sqrt((double)block);
    }
}

static void compare_with_matrix(const struct cpu_kernels *k, size_t block, bool has_signs)
{
    static float x[ROTATION_MAX], signs[ROTATION_MAX], y[ROTATION_MAX];
    static double expected[ROTATION_MAX];
    for (size_t i = 0; i < block; i++) {
        x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
        signs[i] = i * i % 7 < 3 ? -1.0f : 1.0f;
    }
    const float *const s = has_signs ? signs : NULL;
    matrix_times(x, s, block, expected);
    k->rotate(x, s, block, block, y);
    for (size_t i = 0; i < block; i++)
        if (!(fabs((double)y[i] - expected[i]) < 1e-5))
            fail_msg("%s, block %zu: element %zu is %g, not %g", cpu_isa_name(k->isa), block, i,
                     (double)y[i], expected[i]);
}

static void kernels_multiply_by_the_matrix(void **state)
{
    (void)state;
    for (enum cpu_isa isa = ISA_REF; isa < ISA_N; isa++) {
        struct cpu_kernels k;
        if (!kernels_of(isa, &k))
            continue;
        for (size_t block = ROTATION_MIN; block <= ROTATION_MAX; block *= 2) {
            compare_with_matrix(&k, block, false);
            compare_with_matrix(&k, block, true);
        }
    }
}

/* Two blocks of 4; the inverse is the transform, then the signs. */
static void small_example(void **state)
{
    (void)state;
    const float x[8] = {1, 2, 3, 4, 1, 2, 3, 4}, signs[8] = {1, -1, 1, 1, 1, 1, 1, 1};
    const float rotated[8] = {3, 1, -4, 2, 5, -1, -2, 0};
    for (enum cpu_isa isa = ISA_REF; isa < ISA_N; isa++) {
        struct cpu_kernels k;
        float y[8];
        if (!kernels_of(isa, &k))
            continue;
        k.rotate(x, signs, 8, 4, y);
        assert_memory_equal(y, rotated, sizeof y);
        k.rotate(y, NULL, 8, 4, y);
        for (size_t i = 0; i < 8; i++)
            assert_true(y[i] * signs[i] == x[i]);
    }
}

static float *float_logits(const struct synth_spec *spec, const int32_t *ids)
{
    const struct bn_model_config cfg = {.n_threads = 2, .activations = BN_ACT_FLOAT};
    return kit_logits_of(spec, &cfg, ids, N_IDS);
}

/* Without rounding of activations, the file of the same weights without rotation is the same
 * model. */
static void same_model(const struct synth_spec *spec)
{
    int32_t ids[N_IDS];
    struct synth_spec plain = *spec;
    plain.rotated_block = 0;
    plain.rotated_version = 0;
    kit_ids(ids, N_IDS, 3);
    float *a = float_logits(spec, ids), *b = float_logits(&plain, ids);
    for (size_t i = 0; i < N_IDS; i++) {
        const double d = ref_rel_l2(a + i * spec->n_vocab, b + i * spec->n_vocab, spec->n_vocab);
        if (!(d < 1e-3))
            fail_msg("%s, %s, blocks of %zu: position %zu is off by %g", spec->arch,
                     tensor_geometries[spec->type].name, spec->rotated_block, i, d);
    }
    mem_free(a);
    mem_free(b);
}

static void rotated_and_plain_files_agree(void **state)
{
    (void)state;
    static const struct {
        const char *arch;
        enum tensor_type type, head;
        size_t scale_cols, block;
        unsigned version;
        bool no_signs;
    } cases[] = {
        {"qwen3", TENSOR_PQ2_0, TENSOR_PQ2_0, 128, 64, 1, false},
        {"qwen3", TENSOR_PTQ1_0, TENSOR_PTQ1_0, 128, 16, 2, false},
        {"qwen3", TENSOR_F16, TENSOR_F16, 64, 64, 2, true},
        {"llama", TENSOR_I2_S, TENSOR_F16, 0, 256, 1, false},
        {"llama", TENSOR_TQ2_0, TENSOR_F32, 256, 256, 1, false},
        {"bitnet-b1.58", TENSOR_F32, TENSOR_BF16, 64, 4, 2, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_spec spec = synth_preset("tiny");
        spec.arch = cases[i].arch;
        spec.type = cases[i].type;
        spec.head = cases[i].head;
        spec.scale_cols = cases[i].scale_cols;
        spec.rotated_block = spec.sparse_block = cases[i].block;
        spec.rotated_version = cases[i].version;
        spec.no_signs = cases[i].no_signs;
        spec.untied = cases[i].version == 1;
        spec.ternary_head = true;
        same_model(&spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_multiply_by_the_matrix),
        cmocka_unit_test(small_example),
        cmocka_unit_test(rotated_and_plain_files_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
