/*
 * Metadata of synthetic models with a byte-level BPE vocabulary: bytes only, or bytes and synthetic
 * merges of two and three letters up to the requested size, with Llama 3's special tokens at the
 * end.
 */
#include "tests/support/synth_plan.h"

#include "engine/base/memory.h"
#include "engine/base/utf8.h"

#include <stdio.h>

#define N_BYTES 256
#define N_LLAMA3_SPECIALS 256
#define TEXT_BYTES 320 /* reserve of the arena; longer than any text of the vocabulary */

static const char chat_template[] =
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "message['role'] | capitalize + ': '+ message['content'] | trim + '<|eot_id|>' %}{% if "
    "loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %}";

/* The part of Qwen3's template that this vocabulary can show. */
static const char qwen_template[] =
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + "
    "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}"
    "{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}";

/* The template of the published 2B4T file: it has a role that was not trained and drops system
 * messages. */
static const char broken_template[] =
    "{% for message in messages %}{% if loop.first %}{{ bos_token }}{% endif %}{% if "
    "message['role'] == 'user' %}{{ 'Human: ' + message['content'] + '\\n\\nBITNETAssistant: ' + "
    "eos_token }}{% elif message['role'] == 'assistant' %}{{ message['content'] + eos_token }}"
    "{% endif %}{% endfor %}";

/* Values of tokenizer.ggml.token_type. */
enum token_type { TOKEN_NORMAL = 1, TOKEN_CONTROL = 3, TOKEN_USER_DEFINED = 4 };

/* Tokens and merges; their texts are in one arena that never moves. */
struct vocab {
    struct bn_str *tokens; /* (n_vocab) */
    int32_t *types;        /* (n_vocab) values of enum token_type */
    float *scores;         /* (n_vocab) zeros */
    struct bn_str *merges; /* (n_merges) */
    size_t n_tokens, n_merges;
    char *arena;
    size_t arena_used, arena_bytes;
};

static bool vocab_alloc(struct vocab *v, size_t n_vocab)
{
    v->arena_bytes = n_vocab * 48 + TEXT_BYTES;
    v->tokens = mem_alloc(n_vocab, sizeof(*v->tokens));
    v->types = mem_alloc(n_vocab, sizeof(*v->types));
    v->scores = mem_alloc(n_vocab, sizeof(*v->scores));
    v->merges = mem_alloc(n_vocab, sizeof(*v->merges));
    v->arena = mem_alloc(v->arena_bytes, 1);
    return v->tokens && v->types && v->scores && v->merges && v->arena;
}

static void vocab_free(struct vocab *v)
{
    mem_free(v->tokens);
    mem_free(v->types);
    mem_free(v->scores);
    mem_free(v->merges);
    mem_free(v->arena);
}

/* Join a, between and b in the arena. Each text has less than 40 bytes, each token at most two. */
static struct bn_str join3(struct vocab *v, struct bn_str a, const char *between, struct bn_str b)
{
    char *at = v->arena + v->arena_used;
    const size_t left = v->arena_bytes - v->arena_used;
    const int n = snprintf(at, left, "%.*s%s%.*s", (int)a.n_bytes, a.ptr, between, (int)b.n_bytes,
                           b.ptr ? b.ptr : "");
    const size_t n_bytes = n < 0 || (size_t)n >= left ? 0 : (size_t)n;
    v->arena_used += n_bytes;
    return (struct bn_str){at, n_bytes};
}

static void add_token(struct vocab *v, struct bn_str text, enum token_type type)
{
    v->types[v->n_tokens] = (int32_t)type;
    v->tokens[v->n_tokens++] = text;
}

static void add_special(struct vocab *v, const char *text)
{
    add_token(v, join3(v, bn_str_of(text), "", (struct bn_str){0}), TOKEN_CONTROL);
}

static void add_reserved(struct vocab *v, unsigned i)
{
    char text[48];
    (void)snprintf(text, sizeof(text), "<|reserved_special_token_%u|>", i);
    add_special(v, text);
}

/* Byte-level BPE writes each byte as a printable character: the same code point, or the next free
 * one from U+0100 on. */
static bool prints_itself(unsigned b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
}

/* Add the bytes in the order of their values, or in the order of Llama 3. */
static void add_bytes(struct vocab *v, bool by_value)
{
    unsigned code_points[N_BYTES], order[N_BYTES], n = 0, n_ordered = 0;
    for (unsigned b = 0; b < N_BYTES; b++)
        code_points[b] = prints_itself(b) ? b : N_BYTES + n++;
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned b = 0; b < N_BYTES; b++) {
            if (by_value ? pass == 0 : prints_itself(b) == (pass == 0))
                order[n_ordered++] = b;
        }
    }
    for (unsigned i = 0; i < N_BYTES; i++) {
        char utf8[4];
        const struct bn_str text = {utf8, utf8_encode(code_points[order[i]], utf8)};
        add_token(v, join3(v, text, "", (struct bn_str){0}), TOKEN_NORMAL);
    }
}

/* Add every pair of letters, then every pair with a third letter, until the vocabulary is full. */
static void add_merges(struct vocab *v, size_t n_until)
{
    struct bn_str letters[64];
    size_t n_letters = 0;
    letters[n_letters++] = bn_str_of("\xc4\xa0"); /* U+0120, the space */
    for (const char *c = "etaoinshrdlucmfwypvbgkjqxzETAOINSHRDLUCMFWYPVBGKJQXZ0123456789"; *c; c++)
        letters[n_letters++] = (struct bn_str){c, 1};
    for (size_t i = 0; i < n_letters * n_letters && v->n_tokens < n_until; i++) {
        const struct bn_str a = letters[i / n_letters], b = letters[i % n_letters];
        v->merges[v->n_merges++] = join3(v, a, " ", b);
        add_token(v, join3(v, a, "", b), TOKEN_NORMAL);
    }
    for (size_t i = 0; v->n_tokens < n_until; i++) {
        const struct bn_str pair = v->tokens[N_BYTES + i / n_letters];
        const struct bn_str c = letters[i % n_letters];
        v->merges[v->n_merges++] = join3(v, pair, " ", c);
        add_token(v, join3(v, pair, "", c), TOKEN_NORMAL);
    }
}

static void add_llama3_specials(struct vocab *v)
{
    add_special(v, "<|begin_of_text|>");
    add_special(v, "<|end_of_text|>");
    for (unsigned i = 0; i < 4; i++)
        add_reserved(v, i);
    add_special(v, "<|start_header_id|>");
    add_special(v, "<|end_header_id|>");
    add_reserved(v, 4);
    add_special(v, "<|eot_id|>");
    for (unsigned i = 5; i < 251; i++)
        add_reserved(v, i);
}

static void add_qwen_specials(struct vocab *v)
{
    static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>",
                                           "</think>"};
    for (size_t i = 0; i < 5; i++) {
        add_special(v, specials[i]);
        if (specials[i][1] != '|') /* <think> and </think> are text that a user may see */
            v->types[v->n_tokens - 1] = TOKEN_USER_DEFINED;
    }
}

static void add_byte_specials(struct vocab *v)
{
    static const char *const specials[] = {"<|begin_of_text|>",   "<|end_of_text|>",
                                           "<|start_header_id|>", "<|end_header_id|>",
                                           "<|eot_id|>",          "<|pad|>"};
    for (size_t i = 0; i < 6; i++)
        add_special(v, specials[i]);
}

static void put_ids(struct gguf_writer *w, size_t bos, size_t eos, size_t padding)
{
    gguf_put_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    gguf_put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)eos);
    gguf_put_u32(w, "tokenizer.ggml.padding_token_id", (uint32_t)padding);
}

static void put_vocab(const struct synth_spec *spec, struct vocab *v, struct gguf_writer *w)
{
    const size_t n_ordinary =
        spec->vocab != SYNTH_VOCAB_LLAMA3 ? N_BYTES : spec->n_vocab - N_LLAMA3_SPECIALS;
    add_bytes(v, spec->vocab != SYNTH_VOCAB_LLAMA3);
    add_merges(v, n_ordinary);
    if (spec->vocab == SYNTH_VOCAB_BYTES)
        add_byte_specials(v);
    else if (spec->vocab == SYNTH_VOCAB_QWEN)
        add_qwen_specials(v);
    else
        add_llama3_specials(v);
    gguf_put_str(w, "tokenizer.ggml.model", bn_str_of("gpt2"));
    gguf_put_strs(w, "tokenizer.ggml.tokens", v->tokens, v->n_tokens);
    gguf_put_array(w, "tokenizer.ggml.scores", GGUF_F32, v->scores, v->n_tokens);
    gguf_put_array(w, "tokenizer.ggml.token_type", GGUF_I32, v->types, v->n_tokens);
    gguf_put_strs(w, "tokenizer.ggml.merges", v->merges, v->n_merges);
    if (spec->vocab == SYNTH_VOCAB_QWEN) { /* without add_bos_token, as in published files */
        put_ids(w, N_BYTES, N_BYTES + 2, N_BYTES);
        return;
    }
    gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true);
    put_ids(w, n_ordinary, n_ordinary + 1,
            spec->vocab == SYNTH_VOCAB_BYTES ? n_ordinary + 5 : n_ordinary + 1);
}

static void put_number(const struct synth_spec *spec, struct gguf_writer *w, const char *key,
                       size_t v)
{
    char text[96];
    (void)snprintf(text, sizeof(text), "%s.%s", spec->arch, key);
    gguf_put_u32(w, text, (uint32_t)v);
}

static void put_real(const struct synth_spec *spec, struct gguf_writer *w, const char *key, float v)
{
    char text[96];
    (void)snprintf(text, sizeof(text), "%s.%s", spec->arch, key);
    gguf_put_f32(w, text, v);
}

static void put_experts(const struct synth_spec *spec, struct gguf_writer *w)
{
    char key[96];
    uint8_t has_window[SYNTH_MAX_EXPERT_LAYERS];
    float clamps[SYNTH_MAX_EXPERT_LAYERS];
    for (size_t i = 0; i < SYNTH_MAX_EXPERT_LAYERS; i++) {
        has_window[i] = i % 4 != 3;
        clamps[i] = spec->clamp;
    }
    put_number(spec, w, "expert_count", spec->n_experts);
    put_number(spec, w, "expert_used_count", spec->n_used_experts);
    put_number(spec, w, "expert_feed_forward_length", spec->n_ff);
    put_number(spec, w, "attention.sliding_window", spec->window);
    (void)snprintf(key, sizeof(key), "%s.attention.sliding_window_pattern", spec->arch);
    gguf_put_array(w, key, GGUF_BOOL, has_window, spec->n_layers);
    (void)snprintf(key, sizeof(key), "%s.swiglu_clamp_exp", spec->arch);
    if (spec->clamp > 0.0f)
        gguf_put_array(w, key, GGUF_F32, clamps, spec->n_layers);
}

static void put_delta_nets(const struct synth_spec *spec, struct gguf_writer *w)
{
    const struct delta_shape *d = &spec->delta;
    put_number(spec, w, "full_attention_interval", d->interval);
    put_number(spec, w, "ssm.conv_kernel", DELTA_TAPS);
    put_number(spec, w, "ssm.state_size", d->dim);
    put_number(spec, w, "ssm.group_count", d->n_key_heads);
    put_number(spec, w, "ssm.time_step_rank", d->n_value_heads);
    put_number(spec, w, "ssm.inner_size", delta_width(d));
    if (spec->n_extra_layers > 0)
        put_number(spec, w, "nextn_predict_layers", spec->n_extra_layers);
}

static void put_shape(const struct synth_spec *spec, struct gguf_writer *w)
{
    const size_t head_dim = spec->head_dim ? spec->head_dim : spec->n_embd / spec->n_heads;
    put_number(spec, w, "vocab_size", spec->n_vocab);
    put_number(spec, w, "context_length", spec->n_ctx);
    put_number(spec, w, "embedding_length", spec->n_embd);
    put_number(spec, w, "block_count",
               spec->n_layers + (spec->extra_layers_count ? spec->n_extra_layers : 0));
    put_number(spec, w, "feed_forward_length", spec->n_ff);
    put_number(spec, w, "attention.head_count", spec->n_heads);
    put_number(spec, w, "attention.head_count_kv", spec->n_kv_heads);
    if (spec->head_dim) {
        put_number(spec, w, "attention.key_length", head_dim);
        put_number(spec, w, "attention.value_length", head_dim);
    }
    put_number(spec, w, "rope.dimension_count", spec->n_rot ? spec->n_rot : head_dim);
    put_real(spec, w, "rope.freq_base", 500000.0f);
    put_real(spec, w, "attention.layer_norm_rms_epsilon", 1e-5f);
    if (spec->n_experts > 0)
        put_experts(spec, w);
    if (spec->delta.dim > 0)
        put_delta_nets(spec, w);
    if (spec->yarn > 0.0f) {
        char key[96];
        (void)snprintf(key, sizeof(key), "%s.rope.scaling.type", spec->arch);
        gguf_put_str(w, key, bn_str_of("yarn"));
        put_real(spec, w, "rope.scaling.factor", spec->yarn);
        put_number(spec, w, "rope.scaling.original_context_length", spec->yarn_ctx);
    }
    if (spec->longrope > 0)
        put_number(spec, w, "rope.scaling.original_context_length", spec->longrope);
}

/* Inputs of the linear layers of a rotated file: names and widths of the tensors. */
struct rotated_list {
    struct bn_str names[512];
    char text[512][32];
    size_t n_names;
    /* All different widths: embedding, attention heads, feed-forward, delta net. */
    int32_t widths[4];
    size_t n_widths;
};

static bool add_rotated(void *ud, const struct synth_tensor *t, struct bn_error *err)
{
    struct rotated_list *l = ud;
    if ((t->role != ROLE_TERNARY && t->role != ROLE_TABLE) ||
        strcmp(t->name, "token_embd.weight") == 0)
        return true;
    if (l->n_names == sizeof(l->names) / sizeof(l->names[0]))
        return bn_fail(err, BN_EARG, "more than %zu rotated tensors", l->n_names);
    char *const text = l->text[l->n_names];
    (void)snprintf(text, sizeof(l->text[0]), "%.31s", t->name);
    l->names[l->n_names++] = bn_str_of(text);
    size_t i = 0;
    while (i < l->n_widths && l->widths[i] != (int32_t)t->n_cols)
        i++;
    if (i == l->n_widths)
        l->widths[l->n_widths++] = (int32_t)t->n_cols;
    return true;
}

static bool put_signs(const struct synth_spec *spec, const struct rotated_list *l,
                      struct gguf_writer *w, struct bn_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n_widths; i++)
        n += (size_t)l->widths[i];
    int32_t *signs = mem_alloc(n, sizeof(*signs));
    if (!signs)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu signs", n);
    n = 0;
    for (size_t i = 0; i < l->n_widths; i++)
        for (size_t k = 0; k < (size_t)l->widths[i]; k++)
            signs[n++] = synth_sign(spec, (size_t)l->widths[i], k);
    gguf_put_array(w, "prism.hadamard.sign_widths", GGUF_I32, l->widths, l->n_widths);
    gguf_put_array(w, "prism.hadamard.sign_values", GGUF_I32, signs, n);
    mem_free(signs);
    return true;
}

static bool put_rotation(const struct synth_spec *spec, struct gguf_writer *w, struct bn_error *err)
{
    const unsigned version = spec->rotated_version ? spec->rotated_version : 1;
    const struct bn_str embd = bn_str_of("token_embd.weight");
    struct rotated_list *l = mem_alloc(1, sizeof(*l));
    bool ok = l ? synth_each_tensor(spec, add_rotated, l, err)
                : bn_fail(err, BN_ENOMEM, "no memory for the list of rotated tensors");
    if (ok) {
        gguf_put_u32(w, "prism.hadamard.version", version);
        gguf_put_u32(w, "prism.hadamard.block_size", (uint32_t)spec->rotated_block);
        gguf_put_str(w, "prism.hadamard.transform",
                     bn_str_of("normalized-sylvester-walsh-hadamard"));
        gguf_put_str(w, "prism.hadamard.axis", bn_str_of("input-last-dimension"));
        gguf_put_str(w, "prism.hadamard.sign_mode",
                     bn_str_of(spec->no_signs ? "identity" : "explicit"));
        ok = spec->no_signs || put_signs(spec, l, w, err);
        gguf_put_strs(w, "prism.hadamard.weight_names", l->names, l->n_names);
        gguf_put_strs(w, "prism.hadamard.inverse_weight_names", &embd, 1);
        if (spec->delta.dim > 0)
            gguf_put_bool(w, "prism.hadamard.gdn_v_grouped", true);
        if (version == 2)
            gguf_put_bool(w, "prism.hadamard.tied_output", true);
    }
    mem_free(l);
    return ok;
}

bool synth_put_meta(const struct synth_spec *spec, struct gguf_writer *w, struct bn_error *err)
{
    char name[80];
    struct vocab v = {0};
    const size_t n_vocab = spec->n_vocab;
    const bool qwen = spec->vocab == SYNTH_VOCAB_QWEN;
    const bool fits = spec->vocab == SYNTH_VOCAB_BYTES ? n_vocab == SYNTH_N_VOCAB_BYTES
                      : qwen                           ? n_vocab == SYNTH_N_VOCAB_QWEN
                                                       : n_vocab >= 512 && n_vocab <= 250000;
    if (!fits)
        return bn_fail(err, BN_EARG, "a vocabulary of %zu tokens is not possible", n_vocab);
    if (!vocab_alloc(&v, n_vocab)) {
        vocab_free(&v);
        return bn_fail(err, BN_ENOMEM, "no memory for %zu tokens", n_vocab);
    }
    (void)snprintf(name, sizeof(name), "synthetic-%s", spec->name);
    gguf_put_str(w, "general.architecture", bn_str_of(spec->arch));
    gguf_put_str(w, "general.name", bn_str_of(name));
    put_shape(spec, w);
    gguf_put_u32(w, "general.quantization_version", 2);
    if (!spec->official)
        gguf_put_str(w, "tokenizer.ggml.pre",
                     bn_str_of(!qwen                 ? "llama-bpe"
                               : spec->delta.dim > 0 ? "qwen35"
                                                     : "qwen2"));
    put_vocab(spec, &v, w);
    gguf_put_str(w, "tokenizer.chat_template",
                 bn_str_of(spec->official ? broken_template
                           : qwen         ? qwen_template
                                          : chat_template));
    vocab_free(&v);
    return spec->rotated_block == 0 || put_rotation(spec, w, err);
}
