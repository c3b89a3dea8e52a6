/*
 * Opens a model: first the architecture, then the hyperparameters, then the tensors. Each step
 * relies on the checks of the steps before it.
 */
#include "engine/model/model.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_le.h"
#include "engine/gguf/refusal.h"
#include "engine/model/act_scheme.h"
#include "engine/model/model_read.h"

#include <stdio.h>

/* Each difference between the graphs of the architectures is a member of struct arch. The default
 * of `training` is TRAINED_INT8. The forward pass has one path for all architectures. Outside the
 * graph, implied_pre in tokenizer/tokenizer.c and vocab_rows in templates/template.c depend on the
 * architecture. */
static const struct arch archs[] = {
    {"bitnet-b1.58", ROPE_NEOX, .sub_norms = true, .ffn_act = FFN_RELU2,
     .mislabels = SHAPE_1BITLLM},
    {"bitnet-25", ROPE_NEOX, .sub_norms = true, .ffn_act = FFN_RELU2},
    {"bitnet", ROPE_NEOX, .sub_norms = true, .partial_rope = true, .ffn_act = FFN_SILU,
     .mislabels = SHAPE_2B4T},
    /* The converters of the next two permute the rows of q and k, which changes the pairs of
     * RoPE. */
    {"llama", ROPE_NORM, .ffn_act = FFN_SILU, .training = TRAINED_BY_SCALES},
    {"minicpm", ROPE_NORM, .scaled = true, .ffn_act = FFN_SILU, .training = TRAINED_16},
    {"qwen3", ROPE_NEOX, .qk_norms = true, .large_rope_base = true, .ffn_act = FFN_SILU,
     .training = TRAINED_16},
    {"qwen35", ROPE_NEOX, .qk_norms = true, .partial_rope = true, .delta_nets = true,
     .large_rope_base = true, .ffn_act = FFN_SILU, .training = TRAINED_16},
    {"maple", ROPE_NEOX, .qk_norms = true, .partial_rope = true, .windows = true, .experts = true,
     .ffn_act = FFN_SILU, .training = TRAINED_16},
};
#define N_ARCHS (sizeof(archs) / sizeof(archs[0]))

/* A line of R1-256 holds 256 columns, so a model with very short rows would become many times
 * larger. Rows of real models are long and grow little. Small test models grow a few times. */
#define MAX_GROWTH 4
#define ALLOWED_GROWTH_BYTES ((size_t)256 << 20) /* growth below this is always accepted */

const struct arch *arch_find(struct bn_str name)
{
    for (size_t i = 0; i < N_ARCHS; i++) {
        if (bn_str_is(name, archs[i].name))
            return &archs[i];
    }
    return NULL;
}

static bool find_arch(const struct gguf *g, const struct arch **out, struct bn_error *err)
{
    struct bn_str name;
    if (!gguf_get_str(g, "general.architecture", &name))
        return bn_fail(err, BN_EFORMAT, "the file has no key general.architecture");
    *out = arch_find(name);
    if (*out)
        return true;
    char supported[200] = "";
    for (size_t i = 0; i < N_ARCHS; i++)
        str_list_add(supported, sizeof(supported), archs[i].name);
    return refusal_fail(err, refusal_of_arch(name), BN_EUNSUPPORTED,
                        "architecture '%.*s' is not supported, only: %s", bn_str_shown(name, 60),
                        name.ptr, supported);
}

/* A layer has at least 9 tensors: two norms, q, k, v, output, gate, up and down. This check keeps
 * the memory for layers in proportion to the file. */
static bool enough_tensors(const struct gguf *g, const struct hparams *hp, struct bn_error *err)
{
    if (g->n_tensors / 9 >= hp->n_layers)
        return true;
    if (g->n_tensors == 0)
        return bn_fail(err, BN_EFORMAT, "the file holds a vocabulary but no weights");
    return bn_fail(err, BN_EFORMAT, "%zu tensors are too few for %zu layers", g->n_tensors,
                   hp->n_layers);
}

bool model_open(const struct gguf *g, const struct model_config *cfg, struct model **out,
                struct bn_error *err)
{
    struct model *m = mem_alloc(1, sizeof(*m));
    if (!m)
        return bn_fail(err, BN_ENOMEM, "no memory to open a model");
    m->gguf = g;
    if (!find_arch(g, &m->arch, err) || !hparams_read(g, m->arch, cfg, &m->hp, err) ||
        !enough_tensors(g, &m->hp, err))
        goto fail;
    m->layers = mem_alloc(m->hp.n_layers, sizeof(*m->layers));
    if (!m->layers) {
        (void)bn_fail(err, BN_ENOMEM, "no memory for %zu layers", m->hp.n_layers);
        goto fail;
    }
    if (!layer_table_read(g, m->arch, &m->hp, m->layers, err) || !weights_find(m, cfg, err))
        goto fail;
    act_scheme_choose(m, cfg->activations);
    *out = m;
    return true;
fail:
    model_close(m);
    if (err->code == BN_EUNSUPPORTED) /* the message gets a row if it has none yet */
        (void)refusal_append_row(err, REFUSED_OTHER_GRAPH);
    return false;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    file_rotation_finish(&m->rotation);
    mem_free(m->layers);
    mem_free(m);
}

bool model_check_growth(const struct model *m, size_t packed_bytes, struct bn_error *err)
{
    size_t limit;
    if (size_mul(&limit, m->gguf->n_bytes, MAX_GROWTH) &&
        size_add(&limit, limit, ALLOWED_GROWTH_BYTES) && packed_bytes <= limit)
        return true;
    return bn_fail(err, BN_EUNSUPPORTED,
                   "rows of %zu and %zu weights are too short: packed for this backend, "
                   "the model would need more than %d times the size of its file",
                   m->hp.n_embd, m->hp.n_ff, MAX_GROWTH);
}

const char *model_window_rule_name(enum bn_window_rule rule)
{
    return rule == BN_WINDOW_REFERENCE ? "reference" : "mainline";
}

void model_window_text(const struct model *m, char *text, size_t text_bytes)
{
    size_t n = 0, n_keys = 0;
    for (size_t i = 0; i < m->hp.n_layers; i++)
        if (m->layers[i].traits.n_visible_keys > 0) {
            n++;
            n_keys = m->layers[i].traits.n_visible_keys;
        }
    text[0] = '\0';
    if (n > 0)
        (void)snprintf(text, text_bytes,
                       "a token sees itself and %zu before it in %zu of %zu layers (rule: %s)",
                       n_keys - 1, n, m->hp.n_layers, model_window_rule_name(m->hp.window_rule));
}
