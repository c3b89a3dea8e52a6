/*
 * The transformer as a series of launches on one stream. docs/kernels.md has the formulas. Names
 * and order of the steps are those of the CPU backend.
 *
 * The steps allocate nothing and wait only for a trace or a profile; cuda_forward waits for the
 * results of the output head. A pass of one token with one requested row is replayed as a graph. It
 * is captured when the backend opens, once with the whole head and, if the head has a coarse plane,
 * once with the screened head. (cuda_forward_capture can leave graphs out.)
 */
#include "engine/base/size.h"
#include "engine/cuda/cuda_experts.h"
#include "engine/cuda/cuda_state.h"

#include <math.h>
#include <stdio.h>

#define SMALL_TABLE 8192 /* bytes that a kernel copies faster than the driver */
#define FEW_LIMIT 32     /* most tokens for linear_few, see docs/cuda.md, "Speed" */

static const void *table_at(const struct backend *b, size_t offset)
{
    return b->scratch.table + offset;
}

static const struct cuda_token *pass_tokens(const struct backend *b)
{
    return table_at(b, b->pass.layout.tokens);
}

/* Passes a vector of each token to the trace callback, if there is one. */
static void trace_step(struct backend *b, const char *step, size_t layer, const float *x,
                       size_t stride, size_t n)
{
    struct cuda_driver *d = &b->device.driver;
    if (!b->cfg.trace)
        return;
    cuda_record_error(&b->device, d->cuStreamSynchronize(b->device.stream), "computing");
    for (size_t t = 0; t < b->pass.n_tokens; t++) {
        cuda_record_error(
            &b->device,
            d->cuMemcpyDtoH(b->host.trace, (CUdeviceptr)(uintptr_t)(x + t * stride), n * sizeof *x),
            "copying a trace step");
        b->cfg.trace(b->cfg.trace_ud, step, layer, b->host.trace, n);
    }
}

/* Input of a linear layer: rows of n_cols elements, `stride` apart. They are normalised with w
 * unless w is NULL, rotated unless rotation->block is 0, and then quantised (copied for
 * ACT_FLOAT). */
struct input {
    const float *x, *w;
    size_t stride, n_cols;
    const struct rotation *rotation;
};

/* Enqueues norm and rotation, and returns their result as an input. Without a rotation, returns the
 * input unchanged. */
static struct input rotate_input(struct backend *b, struct input in)
{
    struct rotate_args args = {.x = in.x,
                               .w = in.w,
                               .y = b->scratch.rotated,
                               .n = (uint32_t)in.n_cols,
                               .x_stride = (uint32_t)in.stride,
                               .y_stride = (uint32_t)b->shape.rotated_stride};
    if (in.rotation->block == 0)
        return in;
    cuda_rotate_rows(b, in.rotation, &args, b->pass.n_tokens);
    return (struct input){
        .x = args.y, .stride = args.y_stride, .n_cols = in.n_cols, .rotation = in.rotation};
}

/* Norm and product of one token in one launch. */
static void linear_one(struct backend *b, const struct norm_args *norm, const struct linear_args *w)
{
    struct norm_linear_args args = {.norm = *norm, .linear = *w, .n_lanes = 8};
    size_t block_rows = 2 * ONE_THREADS / args.n_lanes; /* of a thread block */
    /* n_lanes lanes share two rows. Double n_lanes, up to 32, while so many lanes cannot preload a
     * row (a line has 4 chunks); also from 8 to 16 if some multiprocessors would be idle. Idle
     * multiprocessors are no reason for 32 lanes: every thread block computes the norm, and more
     * blocks would cost more than they gain. */
    while (4 * w->n_lines > ONE_CHUNKS * args.n_lanes ||
           (args.n_lanes == 8 &&
            grid_blocks(w->n_rows, block_rows) < (size_t)b->device.n_processors)) {
        if (args.n_lanes == 32)
            break;
        args.n_lanes *= 2;
        block_rows /= 2;
    }
    cuda_launch(&b->device, KERNEL_linear_one,
                (struct cuda_grid){grid_blocks(w->n_rows, block_rows), 1, 1, 0}, &args);
}

/* Product of many tokens. With fewer than three thread blocks per multiprocessor, a thread block
 * gets half as many rows: otherwise some multiprocessors would have twice the work of others. */
static void linear_many(struct backend *b, struct linear_args *args)
{
    const size_t n_token_blocks = grid_blocks(args->n_tokens, MANY_TOKENS);
    const size_t n_large = grid_blocks(args->n_rows, MANY_ROWS);
    const bool half = n_large * n_token_blocks < 3 * (size_t)b->device.n_processors;
    const size_t n_blocks = half ? grid_blocks(args->n_rows, HALF_ROWS) : n_large;
    cuda_launch(&b->device, half ? KERNEL_linear_half : KERNEL_linear_many,
                (struct cuda_grid){n_blocks, n_token_blocks, 1, 0}, args);
}

/* y = W q, y + W q or act(W_gate q) * (W_up q), depending on the kind of the matrix
 * (enum linear_kind). */
static void linear_apply(struct backend *b, struct input from, const struct cuda_matrix *matrix)
{
    const struct input in = rotate_input(b, from);
    const struct linear_args *w = &matrix->lines;
    struct linear_args args = *w;
    const size_t n_tokens = b->pass.n_tokens;
    if (matrix->groups.n_groups > 0) {
        cuda_groups_apply(b, in.x, in.w, in.stride, n_tokens, matrix);
        return;
    }
    struct norm_args norm = {.x = in.x,
                             .w = in.w,
                             .q = b->scratch.q8,
                             .q_s = b->scratch.q8_s,
                             .q_sum = b->scratch.q8_sum,
                             .eps = b->model->hp.rms_eps,
                             .n = (uint32_t)in.n_cols,
                             .x_stride = (uint32_t)in.stride,
                             .q_stride = (uint32_t)size_round_up(in.n_cols, LINE_COLS)};
    args.n_tokens = (uint32_t)n_tokens;
    if (n_tokens == 1 && in.n_cols <= ONE_COLS) {
        linear_one(b, &norm, &args);
        return;
    }
    cuda_launch(&b->device, KERNEL_norm_quantise, (struct cuda_grid){n_tokens, 1, 1, 0}, &norm);
    if (n_tokens <= FEW_LIMIT)
        cuda_launch(&b->device, KERNEL_linear_few,
                    (struct cuda_grid){grid_blocks(w->n_rows, FEW_ROWS),
                                       grid_blocks(n_tokens, FEW_TOKENS), 1, 0},
                    &args);
    else
        linear_many(b, &args);
}

static struct rope_args rope_of(const struct backend *b, size_t layer)
{
    const struct hparams *hp = &b->model->hp;
    const struct cuda_shape *s = &b->shape;
    const struct cuda_layer *l = &b->layers[layer];
    const bool has_rope = b->model->layers[layer].traits.has_rope;
    return (struct rope_args){.tokens = pass_tokens(b),
                              .c = table_at(b, b->pass.layout.rope_c),
                              .s = table_at(b, b->pass.layout.rope_s),
                              .qkv = b->scratch.qkv,
                              .kv = l->has_ring ? s->ring_kv : s->kv,
                              .qkv_stride = (uint32_t)s->widths.qkv_stride,
                              .q_floats = (uint32_t)s->widths.q_floats,
                              .q_kv_stride = (uint32_t)(s->widths.q_floats / hp->n_kv_heads),
                              .kv_width = (uint32_t)s->widths.kv_width,
                              .q_norm = l->q_norm,
                              .k_norm = l->k_norm,
                              .eps = hp->rms_eps,
                              .n_q_per_kv = (uint32_t)s->widths.n_q_per_kv,
                              .n_rot = has_rope ? (uint32_t)hp->n_rot : 0,
                              .layer = (uint32_t)l->kv_index,
                              .neox = b->model->arch->rope == ROPE_NEOX,
                              .q_scale = (float)(1.0 / sqrt((double)hp->head_dim))};
}

static struct attn_args attn_of(const struct backend *b, size_t layer)
{
    const struct hparams *hp = &b->model->hp;
    const struct cuda_shape *s = &b->shape;
    const struct cuda_layer *l = &b->layers[layer];
    return (struct attn_args){.tokens = pass_tokens(b),
                              .qkv = b->scratch.qkv,
                              .out = b->scratch.attn,
                              .kv = l->has_ring ? s->ring_kv : s->kv,
                              .n_tokens = (uint32_t)b->pass.n_tokens,
                              .qkv_stride = (uint32_t)s->widths.qkv_stride,
                              .out_stride = (uint32_t)s->widths.attn_stride,
                              .n_heads = (uint32_t)hp->n_heads,
                              .n_q_per_kv = (uint32_t)s->widths.n_q_per_kv,
                              .q_kv_stride = (uint32_t)(s->widths.q_floats / hp->n_kv_heads),
                              .layer = (uint32_t)l->kv_index,
                              .window = (uint32_t)b->model->layers[layer].traits.n_visible_keys};
}

/* Appends the keys and values of all tokens in one launch, then attends in the next, because a
 * token reads those of earlier tokens of the pass. Also for all passes that attn_split cannot
 * run. */
static void attn_many(struct backend *b, size_t layer)
{
    const struct pass *pass = &b->pass;
    const struct cuda_shape *s = &b->shape;
    struct rope_args rope = rope_of(b, layer);
    struct attn_args attn = attn_of(b, layer);
    cuda_launch(&b->device, KERNEL_rope_append,
                (struct cuda_grid){pass->n_tokens, b->model->hp.n_kv_heads, 1, 0}, &rope);
    trace_step(b, "rope", layer, b->scratch.qkv, s->widths.qkv_stride,
               s->widths.q_floats + s->widths.kv_width);
    const size_t n_blocks = grid_blocks(pass->n_tokens * s->widths.n_q_per_kv, APPLY_ROWS) *
                            b->model->hp.n_kv_heads *
                            grid_blocks(b->model->hp.head_dim, APPLY_ELEMS);
    cuda_launch(&b->device, KERNEL_attn_apply, (struct cuda_grid){n_blocks, 1, 1, 0}, &attn);
}

static void attn_split(struct backend *b, size_t layer)
{
    const struct pass *pass = &b->pass;
    struct split_args args = {.rope = rope_of(b, layer),
                              .attn = attn_of(b, layer),
                              .n_ended = b->scratch.n_ended,
                              .n_head_chunks = (uint32_t)b->shape.n_head_chunks};
    cuda_launch(&b->device, KERNEL_attn_split,
                (struct cuda_grid){pass->n_shares, b->shape.n_head_chunks, pass->n_tokens, 0},
                &args);
}

static void run_attention(struct backend *b, size_t i)
{
    const struct cuda_shape *shape = &b->shape;
    const struct cuda_scratch *s = &b->scratch;
    trace_step(b, "qkv", i, s->qkv, shape->widths.qkv_stride,
               shape->widths.q_floats + 2 * shape->widths.kv_width);

    /* apply norms (if any) and RoPE to q and k, scale q, append k and v to the cache; then causal
     * softmax(q k) v, with n_q_per_kv query heads per KV head */
    cuda_gates_split(b);
    (b->pass.split ? attn_split : attn_many)(b, i);
    cuda_gates_apply(b);
    trace_step(b, "attn", i, s->attn, shape->widths.attn_stride, shape->widths.q_width);
}

static void run_delta_net(struct backend *b, size_t i)
{
    const struct delta_shape *d = &b->model->hp.delta;
    const struct cuda_scratch *s = &b->scratch;
    trace_step(b, "qkv", i, s->qkv, b->shape.widths.qkv_stride, delta_channels(d) + delta_width(d));
    cuda_delta_apply(b, i);
    trace_step(b, "delta", i, s->attn, b->shape.widths.attn_stride, delta_width(d));
}

static void run_dense_ffn(struct backend *b, size_t i)
{
    const struct cuda_layer *layer = &b->layers[i];
    const struct hparams *hp = &b->model->hp;
    const struct cuda_shape *shape = &b->shape;
    const struct cuda_scratch *s = &b->scratch;
    const struct layer *from = &b->model->layers[i];

    /* act(W_gate norm(h)) * (W_up norm(h)) */
    linear_apply(b,
                 (struct input){s->h, layer->ffn_norm, shape->widths.h_stride, hp->n_embd,
                                &from->gate.rotation},
                 &layer->gate_up);
    trace_step(b, "ffn", i, s->ffn, shape->widths.ffn_stride, hp->n_ff);

    /* h = h + W_down norm(previous result); no norm if the model has no sub-norms */
    linear_apply(b,
                 (struct input){s->ffn, layer->ffn_sub_norm, shape->widths.ffn_stride, hp->n_ff,
                                &from->down.rotation},
                 &layer->down);
}

static void run_layer(struct backend *b, size_t i)
{
    const struct cuda_layer *layer = &b->layers[i];
    const struct hparams *hp = &b->model->hp;
    const struct cuda_shape *shape = &b->shape;
    const struct cuda_scratch *s = &b->scratch;
    const struct layer *from = &b->model->layers[i];
    const bool is_delta_net = from->traits.is_delta_net;

    /* q, k, v = W_qkv norm(h); in a delta net also z */
    if (is_delta_net)
        cuda_delta_gates(b, i);
    linear_apply(b,
                 (struct input){s->h, layer->attn_norm, shape->widths.h_stride, hp->n_embd,
                                &from->q.rotation},
                 &layer->qkv);
    (is_delta_net ? run_delta_net : run_attention)(b, i);

    /* h = h + W_o norm(attention); no norm if the model has no sub-norms */
    linear_apply(b,
                 (struct input){s->attn, layer->attn_sub_norm, shape->widths.attn_stride,
                                from->o.source.n_cols, &from->o.rotation},
                 &layer->o);
    trace_step(b, "attn_residual", i, s->h, shape->widths.h_stride, hp->n_embd);

    if (b->model->arch->experts)
        cuda_experts_apply(b, i);
    else
        run_dense_ffn(b, i);
    trace_step(b, "ffn_residual", i, s->h, shape->widths.h_stride, hp->n_embd);
}

static void embed_tokens(struct backend *b)
{
    const struct model *m = b->model;
    struct embed_args args = {.table = b->embd,
                              .tokens = pass_tokens(b),
                              .h = b->scratch.h,
                              .row_bytes = b->shape.row_bytes,
                              .factor = (float)m->hp.embd_scale,
                              .n = (uint32_t)m->hp.n_embd,
                              .stride = (uint32_t)b->shape.widths.h_stride,
                              .type = m->embd.type};
    if (m->ternary_embd.bytes) /* the host has decoded the rows */
        cuda_copy(b, (CUdeviceptr)(uintptr_t)b->scratch.h, b->host.embd_at,
                  b->pass.n_tokens * b->shape.widths.h_stride * sizeof(float));
    else
        cuda_launch(
            &b->device, KERNEL_embed_rows,
            (struct cuda_grid){b->pass.n_tokens, grid_blocks(m->hp.n_embd, EMBED_COLS), 1, 0},
            &args);
    cuda_rotate(b, &m->embd_rotation, b->scratch.h, b->pass.n_tokens, true);
    trace_step(b, "embd", 0, b->scratch.h, b->shape.widths.h_stride, m->hp.n_embd);
}

static bool is_cancelled(const struct pass *pass)
{
    return pass->cancel && atomic_load_explicit(pass->cancel, memory_order_relaxed);
}

/* Returns false if cancelled. Kernels that are enqueued by then still run. */
static bool run_layers(struct backend *b)
{
    embed_tokens(b);
    for (size_t i = 0; i < b->model->hp.n_layers; i++) {
        if (is_cancelled(&b->pass))
            return false;
        run_layer(b, i);
    }
    return true;
}

/* The captured graph for this pass. NULL: the pass has another shape, or there are no graphs
 * (cuda_forward_capture). */
static CUgraphExec graph_of(const struct backend *b)
{
    const struct pass *pass = &b->pass;
    if (pass->n_tokens != 1 || pass->n_requests != 1)
        return NULL;
    return b->graphs[cuda_head_screened(b, 0, 1)];
}

/* Copies the table of the pass to the device. */
static void upload_table(struct backend *b)
{
    struct cuda_device *dev = &b->device;
    const CUdeviceptr to = (CUdeviceptr)(uintptr_t)b->scratch.table;
    const size_t n_bytes = b->pass.layout.end;
    if (n_bytes <= SMALL_TABLE)
        cuda_copy(b, to, b->host.table_at, n_bytes);
    else
        cuda_record_error(dev,
                          dev->driver.cuMemcpyHtoDAsync(to, b->host.table, n_bytes, dev->stream),
                          "sending tokens");
}

bool cuda_forward(struct backend *b, struct bn_error *err)
{
    struct cuda_device *dev = &b->device;
    const struct pass *pass = &b->pass;
    const CUgraphExec graph = graph_of(b);
    if (!graph) /* a graph contains the upload, the layers and the head */
        upload_table(b);
    bool ok = !is_cancelled(pass);
    if (ok && graph)
        cuda_record_error(dev, dev->driver.cuGraphLaunch(graph, dev->stream), "launching a graph");
    else if (ok)
        ok = run_layers(b);
    for (size_t i = 0; ok && i < pass->n_requests; i += HEAD_PASS_ROWS) {
        const size_t n = size_min(HEAD_PASS_ROWS, pass->n_requests - i);
        if (!graph)
            cuda_head_apply(b, i, n);
        if (!cuda_finish(dev, err) || !cuda_rows_finish(b, b->host.requests + i, n, err))
            return false;
    }
    if (!cuda_finish(dev, err)) /* also after a cancellation: no work may remain in the stream */
        return false;
    return ok || bn_fail(err, BN_ECANCELLED, "cancelled");
}

/* Captures a pass of one token with one requested row. `head` only decides whether the head is
 * screened. The graph reads token, position and request from the table, so it can be replayed with
 * other values. */
static bool capture_graph(struct backend *b, struct head_request head, CUgraphExec *out,
                          struct bn_error *err)
{
    struct cuda_device *dev = &b->device;
    struct cuda_driver *d = &dev->driver;
    CUgraph graph = NULL;
    b->pass = (struct pass){.n_tokens = 1,
                            .n_requests = 1,
                            .n_runs = 1,
                            .split = b->shape.can_split,
                            .n_shares = ATTN_MAX_SHARES,
                            .layout = cuda_pass_layout(b->model, 1, 1)};
    b->host.requests[0] = (struct row_request){.head = &head};
    if (!cuda_ok(d, d->cuStreamBeginCapture(dev->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                 "capturing a graph", err))
        return false;
    upload_table(b);
    (void)run_layers(b); /* cannot be cancelled: the pass has no cancel flag */
    cuda_head_apply(b, 0, 1);
    const CUresult failed = dev->failed;
    dev->failed = CUDA_SUCCESS;
    bool ok = cuda_ok(d, d->cuStreamEndCapture(dev->stream, &graph), "capturing a graph", err) &&
              cuda_ok(d, failed, "capturing a graph", err) &&
              cuda_ok(d, d->cuGraphInstantiateWithFlags(out, graph, 0), "creating a graph", err);
    if (graph)
        (void)d->cuGraphDestroy(graph);            /* the executable graph does not depend on it */
    b->host.requests[0] = (struct row_request){0}; /* no pointer to `head` remains */
    b->pass = (struct pass){0};
    return ok;
}

/* Captures the graphs with or without dependent launch. After a failure both are NULL. */
static bool capture_graphs(struct backend *b, bool dependent, struct bn_error *why)
{
    /* These kinds select the whole head and the screened head. */
    const struct head_request all = {.kind = HEAD_ALL}, draw = {.kind = HEAD_GUMBEL, .temp = 1.0f};
    struct cuda_device *dev = &b->device;
    const bool before = dev->dependent_launch;
    dev->dependent_launch = dependent;
    const bool ok = capture_graph(b, all, &b->graphs[0], why) &&
                    (b->coarse.n_blocks == 0 || capture_graph(b, draw, &b->graphs[1], why));
    dev->dependent_launch = before;
    for (size_t i = 0; !ok && i < 2; i++) {
        if (b->graphs[i])
            (void)dev->driver.cuGraphExecDestroy(b->graphs[i]);
        b->graphs[i] = NULL;
    }
    return ok;
}

bool cuda_forward_capture(struct backend *b, struct bn_error *err)
{
    struct cuda_device *dev = &b->device;
    struct bn_error why;
    if (b->cfg.trace || b->cfg.profile || b->cfg.no_graph ||
        capture_graphs(b, dev->dependent_launch, &why))
        return true;
    /* Graphs without dependent launch: each kernel waits for the end of the previous one. */
    const bool plain = dev->dependent_launch && capture_graphs(b, false, &why);
    (void)snprintf(b->graph_note, sizeof b->graph_note, "%s (%.70s)",
                   plain ? "graphs wait" : "no graphs", why.text);
    bn_log(&b->cfg.log, BN_LOG_WARNING, "%s: slower decoding: %s", b->device.name, b->graph_note);
    return cuda_finish(dev, err);
}
