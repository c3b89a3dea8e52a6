/*
 * Opening and closing a model, and the functions that describe or measure an open model.
 *
 * This file combines the other folders: model/ describes the model in a file that file.c has
 * parsed, backend/ chooses the device, and the backend of that device loads the weights.
 */
#include "engine/engine_internal.h"

#include "engine/base/clock.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/file_gguf.h"
#include "engine/model/act_scheme.h"
#include "engine/model/model.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_UBATCH 512 /* tokens; with 100 kB of scratch memory each, 50 MB for a 2B model */

/* An AMX tile has 16 tokens. With more tokens the time of a pass on the CPU grows with their
 * number, so more sequences do not raise the tokens per second. The limit is the same on a GPU. */
#define MAX_BATCH_WIDTH 16

/* Saved states that a session may keep even if little memory is free: those at the start and the
 * end of two prompts. */
#define MIN_STATES 4

/* A default context that memory limits is a multiple of CTX_UNIT, because a round number is easier
 * to read. It is at least MIN_CTX, because a chat needs some turns, but never more than the
 * context of the training. */
#define CTX_UNIT 256
#define MIN_CTX 512

/* Hash that distinguishes models with different KV caches. Hashing all weights would take seconds.
 * So of the weights, only the value projection v of each layer is used: its scale and layout, and
 * if it has many scales, its first bytes. In delta nets the struct of v is all-zero. */
static uint64_t kv_hash(const struct model *m)
{
    const struct hparams *hp = &m->hp;
    const double numbers[] = {
        (double)hp->n_layers,    (double)hp->n_embd,      (double)hp->n_ff,  (double)hp->n_heads,
        (double)hp->n_kv_heads,  (double)hp->head_dim,    (double)hp->n_rot, (double)hp->n_vocab,
        (double)hp->ffn_act,     (double)hp->rms_eps,     hp->rope_base,     hp->rope_scale,
        (double)m->ternary_type, (double)m->gguf->n_bytes};
    const double yarn[] = {hp->yarn.factor,    hp->yarn.original_ctx, hp->yarn.beta_fast,
                           hp->yarn.beta_slow, hp->yarn.ext_factor,   hp->rope_magnitude};
    uint64_t h = fnv1a_add_bytes(FNV1A_START, m->arch->name, strlen(m->arch->name));
    h = fnv1a_add_bytes(h, numbers, sizeof numbers);
    /* YaRN, windows (with experts), factors, act_scheme and tables of RoPE are part of the hash
     * only in models that use them. So the hash of other models is the same as before these
     * features existed, and their snapshots stay valid. */
    if (hp->yarn.factor != 0.0 || hp->rope_magnitude != 1.0)
        h = fnv1a_add_bytes(h, yarn, sizeof yarn);
    if (hp->window_in_file > 0) {
        const double window[] = {(double)hp->window_in_file, (double)hp->window_rule,
                                 (double)hp->n_experts, (double)hp->n_used_experts};
        h = fnv1a_add_bytes(h, window, sizeof window);
    }
    if (m->arch->scaled) {
        const double factors[] = {hp->embd_scale, hp->residual_scale};
        h = fnv1a_add_bytes(h, factors, sizeof factors);
    }
    const struct tensor_ref *const tables[] = {&m->rope_freqs, &m->rope_factors_short,
                                               &m->rope_factors_long};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i]->bytes)
            h = fnv1a_add_bytes(h, tables[i]->bytes, tables[i]->n_bytes);
    if (m->act_scheme != ACT_TOKEN) {
        const int scheme = (int)m->act_scheme;
        h = fnv1a_add_bytes(h, &scheme, sizeof scheme);
    }
    for (size_t i = 0; i < hp->n_layers; i++) {
        const struct linear *v = &m->layers[i].v;
        const int layout = v->source.type == TENSOR_I2_S ? (int)v->source.layout : 0;
        h = fnv1a_add_bytes(h, &v->scales.tensor_scale, sizeof(float));
        if (v->scales.scaling != SCALE_TENSOR) /* these nearly always differ between models */
            h = fnv1a_add_bytes(h, v->source.bytes, size_min(v->source.n_bytes, 128));
        h = fnv1a_add_bytes(h, &layout, sizeof layout); /* --i2s-layout changes the weights */
    }
    return h;
}

/* Copy the string with a terminator. A string that is too long is cut between characters. */
static void copy_str(char *to, size_t to_bytes, struct bn_str from)
{
    const size_t n = (size_t)bn_str_shown(from, to_bytes - 1);
    if (n > 0)
        memcpy(to, from.ptr, n);
    to[n] = '\0';
}

/* Multiply-adds of one token in the linear layers (q, o; k, v; gate, up, down), without the output
 * head. Delta nets are counted as if they were attention. The result is a double, because sizes
 * from a hostile file could overflow integers. */
static double linear_macs(const struct hparams *hp)
{
    const double n_used = hp->n_experts > 0 ? (double)hp->n_used_experts : 1.0;
    const double width = (double)hp->n_embd, heads = (double)hp->n_heads * (double)hp->head_dim;
    const double kv = (double)hp->n_kv_heads * (double)hp->head_dim;
    return (double)hp->n_layers * width * (2 * heads + 2 * kv + 3 * n_used * (double)hp->n_ff);
}

size_t engine_default_ctx(size_t free_bytes, size_t kv_bytes_per_token, size_t seq_fixed_bytes,
                          size_t n_ctx_train)
{
    const size_t half = free_bytes / 2;
    const size_t n = (half - size_min(half, seq_fixed_bytes)) / size_max(kv_bytes_per_token, 1);
    if (free_bytes == SIZE_MAX || n >= n_ctx_train)
        return n_ctx_train;
    return size_min(size_max(n - n % CTX_UNIT, MIN_CTX), n_ctx_train);
}

/* skip_reason: see struct bn_model_info. */
static void fill_info(struct bn_model *model, size_t n_ubatch, const char *skip_reason)
{
    const struct model *m = model->model;
    const struct hparams *hp = &m->hp;
    const struct backend_info *b = model->ops->info(model->backend);
    struct bn_str name = {0};
    model->info = (struct bn_model_info){
        .isa = b->isa,
        .n_threads = b->n_threads,
        .n_ubatch = n_ubatch,
        .n_vocab = hp->n_vocab,
        .n_layers = hp->n_layers,
        .n_embd = hp->n_embd,
        .n_ff = hp->n_ff,
        .n_heads = hp->n_heads,
        .n_kv_heads = hp->n_kv_heads,
        .n_experts = hp->n_experts,
        .n_used_experts = hp->n_used_experts,
        .n_ctx_train = hp->n_ctx_train,
        .n_ctx_default =
            engine_default_ctx(model->ops->free_bytes(model->backend), b->plan.kv_bytes_per_token,
                               b->plan.seq_fixed_bytes, hp->n_ctx_train),
        .n_params = m->n_params,
        .weight_bytes = b->plan.weight_bytes,
        .kv_bytes_per_token = b->plan.kv_bytes_per_token,
        .seq_fixed_bytes = b->plan.seq_fixed_bytes,
        .state_bytes = b->plan.state_bytes,
        .kv_type = b->kv_type,
        .bytes_per_token = b->bytes_per_token,
        .head_bytes = b->head_bytes,
        .macs_per_token = linear_macs(hp),
    };
    (void)gguf_get_str(m->gguf, "general.name", &name); /* optional key */
    copy_str(model->info.name, sizeof model->info.name, name);
    copy_str(model->info.arch, sizeof model->info.arch, bn_str_of(m->arch->name));
    copy_str(model->info.quantisation, sizeof model->info.quantisation,
             bn_str_of(tensor_geometries[m->ternary_type].name));
    (void)snprintf(model->info.activations, sizeof model->info.activations, "%s: %s",
                   act_scheme_name(m->act_scheme), m->act_reason);
    model_window_text(m, model->info.window, sizeof model->info.window);
    if (m->rotation.version)
        file_rotation_describe(&m->rotation, model->info.rotation, sizeof model->info.rotation);
    copy_str(model->info.skip_reason, sizeof model->info.skip_reason, bn_str_of(skip_reason));
    copy_str(model->info.device, sizeof model->info.device, bn_str_of(b->text));
}

struct backend_config engine_backend_config(const struct bn_model_config *cfg)
{
    return (struct backend_config){
        .isa = cfg->isa,
        .n_threads = cfg->n_threads,
        .n_ubatch = cfg->n_ubatch > 0 ? cfg->n_ubatch : DEFAULT_UBATCH,
        .head = cfg->head,
        .kv = cfg->kv,
        .skip = cfg->skip,
        .profile = cfg->profile,
        .pin = cfg->pin,
        .no_ring = cfg->no_ring,
    };
}

static bool check_config(const struct bn_model_config *cfg, struct bn_error *err)
{
    if (cfg->n_ubatch > BN_MAX_UBATCH)
        return bn_fail(err, BN_EARG, "a micro-batch of %zu tokens is too large, at most %d",
                       cfg->n_ubatch, BN_MAX_UBATCH);
    if (cfg->activations > BN_ACT_FLOAT)
        return bn_fail(err, BN_EARG, "unknown activations %d", (int)cfg->activations);
    if (cfg->skip > BN_SKIP_OFF)
        return bn_fail(err, BN_EARG, "unknown value %d for skipping zeros", (int)cfg->skip);
    if (cfg->window_rule > BN_WINDOW_MAINLINE)
        return bn_fail(err, BN_EARG, "unknown window rule %d", (int)cfg->window_rule);
    if (cfg->i2s_layout > BN_I2S_C || cfg->head > BN_HEAD_FULL || cfg->kv > BN_KV_Q8)
        return bn_fail(err, BN_EARG, "unknown I2_S layout %d, output head %d or KV cache type %d",
                       (int)cfg->i2s_layout, (int)cfg->head, (int)cfg->kv);
    return true;
}

/* Lower limit of the memory for the weights: each ternary weight of a layer takes at least two
 * bits. The list of tensors is enough to compute it, so a model that cannot fit is refused before
 * the first weight is read. The few tensors of layers that the program does not use count too
 * (hparams.n_extra_layers, ignored_tensors). */
static size_t least_weight_bytes(const struct gguf *g)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        /* Tensors of layers have names "blk.LAYER.NAME". A byte holds four weights of two bits. */
        if (bn_str_starts(t->name, bn_str_of("blk.")) && tensor_geometries[t->type].is_ternary)
            n += t->n_cols / 4 * t->n_rows; /* no overflow: the file has at least half of this */
    }
    return n;
}

/* Check that the main memory has room for the weights, for the scratch memory of a pass and for the
 * memory of a session that does not depend on its tokens. The plan has 0 for what is not known yet.
 * Only the addresses of scratch memory are reserved when the model opens. Without this check, the
 * process would be killed at its first long prompt. Backends of other devices check their memory
 * themselves. */
static bool check_memory(const struct backend_ops *ops, const struct backend_plan *plan,
                         struct bn_error *err)
{
    const size_t n_free = mem_free_bytes();
    size_t n_work, n_all;
    if (strcmp(ops->name, "cpu") != 0 ||
        (size_add(&n_work, plan->scratch_bytes, plan->seq_fixed_bytes) &&
         size_add(&n_all, plan->weight_bytes, n_work) && n_all <= n_free))
        return true;
    const double work_mb = ((double)plan->scratch_bytes + (double)plan->seq_fixed_bytes) / 1e6;
    if (work_mb == 0.0)
        return bn_fail(
            err, BN_ENOMEM,
            "the model needs %.0f MB of memory for its weights, but only %.0f MB are free",
            (double)plan->weight_bytes / 1e6, (double)n_free / 1e6);
    return bn_fail(
        err, BN_ENOMEM,
        "the model needs %.0f MB of memory for its weights and %.0f MB for the work on a "
        "prompt, but only %.0f MB are free",
        (double)plan->weight_bytes / 1e6, work_mb, (double)n_free / 1e6);
}

/* Plan and open the backend. If a GPU has too little memory for the weights, "auto" goes on with
 * the CPU. The memory of a context is checked later, when a session opens. */
static bool open_backend(struct bn_model *model, const char *device, struct backend_config *cfg,
                         const struct backend_control *control, struct bn_error *err)
{
    struct backend_plan plan;
    do {
        if (!backend_plan_model(device, model->model, cfg, &model->ops, &plan, err) ||
            !check_memory(model->ops, &plan, err))
            return false;
        if (model->ops->open(model->model, cfg, control, &model->backend, err))
            return true;
    } while (err->code == BN_ENOMEM && backend_use_next(device, err, cfg, &model->ops));
    return false;
}

static bool open_model(struct bn_model *model, const struct bn_file *file,
                       const struct bn_model_config *cfg, struct bn_error *err)
{
    const atomic_bool *cancel = cfg->cancel ? &cfg->cancel->requested : NULL;
    const struct model_config model_cfg = {
        .i2s_layout = cfg->i2s_layout,
        .activations = cfg->activations,
        .window_rule = cfg->window_rule,
        .no_repair = cfg->no_repair,
        .ignored_tensors = cfg->ignored_tensors,
        .n_ignored_tensors = cfg->n_ignored_tensors,
        .file_mapped = bn_file_path(file)[0] != '\0', /* a file in memory has no path */
        .notes = cfg->notes,
        .cancel = cancel,
    };
    const struct backend_control control = {cancel, cfg->progress.report, cfg->progress.ud};
    if (!check_config(cfg, err))
        return false;
    struct backend_config backend_cfg = engine_backend_config(cfg);
    backend_cfg.file_mapped = model_cfg.file_mapped;
    backend_cfg.log = cfg->log;
    backend_cfg.trace = cfg->trace;
    backend_cfg.trace_ud = cfg->trace_ud;
    const struct backend_plan least = {.weight_bytes = least_weight_bytes(bn_file_gguf(file))};
    if (!backend_choose(cfg->device, &backend_cfg, &model->ops, err) ||
        !check_memory(model->ops, &least, err) ||
        !model_open(bn_file_gguf(file), &model_cfg, &model->model, err) ||
        !open_backend(model, cfg->device, &backend_cfg, &control, err))
        return false;
    model->batch = mem_alloc(backend_cfg.n_ubatch, sizeof *model->batch);
    if (!model->batch)
        return bn_fail(err, BN_ENOMEM, "no memory for a micro-batch of %zu tokens",
                       backend_cfg.n_ubatch);
    model->kv_hash = kv_hash(model->model);
    fill_info(model, backend_cfg.n_ubatch, backend_cfg.skip_reason);
    return true;
}

bool bn_model_open(const struct bn_file *file, const struct bn_model_config *cfg,
                   struct bn_model **out, struct bn_error *err)
{
    const struct bn_model_config defaults = {0};
    const double start = clock_seconds();
    struct bn_model *model = mem_alloc(1, sizeof *model);
    if (!model)
        return bn_fail(err, BN_ENOMEM, "no memory for the model");
    if (!open_model(model, file, cfg ? cfg : &defaults, err)) {
        bn_model_close(model);
        return false;
    }
    model->info.load_seconds = clock_seconds() - start;
    *out = model;
    return true;
}

void bn_model_close(struct bn_model *model)
{
    if (!model)
        return;
    if (model->ops)
        model->ops->close(model->backend);
    mem_free(model->batch);
    model_close(model->model);
    mem_free(model);
}

const struct bn_model_info *bn_model_info(const struct bn_model *model)
{
    return &model->info;
}

double bn_model_bandwidth(struct bn_model *model)
{
    return model->ops->bandwidth(model->backend);
}

double bn_model_mac_peak(struct bn_model *model, enum bn_mac kind)
{
    return model->ops->mac_peak(model->backend, kind);
}

uint64_t bn_model_bytes_read(const struct bn_model *model)
{
    return model->bytes_read;
}

/* The KV cache of each sequence is counted at its full size. It may reach that size, although on
 * the CPU memory is used only as it fills. Half of the free memory remains: some of it holds pages
 * of the model file, which count as free but are read for every token, and other programs need
 * some. */
size_t engine_batch_width(size_t free_bytes, size_t kv_bytes_per_token, size_t seq_fixed_bytes,
                          size_t n_ctx)
{
    size_t total_bytes;
    if (!size_mul(&total_bytes, kv_bytes_per_token, n_ctx) ||
        !size_add(&total_bytes, total_bytes, seq_fixed_bytes))
        return 1;
    return size_max(size_min(free_bytes / 2 / size_max(total_bytes, 1), MAX_BATCH_WIDTH), 1);
}

size_t bn_model_batch_width(const struct bn_model *model, size_t n_ctx)
{
    const struct bn_model_info *info = &model->info;
    const size_t free_bytes = model->ops->free_bytes(model->backend);
    const size_t width =
        engine_batch_width(free_bytes, info->kv_bytes_per_token, info->seq_fixed_bytes,
                           n_ctx > 0 ? n_ctx : info->n_ctx_default);
    return size_min(width, info->n_ubatch);
}

size_t bn_model_state_memory(const struct bn_model *model)
{
    const size_t n_free = mem_free_bytes(); /* states are in main memory, whatever the device */
    size_t least;
    if (!size_mul(&least, model->info.state_bytes, MIN_STATES) || least == 0)
        return 0;
    /* A quarter, because the KV cache and the pages of the model file need memory too. SIZE_MAX:
     * the free memory is unknown. */
    return n_free == SIZE_MAX ? least : size_max(n_free / 4, least);
}

size_t bn_model_explain(const struct bn_model *model, size_t n_sequences, size_t n_tokens,
                        char *text, size_t text_bytes)
{
    return model->ops->explain(model->backend, n_sequences, n_tokens, text, text_bytes);
}

size_t bn_model_profile(struct bn_model *model, struct bn_profile_step *out, size_t cap)
{
    return model->ops->profile(model->backend, out, cap);
}

size_t bn_model_expert_counts(const struct bn_model *model, uint64_t *out, size_t cap)
{
    return model->ops->expert_counts(model->backend, out, cap);
}

size_t bn_device_list(struct bn_device_line *out, size_t cap)
{
    const struct backend_config cfg = engine_backend_config(&(struct bn_model_config){0});
    size_t n = 0;
    for (; backend_name(n); n++) {
        if (n >= cap)
            continue; /* only counted */
        out[n] = (struct bn_device_line){0};
        copy_str(out[n].name, sizeof out[n].name, bn_str_of(backend_name(n)));
        out[n].usable = backend_probe(n, &cfg, out[n].text, sizeof out[n].text);
    }
    return n;
}
