/*
 * Files with gated delta nets: the kinds of layers, layers that predict further tokens, and files
 * whose counts, shapes or numbers are wrong. Synthetic files are changed in place.
 */
#include "engine/base/fp16.h"
#include "engine/gguf/gguf_le.h"
#include "tests/engine/model/model_expect.h"
#include "tests/support/le_put.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void opened(const struct synth_spec *spec, struct synth_model *m)
{
    struct bn_error err;
    if (!synth_open(spec, m, &err))
        fail_msg("%s", err.text);
}

static uint8_t *writable(struct synth_model *m, const void *at)
{
    return m->bytes.bytes + ((const uint8_t *)at - m->bytes.bytes);
}

static struct gguf_tensor *tensor_of(struct synth_model *m, const char *name)
{
    for (size_t i = 0; i < m->gguf->n_tensors; i++)
        if (bn_str_is(m->gguf->tensors[i].name, name))
            return &m->gguf->tensors[i];
    fail_msg("no tensor '%s'", name);
    return NULL;
}

static void number_refused(const char *key, uint32_t v, enum bn_errcode code, const char *words)
{
    const struct synth_spec spec = synth_preset("qwen35-tiny");
    struct synth_model m;
    char full[96];
    opened(&spec, &m);
    (void)snprintf(full, sizeof full, "qwen35.%s", key);
    const struct gguf_kv *kv = gguf_find_kv(m.gguf, full);
    assert_non_null(kv);
    le_put_u32(writable(&m, kv->value), v);
    expect_refused(&m, code, words);
}

static void every_fourth_layer_is_attention(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("qwen35-tiny");
    struct synth_model m;
    spec.n_layers = 9;
    opened(&spec, &m);
    for (size_t i = 0; i < 9; i++) {
        const struct layer *l = &m.model->layers[i];
        assert_int_equal(l->traits.is_delta_net, i != 3 && i != 7);
        assert_int_equal(l->q.source.n_rows, i == 3 || i == 7 ? 2 * 4 * 64 : (2 + 2 + 4) * 64);
        assert_int_equal(l->delta.conv.bytes != NULL, l->traits.is_delta_net);
        assert_int_equal(l->q_norm.bytes != NULL, !l->traits.is_delta_net);
        assert_int_equal(l->v.source.bytes != NULL, !l->traits.is_delta_net);
    }
    assert_int_equal(m.model->hp.n_attn_layers, 2);
    assert_int_equal(m.model->hp.n_rot, 16);
    assert_true(m.model->hp.delta.dim == 64 && m.model->hp.delta.n_key_heads == 2);
    assert_int_equal(delta_state_floats(&m.model->hp.delta), 4 * 64 * 64 + 3 * 8 * 64);
    synth_close(&m);
}

/* Writers count these layers or not; a tensor of a layer past them is still refused. */
static void layers_that_predict_further_tokens_are_ignored(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("qwen35-tiny");
    struct synth_model m;
    struct bn_error err;
    spec.n_extra_layers = 2;
    for (int counted = 0; counted < 2; counted++) {
        spec.extra_layers_count = counted;
        opened(&spec, &m);
        assert_int_equal(m.model->hp.n_layers, 4);
        assert_int_equal(m.model->hp.n_extra_layers, 2);
        synth_close(&m);
    }
    spec.extra = "blk.6.attn_norm.weight";
    assert_false(synth_open(&spec, &m, &err));
    assert_non_null(strstr(err.text, "has no tensor 'blk.6.attn_norm.weight'"));
    spec.n_extra_layers = 0;
    spec.extra = "blk.4.nextn.enorm.weight";
    assert_false(synth_open(&spec, &m, &err));
    assert_int_equal(err.code, BN_EUNSUPPORTED);
}

static void wrong_numbers_are_refused(void **state)
{
    (void)state;
    number_refused("ssm.conv_kernel", 3, BN_EUNSUPPORTED, "ssm.conv_kernel is 3, but only 4");
    number_refused("ssm.state_size", 0, BN_EFORMAT, "ssm.state_size is 0");
    number_refused("ssm.state_size", 72, BN_EUNSUPPORTED, "ssm.state_size is 72, but only mul");
    number_refused("ssm.state_size", 512, BN_EUNSUPPORTED, "up to 256 are supported");
    number_refused("ssm.state_size", 32, BN_EFORMAT, "ssm.inner_size is 256, but 4 value heads");
    number_refused("ssm.group_count", 3, BN_EFORMAT, "4 value heads of the delta nets cannot");
    number_refused("ssm.group_count", 0, BN_EFORMAT, "ssm.group_count is 0");
    number_refused("ssm.group_count", 1, BN_EFORMAT, "tensor 'blk.0.attn_qkv.weight' is 512 x");
    number_refused("ssm.time_step_rank", 0xffffffff, BN_EFORMAT, "time_step_rank is 4294967295");
    number_refused("ssm.inner_size", 255, BN_EFORMAT, "ssm.inner_size is 255");
    number_refused("full_attention_interval", 0, BN_EFORMAT, "full_attention_interval is 0");
    number_refused("full_attention_interval", 5, BN_EFORMAT, "full_attention_interval is 5");
    number_refused("full_attention_interval", 2, BN_EFORMAT, "has no tensor 'blk.1.attn_q.weight'");
    number_refused("rope.dimension_count", 15, BN_EFORMAT, "rotated in pairs");
}

static void wrong_tensors_are_refused(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("qwen35-tiny");
    static const float decays[] = {0.5f, 1e30f, -1.0f / 0.0f, 0.0f / 0.0f};
    struct synth_model m;
    for (size_t i = 0; i < sizeof decays / sizeof decays[0]; i++) {
        opened(&spec, &m);
        uint8_t *at = writable(&m, tensor_of(&m, "blk.2.ssm_a")->bytes);
        le_put_u32(at + 4, f32_bits(decays[i]));
        expect_refused(&m, BN_EFORMAT, "tensor 'blk.2.ssm_a': element 1 ");
    }
    static const char *const names[] = {
        "blk.0.attn_qkv.weight", "blk.0.attn_gate.weight", "blk.1.ssm_conv1d.weight",
        "blk.0.ssm_dt.bias",     "blk.1.ssm_alpha.weight", "blk.2.ssm_beta.weight",
        "blk.0.ssm_norm.weight", "blk.2.ssm_out.weight",   "blk.0.post_attention_norm.weight"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char words[96];
        opened(&spec, &m);
        struct bn_str name = tensor_of(&m, names[i])->name;
        writable(&m, name.ptr)[name.n_bytes - 1] = '_';
        (void)snprintf(words, sizeof words, "no tensor '%s'", names[i]);
        expect_refused(&m, BN_EFORMAT, words);
    }
}

/* Small matrices may be F32, F16 or BF16, but not another type. */
static void other_types_of_small_matrices_are_refused(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("qwen35-tiny");
    struct synth_model m;
    opened(&spec, &m);
    struct bn_str name = tensor_of(&m, "blk.1.ssm_alpha.weight")->name;
    /* after the name: number of dimensions, two dimensions, type */
    uint8_t *type = writable(&m, name.ptr) + name.n_bytes + 4 + 16;
    assert_int_equal(le_u32(type), tensor_geometries[TENSOR_F32].file_id);
    le_put_u32(type, tensor_geometries[TENSOR_Q8_0].file_id);
    expect_refused(&m, BN_EUNSUPPORTED, "'blk.1.ssm_alpha.weight' is Q8_0, not F32, F16 or BF16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fourth_layer_is_attention),
        cmocka_unit_test(layers_that_predict_further_tokens_are_ignored),
        cmocka_unit_test(wrong_numbers_are_refused),
        cmocka_unit_test(wrong_tensors_are_refused),
        cmocka_unit_test(other_types_of_small_matrices_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
