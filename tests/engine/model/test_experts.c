/*
 * Files with experts and windows: the traits of each layer, and files whose counts, shapes or
 * arrays are wrong. Synthetic files are changed in place.
 */
#include "engine/base/fp16.h"
#include "engine/base/memory.h"
#include "engine/gguf/gguf_le.h"
#include "tests/engine/model/model_expect.h"
#include "tests/support/le_put.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct synth_spec small_spec(void)
{
    struct synth_spec spec = synth_preset("maple-tiny");
    spec.type = TENSOR_Q2_0;
    spec.scale_cols = 64;
    spec.n_embd = 64;
    spec.head_dim = 32;
    spec.n_rot = 16;
    spec.n_ff = 64;
    spec.n_layers = 5;
    return spec;
}

static void opened(struct synth_model *m)
{
    const struct synth_spec spec = small_spec();
    struct bn_error err;
    if (!synth_open(&spec, m, &err))
        fail_msg("%s", err.text);
}

static uint8_t *writable(struct synth_model *m, const void *at)
{
    return m->bytes.bytes + ((const uint8_t *)at - m->bytes.bytes);
}

/* The value of a key, or item number i of an array of items of `item_bytes` bytes. */
static uint8_t *value_of(struct synth_model *m, const char *key, size_t i, size_t item_bytes)
{
    char full[96];
    (void)snprintf(full, sizeof full, "maple.%s", key);
    const struct gguf_kv *kv = gguf_find_kv(m->gguf, full);
    assert_non_null(kv);
    return writable(m, kv->value + i * item_bytes);
}

static void number_refused(const char *key, uint32_t v, const char *words)
{
    struct synth_model m;
    opened(&m);
    le_put_u32(value_of(&m, key, 0, 4), v);
    expect_refused(&m, BN_EFORMAT, words);
}

static void layers_have_their_traits(void **state)
{
    (void)state;
    struct synth_model m;
    struct bn_error err;
    const struct model_config mainline = {.window_rule = BN_WINDOW_MAINLINE};
    char text[120];
    opened(&m);
    for (size_t i = 0; i < 5; i++) {
        const struct layer_traits *t = &m.model->layers[i].traits;
        assert_int_equal(t->n_visible_keys,
                         i == 3 ? 0 : 41); /* the token itself and 40 before it */
        assert_int_equal(t->has_rope, i != 3);
        assert_true(t->clamp == 1.5f);
        assert_int_equal(m.model->layers[i].gate.source.n_rows, 8 * 64);
    }
    assert_int_equal(m.model->hp.n_rot, 16);
    model_window_text(m.model, text, sizeof text);
    assert_string_equal(text, "a token sees itself and 40 before it in 4 of 5 layers "
                              "(rule: reference)");
    assert_true(synth_reopen(&m, &mainline, &err));
    assert_int_equal(m.model->layers[0].traits.n_visible_keys, 40);
    assert_int_equal(m.model->layers[3].traits.n_visible_keys, 0);
    model_window_text(m.model, text, sizeof text);
    assert_non_null(strstr(text, "39 before it"));
    synth_close(&m);
}

static void dense_models_have_plain_layers(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    struct bn_error err;
    char text[120];
    assert_true(synth_open(&spec, &m, &err));
    assert_int_equal(m.model->layers[0].traits.n_visible_keys, 0);
    assert_true(m.model->layers[0].traits.has_rope);
    assert_int_equal(m.model->hp.n_experts, 0);
    model_window_text(m.model, text, sizeof text);
    assert_string_equal(text, "");
    synth_close(&m);
}

static void the_limit_has_a_default(void **state)
{
    (void)state;
    struct synth_spec spec = small_spec();
    struct synth_model m;
    struct bn_error err;
    spec.clamp = 0.0f; /* no key */
    assert_true(synth_open(&spec, &m, &err));
    assert_true(m.model->layers[0].traits.clamp == 7.0f);
    synth_close(&m);
}

static void wrong_counts_are_refused(void **state)
{
    (void)state;
    number_refused("expert_used_count", 9, "expert_used_count is 9, but there are only 8 experts");
    number_refused("expert_used_count", 0, "expert_used_count is 0");
    number_refused("expert_count", 0, "expert_count is 0");
    number_refused("expert_count", 100000, "expert_count is 100000, not 1 to 1024");
    number_refused("expert_count", 7, "the model needs 7 x 64");
    number_refused("expert_feed_forward_length", 128, "the model needs 64 x 128 x 8");
    number_refused("expert_feed_forward_length", 0xffffffff, "expert_feed_forward_length is");
    number_refused("attention.sliding_window", 0, "sliding_window is 0");
    number_refused("attention.sliding_window", 0xffffffff, "sliding_window is 4294967295");
    struct synth_model m;
    opened(&m);
    le_put_u32(value_of(&m, "expert_feed_forward_length", 0, 4), 24);
    expect_refused(&m, BN_EUNSUPPORTED, "experts of 24 outputs");
    number_refused("block_count", 4, "must have one value for each of the 4 layers");
}

static void wrong_arrays_are_refused(void **state)
{
    (void)state;
    static const uint32_t limits[] = {0, 0x80000000, 0xbf800000, 0x7fc00000, 0x7f800000};
    struct synth_model m;
    opened(&m);
    value_of(&m, "attention.sliding_window_pattern", 2, 1)[0] = 2;
    expect_refused(&m, BN_EFORMAT, "neither true nor false for layer 2");
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        opened(&m);
        le_put_u32(value_of(&m, "swiglu_clamp_exp", 4, 4), limits[i]);
        expect_refused(&m, BN_EFORMAT, "for layer 4, but must be above 0 and at most 1e+06");
    }
    opened(&m);
    value_of(&m, "attention.sliding_window_pattern", 0, 1)[-17]++; /* the last byte of the key */
    expect_refused(&m, BN_EFORMAT, "the file has no maple.attention.sliding_window_pattern");
}

/* The dimensions of a tensor info follow its name and their number. */
static uint8_t *dims_of(struct synth_model *m, const char *name)
{
    const struct gguf_tensor *t = gguf_find_tensor(m->gguf, name);
    assert_non_null(t);
    return writable(m, t->name.ptr) + t->name.n_bytes + 4;
}

static void wrong_shapes_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"blk.1.ffn_gate_exps.weight", "blk.1.ffn_up_exps.weight",
                                        "blk.4.ffn_down_exps.weight"};
    struct synth_model m;
    for (size_t i = 0; i < 3; i++) {
        opened(&m);
        uint8_t *dims = dims_of(&m, names[i]);
        le_put_u64(dims + 8, 8); /* as many elements, experts and outputs exchanged */
        le_put_u64(dims + 16, 64);
        expect_refused(&m, BN_EFORMAT, "the model needs 64 x 64 x 8 (inputs, outputs, experts)");
    }
    opened(&m);
    uint8_t *dims = dims_of(&m, "blk.2.ffn_gate_inp.weight");
    le_put_u64(dims, 8);
    le_put_u64(dims + 8, 64);
    expect_refused(&m, BN_EFORMAT, "'blk.2.ffn_gate_inp.weight' is 64 x 8, the model needs 8 x 64");
    opened(&m);
    dims_of(&m, "blk.0.ffn_gate_inp.weight")[-5] = 'x'; /* the last byte of the name */
    expect_refused(&m, BN_EFORMAT, "the file has no tensor 'blk.0.ffn_gate_inp.weight'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_have_their_traits),
        cmocka_unit_test(dense_models_have_plain_layers),
        cmocka_unit_test(the_limit_has_a_default),
        cmocka_unit_test(wrong_counts_are_refused),
        cmocka_unit_test(wrong_arrays_are_refused),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
