/*
 * Tensors of the file that the graph of its architecture does not use (docs/formats.md, "Graphs").
 *
 * Without a norm, a bias or a scale of its layers, a model still writes text, but wrong text. Files
 * with such unknown tensors are refused, unless the user names these tensors as ones to ignore.
 * Tensors that are not expected to change the answer are only reported.
 */
#include "engine/model/model_read.h"

#include "engine/gguf/refusal.h"

#include <stdio.h>

/* Tensors outside the layers that change the embedding or the output in other graphs. Other tensors
 * outside the layers are only reported. */
static const char *const harmful_globals[] = {
    "output.bias",     "output.scale",     "output_norm.bias",       "position_embd.weight",
    "token_embd.bias", "token_embd.scale", "token_embd_norm.weight", "token_embd_norm.bias",
    "token_types.*",
};

/* Tensors of layers that have no effect on the answer. Rotary tables repeat what rope_base and
 * n_rot determine. Input scales are for static quantisation; here the scales of activations are
 * computed from their values. */
static const char *const harmless_in_layers[] = {
    "blk.*.attn_rot_embd",
    "blk.*.attn_rot_embd.weight",
    "blk.*.rotary_emb.inv_freq",
    "blk.*.input_scale",
};

struct unknown {
    const struct model *m;
    const struct model_config *cfg;
    size_t n_refused, n_harmless, n_ignored;
    struct bn_str refused, harmless, ignored; /* the first name of each kind */
};

/* Whether the whole name matches. A star in the pattern stands for any text. */
static bool matches_pattern(struct bn_str name, const char *pattern)
{
    size_t i = 0, star_i = 0;
    const char *after_star = NULL;
    while (i < name.n_bytes) {
        if (*pattern == '*') {
            after_star = ++pattern;
            star_i = i;
        } else if (*pattern != '\0' && *pattern == name.ptr[i]) {
            pattern++;
            i++;
        } else if (after_star) { /* let the last star cover one more byte */
            pattern = after_star;
            i = ++star_i;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

static bool matches_any(struct bn_str name, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (matches_pattern(name, patterns[i]))
            return true;
    }
    return false;
}

/* Whether the tensor belongs to a layer that predicts further tokens: "blk.N." with N from n_layers
 * to n_layers + n_extra_layers - 1. Every such N is below 2 MODEL_MAX_LAYERS; a larger one ends the
 * loop before it overflows. */
static bool is_extra(const struct hparams *hp, struct bn_str name)
{
    size_t layer = 0, i = strlen("blk.");
    if (!bn_str_starts(name, bn_str_of("blk.")))
        return false;
    for (; i < name.n_bytes && name.ptr[i] >= '0' && name.ptr[i] <= '9' &&
           layer <= 2 * MODEL_MAX_LAYERS;
         i++)
        layer = 10 * layer + (size_t)(name.ptr[i] - '0');
    return i < name.n_bytes && name.ptr[i] == '.' && layer >= hp->n_layers &&
           layer - hp->n_layers < hp->n_extra_layers;
}

static bool changes_answers(const struct hparams *hp, struct bn_str name)
{
    if (is_extra(hp, name))
        return false;
    if (bn_str_starts(name, bn_str_of("blk.")))
        return !matches_any(name, harmless_in_layers,
                            sizeof(harmless_in_layers) / sizeof(harmless_in_layers[0]));
    return matches_any(name, harmful_globals, sizeof(harmful_globals) / sizeof(harmful_globals[0]));
}

static void count_name(size_t *n, struct bn_str *first, struct bn_str name)
{
    if ((*n)++ == 0)
        *first = name;
}

static void classify_tensor(struct unknown *u, struct bn_str name)
{
    if (!changes_answers(&u->m->hp, name))
        count_name(&u->n_harmless, &u->harmless, name);
    else if (matches_any(name, u->cfg->ignored_tensors, u->cfg->n_ignored_tensors))
        count_name(&u->n_ignored, &u->ignored, name);
    else
        count_name(&u->n_refused, &u->refused, name);
}

/* "'NAME'", or "'NAME' and 3 others" */
static const char *name_list(struct bn_str first, size_t n, char *out, size_t out_bytes)
{
    const int shown = bn_str_shown(first, 80);
    if (n == 1)
        (void)snprintf(out, out_bytes, "'%.*s'", shown, first.ptr);
    else
        (void)snprintf(out, out_bytes, "'%.*s' and %zu other%s", shown, first.ptr, n - 1,
                       n == 2 ? "" : "s");
    return out;
}

/* Warn of the first pattern of the user that leaves out no tensor: its name may be mistyped. */
static void warn_of_patterns(const struct unknown *u, const uint8_t *is_used)
{
    const struct gguf *g = u->m->gguf;
    for (size_t p = 0; p < u->cfg->n_ignored_tensors; p++) {
        const char *pattern = u->cfg->ignored_tensors[p];
        size_t i = 0;
        while (i < g->n_tensors && (is_used[i] || !changes_answers(&u->m->hp, g->tensors[i].name) ||
                                    !matches_pattern(g->tensors[i].name, pattern)))
            i++;
        if (i < g->n_tensors)
            continue;
        bn_notes_add(
            u->cfg->notes, BN_NOTE_WARNING, "unmatched-tensors",
            "--ignore-tensor '%.*s' has no effect: no tensor that would be refused has this name",
            bn_str_shown(bn_str_of(pattern), 80), pattern);
        return;
    }
}

/* Refuse the file or write the notes. */
static bool report_unknown(const struct unknown *u, struct bn_error *err)
{
    const char *const arch = u->m->arch->name;
    char list[128];
    if (u->n_refused > 0)
        return refusal_fail(err, refusal_of_tensor(u->refused), BN_EUNSUPPORTED,
                            "the graph of '%s' has no tensor %s, so the answers would be wrong "
                            "(--ignore-tensor NAME leaves a tensor out)",
                            arch, name_list(u->refused, u->n_refused, list, sizeof(list)));
    if (u->n_ignored > 0)
        bn_notes_add(u->cfg->notes, BN_NOTE_WARNING, "ignored-tensors",
                     "left out, so the answers may be wrong: %s",
                     name_list(u->ignored, u->n_ignored, list, sizeof(list)));
    if (u->n_harmless > 0)
        bn_notes_add(u->cfg->notes, BN_NOTE_INFO, "tensors",
                     "%zu of the file's %zu tensors are not used by the graph of '%s': %s",
                     u->n_harmless, u->m->gguf->n_tensors, arch,
                     name_list(u->harmless, u->n_harmless, list, sizeof(list)));
    return true;
}

bool unknown_tensors_check(const struct model *m, const struct model_config *cfg,
                           const uint8_t *is_used, struct bn_error *err)
{
    struct unknown u = {.m = m, .cfg = cfg};
    for (size_t i = 0; i < m->gguf->n_tensors; i++) {
        if (!is_used[i])
            classify_tensor(&u, m->gguf->tensors[i].name);
    }
    if (!report_unknown(&u, err))
        return false;
    warn_of_patterns(&u, is_used);
    return true;
}
