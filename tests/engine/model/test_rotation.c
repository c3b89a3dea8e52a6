/*
 * Keys of rotated files: what a model gets from them, and files with other values. The files are
 * synthetic, and tests change their bytes in place.
 */
#include "engine/gguf/gguf_le.h"
#include "tests/engine/model/model_expect.h"
#include "tests/support/le_put.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define KEY(name) "prism.hadamard." name

/* qwen3 with a separate output head: widths 128, 256. */
static struct synth_spec rotated_spec(void)
{
    struct synth_spec spec = synth_preset("qwen3-tiny");
    spec.rotated_block = 64;
    spec.untied = true;
    return spec;
}

static void opened(const struct synth_spec *spec, struct synth_model *m)
{
    struct bn_error err;
    if (!synth_open(spec, m, &err))
        fail_msg("%s", err.text);
}

static void rotated(struct synth_model *m)
{
    const struct synth_spec spec = rotated_spec();
    opened(&spec, m);
}

/* Address of the value of a key; for an array, of its first item. */
static uint8_t *value_of(struct synth_model *m, const char *key)
{
    const struct gguf_kv *kv = gguf_find_kv(m->gguf, key);
    assert_non_null(kv);
    return m->bytes.bytes + (kv->value - m->bytes.bytes);
}

/* Write `name` over the end of the key. */
static void rename_key(struct synth_model *m, const char *key, const char *name)
{
    const struct gguf_kv *kv = gguf_find_kv(m->gguf, key);
    assert_non_null(kv);
    uint8_t *const begin = m->bytes.bytes + ((const uint8_t *)kv->key.ptr - m->bytes.bytes);
    memcpy(begin + kv->key.n_bytes - strlen(name), name, strlen(name));
}

/* Byte i of string number `number` of an array of strings. */
static uint8_t *char_of(struct synth_model *m, const char *key, size_t number, size_t i)
{
    uint8_t *at = value_of(m, key);
    while (number-- > 0)
        at += 8 + le_u64(at);
    return at + 8 + i;
}

static void refused_spec(const struct synth_spec *spec, const char *words)
{
    struct synth_model m;
    struct bn_error err = {0};
    assert_false(synth_open(spec, &m, &err));
    if (!strstr(err.text, words))
        fail_msg("'%s' does not say '%s'", err.text, words);
}

static void linear_layers_get_their_signs(void **state)
{
    (void)state;
    struct synth_model m;
    rotated(&m);
    const struct model *model = m.model;
    const struct layer *l = &model->layers[1];
    assert_int_equal(model->rotation.version, 1);
    assert_int_equal(l->q.rotation.block, 64);
    assert_int_equal(l->q.rotation.n_outer, 0);
    assert_ptr_equal(l->q.rotation.signs, model->layers[0].up.rotation.signs);
    assert_ptr_equal(l->q.rotation.signs, model->embd_rotation.signs);
    assert_ptr_equal(l->q.rotation.signs, model->head_rotation.signs);
    assert_ptr_equal(l->down.rotation.signs, l->o.rotation.signs); /* both are 256 wide */
    assert_ptr_equal(l->down.rotation.signs, model->rotation.signs + 128);
    const uint8_t *values = value_of(&m, KEY("sign_values"));
    for (size_t i = 0; i < 128 + 256; i++)
        assert_true(model->rotation.signs[i] == (float)(int32_t)le_u32(values + 4 * i));
    synth_close(&m);
}

static void version_2_ties_the_output_head(void **state)
{
    (void)state;
    struct synth_model m;
    struct synth_spec spec = rotated_spec();
    spec.untied = false;
    spec.rotated_version = 2;
    spec.no_signs = true;
    opened(&spec, &m);
    assert_true(m.model->tied);
    assert_int_equal(m.model->head_rotation.block, 64);
    assert_null(m.model->head_rotation.signs);
    assert_null(m.model->layers[0].q.rotation.signs);
    synth_close(&m);

    spec = rotated_spec();
    spec.rotated_version = 2;
    refused_spec(&spec, "tied_output is true, but the file has output.weight");
    spec.untied = false;
    spec.rotated_version = 1;
    refused_spec(&spec, "the rotated embedding, which needs prism.hadamard.tied_output");
}

static void plain_files_have_no_rotation(void **state)
{
    (void)state;
    struct synth_model m;
    const struct synth_spec spec = synth_preset("qwen3-tiny");
    opened(&spec, &m);
    assert_int_equal(m.model->rotation.version, 0);
    assert_int_equal(m.model->layers[0].q.rotation.block, 0);
    assert_int_equal(m.model->head_rotation.block, 0);
    synth_close(&m);
}

static void other_versions_and_sizes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint32_t value;
        const char *words;
    } cases[] = {
        {KEY("version"), 0, "version is 0, only 1 and 2"},
        {KEY("version"), 3, "version is 3, only 1 and 2"},
        {KEY("version"), 2, "tied_output must be true in a file of version 2"},
        {KEY("block_size"), 0, "block_size is 0, not a power of two from 4 to 4096"},
        {KEY("block_size"), 2, "block_size is 2,"},
        {KEY("block_size"), 96, "block_size is 96,"},
        {KEY("block_size"), 8192, "block_size is 8192,"},
        {KEY("block_size"), 0x80000000u, "block_size is 2147483648,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_model m;
        rotated(&m);
        le_put_u32(value_of(&m, cases[i].key), cases[i].value);
        expect_refused(&m, BN_EUNSUPPORTED, cases[i].words);
    }
    struct synth_model m;
    rotated(&m);
    le_put_u32(value_of(&m, KEY("block_size")), 256);
    expect_refused(&m, BN_EFORMAT, "has 128 columns, not a multiple of prism.hadamard.block_size");
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *words;
    } cases[] = {
        {KEY("transform"), "transform is '!ormalized-sylvester-walsh-hadamard', only 'normal"},
        {KEY("axis"), "axis is '!nput-last-dimension', only 'input-last-dimension' is"},
        {KEY("sign_mode"), "sign_mode is '!xplicit', only 'explicit' and 'identity' are"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_model m;
        rotated(&m);
        value_of(&m, cases[i].key)[8] = '!';
        expect_refused(&m, BN_EUNSUPPORTED, cases[i].words);
    }
}

static void missing_and_unknown_keys_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *words;
    } cases[] = {
        {"version", "no number prism.hadamard.version"},
        {"block_size", "no number prism.hadamard.block_size"},
        {"transform", "no string prism.hadamard.transform"},
        {"axis", "no string prism.hadamard.axis"},
        {"sign_mode", "no string prism.hadamard.sign_mode"},
        {"sign_widths", "no prism.hadamard.sign_widths"},
        {"sign_values", "no prism.hadamard.sign_values"},
        {"weight_names", "no names in prism.hadamard.weight_names"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth_model m;
        char key[64];
        (void)snprintf(key, sizeof key, KEY("%s"), cases[i].key);
        rotated(&m);
        const struct gguf_kv *kv = gguf_find_kv(m.gguf, key);
        m.bytes.bytes[(const uint8_t *)kv->key.ptr - m.bytes.bytes] = 'q'; /* another name */
        expect_refused(&m, BN_EFORMAT, cases[i].words);
    }
    struct synth_model m;
    rotated(&m);
    rename_key(&m, KEY("axis"), "axes");
    expect_refused(&m, BN_EUNSUPPORTED,
                   "the key prism.hadamard.axes of a rotated file is not known");
    rotated(&m);
    rename_key(&m, KEY("version"), "vErsion"); /* no version, but other keys of the format */
    expect_refused(&m, BN_EUNSUPPORTED, "the key prism.hadamard.vErsion");
}

static void broken_signs_are_refused(void **state)
{
    (void)state;
    struct synth_model m;
    static const uint32_t values[] = {0, 2, 0xfffffffeu, 0x80000000u};
    for (size_t i = 0; i < 4; i++) {
        rotated(&m);
        le_put_u32(value_of(&m, KEY("sign_values")) + 4 * 383, values[i]); /* the last one */
        expect_refused(&m, BN_EFORMAT, "sign_values: number 383 is neither 1 nor -1");
    }
    static const struct {
        uint32_t first, second;
        const char *words;
    } widths[] = {
        {128, 255, "sign_values has 384 numbers, the widths need 383"},
        {127, 257, "has 128 columns, but prism.hadamard.sign_widths has no such width"},
        {192, 192, "sign_widths has 192 twice"},
        {0, 256, "sign_widths: number 0 is not an integer from 1 to 1048576"},
        {128, 0x80000000u, "sign_widths: number 1 is not an integer"},
        {128, 0xffffffffu, "sign_widths: number 1 is not an integer"},
    };
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        rotated(&m);
        le_put_u32(value_of(&m, KEY("sign_widths")), widths[i].first);
        le_put_u32(value_of(&m, KEY("sign_widths")) + 4, widths[i].second);
        expect_refused(&m, BN_EFORMAT, widths[i].words);
    }
    /* F32 instead of I32: 1 has other bits */
    rotated(&m);
    le_put_u32(value_of(&m, KEY("sign_values")) - 12, GGUF_F32);
    expect_refused(&m, BN_EFORMAT, "sign_values: number 0 is neither 1 nor -1");
    /* Signs in a file whose mode says that there are none; the modes have equally long names. */
    rotated(&m);
    memcpy(value_of(&m, KEY("sign_mode")) + 8, "identity", 8);
    expect_refused(&m, BN_EUNSUPPORTED,
                   "sign_values exists, but prism.hadamard.sign_mode is 'identity'");
}

static void broken_names_are_refused(void **state)
{
    (void)state;
    struct synth_model m;
    const char *const names = KEY("weight_names");
    /* The names begin with blk.0.attn_q.weight, attn_k, attn_v. */
    rotated(&m);
    *char_of(&m, names, 0, 4) = '7';
    expect_refused(&m, BN_EFORMAT, "weight_names: the file has no tensor 'blk.7.attn_q.weight'");
    rotated(&m);
    *char_of(&m, names, 0, 11) = 'k';
    expect_refused(&m, BN_EFORMAT, "weight_names has 'blk.0.attn_k.weight' twice");
    /* A norm whose name is as long as that of ffn_down */
    rotated(&m);
    memcpy(char_of(&m, names, 6, 0), "blk.0.ffn_norm.weight", 21);
    expect_refused(&m, BN_EUNSUPPORTED,
                   "weight_names has 'blk.0.ffn_norm.weight', whose input cannot be rotated");
    rotated(&m);
    *char_of(&m, KEY("inverse_weight_names"), 0, 0) = 'T';
    expect_refused(&m, BN_EUNSUPPORTED,
                   "inverse_weight_names has 'Token_embd.weight', only one 'token_embd.weight'");
}

static void rotated_experts_are_refused(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("maple-tiny");
    spec.rotated_block = 64;
    refused_spec(&spec, "'blk.0.ffn_gate_exps.weight', but rotated experts are not supported");
}

/* The list has another name of the same length in place of that of attn_v. */
static void one_input_has_one_rotation(void **state)
{
    (void)state;
    struct synth_model m;
    struct synth_spec spec = rotated_spec();
    spec.extra = "not.a.weight.at.all";
    opened(&spec, &m);
    memcpy(char_of(&m, KEY("weight_names"), 2, 0), spec.extra, strlen(spec.extra));
    expect_refused(
        &m, BN_EUNSUPPORTED,
        "has 'blk.0.attn_q.weight' but not 'blk.0.attn_v.weight', which has the same input");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layers_get_their_signs),
        cmocka_unit_test(version_2_ties_the_output_head),
        cmocka_unit_test(plain_files_have_no_rotation),
        cmocka_unit_test(other_versions_and_sizes_are_refused),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(missing_and_unknown_keys_are_refused),
        cmocka_unit_test(broken_signs_are_refused),
        cmocka_unit_test(broken_names_are_refused),
        cmocka_unit_test(rotated_experts_are_refused),
        cmocka_unit_test(one_input_has_one_rotation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
