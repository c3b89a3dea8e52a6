/*
 * Opens and closes the CUDA backend and reports its properties.
 */
#include "engine/cuda/cuda_backend.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cuda/cuda_experts.h"
#include "engine/cuda/cuda_ring.h"
#include "engine/cuda/cuda_state.h"
#include "engine/model/rope.h"

#include <stdio.h>
#include <string.h>

#define READ_BYTES ((size_t)2 << 30)      /* much larger than any cache */
#define READ_MIN_BYTES ((size_t)64 << 20) /* smallest buffer that yields a realistic bandwidth */
#define N_READS 6                         /* of the bandwidth test; the fastest counts */

static bool cuda_probe(const struct backend_config *cfg, char *text, size_t text_bytes)
{
    struct cuda_device dev = {0};
    struct bn_error err;
    if (cfg->isa) {
        (void)snprintf(text, text_bytes, "instruction set '%s' was requested, which only a CPU has",
                       cfg->isa);
        return false;
    }
    if (cfg->kv != BN_KV_F16) {
        (void)snprintf(text, text_bytes, "it supports only an F16 KV cache");
        return false;
    }
    const bool ok = cuda_device_open(&dev, cfg->index, &err) && cuda_selftest(&dev, &err);
    (void)snprintf(text, text_bytes, "%s", ok ? dev.name : err.text);
    cuda_device_close(&dev);
    return ok;
}

static void fill_info(struct backend *b, const struct backend_plan *plan)
{
    const size_t head_bytes = cuda_head_bytes(b);
    const struct hparams *hp = &b->model->hp;
    const size_t unused_bytes = /* of the experts that a token does not use */
        b->expert_bytes / size_max(hp->n_experts, 1) * (hp->n_experts - hp->n_used_experts);
    b->info = (struct backend_info){
        .isa = "cuda",
        .n_threads = 1,
        .plan = *plan,
        .bytes_per_token = b->layer_bytes - unused_bytes + head_bytes + b->shape.row_bytes +
                           2 * b->shape.state_bytes,
        .head_bytes = head_bytes,
        .kv_type = "f16",
        /* seq_save writes the formats of the CPU backend. */
        .kv_version = b->shape.ring.n_blocks > 0 ? "cpu-f16-ring-1" : "cpu-f16-1",
    };
    /* At most 50 bytes of the name, so that graph_note fits. */
    (void)snprintf(b->info.text, sizeof b->info.text, "CUDA, %.50s%s%s", b->device.name,
                   b->graph_note[0] ? ", " : "", b->graph_note);
}

static void cuda_close(struct backend *b)
{
    if (!b)
        return;
    if (b->device.context) {
        /* Ignore errors: after a device is lost, every call fails, but the rest must be freed. */
        (void)b->device.driver.cuCtxSetCurrent(b->device.context);
        for (size_t i = 0; i < 2; i++)
            if (b->graphs[i])
                (void)b->device.driver.cuGraphExecDestroy(b->graphs[i]);
        if (b->weights)
            (void)b->device.driver.cuMemFree(b->weights);
    }
    cuda_scratch_close(b);
    cuda_device_close(&b->device);
    mem_free(b->layers);
    mem_free(b->rope_freq);
    mem_free(b);
}

static bool check_memory(struct backend *b, const struct backend_plan *plan, struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    size_t n_free = 0, n_total = 0;
    if (!cuda_ok(d, d->cuMemGetInfo(&n_free, &n_total), "reading the free GPU memory", err))
        return false;
    if (plan->weight_bytes <= n_free && plan->scratch_bytes <= n_free - plan->weight_bytes)
        return true; /* cuda_kv_open checks the memory of a sequence */
    return bn_fail(
        err, BN_ENOMEM,
        "%s has %.0f MB of %.0f MB free; "
        "the model needs %.0f MB for weights, %.0f MB for scratch, %.3f MB per token of context: "
        "no context would fit; --device cpu uses main memory",
        b->device.name, (double)n_free / MEGA, (double)n_total / MEGA,
        (double)plan->weight_bytes / MEGA, (double)plan->scratch_bytes / MEGA,
        (double)plan->kv_bytes_per_token / MEGA);
}

/* Sets inputs and output of a matrix in R1-256 or R16: a matrix uses only one of lines and groups.
 * `kind` is enum linear_kind. */
static void connect_matrix(const struct backend *b, struct cuda_matrix *matrix, float *y,
                           size_t stride, int32_t kind)
{
    const struct cuda_scratch *s = &b->scratch;
    struct r16_args *groups = &matrix->groups;
    const uint32_t block_cols = groups->in.block_cols; /* set by cuda_pack_model */
    matrix->lines.y = groups->y = y;
    matrix->lines.y_stride = groups->y_stride = (uint32_t)stride;
    matrix->lines.kind = groups->kind = kind;
    matrix->lines.q = s->q8;
    matrix->lines.q_s = s->q8_s;
    matrix->lines.q_sum = s->q8_sum;
    groups->in = s->blocks;
    groups->in.block_cols = block_cols;
}

static void connect_layers(struct backend *b)
{
    const struct cuda_scratch *s = &b->scratch;
    const struct cuda_shape *shape = &b->shape;
    const int32_t act = b->model->hp.ffn_act == FFN_RELU2 ? LINEAR_RELU2 : LINEAR_SILU;
    for (size_t i = 0; i < b->model->hp.n_layers; i++) {
        struct cuda_layer *l = &b->layers[i];
        connect_matrix(b, &l->qkv, s->qkv, shape->widths.qkv_stride, LINEAR_STORE);
        connect_matrix(b, &l->o, s->h, shape->widths.h_stride, LINEAR_ADD);
        connect_matrix(b, &l->gate_up, s->ffn, shape->widths.ffn_stride, act);
        connect_matrix(b, &l->down, s->h, shape->widths.h_stride, LINEAR_ADD);
        if (b->model->arch->experts)
            cuda_experts_connect(b, l);
    }
    connect_matrix(b, &b->ternary_head, s->z, shape->widths.vocab_stride, LINEAR_STORE);
}

static bool open_backend(struct backend *b, const struct backend_control *control,
                         struct bn_error *err)
{
    const struct model *m = b->model;
    struct backend_plan plan;
    if (!cuda_plan_bytes(m, &b->cfg, &plan, err) || !cuda_shape_init(&b->shape, m, &b->cfg, err))
        return false;
    b->rope_freq = mem_alloc(m->hp.n_rot, sizeof(double));
    if (!b->rope_freq)
        return bn_fail(err, BN_ENOMEM, "no memory for the RoPE table");
    if (!rope_freq_init(b->rope_freq, m, false, err) ||
        !rope_freq_init(b->rope_freq + m->hp.n_rot / 2, m, true, err) ||
        !cuda_device_open(&b->device, b->cfg.index, err))
        return false;
    b->device.dependent_launch = b->device.dependent_launch && !b->cfg.no_early_launch;
    if (b->cfg.profile && !cuda_profile_open(&b->device, err))
        return false;
    if (!check_memory(b, &plan, err) || !cuda_pack_model(b, control, err) ||
        !cuda_scratch_open(b, err))
        return false;
    connect_layers(b);
    cuda_kv_number(b);
    if (!cuda_forward_capture(b, err))
        return false;
    fill_info(b, &plan);
    return true;
}

static bool cuda_open(const struct model *m, const struct backend_config *cfg,
                      const struct backend_control *control, struct backend **out,
                      struct bn_error *err)
{
    if (cfg->isa)
        return bn_fail(err, BN_EARG, "instruction set '%s' was requested, which only a CPU has",
                       cfg->isa);
    struct backend *b = mem_alloc(1, sizeof *b);
    if (!b)
        return bn_fail(err, BN_ENOMEM, "no memory for the backend");
    b->model = m;
    b->cfg = *cfg;
    b->n_ubatch = cfg->n_ubatch;
    if (!open_backend(b, control, err)) {
        cuda_close(b);
        return false;
    }
    *out = b;
    return true;
}

static const struct backend_info *cuda_info(const struct backend *b)
{
    return &b->info;
}

/* Allocates a buffer for the bandwidth test: READ_BYTES, or the largest half, quarter, ... that is
 * free. *n_bytes becomes its size. Returns 0 if READ_MIN_BYTES are not free; the caller then reads
 * *n_bytes of the weights. */
static CUdeviceptr read_target(struct backend *b, size_t *n_bytes)
{
    struct cuda_driver *d = &b->device.driver;
    CUdeviceptr memory;
    for (*n_bytes = READ_BYTES; *n_bytes >= READ_MIN_BYTES; *n_bytes /= 2)
        if (d->cuMemAlloc(&memory, *n_bytes) == CUDA_SUCCESS)
            return memory;
    *n_bytes = b->layer_bytes;
    return 0;
}

static double cuda_bandwidth(struct backend *b)
{
    struct cuda_device *dev = &b->device;
    struct bn_error err;
    size_t n_bytes;
    double best = 0;
    if (!cuda_enter(dev, &err))
        return 0;
    const CUdeviceptr memory = read_target(b, &n_bytes);
    struct read_args args = {.at = (const uint8_t *)(uintptr_t)(memory ? memory : b->weights),
                             .n_chunks = n_bytes / 16,
                             /* The kernel needs a place for its sum. No pass runs now, so this
                              * buffer is free. */
                             .sum = (uint32_t *)b->scratch.gathered};
    for (size_t i = 0; i < N_READS; i++) {
        const double start = clock_seconds();
        /* 8 x 256 threads: the most of a multiprocessor with capability 8.0 or 9.0 */
        cuda_launch(dev, KERNEL_read_memory,
                    (struct cuda_grid){8 * (size_t)dev->n_processors, 1, 1, 0}, &args);
        if (!cuda_finish(dev, &err))
            break;
        const double rate = (double)n_bytes / (clock_seconds() - start);
        best = rate > best ? rate : best;
    }
    if (memory)
        (void)dev->driver.cuMemFree(memory);
    return best;
}

static double cuda_mac_peak(struct backend *b, enum bn_mac kind)
{
    (void)b;
    (void)kind;
    return 0; /* not measured */
}

static size_t cuda_explain(const struct backend *b, size_t n_items, size_t n_ids, char *text,
                           size_t text_bytes)
{
    const int n = snprintf(text, text_bytes, "%zu tokens of %zu sequences in one pass on %s\n",
                           n_items * n_ids, n_items, b->device.name);
    return n > 0 ? (size_t)n : 0;
}

static size_t cuda_free_bytes(struct backend *b)
{
    struct cuda_driver *d = &b->device.driver;
    struct bn_error ignored; /* on an error the size is unknown */
    size_t n_free = 0, n_total = 0;
    if (!cuda_enter(&b->device, &ignored) ||
        !cuda_ok(d, d->cuMemGetInfo(&n_free, &n_total), "reading the free GPU memory", &ignored))
        return SIZE_MAX;
    return n_free;
}

_Static_assert(KERNEL_N <= BN_PROFILE_STEPS, "each kernel is a kind of work");

/* The kernels that ran since the last call, in the order of CUDA_KERNELS. Without a profile no
 * launch is counted, so the result is 0. */
static size_t cuda_profile(struct backend *b, struct bn_profile_step *out, size_t cap)
{
    struct cuda_profile *p = &b->device.profile;
    size_t n = 0;
    for (size_t k = 0; k < KERNEL_N; k++) {
        if (p->n_calls[k] > 0 && n < cap)
            out[n++] = (struct bn_profile_step){.name = cuda_kernel_name((enum cuda_kernel)k),
                                                .seconds = p->seconds[k],
                                                .n_calls = p->n_calls[k]};
        p->seconds[k] = 0;
        p->n_calls[k] = 0;
    }
    return n;
}

const struct backend_ops cuda_backend_ops = {
    .name = "cuda",
    .probe = cuda_probe,
    .plan = cuda_plan_bytes,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .bandwidth = cuda_bandwidth,
    .mac_peak = cuda_mac_peak,
    .explain = cuda_explain,
    .expert_counts = cuda_expert_counts,
    .free_bytes = cuda_free_bytes,
    .profile = cuda_profile,
    .seq_open = cuda_kv_open,
    .seq_close = cuda_kv_close,
    .eval = cuda_eval,
    .reachable = cuda_kv_reachable,
    .truncate = cuda_kv_truncate,
    .state_save = cuda_kv_state_save,
    .state_load = cuda_kv_state_load,
    .seq_save = cuda_kv_save,
    .seq_save_bytes = cuda_kv_save_bytes,
    .seq_load = cuda_kv_load,
};
