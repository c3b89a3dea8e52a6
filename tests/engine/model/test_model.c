/*
 * Tensors of a model: accepted files and refused ones. Files are synthetic; tests then change
 * names, types and data in place.
 */
#include "engine/base/fp16.h"
#include "engine/base/memory.h"
#include "engine/gguf/gguf_le.h"
#include "tests/engine/model/model_expect.h"
#include "tests/support/le_put.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define F16_NAN 0x7e00
#define F16_INFINITY 0x7c00
#define BF16_INFINITY 0x7f80
#define F16_MINUS_INFINITY 0xfc00
#define F32_INFINITY 0x7f800000
#define F32_NAN 0x7fc00000

static void opened(const struct synth_spec *spec, struct synth_model *m)
{
    struct bn_error err;
    if (!synth_open(spec, m, &err))
        fail_msg("%s", err.text);
}

/* Address of the fields after the name of a tensor info: n_dims, dims, type, offset. */
static uint8_t *info_of(struct synth_model *m, const char *name)
{
    const struct gguf_tensor *t = gguf_find_tensor(m->gguf, name);
    assert_non_null(t);
    return m->bytes.bytes + ((const uint8_t *)t->name.ptr - m->bytes.bytes) + t->name.n_bytes;
}

static void set_type(struct synth_model *m, const char *name, uint32_t type_id)
{
    uint8_t *info = info_of(m, name);
    le_put_u32(info + 4 + 8 * le_u32(info), type_id);
}

static void swap_dims(struct synth_model *m, const char *name)
{
    uint8_t *dims = info_of(m, name) + 4;
    const uint64_t first = le_u64(dims);
    le_put_u64(dims, le_u64(dims + 8));
    le_put_u64(dims + 8, first);
}

static void rename_tensor(struct synth_model *m, const char *name)
{
    info_of(m, name)[-1] = '!';
}

static uint8_t *data_of(struct synth_model *m, const char *name)
{
    return m->bytes.bytes + gguf_find_tensor(m->gguf, name)->offset;
}

/* The classes of the scales, and the tables as ternary tensors. */
static void scales_and_ternary_tables_are_found(void **state)
{
    (void)state;
    static const struct {
        enum tensor_type type;
        size_t scale_cols;
        enum ternary_scaling scaling;
        size_t block_cols;
        bool is_merged;
    } cases[] = {
        {TENSOR_PQ2_0, 128, SCALE_BLOCK, 128, false},
        {TENSOR_PTQ1_0, 128, SCALE_BLOCK, 128, false},
        {TENSOR_Q2_0_G128, 128, SCALE_BLOCK, 128, false},
        {TENSOR_Q2_0, 128, SCALE_BLOCK, 128, true},
        {TENSOR_Q2_0, 64, SCALE_BLOCK, 64, false},
        {TENSOR_TQ2_0, 256, SCALE_BLOCK, 256, false},
        {TENSOR_TQ1_0, SYNTH_ROW_SCALES, SCALE_ROW, 0, false},
        {TENSOR_Q2_0, 0, SCALE_TENSOR, 0, false},
        {TENSOR_Q1_0, 128, SCALE_BLOCK, 128, false},
        {TENSOR_F16, 128, SCALE_BLOCK, 128, false},
    };
    for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        struct synth_spec spec = synth_preset("tiny");
        struct synth_model m;
        const size_t c = i / 2;
        spec.arch = "qwen3";
        spec.type = spec.head = cases[c].type;
        spec.scale_cols = cases[c].scale_cols;
        spec.ternary_head = true;
        spec.n_embd = 512; /* two blocks of 256 in a row of attn_q */
        spec.untied = i % 2 == 1;
        spec.vocab = SYNTH_VOCAB_LLAMA3;
        spec.n_vocab = 513; /* odd */
        opened(&spec, &m);
        const struct linear *head = &m.model->head_linear, *q = &m.model->layers[0].q;
        assert_int_equal(m.model->finest.scaling, cases[c].scaling);
        assert_int_equal(m.model->finest.block_cols, cases[c].block_cols);
        assert_int_equal(q->scales.scaling, cases[c].scaling);
        assert_int_equal(q->scales.block_cols, cases[c].block_cols);
        assert_int_equal(head->source.n_rows, 513);
        assert_true(head->extra_scale == 1.0f);
        assert_ptr_equal(head->source.bytes, m.model->head.bytes);
        assert_string_equal(head->source.name, i % 2 == 1 ? "output.weight" : "token_embd.weight");
        if (cases[c].type == TENSOR_F16)
            assert_null(m.model->ternary_embd.bytes); /* a float table is read as one */
        else
            assert_ptr_equal(m.model->ternary_embd.bytes, m.model->embd.bytes);
        bool is_noted = false;
        for (size_t n = 0; n < m.notes.n; n++)
            is_noted |= strcmp(m.notes.items[n].id, "scales") == 0 &&
                        strstr(m.notes.items[n].text, "equal in pairs") != NULL;
        assert_int_equal(is_noted, cases[c].is_merged);
        synth_close(&m);
    }
}

/* A float head that is not ternary, or that is all zero, stays a table. */
static void dense_heads_are_no_linear_layers(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    const struct model_config cfg = {0};
    struct synth_model m;
    struct bn_error err;
    opened(&spec, &m);
    assert_null(m.model->head_linear.source.bytes);
    assert_int_equal(m.model->finest.scaling, SCALE_TENSOR);
    memset(data_of(&m, "token_embd.weight"), 0, 262 * 256 * 2);
    assert_true(synth_reopen(&m, &cfg, &err));
    assert_null(m.model->head_linear.source.bytes);
    synth_close(&m);
}

static void damaged_ternary_tables_are_refused(void **state)
{
    /* Offset of row 512, one block of PQ2_0: a scale of 2 bytes, then the codes. */
    enum { LAST_ROW = 512 * 34 };
    (void)state;
    struct synth_spec spec = synth_preset("qwen3-tiny");
    struct synth_model m;
    spec.untied = true;
    spec.scale_cols = 0; /* no block has the scale 0, which would hide its codes */
    opened(&spec, &m);
    data_of(&m, "token_embd.weight")[LAST_ROW + 7] = 0xff; /* four codes 3 */
    expect_refused(&m, BN_EFORMAT, "tensor 'token_embd.weight': the byte at");
    opened(&spec, &m);
    le_put_u16(data_of(&m, "token_embd.weight") + LAST_ROW, F16_NAN);
    expect_refused(&m, BN_EFORMAT, "tensor 'token_embd.weight': the scale of block 512, at byte");
    opened(&spec, &m);
    le_put_u16(data_of(&m, "output.weight") + LAST_ROW, F16_MINUS_INFINITY);
    expect_refused(&m, BN_EFORMAT, "tensor 'output.weight': the scale of block 512, at byte");
    opened(&spec, &m);
    le_put_u16(data_of(&m, "blk.1.ffn_down.weight"), F16_INFINITY);
    expect_refused(&m, BN_EFORMAT, "tensor 'blk.1.ffn_down.weight': the scale of block 0, at byte");
}

static void every_architecture_and_container_opens(void **state)
{
    (void)state;
    static const char *const archs[] = {"bitnet-b1.58", "bitnet-25", "bitnet", "llama", "qwen3"};
    static const enum tensor_type types[] = {
        TENSOR_I2_S, TENSOR_TQ1_0,     TENSOR_TQ2_0,  TENSOR_F16,      TENSOR_F32,
        TENSOR_BF16, TENSOR_Q2_0_G128, TENSOR_PQ2_0,  TENSOR_PTQ1_0,   TENSOR_Q2_0,
        TENSOR_Q1_0, TENSOR_IQ1_BN,    TENSOR_IQ2_BN, TENSOR_IQ2_BN_R4};
    const size_t n_types = sizeof(types) / sizeof(types[0]);
    for (size_t i = 0; i < 5 * n_types; i++) {
        struct synth_spec spec = synth_preset("tiny");
        struct synth_model m;
        spec.arch = archs[i / n_types];
        spec.type = types[i % n_types];
        opened(&spec, &m);
        const bool llama = i / n_types == 3, qwen = i / n_types == 4;
        assert_int_equal(m.model->ternary_type, spec.type);
        assert_int_equal(m.model->arch->rope, llama ? ROPE_NORM : ROPE_NEOX);
        assert_int_equal(m.model->tied, !llama);
        assert_true((m.model->layers[1].ffn_sub_norm.bytes == NULL) == (llama || qwen));
        assert_int_equal(m.model->layers[1].q_norm.n_cols, qwen ? 64 : 0);
        assert_int_equal(m.model->layers[1].k_norm.n_cols, qwen ? 64 : 0);
        /* 1/sqrt(148.5) */
        assert_true(m.model->layers[0].q.scales.tensor_scale == f32_from_bits(0x3da80000));
        assert_true(m.model->layers[0].q.extra_scale == 1.0f);
        assert_null(m.model->layers[0].q.bias.bytes);
        assert_string_equal(m.model->layers[1].down.source.name, "blk.1.ffn_down.weight");
        synth_close(&m);
    }
}

static void parameters_are_counted_once(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    const uint64_t layer = 2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 768 + 3 * 256 + 768;
    opened(&spec, &m);
    assert_true(m.model->n_params == 262 * 256 + 2 * layer + 256);
    synth_close(&m);
    spec.untied = true;
    spec.scales = true;
    spec.type = TENSOR_F16;
    opened(&spec, &m);
    assert_true(m.model->n_params == 2 * 262 * 256 + 2 * layer + 256);
    synth_close(&m);
}

static void heads_of_any_table_type_open(void **state)
{
    (void)state;
    static const enum tensor_type types[] = {
        TENSOR_F32,       TENSOR_F16,   TENSOR_BF16,  TENSOR_Q8_0,   TENSOR_Q4_0,
        TENSOR_Q4_K,      TENSOR_Q6_K,  TENSOR_PQ2_0, TENSOR_PTQ1_0, TENSOR_Q2_0,
        TENSOR_Q2_0_G128, TENSOR_TQ1_0, TENSOR_TQ2_0};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct synth_spec spec = synth_preset("tiny");
        struct synth_model m;
        spec.head = types[i];
        opened(&spec, &m);
        assert_int_equal(m.model->embd.type, types[i]);
        synth_close(&m);
    }
}

static void scales_biases_and_rope_factors_are_found(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    spec.arch = "bitnet";
    spec.type = TENSOR_F16;
    spec.scales = spec.biases = spec.rope_freqs = true;
    spec.head_dim = 48;
    opened(&spec, &m);
    const struct layer *l = &m.model->layers[1];
    assert_true(l->down.scales.tensor_scale == 1.0f);
    assert_true(l->down.extra_scale > 0.04f && l->down.extra_scale < 0.05f);
    assert_int_equal(l->k.bias.n_cols, 96);
    assert_int_equal(l->o.source.n_cols, 192);
    assert_int_equal(l->attn_sub_norm.n_cols, 192);
    assert_int_equal(m.model->rope_freqs.n_cols, 24);
    assert_int_equal(m.notes.n, 1); /* the activation; all tensors are used */
    synth_close(&m);
}

static void a_head_that_copies_the_embedding_is_tied(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    const struct model_config cfg = {0};
    struct bn_error err;
    spec.arch = "bitnet-25";
    spec.untied = true;
    opened(&spec, &m);
    const uint64_t n_untied = m.model->n_params;
    assert_false(m.model->tied);
    memcpy(data_of(&m, "output.weight"), data_of(&m, "token_embd.weight"), 262 * 256 * 2);
    assert_true(synth_reopen(&m, &cfg, &err));
    assert_true(m.model->tied);
    assert_ptr_equal(m.model->head.bytes, m.model->embd.bytes);
    assert_true(m.model->n_params == n_untied - 262 * 256);
    synth_close(&m);
}

static void missing_and_misshapen_tensors_are_named(void **state)
{
    (void)state;
    static const char *const names[] = {"token_embd.weight",          "output_norm.weight",
                                        "blk.1.attn_sub_norm.weight", "blk.0.attn_output.weight",
                                        "blk.1.ffn_down.weight",      "blk.0.ffn_norm.weight"};
    const struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        opened(&spec, &m);
        rename_tensor(&m, names[i]);
        expect_refused(&m, BN_EFORMAT, names[i]);
    }
    opened(&spec, &m);
    swap_dims(&m, "blk.1.ffn_down.weight");
    expect_refused(&m, BN_EFORMAT,
                   "'blk.1.ffn_down.weight' is 768 x 256, the model needs 256 x 768 "
                   "(its data begins at byte ");
}

/* The parsed file is changed here, because its bytes have no room for another dimension. */
static void matrices_in_three_dimensions_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *words;
    } cases[] = {
        {"blk.0.attn_k.weight",
         "'blk.0.attn_k.weight' is 256 x 64 x 2 x 1, the model needs 256 x 128 x 1"},
        {"token_embd.weight", "'token_embd.weight' is 256 x 131 x 2 x 1"},
    };
    const struct synth_spec spec = synth_preset("tiny");
    const struct model_config cfg = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct synth_model m;
        struct model *model;
        struct bn_error err;
        opened(&spec, &m);
        struct gguf_tensor *t =
            &m.gguf->tensors[gguf_find_tensor(m.gguf, cases[i].name) - m.gguf->tensors];
        t->dims[1] /= 2;
        t->dims[2] = 2;
        assert_false(model_open(m.gguf, &cfg, &model, &err));
        assert_int_equal(err.code, BN_EFORMAT);
        if (!strstr(err.text, cases[i].words))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].words);
        synth_close(&m);
    }
}

static void foreign_types_are_refused_with_advice(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t id;
        const char *words;
    } cases[] = {
        {"blk.0.attn_q.weight", 38, "'blk.0.attn_q.weight' is TL1 (38), not ternary: its tiling"},
        {"blk.1.ffn_up.weight", 39, "is TL2 (39)"},
        {"blk.0.attn_v.weight", 142, "is IQ2_TN (142), not ternary: convert the model to i2_s"},
        {"token_embd.weight", 36,
         "embeddings and output heads must be one of F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K"},
        {"token_embd.weight", 10, "is Q2_K (10)"},
        {"output_norm.weight", 1, "but this program needs it as F32"},
        {"blk.0.attn_v.weight", 4711, "'blk.0.attn_v.weight' has the unknown type 4711"},
        {"output_norm.weight", 4711, "'output_norm.weight' has the unknown type 4711"},
    };
    const struct synth_spec spec = synth_preset("tiny");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct synth_model m;
        opened(&spec, &m);
        set_type(&m, cases[i].name, cases[i].id);
        expect_refused(&m, BN_EUNSUPPORTED, cases[i].words);
    }
}

static void dense_layers_are_refused(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    spec.type = TENSOR_F32;
    opened(&spec, &m);
    set_type(&m, "blk.1.attn_k.weight", 8);
    expect_refused(&m, BN_EUNSUPPORTED, "'blk.1.attn_k.weight' is Q8_0, not ternary");
    opened(&spec, &m);
    le_put_u32(data_of(&m, "blk.1.ffn_gate.weight") + 4 * 1000, f32_bits(0.123f));
    expect_refused(&m, BN_EUNSUPPORTED, "'blk.1.ffn_gate.weight' (F32) is dense");
}

static void numbers_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    spec.type = TENSOR_F16;
    spec.scales = spec.rope_freqs = true;
    opened(&spec, &m);
    le_put_u32(data_of(&m, "blk.0.attn_q.scale"), F32_INFINITY);
    expect_refused(&m, BN_EFORMAT,
                   "'blk.0.attn_q.scale': element 0 of row 0 is not a finite number");
    opened(&spec, &m);
    le_put_u32(data_of(&m, "rope_freqs.weight") + 4, F32_INFINITY);
    expect_refused(&m, BN_EFORMAT,
                   "'rope_freqs.weight': element 1 of row 0 is not a finite number");
    opened(&spec, &m);
    le_put_u32(data_of(&m, "rope_freqs.weight") + 4, 0);
    expect_refused(&m, BN_EFORMAT, "'rope_freqs.weight': factor 1 is 0");
}

/* Refused with element 2 of `name` set to `bits`; F16 and BF16 have two bytes. */
static void not_finite(const struct synth_spec *spec, const char *name, uint32_t bits)
{
    struct synth_model m;
    char words[96];
    opened(spec, &m);
    if (gguf_find_tensor(m.gguf, name)->type == TENSOR_F32)
        le_put_u32(data_of(&m, name) + 8, bits);
    else
        le_put_u16(data_of(&m, name) + 4, (uint16_t)bits);
    (void)snprintf(words, sizeof words, "'%s': element 2 of row 0 is not a finite number", name);
    expect_refused(&m, BN_EFORMAT, words);
}

static void small_tensors_are_finite(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    spec.arch = "bitnet";
    spec.type = TENSOR_F16;
    spec.biases = true;
    not_finite(&spec, "output_norm.weight", F32_NAN);
    not_finite(&spec, "output_norm.weight", F32_INFINITY | 0x80000000);
    not_finite(&spec, "blk.1.attn_norm.weight", F32_INFINITY);
    not_finite(&spec, "blk.0.ffn_sub_norm.weight", F32_NAN);
    not_finite(&spec, "blk.1.ffn_down.bias", F32_NAN);
    spec = synth_preset("qwen3-tiny");
    not_finite(&spec, "blk.0.attn_q_norm.weight", F32_NAN);
    spec = synth_preset("qwen35-tiny");
    not_finite(&spec, "blk.2.ssm_conv1d.weight", F32_NAN);
    not_finite(&spec, "blk.0.ssm_dt.bias", F32_NAN);
    not_finite(&spec, "blk.1.ssm_alpha.weight", F32_NAN);
    not_finite(&spec, "blk.1.ssm_beta.weight", F32_NAN);
    /* Of the small matrices of the gates, those of layer 2 are F16 and those of layer 0 BF16. */
    not_finite(&spec, "blk.2.ssm_alpha.weight", F16_INFINITY);
    not_finite(&spec, "blk.2.ssm_beta.weight", F16_INFINITY | 0x8001);
    not_finite(&spec, "blk.0.ssm_alpha.weight", BF16_INFINITY);
    not_finite(&spec, "blk.0.ssm_beta.weight", BF16_INFINITY | 0x8001);
    struct synth_model m;
    struct bn_error err;
    const struct model_config cfg = {0};
    opened(&spec, &m);
    assert_int_equal(gguf_find_tensor(m.gguf, "blk.2.ssm_alpha.weight")->type, TENSOR_F16);
    assert_int_equal(gguf_find_tensor(m.gguf, "blk.0.ssm_alpha.weight")->type, TENSOR_BF16);
    le_put_u16(data_of(&m, "blk.0.ssm_alpha.weight") + 4, F16_INFINITY); /* 2^121 in BF16 */
    assert_true(synth_reopen(&m, &cfg, &err));
    synth_close(&m);
    not_finite(&spec, "blk.0.ssm_norm.weight", F32_NAN);
    not_finite(&spec, "blk.3.post_attention_norm.weight", F32_NAN);
    spec = synth_preset("maple-tiny");
    not_finite(&spec, "blk.1.ffn_gate_inp.weight", F32_NAN);
}

static void unused_tensors_are_noted(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    struct bn_notes notes = {0};
    const struct model_config cfg = {.notes = &notes};
    struct bn_error err;
    spec.rope_freqs = true;
    opened(&spec, &m);
    rename_tensor(&m, "rope_freqs.weight");
    assert_true(synth_reopen(&m, &cfg, &err));
    assert_null(m.model->rope_freqs.bytes);
    assert_string_equal(notes.items[notes.n - 1].id, "tensors");
    assert_non_null(strstr(notes.items[notes.n - 1].text, "1 of the file's 25 tensors"));
    synth_close(&m);
}

static void tensors_that_the_graph_lacks_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *arch, *extra, *words;
    } cases[] = {
        {"llama", "blk.0.attn_q_norm.weight,blk.0.attn_k_norm.weight,blk.1.attn_q_norm.weight",
         "the graph of 'llama' has no tensor 'blk.0.attn_q_norm.weight' and 2 others"},
        {"llama", "blk.1.attn_sub_norm.weight,blk.1.ffn_sub_norm.weight",
         "no tensor 'blk.1.attn_sub_norm.weight' and 1 other,"},
        {"bitnet-b1.58", "blk.1.post_attention_norm.weight",
         "no tensor 'blk.1.post_attention_norm.weight', so the answers would be wrong"},
        {"bitnet-b1.58", "blk.0.attn_norm.bias", "'blk.0.attn_norm.bias'"},
        {"bitnet-b1.58", "blk.2.attn_norm.weight", "'blk.2.attn_norm.weight'"},
        {"bitnet-b1.58", "blk.00.attn_q.bias", "'blk.00.attn_q.bias'"},
        {"llama", "token_embd_norm.weight", "'token_embd_norm.weight'"},
        {"llama", "output_norm.bias", "'output_norm.bias'"},
        {"llama", "output.scale", "'output.scale'"},
        {"llama", "token_embd.scale", "'token_embd.scale'"},
    };
    struct synth_spec spec = synth_preset("tiny");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct synth_model m;
        struct bn_error err;
        spec.arch = cases[i].arch;
        spec.extra = cases[i].extra;
        assert_false(synth_open(&spec, &m, &err));
        assert_int_equal(err.code, BN_EUNSUPPORTED);
        if (!strstr(err.text, cases[i].words))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].words);
    }
}

static void harmless_tensors_open(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    spec.extra = "blk.0.attn_rot_embd,blk.1.attn_q.input_scale,blk.0.rotary_emb.inv_freq,other";
    opened(&spec, &m);
    const struct bn_note *note = &m.notes.items[m.notes.n - 1];
    assert_string_equal(note->id, "tensors");
    assert_int_equal(note->kind, BN_NOTE_INFO);
    assert_non_null(strstr(note->text, "4 of the file's"));
    assert_non_null(strstr(note->text, "'blk.0.attn_rot_embd' and 3 others"));
    synth_close(&m);
}

/* Open a model with QK norms that are left out by these names. */
static bool opens_without(const char *const *names, size_t n_names, struct bn_error *err)
{
    struct synth_spec spec = synth_preset("tiny");
    struct gguf_buffer bytes = {0};
    const struct gguf_sink sink = gguf_sink_memory(&bytes);
    struct bn_notes notes = {0};
    const struct model_config cfg = {
        .notes = &notes, .ignored_tensors = names, .n_ignored_tensors = n_names};
    struct bn_file *file = NULL;
    struct model *model = NULL;
    spec.extra = "blk.0.attn_q_norm.weight,blk.1.attn_q_norm.weight,blk.1.attn_k_norm.weight";
    assert_true(synth_write(&spec, &sink, err));
    assert_true(bn_file_open_memory(bytes.bytes, bytes.n_bytes, &file, err));
    const bool ok = model_open(bn_file_gguf(file), &cfg, &model, err);
    if (ok) {
        assert_string_equal(notes.items[notes.n - 1].id, "ignored-tensors");
        assert_int_equal(notes.items[notes.n - 1].kind, BN_NOTE_WARNING);
    }
    model_close(model);
    bn_file_close(file);
    mem_free(bytes.bytes);
    return ok;
}

static void ignored_tensors_are_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *names[3];
        const char *refused; /* NULL if the model opens */
    } cases[] = {
        {{"blk.*_norm.weight"}, NULL},
        {{"*"}, NULL},
        {{"blk.*.attn_?_norm.weight"}, "'blk.0.attn_q_norm.weight' and 2 others"},
        {{"blk.*.attn_q_norm.weight"}, "'blk.1.attn_k_norm.weight',"},
        {{"blk.*.attn_q_norm.weight", "blk.1.attn_k_norm.weight*"}, NULL},
        {{"blk.0.attn_q_norm.weight", "blk.1.attn_k_norm.weight"}, "'blk.1.attn_q_norm.weight',"},
        {{"attn_q_norm", "blk.0", ""}, "'blk.0.attn_q_norm.weight' and 2 others"},
        {{"blk.*.attn_norm.weight"}, "'blk.0.attn_q_norm.weight' and 2 others"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bn_error err = {0};
        size_t n = 0;
        while (n < 3 && cases[i].names[n])
            n++;
        assert_int_equal(opens_without(cases[i].names, n, &err), cases[i].refused == NULL);
        if (cases[i].refused && !strstr(err.text, cases[i].refused))
            fail_msg("'%s' does not say '%s'", err.text, cases[i].refused);
    }
}

static void layouts_must_fit_the_shape(void **state)
{
    (void)state;
    struct synth_spec spec = synth_preset("tiny");
    const struct model_config layout_c = {.i2s_layout = BN_I2S_C};
    struct synth_model m;
    struct bn_error err;
    spec.n_embd = 400;
    spec.n_ff = 640; /* rows of 400 and 640: blocks cross row ends */
    opened(&spec, &m);
    synth_close(&m);
    spec.n_embd = 256;
    spec.n_ff = 638; /* layout C needs a multiple of 4 rows, A does not */
    opened(&spec, &m);
    assert_false(synth_reopen(&m, &layout_c, &err));
    assert_int_equal(err.code, BN_EFORMAT);
    assert_non_null(strstr(err.text, "256 x 638 elements do not fit I2_S layout C"));
    synth_close(&m);
}

static void unknown_architecture_is_refused(void **state)
{
    (void)state;
    struct gguf_writer *w = NULL;
    struct gguf_buffer b = {0};
    const struct gguf_sink sink = gguf_sink_memory(&b);
    const struct model_config cfg = {0};
    struct model *model = NULL;
    struct gguf *g = NULL;
    struct bn_error err;
    assert_true(gguf_writer_open(&w, &err));
    gguf_put_str(w, "general.architecture", bn_str_of("gemma7"));
    assert_true(gguf_write_header(w, &sink, &err));
    assert_true(gguf_parse(b.bytes, b.n_bytes, &g, &err));
    assert_false(model_open(g, &cfg, &model, &err));
    assert_int_equal(err.code, BN_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "'gemma7'"));
    gguf_close(g);
    gguf_writer_close(w);
    mem_free(b.bytes);
}

static void the_cancel_flag_stops_loading(void **state)
{
    (void)state;
    const struct synth_spec spec = synth_preset("tiny");
    struct synth_model m;
    const atomic_bool stop = true;
    const struct model_config cfg = {.cancel = &stop};
    struct bn_error err;
    opened(&spec, &m);
    assert_false(synth_reopen(&m, &cfg, &err));
    assert_int_equal(err.code, BN_ECANCELLED);
    synth_close(&m);
}

/* The damaged table would be reported if it was read. */
static void the_cancel_flag_stops_before_a_table_is_read(void **state)
{
    (void)state;
    static const char *const tables[] = {"token_embd.weight", "output.weight"};
    struct synth_spec spec = synth_preset("qwen3-tiny");
    const atomic_bool stop = true;
    const struct model_config cfg = {.cancel = &stop};
    spec.untied = true;
    for (size_t i = 0; i < 2; i++) {
        struct synth_model m;
        struct bn_error err;
        opened(&spec, &m);
        le_put_u16(data_of(&m, tables[i]), F16_NAN); /* the first scale */
        assert_false(synth_reopen(&m, &cfg, &err));
        assert_int_equal(err.code, BN_ECANCELLED);
        synth_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_and_container_opens),
        cmocka_unit_test(scales_and_ternary_tables_are_found),
        cmocka_unit_test(dense_heads_are_no_linear_layers),
        cmocka_unit_test(damaged_ternary_tables_are_refused),
        cmocka_unit_test(parameters_are_counted_once),
        cmocka_unit_test(heads_of_any_table_type_open),
        cmocka_unit_test(scales_biases_and_rope_factors_are_found),
        cmocka_unit_test(a_head_that_copies_the_embedding_is_tied),
        cmocka_unit_test(missing_and_misshapen_tensors_are_named),
        cmocka_unit_test(matrices_in_three_dimensions_are_refused),
        cmocka_unit_test(foreign_types_are_refused_with_advice),
        cmocka_unit_test(dense_layers_are_refused),
        cmocka_unit_test(numbers_that_are_not_finite_are_refused),
        cmocka_unit_test(small_tensors_are_finite),
        cmocka_unit_test(unused_tensors_are_noted),
        cmocka_unit_test(tensors_that_the_graph_lacks_are_refused_by_name),
        cmocka_unit_test(harmless_tensors_open),
        cmocka_unit_test(ignored_tensors_are_left_out),
        cmocka_unit_test(layouts_must_fit_the_shape),
        cmocka_unit_test(unknown_architecture_is_refused),
        cmocka_unit_test(the_cancel_flag_stops_loading),
        cmocka_unit_test(the_cancel_flag_stops_before_a_table_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
