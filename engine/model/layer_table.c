/*
 * Sets the properties in which the layers of a model can differ: attention or a gated delta net,
 * the window of attention, whether RoPE is applied, and the limit of gate and up in the experts.
 * Architectures without such features have no keys for them, and all layers are alike.
 */
#include "engine/model/model_read.h"

#include <stdio.h>

#define KEY_BYTES 96      /* more than the longest key */
#define CLAMP_DEFAULT 7.0 /* for files without swiglu_clamp_exp, as the first ones of `maple` */
#define CLAMP_MAX 1e6     /* largest limit that is accepted; real values are far smaller */

/* Write the key "ARCH.name" to `text` and return its entry, NULL if the file does not have it. */
static const struct gguf_kv *find_key(const struct gguf *g, const struct arch *arch,
                                      const char *name, char text[KEY_BYTES])
{
    (void)snprintf(text, KEY_BYTES, "%s.%s", arch->name, name);
    return gguf_find_kv(g, text);
}

static bool has_item_per_layer(const struct gguf_kv *kv, const char *key, size_t n_layers,
                               struct bn_error *err)
{
    return (kv->kind == GGUF_ARRAY && kv->n_items == n_layers) ||
           bn_fail(err, BN_EFORMAT, "%s must have one value for each of the %zu layers", key,
                   n_layers);
}

/* The pattern is true for layers with a window. Only these layers have RoPE. */
static bool read_windows(const struct gguf *g, const struct arch *arch, const struct hparams *hp,
                         struct layer *layers, struct bn_error *err)
{
    char key[KEY_BYTES];
    const struct gguf_kv *kv = find_key(g, arch, "attention.sliding_window_pattern", key);
    if (!kv)
        return bn_fail(err, BN_EFORMAT, "the file has no %s", key);
    if (!has_item_per_layer(kv, key, hp->n_layers, err))
        return false;
    for (size_t i = 0; i < hp->n_layers; i++) {
        uint64_t has_window;
        if (!gguf_item_u64(kv, i, &has_window) || has_window > 1)
            return bn_fail(err, BN_EFORMAT, "%s is neither true nor false for layer %zu", key, i);
        /* BN_WINDOW_REFERENCE does not count the token itself, but traits.n_visible_keys does. */
        const size_t n_own = hp->window_rule == BN_WINDOW_REFERENCE ? 1 : 0;
        layers[i].traits.has_rope = has_window != 0;
        layers[i].traits.n_visible_keys = has_window ? hp->window_in_file + n_own : 0;
    }
    return true;
}

static bool read_clamps(const struct gguf *g, const struct arch *arch, const struct hparams *hp,
                        struct layer *layers, struct bn_error *err)
{
    char key[KEY_BYTES];
    const struct gguf_kv *kv = find_key(g, arch, "swiglu_clamp_exp", key);
    const bool is_array = kv && kv->kind == GGUF_ARRAY;
    if (is_array && !has_item_per_layer(kv, key, hp->n_layers, err))
        return false;
    for (size_t i = 0; i < hp->n_layers; i++) {
        double clamp = CLAMP_DEFAULT;
        if (kv && !gguf_item_f64(kv, is_array ? i : 0, &clamp))
            return bn_fail(err, BN_EFORMAT, "%s is not a number for layer %zu", key, i);
        if (!(clamp > 0.0 && clamp <= CLAMP_MAX))
            return bn_fail(err, BN_EFORMAT,
                           "%s is %g for layer %zu, but must be above 0 and at most %g", key, clamp,
                           i, CLAMP_MAX);
        layers[i].traits.clamp = (float)clamp;
    }
    return true;
}

bool layer_table_read(const struct gguf *g, const struct arch *arch, const struct hparams *hp,
                      struct layer *layers, struct bn_error *err)
{
    /* In a model with delta nets, the last layer of each interval has attention. In a model without
     * them delta.interval is 0, so it must not be the divisor. */
    for (size_t i = 0; i < hp->n_layers; i++)
        layers[i].traits = (struct layer_traits){.is_delta_net = arch->delta_nets &&
                                                                 (i + 1) % hp->delta.interval != 0,
                                                 .has_rope = true};
    return (!arch->windows || read_windows(g, arch, hp, layers, err)) &&
           (!arch->experts || read_clamps(g, arch, hp, layers, err));
}
