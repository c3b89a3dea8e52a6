/*
 * Finds each tensor of the graph and reads the scales of ternary tensors.
 *
 * tensor_check.c checks the type, the shape and the values of each tensor that is found here.
 * unknown_tensors.c checks the tensors that are not in the graph.
 */
#include "engine/model/model_read.h"

#include "engine/base/fp16.h"
#include "engine/base/memory.h"
#include "engine/gguf/gguf_le.h"
#include "engine/model/tensor_check.h"

#include <stdio.h>

/* Whether the key prism.hadamard.weight_names lists a tensor. file_rotation_init writes the first
 * two values. */
enum rotation_state { NOT_LISTED = 0, LISTED = 1, ROTATION_SET = 2 };

struct finder {
    struct model *m;
    const struct model_config *cfg;
    uint8_t *is_used;                         /* (n_tensors) 1 for a tensor that is in the graph */
    uint8_t *rotation_state;                  /* (n_tensors) enum rotation_state */
    uint64_t n_linear_params[TENSOR_N_TYPES]; /* per type, to find the most common one */
    size_t n_merged; /* ternary tensors whose blocks were merged in pairs */
    char name[64];   /* of the tensor that is looked up or was found last */
};

enum presence { REQUIRED, OPTIONAL };

/* Look up f->name and check its type and shape. If an OPTIONAL tensor is absent, out->bytes is NULL
 * and the result is true. Tensors of USE_F32 and USE_FLOAT are small, so their elements are checked
 * too; tables are too large to be read here. */
static bool find_tensor(struct finder *f, enum presence presence, enum tensor_use use,
                        struct tensor_shape shape, struct tensor_ref *out, struct bn_error *err)
{
    const struct gguf *g = f->m->gguf;
    const struct gguf_tensor *t = gguf_find_tensor(g, f->name);
    *out = (struct tensor_ref){0};
    if (!t)
        return presence == OPTIONAL ||
               bn_fail(err, BN_EFORMAT, "the file has no tensor '%s'", f->name);
    if (!tensor_check_type(g, t, use, err) || !tensor_check_shape(t, &shape, err))
        return false;
    if (use == USE_F32 || use == USE_FLOAT) {
        if (!tensor_check_finite(t, err))
            return false;
        f->m->n_finite += t->n_cols * t->n_rows;
    }
    *out = (struct tensor_ref){.name = t->name,
                               .type = t->type,
                               .bytes = t->bytes,
                               .n_bytes = t->n_bytes,
                               .file_offset = t->offset,
                               .n_cols = t->n_cols,
                               .n_rows = t->n_rows};
    f->is_used[t - g->tensors] = 1;
    f->m->n_params += (uint64_t)t->n_cols * t->n_rows;
    return true;
}

/* Called before a step that reads whole tensors. */
static bool check_cancel(const struct finder *f, struct bn_error *err)
{
    const atomic_bool *cancel = f->cfg->cancel;
    return !cancel || !atomic_load_explicit(cancel, memory_order_relaxed) ||
           bn_fail(err, BN_ECANCELLED, "loading was cancelled");
}

static void set_name(struct finder *f, size_t layer, const char *stem, const char *suffix)
{
    (void)snprintf(f->name, sizeof(f->name), "blk.%zu.%s.%s", layer, stem, suffix); /* fits */
}

static bool find_norm(struct finder *f, size_t layer, const char *stem, size_t n,
                      struct tensor_ref *out, struct bn_error *err)
{
    set_name(f, layer, stem, "weight");
    return find_tensor(f, REQUIRED, USE_F32, (struct tensor_shape){n, 1, 1}, out, err);
}

/* Read the tensor X.scale of a layer, whose name is f->name; 1 if the file does not have it. */
static bool read_extra_scale(struct finder *f, float *out, struct bn_error *err)
{
    struct tensor_ref t;
    *out = 1.0f;
    if (!find_tensor(f, OPTIONAL, USE_F32, (struct tensor_shape){1, 1, 1}, &t, err))
        return false;
    if (!t.bytes)
        return true;
    *out = f32_from_bits(le_u32(t.bytes));
    f->m->n_params--; /* a scale is not a parameter, but find_tensor has counted it */
    return true;
}

/* Set source and name of a linear layer from its tensor t, whose name is f->name. */
static void set_source(const struct finder *f, const struct tensor_ref *t, struct linear *out)
{
    memcpy(out->name, f->name, sizeof(out->name));
    out->source = (struct ternary_source){.name = out->name,
                                          .type = t->type,
                                          .layout = f->cfg->i2s_layout,
                                          .bytes = t->bytes,
                                          .n_bytes = t->n_bytes,
                                          .file_offset = t->file_offset,
                                          .n_cols = t->n_cols,
                                          .n_rows = t->n_rows};
}

static bool is_finer(const struct ternary_scales *a, const struct ternary_scales *b)
{
    return a->scaling > b->scaling || (a->scaling == SCALE_BLOCK && b->scaling == SCALE_BLOCK &&
                                       a->block_cols < b->block_cols);
}

/* Find the class of the scales of out->source, and update model.finest. */
static bool find_scales(struct finder *f, struct linear *out, struct bn_error *err)
{
    struct ternary_scales *finest = &f->m->finest;
    if (!ternary_scan(&out->source, &out->scales, err))
        return false;
    if (f->cfg->file_mapped) /* the scan of some types reads every page of a tensor */
        mem_file_drop(out->source.bytes, out->source.n_bytes);
    f->n_merged += tensor_geometries[out->source.type].is_ternary &&
                   out->scales.block_cols > tensor_geometries[out->source.type].block_cols;
    if (is_finer(&out->scales, finest))
        *finest = out->scales;
    return true;
}

/* Set the rotation of the input of tensor f->name, if the file has one. The tensor must exist. */
static bool set_rotation(struct finder *f, size_t n_cols, struct rotation *out,
                         struct bn_error *err)
{
    const struct gguf *g = f->m->gguf;
    uint8_t *const state = &f->rotation_state[gguf_find_tensor(g, f->name) - g->tensors];
    *out = (struct rotation){0};
    if (*state == NOT_LISTED)
        return true;
    *state = ROTATION_SET;
    return file_rotation_of(&f->m->rotation, f->name, n_cols, out, err);
}

static bool find_matrices(struct finder *f, size_t layer, const char *stem,
                          struct tensor_shape shape, struct linear *out, struct bn_error *err)
{
    struct tensor_ref w;
    set_name(f, layer, stem, "weight");
    if (!find_tensor(f, REQUIRED, USE_LINEAR, shape, &w, err))
        return false;
    set_source(f, &w, out);
    if (!set_rotation(f, w.n_cols, &out->rotation, err) || !find_scales(f, out, err))
        return false;
    f->n_linear_params[w.type] += (uint64_t)w.n_cols * w.n_rows;
    set_name(f, layer, stem, "scale");
    if (!read_extra_scale(f, &out->extra_scale, err))
        return false;
    set_name(f, layer, stem, "bias");
    return find_tensor(f, OPTIONAL, USE_F32, (struct tensor_shape){w.n_rows, 1, 1}, &out->bias,
                       err);
}

static bool find_linear(struct finder *f, size_t layer, const char *stem, size_t n_cols,
                        size_t n_rows, struct linear *out, struct bn_error *err)
{
    return find_matrices(f, layer, stem, (struct tensor_shape){n_cols, n_rows, 1}, out, err);
}

/* The kernels apply residual_scale as a part of extra_scale, before a bias is added, so biases
 * would not be scaled. */
static bool check_no_scaled_bias(const struct finder *f, const struct layer *l,
                                 struct bn_error *err)
{
    return f->m->hp.residual_scale == 1.0 || (!l->o.bias.bytes && !l->down.bias.bytes) ||
           bn_fail(err, BN_EUNSUPPORTED,
                   "'%s' with biases in attn_output or ffn_down is not supported",
                   f->m->arch->name);
}

/* n_rows is for one expert. */
static bool find_experts(struct finder *f, size_t layer, const char *stem, size_t n_cols,
                         size_t n_rows, struct linear *out, struct bn_error *err)
{
    set_name(f, layer, stem, "weight");
    if (n_rows % EXPERT_ROW_UNIT != 0)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "tensor '%s': experts of %zu outputs are not supported, only multiples of "
                       "%d",
                       f->name, n_rows, EXPERT_ROW_UNIT);
    if (!find_matrices(f, layer, stem, (struct tensor_shape){n_cols, n_rows, f->m->hp.n_experts},
                       out, err))
        return false;
    return out->rotation.block == 0 ||
           bn_fail(err, BN_EUNSUPPORTED,
                   "prism.hadamard.weight_names has '%s', but rotated experts are not supported",
                   out->name);
}

static bool find_router(struct finder *f, size_t layer, struct tensor_ref *out,
                        struct bn_error *err)
{
    set_name(f, layer, "ffn_gate_inp", "weight");
    return find_tensor(f, REQUIRED, USE_F32,
                       (struct tensor_shape){f->m->hp.n_embd, f->m->hp.n_experts, 1}, out, err);
}

/* Two layers with the same input must both be rotated or both not, because the input is transformed
 * once for both. */
static bool check_same_rotation(const struct linear *a, const struct linear *b,
                                struct bn_error *err)
{
    const struct linear *const named = a->rotation.block ? a : b, *const other = named == a ? b : a;
    return a->rotation.block == b->rotation.block ||
           bn_fail(err, BN_EUNSUPPORTED,
                   "prism.hadamard.weight_names has '%s' but not '%s', which has the same input",
                   named->name, other->name);
}

static bool find_ffn(struct finder *f, size_t i, struct bn_error *err)
{
    const struct hparams *hp = &f->m->hp;
    struct layer *l = &f->m->layers[i];
    const size_t e = hp->n_embd, ff = hp->n_ff;
    if (f->m->arch->experts)
        return find_router(f, i, &l->router, err) &&
               find_experts(f, i, "ffn_gate_exps", e, ff, &l->gate, err) &&
               find_experts(f, i, "ffn_up_exps", e, ff, &l->up, err) &&
               find_experts(f, i, "ffn_down_exps", ff, e, &l->down, err);
    return find_linear(f, i, "ffn_gate", e, ff, &l->gate, err) &&
           find_linear(f, i, "ffn_up", e, ff, &l->up, err) &&
           (!f->m->arch->sub_norms || find_norm(f, i, "ffn_sub_norm", ff, &l->ffn_sub_norm, err)) &&
           find_linear(f, i, "ffn_down", ff, e, &l->down, err) &&
           check_same_rotation(&l->gate, &l->up, err);
}

/* Find the F32 tensor blk.LAYER.NAME. Unlike a stem, `name` is complete: "ssm_a", "ssm_dt.bias". */
static bool find_plain(struct finder *f, size_t layer, const char *name, size_t n_cols,
                       size_t n_rows, struct tensor_ref *out, struct bn_error *err)
{
    (void)snprintf(f->name, sizeof(f->name), "blk.%zu.%s", layer, name); /* fits */
    return find_tensor(f, REQUIRED, USE_F32, (struct tensor_shape){n_cols, n_rows, 1}, out, err);
}

/* Check that no element of f->name is positive: the decay of a state is exp(a * softplus(...)), so
 * a positive a would let states grow. */
static bool check_not_positive(const struct finder *f, const struct tensor_ref *t,
                               struct bn_error *err)
{
    for (size_t i = 0; i < t->n_cols; i++) {
        const float v = f32_from_bits(le_u32(t->bytes + 4 * i));
        if (v > 0.0f)
            return bn_fail(err, BN_EFORMAT, "tensor '%s': element %zu is %g, not zero or negative",
                           f->name, i, (double)v);
    }
    return true;
}

/* Find a small matrix of floats, whose input is not quantised. */
static bool find_float_matrix(struct finder *f, size_t layer, const char *stem, size_t n_rows,
                              struct tensor_ref *out, struct bn_error *err)
{
    set_name(f, layer, stem, "weight");
    return find_tensor(f, REQUIRED, USE_FLOAT, (struct tensor_shape){f->m->hp.n_embd, n_rows, 1},
                       out, err);
}

/* The delta net computes its value heads in the order (n_value_heads / n_key_heads, n_key_heads),
 * because value head h uses key head h mod n_key_heads. In files with groups_values, the weights of
 * ssm_out expect all value heads of a key head next to each other. */
static void set_head_order(const struct finder *f, struct rotation *r)
{
    const struct delta_shape *d = &f->m->hp.delta;
    if (!r->block || !f->m->rotation.groups_values)
        return;
    r->n_outer = d->n_value_heads / d->n_key_heads;
    r->n_inner = d->n_key_heads;
}

static bool find_delta_net(struct finder *f, size_t i, struct bn_error *err)
{
    const struct delta_shape *d = &f->m->hp.delta;
    struct layer *l = &f->m->layers[i];
    const size_t e = f->m->hp.n_embd, width = delta_width(d), heads = d->n_value_heads;
    const bool ok =
        find_linear(f, i, "attn_qkv", e, delta_channels(d), &l->q, err) &&
        find_linear(f, i, "attn_gate", e, width, &l->k, err) &&
        find_plain(f, i, "ssm_conv1d.weight", DELTA_TAPS, delta_channels(d), &l->delta.conv, err) &&
        find_plain(f, i, "ssm_dt.bias", heads, 1, &l->delta.dt_bias, err) &&
        find_plain(f, i, "ssm_a", heads, 1, &l->delta.a, err) &&
        check_not_positive(f, &l->delta.a, err) &&
        find_float_matrix(f, i, "ssm_alpha", heads, &l->delta.alpha, err) &&
        find_float_matrix(f, i, "ssm_beta", heads, &l->delta.beta, err) &&
        find_norm(f, i, "ssm_norm", d->dim, &l->delta.norm, err) &&
        find_linear(f, i, "ssm_out", width, e, &l->o, err);
    if (ok)
        set_head_order(f, &l->o.rotation);
    return ok;
}

static bool find_attention(struct finder *f, size_t i, struct bn_error *err)
{
    const struct hparams *hp = &f->m->hp;
    struct layer *l = &f->m->layers[i];
    const size_t e = hp->n_embd, head_dim = hp->head_dim;
    const size_t q_dim = hp->n_heads * hp->head_dim, kv_dim = hp->n_kv_heads * hp->head_dim;
    const size_t q_rows = f->m->arch->delta_nets ? 2 * q_dim : q_dim; /* with the gates */
    const bool sub = f->m->arch->sub_norms, qk = f->m->arch->qk_norms;
    return find_linear(f, i, "attn_q", e, q_rows, &l->q, err) &&
           find_linear(f, i, "attn_k", e, kv_dim, &l->k, err) &&
           find_linear(f, i, "attn_v", e, kv_dim, &l->v, err) &&
           (!qk || find_norm(f, i, "attn_q_norm", head_dim, &l->q_norm, err)) &&
           (!qk || find_norm(f, i, "attn_k_norm", head_dim, &l->k_norm, err)) &&
           (!sub || find_norm(f, i, "attn_sub_norm", q_dim, &l->attn_sub_norm, err)) &&
           find_linear(f, i, "attn_output", q_dim, e, &l->o, err);
}

static bool find_layer(struct finder *f, size_t i, struct bn_error *err)
{
    const struct hparams *hp = &f->m->hp;
    struct layer *l = &f->m->layers[i];
    const size_t e = hp->n_embd;
    const bool delta_nets = f->m->arch->delta_nets;
    return find_norm(f, i, "attn_norm", e, &l->attn_norm, err) &&
           (l->traits.is_delta_net ? find_delta_net(f, i, err) : find_attention(f, i, err)) &&
           find_norm(f, i, delta_nets ? "post_attention_norm" : "ffn_norm", e, &l->ffn_norm, err) &&
           find_ffn(f, i, err) && check_no_scaled_bias(f, l, err) &&
           check_same_rotation(&l->q, &l->k, err) &&
           (l->traits.is_delta_net || check_same_rotation(&l->q, &l->v, err));
}

static struct tensor_shape table_shape(const struct model *m)
{
    return (struct tensor_shape){m->hp.n_embd, m->hp.n_vocab, 1};
}

/* A ternary embedding is decoded row by row during evaluation, which cannot report errors, so its
 * values are checked here. */
static bool find_embd(struct finder *f, struct bn_error *err)
{
    struct model *m = f->m;
    (void)snprintf(f->name, sizeof(f->name), "token_embd.weight");
    if (!find_tensor(f, REQUIRED, USE_TABLE, table_shape(m), &m->embd, err))
        return false;
    if (m->rotation.has_embd &&
        !file_rotation_of(&m->rotation, f->name, m->hp.n_embd, &m->embd_rotation, err))
        return false;
    if (!tensor_geometries[m->embd.type].is_ternary)
        return true;
    struct linear embd;
    set_source(f, &m->embd, &embd);
    m->ternary_embd = embd.source;
    m->ternary_embd.name = "token_embd.weight"; /* not the name in `embd`, a local variable */
    return check_cancel(f, err) && ternary_verify(&m->ternary_embd, err);
}

/* Describe a ternary output head as a linear layer. A float head stays a table if ternary_scan
 * refuses its values or all are zero. */
static bool set_head_linear(struct finder *f, struct bn_error *err)
{
    struct model *m = f->m;
    struct linear *head = &m->head_linear;
    if (!tensor_is_linear(m->head.type))
        return true;
    (void)snprintf(f->name, sizeof(f->name), m->tied ? "token_embd.weight" : "output.weight");
    set_source(f, &m->head, head);
    head->extra_scale = 1.0f;
    struct bn_error why;
    const bool ok = find_scales(f, head, &why), is_float = tensor_geometries[m->head.type].is_float;
    const bool is_zero = head->scales.scaling == SCALE_TENSOR && head->scales.tensor_scale == 0.0f;
    if (ok && !(is_float && is_zero))
        return true;
    *head = (struct linear){0};
    if (!is_float)
        *err = why;
    return is_float;
}

/* The rotation of the input of the output head; m->head is output.weight, if the file has it. */
static bool set_head_rotation(struct finder *f, struct bn_error *err)
{
    struct model *m = f->m;
    const bool has_output = m->head.bytes;
    if (m->rotation.tied_output)
        return has_output
                   ? bn_fail(err, BN_EUNSUPPORTED,
                             "prism.hadamard.tied_output is true, but the file has output.weight")
                   : file_rotation_of(&m->rotation, "token_embd.weight", m->hp.n_embd,
                                      &m->head_rotation, err);
    if (has_output)
        return set_rotation(f, m->hp.n_embd, &m->head_rotation, err);
    return !m->rotation.has_embd || bn_fail(err, BN_EUNSUPPORTED,
                                            "the output head is the rotated embedding, which needs "
                                            "prism.hadamard.tied_output");
}

static bool find_head(struct finder *f, struct bn_error *err)
{
    struct model *m = f->m;
    (void)snprintf(f->name, sizeof(f->name), "output.weight");
    if (!find_tensor(f, OPTIONAL, USE_TABLE, table_shape(m), &m->head, err) ||
        !set_head_rotation(f, err) || !check_cancel(f, err))
        return false;
    /* The first 2B4T files have a copy of the embedding as output head; then one table is used for
     * both. A different head usually differs in its first bytes, so only a copy is read as a whole
     * here. */
    const bool copy = m->head.bytes && m->head.type == m->embd.type &&
                      memcmp(m->head.bytes, m->embd.bytes, m->embd.n_bytes) == 0;
    m->tied = !m->head.bytes || copy;
    if (copy) {
        m->n_params -= (uint64_t)m->hp.n_embd * m->hp.n_vocab;
        bn_notes_add(f->cfg->notes, BN_NOTE_INFO, "tied-head",
                     "output.weight is a copy of the embedding and is not loaded twice");
    }
    if (m->tied)
        m->head = m->embd;
    return check_cancel(f, err) && set_head_linear(f, err);
}

static bool find_rope_factors(struct finder *f, const char *name, struct tensor_ref *out,
                              struct bn_error *err)
{
    (void)snprintf(f->name, sizeof(f->name), "%s", name);
    if (!find_tensor(f, OPTIONAL, USE_F32, (struct tensor_shape){f->m->hp.n_rot / 2, 1, 1}, out,
                     err))
        return false;
    for (size_t i = 0; out->bytes && i < out->n_cols; i++) {
        const float v = f32_from_bits(le_u32(out->bytes + 4 * i));
        if (v <= 0.0f)
            return bn_fail(err, BN_EFORMAT, "tensor '%s': factor %zu is %g, not a positive number",
                           f->name, i, (double)v);
    }
    return true;
}

static bool find_rope_freqs(struct finder *f, struct bn_error *err)
{
    struct model *m = f->m;
    if (!find_rope_factors(f, "rope_freqs.weight", &m->rope_freqs, err) ||
        !find_rope_factors(f, "rope_factors_short.weight", &m->rope_factors_short, err) ||
        !find_rope_factors(f, "rope_factors_long.weight", &m->rope_factors_long, err))
        return false;
    const bool has_short = m->rope_factors_short.bytes, has_long = m->rope_factors_long.bytes;
    if (has_short != has_long)
        return bn_fail(err, BN_EFORMAT,
                       "the file has only one of rope_factors_short.weight and "
                       "rope_factors_long.weight");
    return has_long || !m->hp.needs_rope_factors ||
           bn_fail(err, BN_EFORMAT,
                   "the file has longrope but no rope_factors_short.weight and "
                   "rope_factors_long.weight");
}

static bool find_globals(struct finder *f, struct bn_error *err)
{
    struct model *m = f->m;
    if (!find_embd(f, err))
        return false;
    (void)snprintf(f->name, sizeof(f->name), "output_norm.weight");
    return find_tensor(f, REQUIRED, USE_F32, (struct tensor_shape){m->hp.n_embd, 1, 1},
                       &m->output_norm, err) &&
           find_head(f, err) && find_rope_freqs(f, err);
}

static enum tensor_type most_common(const uint64_t n_params[TENSOR_N_TYPES])
{
    enum tensor_type best = TENSOR_F32;
    for (enum tensor_type t = TENSOR_F32; t < TENSOR_N_TYPES; t++) {
        if (n_params[t] > n_params[best])
            best = t;
    }
    return best;
}

/* Refuse rotated files that name the embedding, norms or other tensors whose inputs this program
 * never rotates. unknown_tensors_check handles named tensors that are not in the graph. */
static bool check_rotated(const struct finder *f, struct bn_error *err)
{
    const struct gguf *g = f->m->gguf;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct bn_str name = g->tensors[i].name;
        if (f->rotation_state[i] == LISTED && f->is_used[i])
            return bn_fail(err, BN_EUNSUPPORTED,
                           "prism.hadamard.weight_names has '%.*s', whose input cannot be rotated",
                           bn_str_shown(name, 80), name.ptr);
    }
    return true;
}

static bool find_all(struct finder *f, struct bn_error *err)
{
    const struct model *m = f->m;
    if (!find_globals(f, err))
        return false;
    for (size_t i = 0; i < m->hp.n_layers; i++)
        if (!check_cancel(f, err) || !find_layer(f, i, err))
            return false;
    if (!check_rotated(f, err))
        return false;
    return unknown_tensors_check(m, f->cfg, f->is_used, err);
}

bool weights_find(struct model *m, const struct model_config *cfg, struct bn_error *err)
{
    struct finder f = {.m = m, .cfg = cfg};
    m->finest = (struct ternary_scales){.scaling = SCALE_TENSOR, .tensor_scale = 1.0f};
    f.is_used = mem_alloc(m->gguf->n_tensors, 1);
    f.rotation_state = mem_alloc(m->gguf->n_tensors, 1);
    const bool ok =
        f.is_used && f.rotation_state
            ? file_rotation_init(&m->rotation, m->gguf, f.rotation_state, err) && find_all(&f, err)
            : bn_fail(err, BN_ENOMEM, "no memory for %zu tensors", m->gguf->n_tensors);
    mem_free(f.rotation_state);
    mem_free(f.is_used);
    if (!ok)
        return false;
    m->ternary_type = most_common(f.n_linear_params);
    if (f.n_merged > 0)
        bn_notes_add(cfg->notes, BN_NOTE_INFO, "scales",
                     "the scales of %zu tensors are equal in pairs of blocks; they are loaded with "
                     "blocks of twice the size, without loss",
                     f.n_merged);
    return true;
}
