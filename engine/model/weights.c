/*
 * Finds each tensor the graph needs, checks type and shape, and reads the scales of the ternary
 * ones. A tensor of a type that cannot be run is refused by name with what to do about it; tensors
 * the graph does not know are left alone and noted.
 */
#include "engine/model/weights.h"

#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"

#include <math.h>
#include <stdio.h>

struct finder {
    struct model *m;
    const struct model_config *cfg;
    size_t n_used; /* tensors of the file that have a place in the graph */
    uint64_t n_linear_params[TENSOR_N_TYPES]; /* per container, to name the commonest */
    char name[64];                            /* the tensor asked for last */
};

enum presence { REQUIRED, OPTIONAL };
enum duty { DUTY_F32, DUTY_TABLE, DUTY_LINEAR };

static bool serves(enum tensor_type type, enum duty duty)
{
    const bool is_float = type == TENSOR_F32 || type == TENSOR_F16 || type == TENSOR_BF16;
    if (duty == DUTY_F32)
        return type == TENSOR_F32;
    if (duty == DUTY_LINEAR)
        return is_float || tensor_geometries[type].ternary;
    return type != TENSOR_OTHER && !tensor_geometries[type].ternary;
}

static bool refuse_type(const struct finder *f, const struct gguf_tensor *t, enum duty duty,
                        struct bn_error *err)
{
    const struct tensor_verdict v =
        tensor_type_judge(t->type_id, t->n_cols, t->n_rows, t->n_bytes, f->m->gguf->alignment);
    if (!v.name)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "tensor '%s' is of type %u, which this program does not know: %s", f->name,
                       t->type_id, v.advice);
    if (duty == DUTY_F32)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "tensor '%s' is %s, not F32 as norms, scales and biases are", f->name,
                       v.name);
    if (duty == DUTY_TABLE)
        return bn_fail(
            err, BN_EUNSUPPORTED,
            "tensor '%s' is %s: embeddings and output heads can be F32, F16, BF16, Q8_0, Q6_K, "
            "Q4_K or Q4_0",
            f->name, v.name);
    return bn_fail(err, BN_EUNSUPPORTED, "tensor '%s' is %s, not ternary: %s", f->name, v.name,
                   v.advice);
}

/* Look up f->name. Absent and OPTIONAL: true, with out->bytes NULL. */
static bool find(struct finder *f, enum presence presence, enum duty duty, size_t n_cols,
                 size_t n_rows, struct tensor_ref *out, struct bn_error *err)
{
    const struct gguf *g = f->m->gguf;
    const struct gguf_tensor *t = gguf_find_tensor(g, f->name);
    *out = (struct tensor_ref){0};
    if (!t)
        return presence == OPTIONAL ||
               bn_fail(err, BN_EFORMAT, "the file has no tensor '%s'", f->name);
    if (!serves(t->type, duty))
        return refuse_type(f, t, duty, err);
    if (t->n_cols != n_cols || t->n_rows != n_rows)
        return bn_fail(
            err, BN_EFORMAT,
            "tensor '%s' is %zu x %zu, the model needs %zu x %zu (its data begins at byte %zu)",
            f->name, t->n_rows, t->n_cols, n_rows, n_cols, t->offset);
    *out = (struct tensor_ref){.name = t->name,
                               .type = t->type,
                               .bytes = g->bytes + t->offset,
                               .n_bytes = t->n_bytes,
                               .file_offset = t->offset,
                               .n_cols = n_cols,
                               .n_rows = n_rows};
    f->n_used++;
    f->m->n_params += (uint64_t)n_cols * n_rows;
    return true;
}

static void set_name(struct finder *f, size_t layer, const char *stem, const char *suffix)
{
    (void)snprintf(f->name, sizeof(f->name), "blk.%zu.%s.%s", layer, stem, suffix); /* fits */
}

static bool find_norm(struct finder *f, size_t layer, const char *stem, size_t n,
                      struct tensor_ref *out, struct bn_error *err)
{
    set_name(f, layer, stem, "weight");
    return find(f, REQUIRED, DUTY_F32, n, 1, out, err);
}

static bool read_extra_scale(struct finder *f, float *out, struct bn_error *err)
{
    struct tensor_ref t;
    *out = 1.0f;
    if (!find(f, OPTIONAL, DUTY_F32, 1, 1, &t, err))
        return false;
    if (!t.bytes)
        return true;
    *out = f32_from_bits(le_u32(t.bytes));
    f->m->n_params--; /* a scale, not a parameter of its own */
    return isfinite(*out) ||
           bn_fail(err, BN_EFORMAT, "tensor '%s' is not a finite number", f->name);
}

static bool find_linear(struct finder *f, size_t layer, const char *stem, size_t n_cols,
                        size_t n_rows, struct linear *out, struct bn_error *err)
{
    struct tensor_ref w;
    set_name(f, layer, stem, "weight");
    if (!find(f, REQUIRED, DUTY_LINEAR, n_cols, n_rows, &w, err))
        return false;
    memcpy(out->name, f->name, sizeof(out->name));
    out->source = (struct ternary_source){.name = out->name,
                                          .type = w.type,
                                          .layout = f->cfg->i2s_layout,
                                          .bytes = w.bytes,
                                          .n_bytes = w.n_bytes,
                                          .file_offset = w.file_offset,
                                          .n_cols = n_cols,
                                          .n_rows = n_rows};
    if (!ternary_scale(&out->source, &out->scale, err))
        return false;
    f->n_linear_params[w.type] += (uint64_t)n_cols * n_rows;
    set_name(f, layer, stem, "scale");
    if (!read_extra_scale(f, &out->extra_scale, err))
        return false;
    set_name(f, layer, stem, "bias");
    return find(f, OPTIONAL, DUTY_F32, n_rows, 1, &out->bias, err);
}

static bool find_layer(struct finder *f, size_t i, struct bn_error *err)
{
    const struct hparams *hp = &f->m->hp;
    struct layer *l = &f->m->layers[i];
    const size_t e = hp->n_embd, ff = hp->n_ff;
    const size_t q_dim = hp->n_heads * hp->head_dim, kv_dim = hp->n_kv_heads * hp->head_dim;
    const bool sub = f->m->arch->sub_norms;
    return find_norm(f, i, "attn_norm", e, &l->attn_norm, err) &&
           find_linear(f, i, "attn_q", e, q_dim, &l->q, err) &&
           find_linear(f, i, "attn_k", e, kv_dim, &l->k, err) &&
           find_linear(f, i, "attn_v", e, kv_dim, &l->v, err) &&
           (!sub || find_norm(f, i, "attn_sub_norm", q_dim, &l->attn_sub_norm, err)) &&
           find_linear(f, i, "attn_output", q_dim, e, &l->o, err) &&
           find_norm(f, i, "ffn_norm", e, &l->ffn_norm, err) &&
           find_linear(f, i, "ffn_gate", e, ff, &l->gate, err) &&
           find_linear(f, i, "ffn_up", e, ff, &l->up, err) &&
           (!sub || find_norm(f, i, "ffn_sub_norm", ff, &l->ffn_sub_norm, err)) &&
           find_linear(f, i, "ffn_down", ff, e, &l->down, err);
}

static bool find_head(struct finder *f, struct bn_error *err)
{
    struct model *m = f->m;
    (void)snprintf(f->name, sizeof(f->name), "output.weight");
    if (!find(f, OPTIONAL, DUTY_TABLE, m->hp.n_embd, m->hp.n_vocab, &m->head, err))
        return false;
    /* The first 2B4T files carry a copy of the embedding as their head: one table serves as both.
     * An honest head differs in its first bytes, so asking costs nothing. */
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
    return true;
}

static bool find_rope_freqs(struct finder *f, struct bn_error *err)
{
    struct tensor_ref *freqs = &f->m->rope_freqs;
    (void)snprintf(f->name, sizeof(f->name), "rope_freqs.weight");
    if (!find(f, OPTIONAL, DUTY_F32, f->m->hp.n_rot / 2, 1, freqs, err))
        return false;
    for (size_t i = 0; freqs->bytes && i < freqs->n_cols; i++) {
        const float v = f32_from_bits(le_u32(freqs->bytes + 4 * i));
        if (!isfinite(v) || v <= 0.0f)
            return bn_fail(err, BN_EFORMAT, "tensor '%s': factor %zu is %g, not a positive number",
                           f->name, i, (double)v);
    }
    return true;
}

static bool find_globals(struct finder *f, struct bn_error *err)
{
    struct model *m = f->m;
    (void)snprintf(f->name, sizeof(f->name), "token_embd.weight");
    if (!find(f, REQUIRED, DUTY_TABLE, m->hp.n_embd, m->hp.n_vocab, &m->embd, err))
        return false;
    (void)snprintf(f->name, sizeof(f->name), "output_norm.weight");
    return find(f, REQUIRED, DUTY_F32, m->hp.n_embd, 1, &m->output_norm, err) &&
           find_head(f, err) && find_rope_freqs(f, err);
}

static enum tensor_type commonest(const uint64_t n_params[TENSOR_N_TYPES])
{
    enum tensor_type best = TENSOR_F32;
    for (enum tensor_type t = TENSOR_F32; t < TENSOR_N_TYPES; t++) {
        if (n_params[t] > n_params[best])
            best = t;
    }
    return best;
}

bool weights_find(struct model *m, const struct model_config *cfg, struct bn_error *err)
{
    struct finder f = {.m = m, .cfg = cfg};
    if (!find_globals(&f, err))
        return false;
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        if (cfg->cancel && atomic_load_explicit(cfg->cancel, memory_order_relaxed))
            return bn_fail(err, BN_ECANCELLED, "loading was stopped");
        if (!find_layer(&f, i, err))
            return false;
    }
    m->ternary_type = commonest(f.n_linear_params);
    if (f.n_used < m->gguf->n_tensors)
        bn_notes_add(
            cfg->notes, BN_NOTE_WARNING, "tensors",
            "%zu of the file's %zu tensors have no place in the graph of '%s' and are ignored",
            m->gguf->n_tensors - f.n_used, m->gguf->n_tensors, m->arch->name);
    return true;
}
