/*
 * Opening and closing the CUDA backend, and one eval: check the items, write the table of the pass,
 * run it, and only then let sequences and rows change.
 */
#include "engine/cuda/cuda_backend.h"

#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/cuda/cuda_state.h"
#include "engine/model/rope.h"

#include <stdio.h>
#include <string.h>

#define KV_VERSION "cpu-f16-1"              /* the bytes of the CPU backend */
#define READ_BYTES ((size_t)2 << 30)        /* many times the largest cache */
#define READ_LEAST_BYTES ((size_t)64 << 20) /* what is read when memory is short */
#define N_LOOPS 6
#define MEGA 1000000.0

/* What the head reads for one token, rows looked up again not counted. */
static size_t head_bytes_of(const struct backend *b)
{
    const size_t n_vocab = b->model->hp.n_vocab;
    if (b->coarse.n_blocks == 0)
        return n_vocab * b->shape.head_row_bytes;
    return n_vocab * (b->coarse.n_blocks * LINE_BYTES + b->coarse.step_stride * sizeof(uint16_t));
}

static void fill_info(struct backend *b, const struct backend_plan *plan)
{
    const size_t head_bytes = head_bytes_of(b);
    b->info = (struct backend_info){
        .isa = "cuda",
        .n_threads = 1,
        .plan = *plan,
        .bytes_per_token = b->line_bytes + head_bytes + b->shape.row_bytes,
        .head_bytes = head_bytes,
        .kv_type = "f16",
        .kv_version = KV_VERSION,
    };
    (void)snprintf(b->info.text, sizeof b->info.text, "CUDA, %s", b->device.name);
}

static void cuda_close(struct backend *b)
{
    if (!b)
        return;
    if (b->device.context) {
        /* What a lost device says to all this changes nothing. */
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

/* Weights and scratch fit, or one sentence with all the numbers. */
static bool check_memory(struct backend *b, const struct backend_plan *plan, struct bn_error *err)
{
    struct cuda_driver *d = &b->device.driver;
    size_t n_free = 0, n_total = 0;
    if (!cuda_ok(d, d->cuMemGetInfo(&n_free, &n_total), "the GPU's memory", err))
        return false;
    if (plan->weight_bytes <= n_free && plan->scratch_bytes <= n_free - plan->weight_bytes)
        return true;
    return bn_fail(err, BN_ENOMEM,
                   "%s has %.0f MB of %.0f MB free; this model needs %.0f MB for weights, %.0f MB "
                   "for scratch and %.3f MB of KV cache a token: no context would fit",
                   b->device.name, (double)n_free / MEGA, (double)n_total / MEGA,
                   (double)plan->weight_bytes / MEGA, (double)plan->scratch_bytes / MEGA,
                   (double)plan->kv_bytes_per_token / MEGA);
}

/* What the linear layers of every layer share: where input and output are. */
static void connect_layers(struct backend *b)
{
    const struct cuda_scratch *s = &b->scratch;
    const struct cuda_shape *shape = &b->shape;
    const int32_t act = b->model->hp.act == FFN_RELU2 ? LINEAR_RELU2 : LINEAR_SILU;
    for (size_t i = 0; i < b->model->hp.n_layers; i++) {
        struct cuda_layer *l = &b->layers[i];
        const struct {
            struct linear_args *args;
            float *y;
            size_t stride;
            int32_t kind;
        } outs[] = {{&l->qkv, s->qkv, shape->qkv_stride, LINEAR_STORE},
                    {&l->o, s->h, shape->h_stride, LINEAR_ADD},
                    {&l->gate_up, s->ffn, shape->ffn_stride, act},
                    {&l->down, s->h, shape->h_stride, LINEAR_ADD}};
        for (size_t j = 0; j < sizeof outs / sizeof outs[0]; j++) {
            outs[j].args->y = outs[j].y;
            outs[j].args->y_stride = (uint32_t)outs[j].stride;
            outs[j].args->kind = outs[j].kind;
            outs[j].args->q = s->q8;
            outs[j].args->q_s = s->q8_s;
            outs[j].args->q_sum = s->q8_sum;
        }
    }
}

static bool open_parts(struct backend *b, const struct backend_control *control,
                       struct bn_error *err)
{
    const struct model *m = b->model;
    struct backend_plan plan;
    if (!cuda_plan_bytes(m, &b->cfg, &plan, err) ||
        !cuda_shape_init(&b->shape, m, b->cfg.head, err))
        return false;
    if (!tensor_geometries[m->embd.type].is_table || !tensor_geometries[m->head.type].is_table)
        return bn_fail(err, BN_EUNSUPPORTED, "tables of type %s are not supported",
                       tensor_geometries[m->head.type].name);
    b->rope_freq = mem_alloc(m->hp.n_rot / 2, sizeof(double));
    if (!b->rope_freq)
        return bn_fail(err, BN_ENOMEM, "no memory for the RoPE table");
    if (!rope_freq_init(b->rope_freq, m, err) || !cuda_device_open(&b->device, b->cfg.index, err) ||
        !check_memory(b, &plan, err) || !cuda_pack_model(b, control, err) ||
        !cuda_scratch_open(b, err))
        return false;
    connect_layers(b);
    fill_info(b, &plan);
    return cuda_forward_capture(b, err);
}

static bool cuda_open(const struct model *m, const struct backend_config *cfg,
                      const struct backend_control *control, struct backend **out,
                      struct bn_error *err)
{
    if (cfg->head == BACKEND_HEAD_Q8)
        return bn_fail(err, BN_EUNSUPPORTED,
                       "the CUDA backend has no 8-bit head: use the exact one");
    if (cfg->isa)
        return bn_fail(err, BN_EARG, "instruction set '%s' is not one of a GPU", cfg->isa);
    struct backend *b = mem_alloc(1, sizeof *b);
    if (!b)
        return bn_fail(err, BN_ENOMEM, "no memory for the backend");
    b->model = m;
    b->cfg = *cfg;
    b->n_ubatch = cfg->n_ubatch;
    if (!open_parts(b, control, err)) {
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

/* Memory to read, as large as may be had; NULL and the weights if that is nothing. */
static CUdeviceptr read_target(struct backend *b, size_t *n_bytes)
{
    struct cuda_driver *d = &b->device.driver;
    CUdeviceptr memory;
    for (*n_bytes = READ_BYTES; *n_bytes >= READ_LEAST_BYTES; *n_bytes /= 2)
        if (d->cuMemAlloc(&memory, *n_bytes) == CUDA_SUCCESS)
            return memory;
    *n_bytes = b->line_bytes;
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
                             .sum = (uint32_t *)b->scratch.gathered};
    for (size_t i = 0; i < N_LOOPS; i++) {
        const double start = clock_seconds();
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

static double cuda_mac_peak(struct backend *b, enum backend_mac kind)
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
    struct bn_error ignored; /* not known, then */
    size_t n_free = 0, n_total = 0;
    if (!cuda_enter(&b->device, &ignored) ||
        !cuda_ok(d, d->cuMemGetInfo(&n_free, &n_total), "the GPU's memory", &ignored))
        return SIZE_MAX;
    return n_free;
}

static size_t cuda_profile(struct backend *b, struct backend_step *out, size_t cap)
{
    (void)b;
    (void)out;
    (void)cap;
    return 0; /* not measured */
}

/* What a pass reads: weights once, tables as often as used, the keys and values seen. */
static uint64_t pass_bytes(const struct backend *b)
{
    const struct pass *pass = &b->pass;
    const size_t n_vocab = b->model->hp.n_vocab, row_bytes = b->shape.head_row_bytes;
    uint64_t n = b->line_bytes + pass->n_tokens * b->shape.row_bytes + pass->n_asked * row_bytes;
    for (size_t i = 0; i < pass->n_wants; i += HEAD_GROUP) {
        const size_t n_rows = size_min(HEAD_GROUP, pass->n_wants - i);
        const size_t n_reads = n_rows == 1 ? 1 : (n_rows + HEAD_ROWS - 1) / HEAD_ROWS;
        n += n_reads * (cuda_head_screened(b, i, n_rows) ? head_bytes_of(b) : n_vocab * row_bytes);
    }
    for (size_t i = 0; i < pass->n_items; i++) {
        const struct eval_item *item = &pass->items[i];
        if (item->n_ids > 0)
            n += (uint64_t)b->shape.block_bytes *
                 ((item->seq->length + item->n_ids - 1) / KV_BLOCK + 1);
    }
    return n;
}

/* A row as the device is told of it. */
static struct cuda_want tell_want(const struct head_request *head, size_t token, size_t position)
{
    struct cuda_want w = {.token = (uint32_t)token};
    if (head->kind == HEAD_TOP) {
        w.k = (uint32_t)size_min(head->k, UINT32_MAX);
        w.gap = head->gap;
    } else if (head->kind == HEAD_GUMBEL) {
        w.seed = head->seed;
        w.position = position;
        w.beta = 1.0 / (double)head->temp;
    }
    return w;
}

/* The item's tokens and rows to the table, from `token0` and `want0` on. */
static void tell_item(struct backend *b, const struct eval_item *item, size_t token0, size_t want0)
{
    const struct pass_layout *l = &b->pass.layout;
    const size_t n_pairs = b->model->hp.n_rot / 2, first = item->n_ids - item->n_rows;
    uint8_t *table = b->host.table;
    struct cuda_want *wants = (void *)(table + l->wants);
    struct cuda_token *tokens = (void *)(table + l->tokens);
    float *c = (void *)(table + l->rope_c), *s = (void *)(table + l->rope_s);
    for (size_t i = 0; i < item->n_ids; i++) {
        const size_t t = token0 + i, pos = item->seq->length + i;
        tokens[t] = (struct cuda_token){.kv = (uint16_t *)(uintptr_t)item->seq->memory,
                                        .slots = (float *)(uintptr_t)item->seq->slots,
                                        .pos = (int32_t)pos,
                                        .id = item->ids[i]};
        rope_angles(b->rope_freq, n_pairs, pos, c + t * n_pairs, s + t * n_pairs);
    }
    for (size_t i = 0; item->head.kind != HEAD_NONE && i < item->n_rows; i++) {
        const size_t position = item->seq->length + first + i + 1;
        b->host.wants[want0 + i] =
            (struct want){.head = &item->head, .row = &item->rows[i], .position = position};
        wants[want0 + i] = tell_want(&item->head, token0 + first + i, position);
    }
}

static bool begin_pass(struct backend *b, struct eval_item *items, size_t n_items,
                       const atomic_bool *cancel, struct bn_error *err)
{
    struct pass *pass = &b->pass;
    *pass = (struct pass){.items = items, .n_items = n_items, .split = true, .cancel = cancel};
    for (size_t i = 0; i < n_items; i++) {
        if (items[i].n_ids > b->n_ubatch - pass->n_tokens)
            return bn_fail(err, BN_EARG, "more tokens than the micro-batch of %zu", b->n_ubatch);
        if (items[i].n_ids > items[i].seq->n_ctx - items[i].seq->length)
            return bn_fail(err, BN_ECONTEXT, "%zu more tokens do not fit in a context of %zu",
                           items[i].n_ids, items[i].seq->n_ctx);
        pass->split &= items[i].n_ids <= 1;
        pass->n_tokens += items[i].n_ids;
        pass->n_wants += items[i].head.kind == HEAD_NONE ? 0 : items[i].n_rows;
    }
    pass->layout = cuda_pass_layout(b->model, pass->n_tokens, pass->n_wants);
    size_t token0 = 0, want0 = 0;
    for (size_t i = 0; i < n_items; i++) {
        tell_item(b, &items[i], token0, want0);
        token0 += items[i].n_ids;
        want0 += items[i].head.kind == HEAD_NONE ? 0 : items[i].n_rows;
    }
    return true;
}

static bool cuda_eval(struct backend *b, struct eval_item *items, size_t n_items,
                      const struct backend_control *control, uint64_t *n_bytes,
                      struct bn_error *err)
{
    struct pass *pass = &b->pass;
    if (!cuda_enter(&b->device, err) ||
        !begin_pass(b, items, n_items, control ? control->cancel : NULL, err))
        return false;
    *n_bytes = 0;
    if (pass->n_tokens == 0)
        return true;
    if (!cuda_forward(b, err))
        return cuda_look_after(&b->device, err);
    *n_bytes = pass_bytes(b);
    for (size_t i = 0; i < n_items; i++)
        items[i].seq->length += items[i].n_ids;
    for (size_t i = 0; i < pass->n_wants; i++)
        b->host.wants[i].row->n = b->host.wants[i].n_found;
    return true;
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
    .free_bytes = cuda_free_bytes,
    .profile = cuda_profile,
    .seq_open = cuda_kv_open,
    .seq_close = cuda_kv_close,
    .seq_length = cuda_kv_length,
    .eval = cuda_eval,
    .truncate = cuda_kv_truncate,
    .seq_save = cuda_kv_save,
    .seq_load = cuda_kv_load,
};
