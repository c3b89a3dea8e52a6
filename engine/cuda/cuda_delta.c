/*
 * Launches for gated delta nets, and for the gates of attention in the same models.
 */
#include "engine/cuda/cuda_state.h"

#include <math.h>

_Static_assert(STATE_TAPS == DELTA_TAPS && STATE_COLS == DELTA_COLS,
               "the kernels' layout of a state is that of saved states");

static const struct cuda_run *pass_runs(const struct backend *b)
{
    return (const void *)(b->scratch.table + b->pass.layout.runs);
}

CUdeviceptr cuda_state_at(const struct seq *s, size_t copy)
{
    return s->states + copy * s->backend->shape.state_bytes;
}

void cuda_delta_gates(struct backend *b, size_t layer)
{
    const struct hparams *hp = &b->model->hp;
    const struct cuda_layer *l = &b->layers[layer];
    const struct cuda_delta *d = &l->delta;
    struct delta_gates_args args = {.h = b->scratch.h,
                                    .norm = l->attn_norm,
                                    .alpha = d->alpha.rows,
                                    .beta = d->beta.rows,
                                    .dt_bias = d->dt_bias,
                                    .a = d->a,
                                    .gates = b->scratch.gates,
                                    .alpha_bytes = d->alpha.row_bytes,
                                    .beta_bytes = d->beta.row_bytes,
                                    .alpha_type = d->alpha.type,
                                    .beta_type = d->beta.type,
                                    .n = (uint32_t)hp->n_embd,
                                    .h_stride = (uint32_t)b->shape.widths.h_stride,
                                    .n_heads = (uint32_t)hp->delta.n_value_heads,
                                    .eps = hp->rms_eps};
    cuda_launch(&b->device, KERNEL_delta_gates,
                (struct cuda_grid){b->pass.n_tokens,
                                   grid_blocks(hp->delta.n_value_heads, GATE_HEADS), 1, 0},
                &args);
}

/* Convolution of queries, keys and values, and the norm of queries and keys. In the part of a state
 * for one layer, the kept inputs of the convolution follow the matrices of all value heads. */
static void convolve(struct backend *b, const struct cuda_delta *d)
{
    const struct delta_shape *shape = &b->model->hp.delta;
    const size_t n_channels = delta_channels(shape);
    const uint32_t stride = (uint32_t)b->shape.widths.qkv_stride;
    struct delta_convolve_args conv = {.runs = pass_runs(b),
                                       .taps = d->conv,
                                       .qkv = b->scratch.qkv,
                                       .kept = d->state_at +
                                               shape->n_value_heads * shape->dim * shape->dim,
                                       .qkv_stride = stride,
                                       .n_channels = (uint32_t)n_channels};
    struct delta_norm_args norm = {.qkv = b->scratch.qkv,
                                   .qkv_stride = stride,
                                   .n_key_heads = (uint32_t)shape->n_key_heads,
                                   .dim = (uint32_t)shape->dim,
                                   .q_scale = (float)(1.0 / sqrt((double)shape->dim)),
                                   .eps = b->model->hp.rms_eps};
    cuda_launch(&b->device, KERNEL_delta_convolve,
                (struct cuda_grid){b->pass.n_runs, grid_blocks(n_channels, CONVOLVE_THREADS), 1, 0},
                &conv);
    cuda_launch(&b->device, KERNEL_delta_norm,
                (struct cuda_grid){b->pass.n_tokens, 2 * shape->n_key_heads, 1, 0}, &norm);
}

void cuda_delta_apply(struct backend *b, size_t layer)
{
    const struct delta_shape *shape = &b->model->hp.delta;
    const struct cuda_delta *d = &b->layers[layer].delta;
    const size_t n_heads = shape->n_value_heads;
    const uint32_t qkv_stride = (uint32_t)b->shape.widths.qkv_stride;
    const uint32_t out_stride = (uint32_t)b->shape.widths.attn_stride;
    struct delta_run_args run = {.runs = pass_runs(b),
                                 .qkv = b->scratch.qkv,
                                 .gates = b->scratch.gates,
                                 .out = b->scratch.attn,
                                 .matrices = d->state_at,
                                 .qkv_stride = qkv_stride,
                                 .out_stride = out_stride,
                                 .n_key_heads = (uint32_t)shape->n_key_heads,
                                 .n_heads = (uint32_t)n_heads,
                                 .dim = (uint32_t)shape->dim};
    struct delta_out_args out = {.z = b->scratch.qkv + delta_channels(shape),
                                 .norm = d->norm,
                                 .out = b->scratch.attn,
                                 .qkv_stride = qkv_stride,
                                 .out_stride = out_stride,
                                 .dim = (uint32_t)shape->dim,
                                 .eps = b->model->hp.rms_eps};
    convolve(b, d);
    cuda_launch(&b->device, KERNEL_delta_run,
                (struct cuda_grid){b->pass.n_runs, n_heads, grid_blocks(shape->dim, STATE_COLS), 0},
                &run);
    cuda_launch(&b->device, KERNEL_delta_out, (struct cuda_grid){b->pass.n_tokens, n_heads, 1, 0},
                &out);
}

void cuda_gates_split(struct backend *b)
{
    const struct hparams *hp = &b->model->hp;
    struct split_gates_args args = {.qkv = b->scratch.qkv,
                                    .qkv_stride = (uint32_t)b->shape.widths.qkv_stride,
                                    .n_q_per_kv = (uint32_t)b->shape.widths.n_q_per_kv,
                                    .head_dim = (uint32_t)hp->head_dim};
    if (pass_has_gates(&b->shape.widths))
        cuda_launch(&b->device, KERNEL_split_gates,
                    (struct cuda_grid){b->pass.n_tokens, hp->n_kv_heads, 1, 0}, &args);
}

void cuda_gates_apply(struct backend *b)
{
    const struct hparams *hp = &b->model->hp;
    struct attn_gate_args args = {.qkv = b->scratch.qkv,
                                  .out = b->scratch.attn,
                                  .qkv_stride = (uint32_t)b->shape.widths.qkv_stride,
                                  .out_stride = (uint32_t)b->shape.widths.attn_stride,
                                  .n_q_per_kv = (uint32_t)b->shape.widths.n_q_per_kv,
                                  .head_dim = (uint32_t)hp->head_dim};
    if (pass_has_gates(&b->shape.widths))
        cuda_launch(&b->device, KERNEL_attn_gate,
                    (struct cuda_grid){b->pass.n_tokens, hp->n_kv_heads, 1, 0}, &args);
}
