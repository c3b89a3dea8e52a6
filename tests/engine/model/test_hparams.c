/*
 * The numbers of a model: required keys, defaults, ranges, and the rule for the activation
 * function. Each test starts with the metadata of a valid model and changes or removes a few keys.
 */
#include "engine/base/memory.h"
#include "engine/model/model_read.h"
#include "tests/support/gguf_write.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A key to write: PAIR is an array of two u32, `u` and `u2`; TOKENS is an array of `u` empty
 * strings; DROPPED writes nothing. */
struct entry {
    const char *key; /* without the prefix "<arch>."; a leading dot means no prefix */
    enum { NUMBER, REAL, TEXT, PAIR, TOKENS, DROPPED } kind;
    uint32_t u, u2;
    float f;
    const char *text;
};

static const struct entry good[] = {
    {.key = "context_length", .u = 2048},
    {.key = "embedding_length", .u = 256},
    {.key = "block_count", .u = 2},
    {.key = "feed_forward_length", .u = 512},
    {.key = "attention.head_count", .u = 8},
    {.key = "vocab_size", .u = 300},
    {.key = "attention.layer_norm_rms_epsilon", REAL, .f = 1e-5f},
};
#define N_GOOD (sizeof(good) / sizeof(good[0]))

struct outcome {
    bool ok;
    struct hparams hp;
    struct bn_error err;
    struct bn_notes notes;
};

static void put_entry(struct gguf_writer *w, const char *arch, const struct entry *e)
{
    char key[128];
    const uint32_t pair[2] = {e->u, e->u2};
    struct bn_str tokens[8] = {{0}};
    if (e->key[0] == '.')
        (void)snprintf(key, sizeof(key), "%s", e->key + 1);
    else
        (void)snprintf(key, sizeof(key), "%s.%s", arch, e->key);
    if (e->kind == NUMBER)
        gguf_put_u32(w, key, e->u);
    else if (e->kind == REAL)
        gguf_put_f32(w, key, e->f);
    else if (e->kind == TEXT)
        gguf_put_str(w, key, bn_str_of(e->text));
    else if (e->kind == PAIR)
        gguf_put_array(w, key, GGUF_U32, pair, 2);
    else if (e->kind == TOKENS)
        gguf_put_strs(w, key, tokens, e->u);
}

static bool is_changed(const char *key, const struct entry *changes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(changes[i].key, key) == 0)
            return true;
    }
    return false;
}

static void read_with(const char *arch, const char *no_repair, const struct entry *changes,
                      size_t n, struct outcome *out)
{
    struct gguf_writer *w = NULL;
    struct gguf_buffer b = {0};
    struct gguf *g = NULL;
    const struct gguf_sink sink = gguf_sink_memory(&b);
    *out = (struct outcome){.ok = false};
    assert_true(gguf_writer_open(&w, &out->err));
    for (size_t i = 0; i < N_GOOD; i++) {
        if (!is_changed(good[i].key, changes, n))
            put_entry(w, arch, &good[i]);
    }
    for (size_t i = 0; i < n; i++)
        put_entry(w, arch, &changes[i]);
    assert_true(gguf_write_header(w, &sink, &out->err));
    assert_true(gguf_parse(b.bytes, b.n_bytes, &g, &out->err));
    const struct model_config cfg = {.no_repair = no_repair, .notes = &out->notes};
    out->ok = hparams_read(g, arch_find(bn_str_of(arch)), &cfg, &out->hp, &out->err);
    gguf_close(g);
    gguf_writer_close(w);
    mem_free(b.bytes);
}

static void refused(const char *arch, const struct entry *changes, size_t n, enum bn_errcode code,
                    const char *words)
{
    struct outcome o;
    read_with(arch, NULL, changes, n, &o);
    assert_false(o.ok);
    if (!strstr(o.err.text, words))
        fail_msg("'%s' does not say '%s'", o.err.text, words);
    assert_int_equal(o.err.code, code);
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    struct outcome o;
    read_with("bitnet-b1.58", NULL, NULL, 0, &o);
    if (!o.ok)
        fail_msg("%s", o.err.text);
    assert_int_equal(o.hp.n_kv_heads, 8);
    assert_int_equal(o.hp.head_dim, 32);
    assert_int_equal(o.hp.n_rot, 32);
    assert_int_equal(o.hp.n_vocab, 300);
    assert_true(o.hp.rope_base == 10000.0 && o.hp.rope_scale == 1.0);
    assert_true(o.hp.rms_eps == 1e-5f);
    assert_int_equal(o.hp.ffn_act, FFN_RELU2);
    assert_int_equal(o.notes.n, 1);
    assert_string_equal(o.notes.items[0].id, "activation");
}

static void values_of_the_file_replace_defaults(void **state)
{
    (void)state;
    const struct entry changes[] = {
        {.key = "attention.head_count_kv", .u = 2},
        {.key = "attention.key_length", .u = 64},
        {.key = "attention.value_length", .u = 64},
        {.key = "rope.dimension_count", .u = 64},
        {.key = "rope.freq_base", REAL, .f = 500000.0f},
        {.key = "rope.scaling.type", TEXT, .text = "linear"},
        {.key = "rope.scaling.factor", REAL, .f = 4.0f},
        {.key = "feed_forward_length", PAIR, .u = 512, .u2 = 512},
        {.key = "vocab_size", DROPPED},
        {.key = ".tokenizer.ggml.tokens", TOKENS, .u = 7},
    };
    struct outcome o;
    read_with("llama", NULL, changes, sizeof(changes) / sizeof(changes[0]), &o);
    if (!o.ok)
        fail_msg("%s", o.err.text);
    assert_int_equal(o.hp.n_kv_heads, 2);
    assert_int_equal(o.hp.head_dim, 64);
    assert_int_equal(o.hp.n_rot, 64);
    assert_int_equal(o.hp.n_ff, 512);
    assert_int_equal(o.hp.n_vocab, 7);
    assert_true(o.hp.rope_base == 500000.0 && o.hp.rope_scale == 0.25);
    assert_int_equal(o.hp.ffn_act, FFN_SILU);
}

static void required_keys_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_GOOD; i++) {
        const struct entry drop = {.key = good[i].key, .kind = DROPPED};
        refused("bitnet-b1.58", &drop, 1, BN_EFORMAT, good[i].key);
    }
}

static void numbers_out_of_range_are_named(void **state)
{
    (void)state;
    static const struct entry cases[] = {
        {.key = "context_length", .u = 0},
        {.key = "context_length", .u = UINT32_MAX},
        {.key = "embedding_length", .u = 0},
        {.key = "embedding_length", .u = UINT32_MAX},
        {.key = "block_count", .u = 0},
        {.key = "block_count", .u = 1000000},
        {.key = "feed_forward_length", .u = 0},
        {.key = "attention.head_count", .u = 0},
        {.key = "attention.head_count", .u = 100000},
        {.key = "attention.head_count_kv", .u = 0},
        {.key = "attention.head_count_kv", .u = 9},
        {.key = "attention.key_length", .u = 0},
        {.key = "attention.key_length", .u = 100000},
        {.key = "rope.dimension_count", .u = 0},
        {.key = "rope.dimension_count", .u = 33},
        {.key = "rope.freq_base", REAL, .f = 0.0f},
        {.key = "rope.freq_base", REAL, .f = -1.0f},
        {.key = "rope.freq_base", REAL, .f = (float)__builtin_inf()},
        {.key = "rope.scaling.factor", REAL, .f = -2.0f},
        {.key = "rope.scaling.factor", REAL, .f = 1e-30f},
        {.key = "vocab_size", .u = 0},
        {.key = "vocab_size", .u = UINT32_MAX},
        {.key = "attention.layer_norm_rms_epsilon", REAL, .f = 0.0f},
        {.key = "attention.layer_norm_rms_epsilon", REAL, .f = (float)__builtin_nan("")},
        {.key = "attention.layer_norm_rms_epsilon", TEXT, .text = "small"},
        {.key = "embedding_length", REAL, .f = 256.0f},
        {.key = "embedding_length", TEXT, .text = "256"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        refused("bitnet-b1.58", &cases[i], 1, BN_EFORMAT, cases[i].key);
}

/* A head has one element, so n_rot, whose default is the size of a head, is less than 2. */
static void an_unusable_default_is_not_called_a_value_of_the_file(void **state)
{
    (void)state;
    const struct entry heads = {.key = "attention.head_count", .u = 256};
    refused("bitnet", &heads, 1, BN_EFORMAT,
            "the file has no bitnet.rope.dimension_count, and its default 1 is not 2 to 1");
}

static void shapes_that_do_not_divide_are_refused(void **state)
{
    (void)state;
    const struct entry kv = {.key = "attention.head_count_kv", .u = 3};
    const struct entry heads = {.key = "attention.head_count", .u = 7};
    const struct entry odd[] = {{.key = "attention.key_length", .u = 33},
                                {.key = "rope.dimension_count", .u = 31}};
    refused("bitnet", &kv, 1, BN_EFORMAT, "8 attention heads cannot share 3");
    refused("bitnet", &heads, 1, BN_EFORMAT, "cannot be split into 7 heads");
    refused("bitnet", odd, 2, BN_EFORMAT, "pairs");
}

static void other_graphs_are_unsupported(void **state)
{
    (void)state;
    static const struct entry cases[] = {
        {.key = "feed_forward_length", PAIR, .u = 512, .u2 = 640},
        {.key = "rope.scaling.type", TEXT, .text = "dynamic"},
        {.key = "expert_count", .u = 8},
        {.key = "attention.sliding_window", .u = 512},
        {.key = "logit_scale", REAL, .f = 0.5f},
        {.key = "attention.scale", REAL, .f = 1.0f},
        {.key = "attention.clamp_kqv", REAL, .f = 1.0f},
        {.key = "attention.value_length", .u = 16},
        {.key = "rope.dimension_count", .u = 16},
        {.key = "hidden_activation", TEXT, .text = "gelu"},
        {.key = "expert_shared_count", .u = 1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const bool is_length = strcmp(cases[i].key, "attention.value_length") == 0;
        const char *words = is_length ? "keys of 32 and values of 16" : cases[i].key;
        refused("llama", &cases[i], 1, BN_EUNSUPPORTED, words);
    }
    struct outcome o; /* only 'bitnet' may rotate fewer elements than a head has */
    read_with("bitnet", NULL, &cases[8], 1, &o);
    assert_true(o.ok);
    assert_int_equal(o.hp.n_rot, 16);
}

static void linear_scaling_divides_positions_by_its_factor(void **state)
{
    (void)state;
    const struct entry zero = {.key = "rope.scaling.factor", REAL, .f = 0.0f}; /* means 1 */
    const struct entry old = {.key = "rope.scale_linear", REAL, .f = 2.0f};    /* an older key */
    const struct entry none[] = {{.key = "rope.scaling.factor", REAL, .f = 8.0f},
                                 {.key = "rope.scaling.type", TEXT, .text = "none"}};
    struct outcome o;
    read_with("llama", NULL, &zero, 1, &o);
    assert_true(o.ok && o.hp.rope_scale == 1.0);
    read_with("llama", NULL, &old, 1, &o);
    assert_true(o.ok && o.hp.rope_scale == 0.5);
    read_with("llama", NULL, none, 2, &o);
    assert_true(o.ok && o.hp.rope_scale == 1.0);
}

static const struct entry yarn[] = {
    {.key = "rope.scaling.type", TEXT, .text = "yarn"},
    {.key = "rope.scaling.factor", REAL, .f = 4.0f},
    {.key = "rope.scaling.original_context_length", .u = 16384},
    {.key = "rope.freq_base", REAL, .f = 1e6f},
};

static void yarn_is_read_with_its_defaults(void **state)
{
    (void)state;
    struct outcome o;
    read_with("qwen3", NULL, yarn, 4, &o);
    if (!o.ok)
        fail_msg("%s", o.err.text);
    assert_true(o.hp.yarn.factor == 4.0 && o.hp.yarn.original_ctx == 16384.0);
    assert_true(o.hp.yarn.beta_fast == 32.0 && o.hp.yarn.beta_slow == 1.0);
    assert_true(o.hp.yarn.ext_factor == 1.0 && o.hp.rope_scale == 1.0);
    assert_true(o.hp.rope_magnitude > 1.138629435 && o.hp.rope_magnitude < 1.138629437);
    read_with("qwen3", NULL, NULL, 0, &o);
    assert_true(o.ok && o.hp.yarn.factor == 0.0 && o.hp.rope_magnitude == 1.0);
}

static void factors_of_minicpm_are_read_or_have_its_defaults(void **state)
{
    (void)state;
    static const struct entry factors[] = {
        {.key = "embedding_scale", REAL, .f = 3.0f},
        {.key = "residual_scale", REAL, .f = 0.25f},
        {.key = "logit_scale", REAL, .f = 16.0f},
        {.key = "rope.scaling.original_context_length", .u = 512},
    };
    struct outcome o;
    read_with("minicpm", NULL, factors, 4, &o);
    assert_true(o.ok && o.hp.embd_scale == 3.0 && o.hp.residual_scale == 0.25);
    assert_true(o.hp.logit_scale == 16.0 && o.hp.rope_short_ctx == 512);
    read_with("minicpm", NULL, NULL, 0, &o);
    assert_true(o.ok && o.hp.embd_scale == 12.0 && o.hp.logit_scale == 1.0);
    assert_true(o.hp.residual_scale == 1.4 / sqrt(2.0) && o.hp.rope_short_ctx == 2048);
    read_with("llama", NULL, NULL, 0, &o);
    assert_true(o.ok && o.hp.embd_scale == 1.0 && o.hp.residual_scale == 1.0);
    read_with("llama", NULL, factors, 1, &o); /* the graph of llama has no factors */
    assert_false(o.ok);
    assert_non_null(strstr(o.err.text, "llama.embedding_scale is 3"));
}

static void longrope_needs_factors_of_rope(void **state)
{
    (void)state;
    static const struct entry longrope = {.key = "rope.scaling.type", TEXT, .text = "longrope"};
    struct outcome o;
    read_with("llama", NULL, NULL, 0, &o);
    assert_true(o.ok && !o.hp.needs_rope_factors);
    read_with("llama", NULL, &longrope, 1, &o);
    assert_true(o.ok && o.hp.needs_rope_factors && o.hp.rope_scale == 1.0);
}

static void yarn_values_of_the_file_replace_defaults(void **state)
{
    (void)state;
    struct entry all[8] = {
        {.key = "rope.scaling.yarn_beta_fast", REAL, .f = 16.0f},
        {.key = "rope.scaling.yarn_beta_slow", REAL, .f = 2.0f},
        {.key = "rope.scaling.yarn_ext_factor", REAL, .f = 0.5f},
        {.key = "rope.scaling.attn_factor", REAL, .f = 0.5f},
    };
    struct outcome o;
    memcpy(all + 4, yarn, sizeof yarn);
    read_with("llama", NULL, all, 8, &o);
    if (!o.ok)
        fail_msg("%s", o.err.text);
    assert_true(o.hp.yarn.beta_fast == 16.0 && o.hp.yarn.beta_slow == 2.0);
    assert_true(o.hp.yarn.ext_factor == 0.5);
    assert_true(o.hp.rope_magnitude > 0.569314717 && o.hp.rope_magnitude < 0.569314719);
    all[2].f = 0.0f; /* without the blend only attn_factor remains */
    read_with("llama", NULL, all, 8, &o);
    assert_true(o.ok && o.hp.rope_magnitude == 0.5);
}

static void yarn_needs_its_factor_context_and_base(void **state)
{
    (void)state;
    static const struct entry bad[] = {
        {.key = "rope.scaling.factor", DROPPED},
        {.key = "rope.scaling.factor", REAL, .f = 0.0f},
        {.key = "rope.scaling.factor", REAL, .f = (float)__builtin_inf()},
        {.key = "rope.scaling.original_context_length", DROPPED},
        {.key = "rope.scaling.original_context_length", .u = 0},
        {.key = "rope.freq_base", REAL, .f = 1.0f},
        {.key = "rope.scaling.yarn_beta_fast", REAL, .f = 0.0f},
        {.key = "rope.scaling.yarn_beta_slow", REAL, .f = -1.0f},
        {.key = "rope.scaling.yarn_ext_factor", REAL, .f = 2.0f},
        {.key = "rope.scaling.attn_factor", REAL, .f = (float)__builtin_nan("")},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct entry changes[5] = {bad[i]};
        size_t n = 1;
        for (size_t j = 0; j < 4; j++) {
            if (strcmp(yarn[j].key, bad[i].key) != 0)
                changes[n++] = yarn[j];
        }
        refused("qwen3", changes, n, BN_EFORMAT, bad[i].key);
    }
}

struct act_case {
    const char *arch, *no_repair;
    uint32_t n_layers, n_embd, n_ff, n_vocab;
    const char *tokenizer, *key;
    enum ffn_act act;
    enum bn_note_kind note;
};

static void activation_follows_the_rule(void **state)
{
    (void)state;
    static const struct act_case cases[] = {
        {"bitnet-25", NULL, 2, 256, 512, 300, "gpt2", NULL, FFN_RELU2, BN_NOTE_INFO},
        {"bitnet-b1.58", NULL, 30, 2560, 6912, 128256, "gpt2", NULL, FFN_RELU2, BN_NOTE_INFO},
        {"bitnet-b1.58", NULL, 26, 3200, 8640, 32002, "llama", NULL, FFN_SILU, BN_NOTE_REPAIR},
        {"bitnet-b1.58", NULL, 24, 1536, 4096, 32000, "llama", NULL, FFN_SILU, BN_NOTE_REPAIR},
        {"bitnet-b1.58", NULL, 24, 1536, 4096, 32000, "gpt2", NULL, FFN_RELU2, BN_NOTE_INFO},
        {"bitnet-b1.58", NULL, 24, 1536, 4096, 32003, "llama", NULL, FFN_RELU2, BN_NOTE_INFO},
        {"bitnet-b1.58", NULL, 24, 1536, 4096, 31999, "llama", NULL, FFN_RELU2, BN_NOTE_INFO},
        {"bitnet-b1.58", NULL, 25, 1536, 4096, 32000, "llama", NULL, FFN_RELU2, BN_NOTE_INFO},
        {"bitnet-b1.58", "activation", 26, 3200, 8640, 32002, "llama", NULL, FFN_RELU2,
         BN_NOTE_INFO},
        {"bitnet", NULL, 26, 3200, 8640, 32002, "llama", NULL, FFN_SILU, BN_NOTE_INFO},
        {"bitnet", NULL, 30, 2560, 6912, 128256, "gpt2", NULL, FFN_RELU2, BN_NOTE_REPAIR},
        {"bitnet", "all", 30, 2560, 6912, 128256, "gpt2", NULL, FFN_SILU, BN_NOTE_INFO},
        {"llama", NULL, 30, 2560, 6912, 128256, "gpt2", NULL, FFN_SILU, BN_NOTE_INFO},
        {"llama", NULL, 2, 256, 512, 300, "gpt2", "relu2", FFN_RELU2, BN_NOTE_INFO},
        {"qwen3", NULL, 2, 256, 512, 300, "gpt2", NULL, FFN_SILU, BN_NOTE_INFO},
        {"bitnet-25", NULL, 2, 256, 512, 300, "gpt2", "silu", FFN_SILU, BN_NOTE_INFO},
        {"bitnet", NULL, 2, 256, 512, 300, "gpt2", "relu_sqr", FFN_RELU2, BN_NOTE_INFO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct act_case *c = &cases[i];
        const struct entry changes[] = {
            {.key = "block_count", .u = c->n_layers},
            {.key = "embedding_length", .u = c->n_embd},
            {.key = "feed_forward_length", .u = c->n_ff},
            {.key = "vocab_size", .u = c->n_vocab},
            {.key = ".tokenizer.ggml.model", TEXT, .text = c->tokenizer},
            {.key = "hidden_activation", c->key ? TEXT : DROPPED, .text = c->key},
            {.key = "rope.freq_base", REAL, .f = 1e6f}, /* qwen3 without it has another note */
        };
        struct outcome o;
        read_with(c->arch, c->no_repair, changes, sizeof(changes) / sizeof(changes[0]), &o);
        assert_true(o.ok);
        assert_int_equal(o.hp.ffn_act, c->act);
        assert_int_equal(o.notes.n, 1);
        assert_int_equal(o.notes.items[0].kind, c->note);
    }
}

static void a_missing_rope_base_of_qwen_is_a_warning(void **state)
{
    (void)state;
    const struct entry base = {.key = "rope.freq_base", REAL, .f = 1e6f};
    struct outcome o;
    read_with("qwen3", NULL, NULL, 0, &o);
    assert_true(o.ok && o.hp.rope_base == 10000.0);
    assert_string_equal(o.notes.items[0].id, "rope-base");
    assert_int_equal(o.notes.items[0].kind, BN_NOTE_WARNING);
    assert_non_null(strstr(o.notes.items[0].text, "the file has no qwen3.rope.freq_base"));
    read_with("qwen3", NULL, &base, 1, &o);
    assert_true(o.ok && o.hp.rope_base == 1e6);
    assert_int_equal(o.notes.n, 1); /* the activation */
}

static void a_different_tokenizer_size_is_a_warning(void **state)
{
    (void)state;
    const struct entry tokens = {.key = ".tokenizer.ggml.tokens", .kind = TOKENS, .u = 7};
    struct outcome o;
    read_with("llama", NULL, &tokens, 1, &o);
    assert_true(o.ok);
    assert_int_equal(o.hp.n_vocab, 300);
    assert_string_equal(o.notes.items[0].id, "vocabulary");
    assert_int_equal(o.notes.items[0].kind, BN_NOTE_WARNING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(values_of_the_file_replace_defaults),
        cmocka_unit_test(required_keys_are_named),
        cmocka_unit_test(numbers_out_of_range_are_named),
        cmocka_unit_test(an_unusable_default_is_not_called_a_value_of_the_file),
        cmocka_unit_test(shapes_that_do_not_divide_are_refused),
        cmocka_unit_test(other_graphs_are_unsupported),
        cmocka_unit_test(linear_scaling_divides_positions_by_its_factor),
        cmocka_unit_test(yarn_is_read_with_its_defaults),
        cmocka_unit_test(factors_of_minicpm_are_read_or_have_its_defaults),
        cmocka_unit_test(longrope_needs_factors_of_rope),
        cmocka_unit_test(yarn_values_of_the_file_replace_defaults),
        cmocka_unit_test(yarn_needs_its_factor_context_and_base),
        cmocka_unit_test(activation_follows_the_rule),
        cmocka_unit_test(a_missing_rope_base_of_qwen_is_a_warning),
        cmocka_unit_test(a_different_tokenizer_size_is_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
