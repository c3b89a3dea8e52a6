/*
 * Presets, the list of tensors of a model, and the writing of the file.
 */
#include "tests/support/synth.h"

#include "engine/base/fp16.h"
#include "engine/base/memory.h"
#include "tests/support/synth_plan.h"

#include <math.h>
#include <stdio.h>

static const struct preset {
    const char *name;
    size_t n_layers, n_embd, n_heads, n_kv_heads, n_ff, n_ctx;
    enum synth_vocab vocab;
} presets[] = {
    {"tiny", 2, 256, 4, 2, 768, 256, SYNTH_VOCAB_BYTES},
    {"odd", 3, 384, 4, 4, 640, 512, SYNTH_VOCAB_BYTES},
    {"small", 4, 512, 8, 2, 1536, 1024, SYNTH_VOCAB_BYTES},
    {"1b", 18, 2048, 16, 4, 5632, 4096, SYNTH_VOCAB_LLAMA3},
    {"2b4t", 30, 2560, 20, 5, 6912, 4096, SYNTH_VOCAB_LLAMA3},
    {"8b", 32, 4096, 32, 8, 14336, 8192, SYNTH_VOCAB_LLAMA3},
};

/* qwen3 with ternary tables, in PQ2_0. Bonsai's shapes: docs/models.md. */
static const struct qwen3_preset {
    const char *name;
    size_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_ctx, n_vocab;
    bool untied;
    float yarn;
    size_t yarn_ctx;
} qwen3_presets[] = {
    {"qwen3-tiny", 2, 128, 4, 2, 64, 256, 512, 513, false, 0.0f, 0},
    {"bonsai-1.7b", 28, 2048, 16, 8, 128, 6144, 32768, 151669, false, 0.0f, 0},
    {"bonsai-4b", 36, 2560, 32, 8, 128, 9728, 32768, 151669, false, 4.0f, 8192},
    {"bonsai-8b", 36, 4096, 32, 8, 128, 12288, 65536, 151669, true, 4.0f, 16384},
};

static struct synth_spec qwen3_spec(const struct qwen3_preset *p)
{
    return (struct synth_spec){.name = p->name,
                               .arch = "qwen3",
                               .type = TENSOR_PQ2_0,
                               .head = TENSOR_PQ2_0,
                               .scale_cols = 128,
                               .ternary_head = true,
                               .n_layers = p->n_layers,
                               .n_embd = p->n_embd,
                               .n_heads = p->n_heads,
                               .n_kv_heads = p->n_kv_heads,
                               .head_dim = p->head_dim,
                               .n_ff = p->n_ff,
                               .n_ctx = p->n_ctx,
                               .n_vocab = p->n_vocab,
                               .vocab = SYNTH_VOCAB_LLAMA3,
                               .untied = p->untied,
                               .yarn = p->yarn,
                               .yarn_ctx = p->yarn_ctx,
                               .seed = 1};
}

/* Every fourth layer has neither window nor RoPE. */
static struct synth_spec maple_spec(void)
{
    return (struct synth_spec){.name = "maple-tiny",
                               .arch = "maple",
                               .type = TENSOR_TQ2_0,
                               .head = TENSOR_F16,
                               .scale_cols = SYNTH_ROW_SCALES,
                               .n_layers = 4,
                               .n_embd = 256,
                               .n_heads = 4,
                               .n_kv_heads = 2,
                               .head_dim = 64,
                               .n_ff = 256,
                               .n_ctx = 512,
                               .n_vocab = SYNTH_N_VOCAB_QWEN,
                               .vocab = SYNTH_VOCAB_QWEN,
                               .untied = true,
                               .n_experts = 8,
                               .n_used_experts = 3,
                               .n_rot = 32,
                               .window = 40,
                               .clamp = 1.5f,
                               .seed = 1};
}

static struct synth_spec qwen35_spec(void)
{
    return (struct synth_spec){
        .name = "qwen35-tiny",
        .arch = "qwen35",
        .type = TENSOR_PQ2_0,
        .head = TENSOR_PQ2_0,
        .scale_cols = 128,
        .ternary_head = true,
        .n_layers = 4,
        .n_embd = 128,
        .n_heads = 4,
        .n_kv_heads = 2,
        .head_dim = 64,
        .n_rot = 16,
        .n_ff = 256,
        .n_ctx = 512,
        .n_vocab = SYNTH_N_VOCAB_QWEN,
        .vocab = SYNTH_VOCAB_QWEN,
        .untied = true,
        .delta = {.n_key_heads = 2, .n_value_heads = 4, .dim = 64, .interval = 4},
        .seed = 1};
}

/* Ternary Bonsai 27B: docs/models.md. */
static struct synth_spec bonsai_27b_spec(void)
{
    struct synth_spec spec = qwen35_spec();
    spec.name = "bonsai-27b";
    spec.n_layers = 64;
    spec.n_embd = 5120;
    spec.n_heads = 24;
    spec.n_kv_heads = 4;
    spec.head_dim = 256;
    spec.n_rot = 64;
    spec.n_ff = 17408;
    spec.n_ctx = 262144;
    spec.n_vocab = 248320;
    spec.vocab = SYNTH_VOCAB_LLAMA3;
    spec.delta =
        (struct delta_shape){.n_key_heads = 16, .n_value_heads = 48, .dim = 128, .interval = 4};
    return spec;
}

struct synth_spec synth_preset(const char *name)
{
    if (strcmp(name, "qwen35-tiny") == 0)
        return qwen35_spec();
    if (strcmp(name, "bonsai-27b") == 0)
        return bonsai_27b_spec();
    if (strcmp(name, "maple-tiny") == 0)
        return maple_spec();
    for (size_t i = 0; i < sizeof(qwen3_presets) / sizeof(qwen3_presets[0]); i++) {
        if (strcmp(qwen3_presets[i].name, name) == 0)
            return qwen3_spec(&qwen3_presets[i]);
    }
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        const struct preset *p = &presets[i];
        if (strcmp(p->name, name) == 0)
            return (struct synth_spec){.name = p->name,
                                       .arch = "bitnet-b1.58",
                                       .type = TENSOR_I2_S,
                                       .head = TENSOR_F16,
                                       .n_layers = p->n_layers,
                                       .n_embd = p->n_embd,
                                       .n_heads = p->n_heads,
                                       .n_kv_heads = p->n_kv_heads,
                                       .n_ff = p->n_ff,
                                       .n_ctx = p->n_ctx,
                                       .n_vocab = p->vocab == SYNTH_VOCAB_BYTES
                                                      ? SYNTH_N_VOCAB_BYTES
                                                      : SYNTH_N_VOCAB_LLAMA3,
                                       .vocab = p->vocab,
                                       .seed = 1};
    }
    return (struct synth_spec){0};
}

bool synth_awkward(size_t i, struct synth_spec *out)
{
    static const struct {
        size_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff;
        const char *arch;
    } shapes[] = {
        {1, 32, 1, 1, 2, 32, "llama"},
        {2, 100, 5, 5, 20, 36, "bitnet"},
        {1, 64, 64, 1, 2, 96, "bitnet-b1.58"},
        {1, 96, 24, 24, 4, 1000, "llama"},
        {2, 320, 2, 1, 160, 288, "bitnet-b1.58"},
        {1, 128, 3, 1, 100, 264, "llama"},
        {1, 520, 7, 7, 66, 1030, "bitnet-25"},
    };
    if (i >= sizeof shapes / sizeof shapes[0])
        return false;
    *out = synth_preset("tiny");
    out->arch = shapes[i].arch;
    out->n_layers = shapes[i].n_layers;
    out->n_embd = shapes[i].n_embd;
    out->n_heads = shapes[i].n_heads;
    out->n_kv_heads = shapes[i].n_kv_heads;
    out->head_dim = shapes[i].head_dim;
    out->n_ff = shapes[i].n_ff;
    out->type = TENSOR_F32;
    return true;
}

struct visitor {
    const struct synth_spec *spec;
    synth_visit_fn visit;
    void *ud;
    struct bn_error *err;
};

/* About 1 / (L2 norm of a row of codes -1, 0, +1), cut to 8 bits of mantissa, so that F32, F16 and
 * BF16 hold it exactly. */
static float row_scale(size_t n_cols)
{
    return f32_from_bits(f32_bits((float)(1.0 / sqrt((double)n_cols * 0.58))) & 0xffff0000);
}

/* Visit a tensor without a ternary matrix's block structure: F32, but a table has the type of the
 * specification. */
static bool visit_tensor(const struct visitor *v, const char *name, enum synth_role role,
                         size_t n_cols, size_t n_rows)
{
    struct synth_tensor t = {.role = role, .type = TENSOR_F32, .n_cols = n_cols, .n_rows = n_rows};
    if (role == ROLE_TABLE) {
        t.type = v->spec->head;
        t.scale = row_scale(n_cols);
        if (v->spec->ternary_head || tensor_geometries[t.type].is_ternary)
            t.role = ROLE_TERNARY;
    }
    (void)snprintf(t.name, sizeof(t.name), "%s", name);
    return v->visit(v->ud, &t, v->err);
}

/* Factors of the RoPE pairs, 1 .. most. */
static bool visit_freqs(const struct visitor *v, const char *name, size_t n, float most)
{
    struct synth_tensor t = {
        .role = ROLE_FREQS, .type = TENSOR_F32, .n_cols = n, .n_rows = 1, .scale = most};
    (void)snprintf(t.name, sizeof(t.name), "%s", name);
    return v->visit(v->ud, &t, v->err);
}

static bool visit_norm(const struct visitor *v, size_t layer, const char *stem, size_t n)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "blk.%zu.%s.weight", layer, stem);
    return visit_tensor(v, name, ROLE_NORM, n, 1);
}

/* Visit the ternary matrix of a linear layer and, if the specification asks for them, its tensors
 * X.scale and X.bias. */
static bool visit_linear(const struct visitor *v, size_t layer, const char *stem, size_t n_cols,
                         size_t n_rows)
{
    struct synth_tensor t = {.role = ROLE_TERNARY,
                             .type = v->spec->type,
                             .n_cols = n_cols,
                             .n_rows = n_rows,
                             .scale = v->spec->scales ? 1.0f : row_scale(n_cols)};
    (void)snprintf(t.name, sizeof(t.name), "blk.%zu.%s.weight", layer, stem);
    if (!v->visit(v->ud, &t, v->err))
        return false;
    t = (struct synth_tensor){.role = ROLE_SCALE, .n_cols = 1, .n_rows = 1};
    t.scale = row_scale(n_cols);
    (void)snprintf(t.name, sizeof(t.name), "blk.%zu.%s.scale", layer, stem);
    if (v->spec->scales && !v->visit(v->ud, &t, v->err))
        return false;
    char name[64];
    (void)snprintf(name, sizeof(name), "blk.%zu.%s.bias", layer, stem);
    return !v->spec->biases || visit_tensor(v, name, ROLE_BIAS, n_rows, 1);
}

/* Visit the matrices of all experts of a layer, which are one tensor. */
static bool visit_experts(const struct visitor *v, size_t layer, const char *stem, size_t n_cols,
                          size_t n_rows)
{
    struct synth_tensor t = {.role = ROLE_TERNARY,
                             .type = v->spec->type,
                             .n_cols = n_cols,
                             .n_rows = n_rows * v->spec->n_experts,
                             .n_experts = v->spec->n_experts,
                             .scale = row_scale(n_cols)};
    (void)snprintf(t.name, sizeof(t.name), "blk.%zu.%s.weight", layer, stem);
    return v->visit(v->ud, &t, v->err);
}

static bool visit_ffn(const struct visitor *v, size_t i)
{
    const struct synth_spec *s = v->spec;
    char name[64];
    (void)snprintf(name, sizeof(name), "blk.%zu.ffn_gate_inp.weight", i);
    if (s->n_experts > 0)
        return visit_tensor(v, name, ROLE_ROUTER, s->n_embd, s->n_experts) &&
               visit_experts(v, i, "ffn_gate_exps", s->n_embd, s->n_ff) &&
               visit_experts(v, i, "ffn_up_exps", s->n_embd, s->n_ff) &&
               visit_experts(v, i, "ffn_down_exps", s->n_ff, s->n_embd);
    return visit_linear(v, i, "ffn_gate", s->n_embd, s->n_ff) &&
           visit_linear(v, i, "ffn_up", s->n_embd, s->n_ff) &&
           visit_linear(v, i, "ffn_down", s->n_ff, s->n_embd);
}

/* Visit a tensor of a layer whose type and shape the caller chooses. */
static bool visit_layer_tensor(const struct visitor *v, size_t layer, const char *name,
                               enum synth_role role, struct synth_tensor t)
{
    t.role = role;
    (void)snprintf(t.name, sizeof(t.name), "blk.%zu.%s", layer, name);
    return v->visit(v->ud, &t, v->err);
}

static bool visit_delta_net(const struct visitor *v, size_t i)
{
    static const enum tensor_type types[] = {TENSOR_BF16, TENSOR_F32, TENSOR_F16};
    const struct synth_spec *s = v->spec;
    const struct delta_shape *d = &s->delta;
    const size_t channels = delta_channels(d), width = delta_width(d);
    const struct synth_tensor gates = {
        .type = types[i % 3], .n_cols = s->n_embd, .n_rows = d->n_value_heads};
    const struct synth_tensor taps = {.type = TENSOR_F32, .n_cols = DELTA_TAPS, .n_rows = channels};
    const struct synth_tensor heads = {.type = TENSOR_F32, .n_cols = d->n_value_heads, .n_rows = 1};
    return visit_linear(v, i, "attn_qkv", s->n_embd, channels) &&
           visit_linear(v, i, "attn_gate", s->n_embd, width) &&
           visit_layer_tensor(v, i, "ssm_conv1d.weight", ROLE_TAPS, taps) &&
           visit_layer_tensor(v, i, "ssm_dt.bias", ROLE_BIAS, heads) &&
           visit_layer_tensor(v, i, "ssm_a", ROLE_DECAY, heads) &&
           visit_layer_tensor(v, i, "ssm_alpha.weight", ROLE_ROUTER, gates) &&
           visit_layer_tensor(v, i, "ssm_beta.weight", ROLE_ROUTER, gates) &&
           visit_norm(v, i, "ssm_norm", d->dim) && visit_linear(v, i, "ssm_out", width, s->n_embd);
}

static bool visit_attention(const struct visitor *v, size_t i, const struct arch *arch)
{
    const bool sub = !arch || arch->sub_norms, qk = arch && arch->qk_norms;
    const struct synth_spec *s = v->spec;
    const size_t head_dim = s->head_dim ? s->head_dim : s->n_embd / s->n_heads;
    const size_t q_dim = s->n_heads * head_dim, kv_dim = s->n_kv_heads * head_dim;
    return (!sub || visit_norm(v, i, "attn_sub_norm", q_dim)) &&
           /* In qwen35 each head has the rows of a query and those of an output gate. */
           visit_linear(v, i, "attn_q", s->n_embd, s->delta.dim > 0 ? 2 * q_dim : q_dim) &&
           visit_linear(v, i, "attn_k", s->n_embd, kv_dim) &&
           visit_linear(v, i, "attn_v", s->n_embd, kv_dim) &&
           (!qk || visit_norm(v, i, "attn_q_norm", head_dim)) &&
           (!qk || visit_norm(v, i, "attn_k_norm", head_dim)) &&
           visit_linear(v, i, "attn_output", q_dim, s->n_embd);
}

static bool visit_layer(const struct visitor *v, size_t i, const struct arch *arch)
{
    const bool sub = !arch || arch->sub_norms;
    const struct synth_spec *s = v->spec;
    const bool is_delta_net = s->delta.dim > 0 && (i + 1) % s->delta.interval != 0;
    return visit_norm(v, i, "attn_norm", s->n_embd) &&
           (is_delta_net ? visit_delta_net(v, i) : visit_attention(v, i, arch)) &&
           visit_norm(v, i, s->delta.dim > 0 ? "post_attention_norm" : "ffn_norm", s->n_embd) &&
           (!sub || visit_norm(v, i, "ffn_sub_norm", s->n_ff)) && visit_ffn(v, i);
}

/* Visit the layers that predict further tokens. The engine never reads them, so one tensor for each
 * is enough. */
static bool visit_extra_layers(const struct visitor *v)
{
    for (size_t i = 0; i < v->spec->n_extra_layers; i++)
        if (!visit_norm(v, v->spec->n_layers + i, "nextn.enorm", v->spec->n_embd))
            return false;
    return true;
}

/* Visit the vectors that spec.extra names. */
static bool visit_extra_tensors(const struct visitor *v)
{
    for (const char *at = v->spec->extra; at && *at;) {
        const size_t n = strcspn(at, ",");
        char name[64];
        (void)snprintf(name, sizeof(name), "%.*s", (int)n, at);
        if (!visit_tensor(v, name, ROLE_NORM, v->spec->n_embd, 1))
            return false;
        at += n + (at[n] == ',');
    }
    return true;
}

bool synth_each_tensor(const struct synth_spec *spec, synth_visit_fn visit, void *ud,
                       struct bn_error *err)
{
    const struct visitor v = {spec, visit, ud, err};
    const struct arch *arch = arch_find(bn_str_of(spec->arch));
    const bool tied = !spec->untied && (!arch || arch->sub_norms || arch->qk_norms);
    const size_t head_dim = spec->head_dim ? spec->head_dim : spec->n_embd / spec->n_heads;
    if (spec->rope_freqs && !visit_freqs(&v, "rope_freqs.weight", head_dim / 2, 8.0f))
        return false;
    if (spec->longrope > 0 && (!visit_freqs(&v, "rope_factors_short.weight", head_dim / 2, 8.0f) ||
                               !visit_freqs(&v, "rope_factors_long.weight", head_dim / 2, 29.0f)))
        return false;
    if (!visit_tensor(&v, "token_embd.weight", ROLE_TABLE, spec->n_embd, spec->n_vocab))
        return false;
    for (size_t i = 0; i < spec->n_layers; i++) {
        if (!visit_layer(&v, i, arch))
            return false;
    }
    return visit_extra_layers(&v) &&
           visit_tensor(&v, "output_norm.weight", ROLE_NORM, spec->n_embd, 1) &&
           (tied || visit_tensor(&v, "output.weight", ROLE_TABLE, spec->n_embd, spec->n_vocab)) &&
           visit_extra_tensors(&v);
}

struct writing {
    const struct synth_spec *spec;
    struct gguf_writer *w;
    const struct gguf_sink *sink;
};

/* A synth_visit_fn: add the tensor to the header of the file. */
static bool declare_tensor(void *ud, const struct synth_tensor *t, struct bn_error *err)
{
    const struct writing *x = ud;
    const size_t n_experts = t->n_experts > 0 ? t->n_experts : 1;
    const uint64_t dims[3] = {t->n_cols, t->n_rows / n_experts, n_experts};
    const uint32_t n_dims = t->n_experts > 0 ? 3 : t->n_rows > 1 ? 2 : 1;
    const struct tensor_geometry *g = &tensor_geometries[t->type];
    size_t n_bytes;
    if (!tensor_bytes(t->type, t->n_cols, t->n_rows, &n_bytes))
        return bn_fail(err, BN_EARG, "'%s': %zu x %zu is not a valid shape for %s", t->name,
                       t->n_rows, t->n_cols, g->name);
    gguf_put_tensor(x->w, t->name, g->file_id, n_dims, dims, n_bytes);
    return true;
}

/* A synth_visit_fn: write the data of the tensor. */
static bool write_tensor(void *ud, const struct synth_tensor *t, struct bn_error *err)
{
    const struct writing *x = ud;
    return synth_write_tensor(x->spec, t, x->w, x->sink, err) && gguf_write_end(x->w, x->sink, err);
}

bool synth_write(const struct synth_spec *spec, const struct gguf_sink *sink, struct bn_error *err)
{
    struct writing x = {.spec = spec, .sink = sink};
    if (spec->n_heads == 0 || spec->n_embd < spec->n_heads || spec->n_vocab < SYNTH_N_VOCAB_QWEN)
        return bn_fail(err, BN_EARG,
                       "an embedding of %zu, %zu heads and %zu tokens do not make a model",
                       spec->n_embd, spec->n_heads, spec->n_vocab);
    if (spec->n_experts > 0 && spec->n_layers > SYNTH_MAX_EXPERT_LAYERS)
        return bn_fail(err, BN_EARG, "%zu layers with experts are too many", spec->n_layers);
    if (!gguf_writer_open(&x.w, err))
        return false;
    const bool ok =
        synth_put_meta(spec, x.w, err) && synth_each_tensor(spec, declare_tensor, &x, err) &&
        gguf_write_header(x.w, sink, err) && synth_each_tensor(spec, write_tensor, &x, err);
    gguf_writer_close(x.w);
    return ok;
}

bool synth_open(const struct synth_spec *spec, struct synth_model *out, struct bn_error *err)
{
    *out = (struct synth_model){0};
    const struct gguf_sink sink = gguf_sink_memory(&out->bytes);
    const struct model_config cfg = {.i2s_layout = spec->layout, .notes = &out->notes};
    if (synth_write(spec, &sink, err) &&
        bn_file_open_memory(out->bytes.bytes, out->bytes.n_bytes, &out->file, err)) {
        out->gguf = bn_file_gguf(out->file);
        if (model_open(out->gguf, &cfg, &out->model, err))
            return true;
    }
    synth_close(out);
    return false;
}

bool synth_reopen(struct synth_model *m, const struct model_config *cfg, struct bn_error *err)
{
    model_close(m->model);
    bn_file_close(m->file);
    m->model = NULL;
    m->file = NULL;
    if (!bn_file_open_memory(m->bytes.bytes, m->bytes.n_bytes, &m->file, err))
        return false;
    m->gguf = bn_file_gguf(m->file);
    return model_open(m->gguf, cfg, &m->model, err);
}

void synth_close(struct synth_model *m)
{
    model_close(m->model);
    bn_file_close(m->file);
    mem_free(m->bytes.bytes);
    *m = (struct synth_model){0};
}
