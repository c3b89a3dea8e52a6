/*
 * Reads the hyperparameters from the metadata and checks their ranges, so that later code can rely
 * on them. docs/formats.md, "Graphs", has the most important keys and their defaults.
 *
 * Most files do not name the activation function. A rule decides it, and a note reports the
 * decision, because a model with the wrong function still writes text, but of lower quality.
 */
#include "engine/model/model_read.h"

#include "engine/gguf/gguf_le.h"

#include <math.h>
#include <stdio.h>

struct keys {
    const struct gguf *g;
    const struct arch *arch;
    char text[96]; /* last key built by full_key */
};

struct range {
    uint64_t lo, hi; /* both included */
};

static const char *full_key(struct keys *k, const char *key)
{
    (void)snprintf(k->text, sizeof(k->text), "%s.%s", k->arch->name, key); /* always fits */
    return k->text;
}

/* Read a number that is the same for all layers: a single value, or an array of equal values.
 * k->text is its key. */
static bool uniform_value(const struct keys *k, const struct gguf_kv *kv, uint64_t *out,
                          struct bn_error *err)
{
    const enum gguf_kind kind = kv->kind == GGUF_ARRAY ? kv->item_kind : kv->kind;
    uint64_t v = 0;
    if (kind == GGUF_BOOL || kv->n_items == 0 || !gguf_item_u64(kv, 0, &v))
        return bn_fail(err, BN_EFORMAT, "%s is not a whole number", k->text);
    for (uint64_t i = 1; i < kv->n_items; i++) {
        uint64_t other = 0;
        if (!gguf_item_u64(kv, i, &other))
            return bn_fail(err, BN_EFORMAT, "%s is not a whole number for layer %llu", k->text,
                           (unsigned long long)i);
        if (other != v)
            return bn_fail(err, BN_EUNSUPPORTED,
                           "%s is %llu for layer 0 and %llu for layer %llu, but all must be equal",
                           k->text, (unsigned long long)v, (unsigned long long)other,
                           (unsigned long long)i);
    }
    *out = v;
    return true;
}

/* Read a whole number. If the key is absent, *out keeps its value as the default; a default of 0
 * means that the key is required. */
static bool read_count(struct keys *k, const char *key, struct range range, size_t *out,
                       struct bn_error *err)
{
    const struct gguf_kv *kv = gguf_find_kv(k->g, full_key(k, key));
    uint64_t v = *out;
    if (!kv && v == 0)
        return bn_fail(err, BN_EFORMAT, "the file has no %s", k->text);
    if (kv && !uniform_value(k, kv, &v, err))
        return false;
    if (v < range.lo || v > range.hi)
        return bn_fail(err, BN_EFORMAT,
                       kv ? "%s is %llu, not %llu to %llu"
                          : "the file has no %s, and its default %llu is not %llu to %llu",
                       k->text, (unsigned long long)v, (unsigned long long)range.lo,
                       (unsigned long long)range.hi);
    *out = (size_t)v;
    return true;
}

/* Read a real number in [lo, hi]; an array is an error. If the key is absent, *out keeps its value
 * as the default; a default of NaN means that the key is required. */
static bool read_real(struct keys *k, const char *key, double lo, double hi, double *out,
                      struct bn_error *err)
{
    const bool has = gguf_find_kv(k->g, full_key(k, key)) != NULL;
    double v = *out;
    if (!has && isnan(v))
        return bn_fail(err, BN_EFORMAT, "the file has no %s", k->text);
    if (has && !gguf_get_f64(k->g, k->text, &v))
        return bn_fail(err, BN_EFORMAT, "%s is not a number", k->text);
    if (!(v >= lo && v <= hi))
        return bn_fail(err, BN_EFORMAT, "%s is %g, not %g to %g", k->text, v, lo, hi);
    *out = v;
    return true;
}

/* n_ff is the width of an expert here. feed_forward_length, the width of layers without experts, is
 * not read. */
static bool read_experts(struct keys *k, struct hparams *hp, struct bn_error *err)
{
    if (!read_count(k, "expert_feed_forward_length", (struct range){1, MODEL_MAX_WIDTH}, &hp->n_ff,
                    err) ||
        !read_count(k, "expert_count", (struct range){1, MODEL_MAX_EXPERTS}, &hp->n_experts, err) ||
        !read_count(k, "expert_used_count", (struct range){1, MODEL_MAX_USED_EXPERTS},
                    &hp->n_used_experts, err))
        return false;
    return hp->n_used_experts <= hp->n_experts ||
           bn_fail(err, BN_EFORMAT, "%s is %zu, but there are only %zu experts", k->text,
                   hp->n_used_experts, hp->n_experts);
}

static bool read_sizes(struct keys *k, struct hparams *hp, struct bn_error *err)
{
    const struct range width = {1, MODEL_MAX_WIDTH};
    if (k->arch->experts && !read_experts(k, hp, err))
        return false;
    return read_count(k, "context_length", (struct range){1, MODEL_MAX_CTX}, &hp->n_ctx_train,
                      err) &&
           read_count(k, "embedding_length", width, &hp->n_embd, err) &&
           read_count(k, "block_count", (struct range){1, MODEL_MAX_LAYERS}, &hp->n_layers, err) &&
           (k->arch->experts || read_count(k, "feed_forward_length", width, &hp->n_ff, err)) &&
           read_count(k, "attention.head_count", (struct range){1, MODEL_MAX_HEADS}, &hp->n_heads,
                      err);
}

static bool read_heads(struct keys *k, struct hparams *hp, struct bn_error *err)
{
    const struct range dim = {1, MODEL_MAX_HEAD_DIM};
    const bool has_dim = gguf_find_kv(k->g, full_key(k, "attention.key_length")) != NULL;
    hp->n_kv_heads = hp->n_heads;
    if (!read_count(k, "attention.head_count_kv", (struct range){1, hp->n_heads}, &hp->n_kv_heads,
                    err))
        return false;
    if (hp->n_heads % hp->n_kv_heads != 0)
        return bn_fail(err, BN_EFORMAT, "%zu attention heads cannot share %zu key and value heads",
                       hp->n_heads, hp->n_kv_heads);
    if (!has_dim && hp->n_embd % hp->n_heads != 0)
        return bn_fail(err, BN_EFORMAT, "an embedding of %zu cannot be split into %zu heads",
                       hp->n_embd, hp->n_heads);
    hp->head_dim = hp->n_embd / hp->n_heads;
    if (!read_count(k, "attention.key_length", dim, &hp->head_dim, err))
        return false;
    size_t value_dim = hp->head_dim;
    if (!read_count(k, "attention.value_length", dim, &value_dim, err))
        return false;
    if (value_dim != hp->head_dim)
        return bn_fail(err, BN_EUNSUPPORTED, "keys of %zu and values of %zu differ in length",
                       hp->head_dim, value_dim);
    if (hp->head_dim * hp->n_heads > MODEL_MAX_WIDTH)
        return bn_fail(err, BN_EFORMAT, "%zu heads of %zu are more than %zu columns", hp->n_heads,
                       hp->head_dim, MODEL_MAX_WIDTH);
    return true;
}

/* The factor and the original context have no default, because wrong values would only show as
 * worse text. hp->rope_magnitude is attn_factor before the call. */
static bool read_yarn(struct keys *k, struct hparams *hp, struct bn_error *err)
{
    struct rope_yarn y = {
        .factor = NAN, .original_ctx = NAN, .beta_fast = 32.0, .beta_slow = 1.0, .ext_factor = 1.0};
    if (!read_real(k, "rope.scaling.factor", 1.0, 1e6, &y.factor, err) ||
        !read_real(k, "rope.scaling.original_context_length", 1.0, (double)MODEL_MAX_CTX,
                   &y.original_ctx, err) ||
        !read_real(k, "rope.scaling.yarn_beta_fast", 1e-6, 1e6, &y.beta_fast, err) ||
        !read_real(k, "rope.scaling.yarn_beta_slow", 1e-6, 1e6, &y.beta_slow, err) ||
        !read_real(k, "rope.scaling.yarn_ext_factor", 0.0, 1.0, &y.ext_factor, err))
        return false;
    /* rope.c divides by the logarithm of the base. */
    if (!(hp->rope_base > 1.0))
        return bn_fail(err, BN_EFORMAT, "%s is %g, but YaRN needs a base above 1",
                       full_key(k, "rope.freq_base"), hp->rope_base);
    hp->yarn = y;
    /* The attention scale of the YaRN paper. docs/formats.md: left out if ext_factor is 0. */
    if (y.ext_factor > 0.0)
        hp->rope_magnitude *= 1.0 + 0.1 * log(y.factor);
    return true;
}

static bool read_rope_scaling(struct keys *k, struct hparams *hp, struct bn_error *err)
{
    struct bn_str type = bn_str_of("linear");
    double factor = 1.0;
    hp->rope_scale = hp->rope_magnitude = 1.0;
    if (!read_real(k, "rope.scaling.attn_factor", 1e-6, 1e6, &hp->rope_magnitude, err))
        return false;
    if (gguf_find_kv(k->g, full_key(k, "rope.scaling.type")) && !gguf_get_str(k->g, k->text, &type))
        return bn_fail(err, BN_EFORMAT, "%s is not a string", k->text);
    if (bn_str_is(type, "yarn"))
        return read_yarn(k, hp, err);
    if (bn_str_is(type, "longrope")) {
        hp->needs_rope_factors = true;
        return true;
    }
    if (!bn_str_is(type, "linear") && !bn_str_is(type, "none"))
        return bn_fail(
            err, BN_EUNSUPPORTED,
            "%s is '%.*s': only none, linear, yarn and longrope scaling of positions are supported",
            k->text, STR_ARG(type));
    /* scale_linear is the older key; the other one takes precedence. */
    if (!read_real(k, "rope.scale_linear", 0.0, 1e6, &factor, err) ||
        !read_real(k, "rope.scaling.factor", 0.0, 1e6, &factor, err))
        return false;
    if (factor != 0.0 && factor < 1e-6) /* the angles would overflow */
        return bn_fail(err, BN_EFORMAT, "%s is %g, not 0 or 1e-06 to 1e+06", k->text, factor);
    const bool scales = bn_str_is(type, "linear") && factor != 0.0; /* 0 means 1 */
    hp->rope_scale = scales ? 1.0 / factor : 1.0;
    return true;
}

/* Read the base of RoPE. A model with a wrong base still writes text, but of lower quality. */
static bool read_rope_base(struct keys *k, const struct model_config *cfg, struct hparams *hp,
                           struct bn_error *err)
{
    hp->rope_base = 10000.0;
    if (k->arch->large_rope_base && !gguf_find_kv(k->g, full_key(k, "rope.freq_base")))
        bn_notes_add(cfg->notes, BN_NOTE_WARNING, "rope-base",
                     "the file has no %s; using %g, but models of this architecture need 1e+06 or "
                     "more, so the answers may be wrong",
                     k->text, hp->rope_base);
    return read_real(k, "rope.freq_base", 1.0, 1e12, &hp->rope_base, err);
}

static bool read_rope(struct keys *k, const struct model_config *cfg, struct hparams *hp,
                      struct bn_error *err)
{
    hp->n_rot = hp->head_dim;
    if (!read_count(k, "rope.dimension_count", (struct range){2, hp->head_dim}, &hp->n_rot, err))
        return false;
    if (hp->n_rot % 2 != 0)
        return bn_fail(err, BN_EFORMAT, "%s is %zu: elements are rotated in pairs", k->text,
                       hp->n_rot);
    if (hp->n_rot != hp->head_dim && !k->arch->partial_rope)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "%s is %zu, but heads have %zu elements, which '%s' rotates completely",
                       k->text, hp->n_rot, hp->head_dim, k->arch->name);
    hp->rope_short_ctx = hp->n_ctx_train; /* for longrope; YaRN requires its key (read_yarn) */
    return read_rope_base(k, cfg, hp, err) &&
           read_count(k, "rope.scaling.original_context_length", (struct range){1, MODEL_MAX_CTX},
                      &hp->rope_short_ctx, err) &&
           read_rope_scaling(k, hp, err);
}

static bool read_window(struct keys *k, const struct model_config *cfg, struct hparams *hp,
                        struct bn_error *err)
{
    hp->window_rule = cfg->window_rule;
    return !k->arch->windows ||
           read_count(k, "attention.sliding_window", (struct range){1, MODEL_MAX_CTX},
                      &hp->window_in_file, err);
}

static bool read_vocab(struct keys *k, const struct model_config *cfg, struct hparams *hp,
                       struct bn_error *err)
{
    const struct gguf_kv *tokens = gguf_find_kv(k->g, "tokenizer.ggml.tokens");
    const uint64_t n_tokens = tokens && tokens->kind == GGUF_ARRAY ? tokens->n_items : 0;
    hp->n_vocab = (size_t)n_tokens;
    if (!read_count(k, "vocab_size", (struct range){1, MODEL_MAX_VOCAB}, &hp->n_vocab, err))
        return false;
    if (n_tokens != 0 && n_tokens != hp->n_vocab)
        bn_notes_add(cfg->notes, BN_NOTE_WARNING, "vocabulary",
                     "the model has %zu tokens, its tokenizer %llu", hp->n_vocab,
                     (unsigned long long)n_tokens);
    return true;
}

/* The factors of a scaled architecture. Files without the keys have the values of MiniCPM: 12,
 * 1.4 / sqrt(n_layers), and n_embd / 256, where 256 is the width of the base model. */
static bool read_factors(struct keys *k, struct hparams *hp, struct bn_error *err)
{
    hp->embd_scale = hp->residual_scale = hp->logit_scale = 1.0;
    if (!k->arch->scaled)
        return true;
    hp->embd_scale = 12.0;
    hp->residual_scale = 1.4 / sqrt((double)hp->n_layers);
    hp->logit_scale = (double)hp->n_embd / 256.0;
    return read_real(k, "embedding_scale", 1e-6, 1e6, &hp->embd_scale, err) &&
           read_real(k, "residual_scale", 1e-6, 1e6, &hp->residual_scale, err) &&
           read_real(k, "logit_scale", 1e-6, 1e6, &hp->logit_scale, err);
}

static bool has_prefix(const struct gguf *g, const char *prefix)
{
    for (size_t i = 0; i < g->n_tensors; i++) {
        if (bn_str_starts(g->tensors[i].name, bn_str_of(prefix)))
            return true;
    }
    return false;
}

/* Layers that predict further tokens (multi-token prediction) follow the others. Some converters
 * count them in block_count; then the first of them has tensors blk.N.nextn.*. */
static bool read_extra_layers(struct keys *k, struct hparams *hp, struct bn_error *err)
{
    char prefix[48];
    double n = 0.0;
    if (!k->arch->delta_nets)
        return true;
    /* read_real, because read_count has no default of 0. */
    if (!read_real(k, "nextn_predict_layers", 0.0, (double)MODEL_MAX_LAYERS, &n, err))
        return false;
    if (n != (double)(size_t)n)
        return bn_fail(err, BN_EFORMAT, "%s is not a whole number", k->text);
    hp->n_extra_layers = (size_t)n;
    if (hp->n_extra_layers == 0 || hp->n_extra_layers >= hp->n_layers)
        return true;
    (void)snprintf(prefix, sizeof(prefix), "blk.%zu.nextn.", hp->n_layers - hp->n_extra_layers);
    if (has_prefix(k->g, prefix))
        hp->n_layers -= hp->n_extra_layers;
    return true;
}

static bool read_delta(struct keys *k, struct hparams *hp, struct bn_error *err)
{
    /* The only key with a default is full_attention_interval. 0 makes read_count require a key. */
    struct delta_shape d = {.interval = 4};
    size_t n_taps = 0, inner = 0;
    const struct range heads = {1, MODEL_MAX_HEADS};
    hp->n_attn_layers = hp->n_layers;
    if (!k->arch->delta_nets)
        return true;
    if (!read_count(k, "full_attention_interval", (struct range){1, hp->n_layers}, &d.interval,
                    err) ||
        !read_count(k, "ssm.conv_kernel", (struct range){1, MODEL_MAX_WIDTH}, &n_taps, err) ||
        !read_count(k, "ssm.state_size", (struct range){1, MODEL_MAX_WIDTH}, &d.dim, err) ||
        !read_count(k, "ssm.group_count", heads, &d.n_key_heads, err) ||
        !read_count(k, "ssm.time_step_rank", heads, &d.n_value_heads, err) ||
        !read_count(k, "ssm.inner_size", (struct range){1, MODEL_MAX_WIDTH}, &inner, err))
        return false;
    if (n_taps != DELTA_TAPS)
        return bn_fail(err, BN_EUNSUPPORTED, "%s is %zu, but only %d is supported",
                       full_key(k, "ssm.conv_kernel"), n_taps, DELTA_TAPS);
    if (d.dim > DELTA_MAX_DIM || d.dim % DELTA_DIM_UNIT != 0)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "%s is %zu, but only multiples of %d up to %d are supported",
                       full_key(k, "ssm.state_size"), d.dim, DELTA_DIM_UNIT, DELTA_MAX_DIM);
    if (d.n_value_heads % d.n_key_heads != 0)
        return bn_fail(err, BN_EFORMAT,
                       "%zu value heads of the delta nets cannot share %zu key heads",
                       d.n_value_heads, d.n_key_heads);
    if (inner != delta_width(&d))
        return bn_fail(err, BN_EFORMAT, "%s is %zu, but %zu value heads of %zu are %zu",
                       full_key(k, "ssm.inner_size"), inner, d.n_value_heads, d.dim,
                       delta_width(&d));
    if (delta_channels(&d) > MODEL_MAX_WIDTH)
        return bn_fail(err, BN_EFORMAT, "the delta nets have %zu channels, more than %zu",
                       delta_channels(&d), MODEL_MAX_WIDTH);
    hp->delta = d;
    hp->n_attn_layers = hp->n_layers / d.interval;
    return true;
}

/* Refuse keys that change the graph in ways that this program does not compute. The value 0, or one
 * that is not a number, counts as an absent key. 1 changes nothing either (a factor of 1, one
 * expert, one group), except for keys with refuses_1. */
static bool refuse_other_graphs(struct keys *k, const struct hparams *hp, struct bn_error *err)
{
    static const struct {
        const char *key;
        bool if_scaled, if_experts; /* permitted if arch.scaled or arch.experts */
        bool refuses_1;             /* 1 changes the graph, too */
    } foreign[] = {
        {.key = "expert_count", .if_experts = true},
        {.key = "expert_shared_count", .refuses_1 = true},
        {.key = "expert_group_count"},
        {.key = "expert_gating_func"}, /* 1: softmax, which is computed here too */
        {.key = "expert_weights_scale"},
        {.key = "attention.clamp_kqv", .refuses_1 = true}, /* a limit of values */
        {.key = "attention.scale", .refuses_1 = true},     /* in place of 1 / sqrt(head size) */
        {.key = "logit_scale", .if_scaled = true},
        {.key = "embedding_scale", .if_scaled = true},
        {.key = "residual_scale", .if_scaled = true},
    };
    const size_t n_foreign = sizeof(foreign) / sizeof(foreign[0]);
    double v;
    for (size_t i = 0; i < n_foreign; i++) {
        if ((foreign[i].if_scaled && k->arch->scaled) ||
            (foreign[i].if_experts && k->arch->experts))
            continue;
        if (gguf_get_f64(k->g, full_key(k, foreign[i].key), &v) && v != 0.0 &&
            (v != 1.0 || foreign[i].refuses_1))
            return bn_fail(err, BN_EUNSUPPORTED,
                           "%s is %g: this program does not compute that graph", k->text, v);
    }
    /* A window that is at least as long as the context of the training hides nothing in it. */
    if (!k->arch->windows && gguf_get_f64(k->g, full_key(k, "attention.sliding_window"), &v) &&
        v != 0.0 && v < (double)hp->n_ctx_train)
        return bn_fail(err, BN_EUNSUPPORTED, "%s is %g: sliding-window attention is not supported",
                       k->text, v);
    return true;
}

static bool has_shape(const struct gguf *g, const struct hparams *hp, enum model_shape shape)
{
    struct bn_str tokenizer;
    switch (shape) {
    case SHAPE_2B4T:
        return hp->n_layers == 30 && hp->n_embd == 2560 && hp->n_ff == 6912 &&
               hp->n_vocab == 128256;
    case SHAPE_1BITLLM: /* large and xl have 24 layers, 3B has 26; all use SentencePiece with 32,000
                           tokens, and files may have up to two more */
        return (hp->n_layers == 24 || hp->n_layers == 26) && hp->n_vocab >= 32000 &&
               hp->n_vocab <= 32002 && gguf_get_str(g, "tokenizer.ggml.model", &tokenizer) &&
               bn_str_is(tokenizer, "llama");
    case SHAPE_NONE:
        break;
    }
    return false;
}

static const char *ffn_act_name(enum ffn_act act)
{
    return act == FFN_RELU2 ? "relu squared" : "SiLU";
}

/* Read the key hidden_activation, whose full name is k->text. */
static bool read_ffn_act(struct keys *k, const struct model_config *cfg, enum ffn_act *act,
                         struct bn_error *err)
{
    struct bn_str v;
    if (!gguf_get_str(k->g, k->text, &v))
        return bn_fail(err, BN_EFORMAT, "%s is not a string", k->text);
    if (bn_str_is(v, "relu2") || bn_str_is(v, "relu_sqr"))
        *act = FFN_RELU2;
    else if (bn_str_is(v, "silu"))
        *act = FFN_SILU;
    else
        return bn_fail(err, BN_EUNSUPPORTED, "%s is '%.*s', not relu2 or silu", k->text,
                       STR_ARG(v));
    bn_notes_add(cfg->notes, BN_NOTE_INFO, "activation", "activation %s: from the key %s",
                 ffn_act_name(*act), k->text);
    return true;
}

static bool decide_ffn_act(struct keys *k, const struct model_config *cfg, struct hparams *hp,
                           struct bn_error *err)
{
    if (gguf_find_kv(k->g, full_key(k, "hidden_activation")))
        return read_ffn_act(k, cfg, &hp->ffn_act, err);
    const struct arch *arch = k->arch;
    hp->ffn_act = arch->ffn_act;
    if (has_shape(k->g, hp, arch->mislabels) && bn_repair_allowed(cfg->no_repair, "activation")) {
        static const char *const models[] = {[SHAPE_NONE] = "",
                                             [SHAPE_2B4T] = "BitNet b1.58 2B4T",
                                             [SHAPE_1BITLLM] = "a 1bitLLM model"};
        hp->ffn_act = arch->ffn_act == FFN_RELU2 ? FFN_SILU : FFN_RELU2;
        bn_notes_add(cfg->notes, BN_NOTE_REPAIR, "activation",
                     "activation %s: the shape is that of %s, which '%s' mislabels",
                     ffn_act_name(hp->ffn_act), models[arch->mislabels], arch->name);
    } else {
        bn_notes_add(cfg->notes, BN_NOTE_INFO, "activation", "activation %s: the rule for '%s'",
                     ffn_act_name(hp->ffn_act), arch->name);
    }
    return true;
}

bool hparams_read(const struct gguf *g, const struct arch *arch, const struct model_config *cfg,
                  struct hparams *out, struct bn_error *err)
{
    struct keys k = {.g = g, .arch = arch};
    struct hparams hp = {0};
    double eps = NAN;
    if (!read_sizes(&k, &hp, err) || !read_heads(&k, &hp, err) || !read_rope(&k, cfg, &hp, err) ||
        !read_vocab(&k, cfg, &hp, err) || !read_window(&k, cfg, &hp, err) ||
        !read_real(&k, "attention.layer_norm_rms_epsilon", 1e-30, 1.0, &eps, err) ||
        !read_factors(&k, &hp, err) || !read_extra_layers(&k, &hp, err) ||
        !read_delta(&k, &hp, err) || !refuse_other_graphs(&k, &hp, err) ||
        !decide_ffn_act(&k, cfg, &hp, err))
        return false;
    hp.rms_eps = (float)eps;
    *out = hp;
    return true;
}
