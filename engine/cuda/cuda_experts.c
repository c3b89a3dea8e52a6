/*
 * Launches for the feed-forward part of a layer with a mixture of experts. Names and order of the
 * steps are those of the CPU backend (docs/kernels.md, "Experts").
 */
#include "engine/cuda/cuda_experts.h"

#include "engine/base/size.h"

#include <string.h>

/* Most tokens whose pairs are multiplied one by one: with so few tokens, most chosen experts have
 * one token (Maple chooses 8 of 256 experts). */
#define FEW_EXPERT_TOKENS 8

_Static_assert(MAX_EXPERTS == MODEL_MAX_EXPERTS && MAX_USED_EXPERTS == MODEL_MAX_USED_EXPERTS,
               "the kernels' arrays hold all experts");
_Static_assert(PAIR_THREADS >= MAX_EXPERTS, "sort_pairs has a thread for each expert");

void cuda_experts_connect(struct backend *b, struct cuda_layer *l)
{
    const struct cuda_scratch *s = &b->scratch;
    const uint32_t block_cols = l->down.groups.in.block_cols;
    l->down.groups.in = s->pair_blocks;
    l->down.groups.in.block_cols = block_cols;
    l->down.groups.y = s->expert_y;
    l->down.groups.kind = LINEAR_STORE;
    l->gate_up.groups.kind = LINEAR_SILU;
}

/* y = W x for all pairs, with the rows of their experts. n_rows: rows of one expert in a section, a
 * multiple of R16_ROWS (the model loader checks this). pairs_per_input, clamp: see
 * experts_args. */
static void multiply_pairs(struct backend *b, const struct cuda_matrix *matrix, size_t n_rows,
                           size_t pairs_per_input, float clamp)
{
    const struct hparams *hp = &b->model->hp;
    const struct cuda_scratch *s = &b->scratch;
    const size_t n_pairs = b->pass.n_tokens * hp->n_used_experts, n_groups = n_rows / R16_ROWS;
    const bool gate = matrix->groups.kind >= LINEAR_RELU2; /* the matrix is gate and up */
    struct experts_args args = {.w = matrix->groups,
                                .chosen = s->chosen,
                                .starts = s->pair_starts,
                                .pairs = s->pairs,
                                .n_groups = (uint32_t)n_groups,
                                .n_used = (uint32_t)hp->n_used_experts,
                                .pairs_per_input = (uint32_t)pairs_per_input,
                                .clamp = clamp};
    args.w.n_tokens = (uint32_t)n_pairs;
    if (args.w.in.n_planes == 0)
        cuda_launch(&b->device, KERNEL_experts_float,
                    (struct cuda_grid){n_pairs, grid_blocks(n_groups, R16_FLOAT_GROUPS), 1, 0},
                    &args);
    else if (b->pass.n_tokens <= FEW_EXPERT_TOKENS)
        /* A thread block multiplies two row groups: gate and up of the same outputs, or two
         * neighbours if the matrix has no gate. */
        cuda_launch(&b->device, KERNEL_experts_one,
                    (struct cuda_grid){gate ? n_groups : grid_blocks(n_groups, 2), n_pairs, 1, 0},
                    &args);
    else
        cuda_launch(&b->device, KERNEL_experts_many,
                    (struct cuda_grid){grid_blocks(n_groups, R16_MANY_GROUPS), hp->n_experts,
                                       EXPERT_TILES, 0},
                    &args);
}

/* Computes x = norm(h), and chooses the experts of each token by the logits W_router x. */
static void choose_experts(struct backend *b, size_t layer)
{
    const struct hparams *hp = &b->model->hp;
    const struct cuda_scratch *s = &b->scratch;
    const struct cuda_layer *l = &b->layers[layer];
    const size_t n_tokens = b->pass.n_tokens, n_pairs = n_tokens * hp->n_used_experts;
    const uint32_t n_experts = (uint32_t)hp->n_experts, stride = (uint32_t)b->shape.widths.h_stride;
    /* With blocks of one element and the factor 1, the rotation kernel computes only the norm. */
    struct rotate_args norm = {.x = s->h,
                               .w = l->ffn_norm,
                               .y = s->expert_x,
                               .eps = hp->rms_eps,
                               .factor = 1.0f,
                               .n = (uint32_t)hp->n_embd,
                               .block = 1,
                               .x_stride = stride,
                               .y_stride = stride};
    struct router_args router = {.rows = l->router,
                                 .x = s->expert_x,
                                 .z = s->router_z,
                                 .n = (uint32_t)hp->n_embd,
                                 .n_experts = n_experts,
                                 .n_tokens = (uint32_t)n_tokens,
                                 .x_stride = stride};
    struct choose_args pick = {.z = s->router_z,
                               .chosen = s->chosen,
                               .counts = s->expert_counts + 2 * layer * hp->n_experts,
                               .n_experts = n_experts,
                               .n_used = (uint32_t)hp->n_used_experts};
    struct sort_pairs_args sort = {
        .chosen = s->chosen,
        .starts = s->pair_starts,
        .pairs = s->pairs,
        .n_active = (uint32_t *)(uintptr_t)b->host.n_active_at + layer,
        .n_pairs = (uint32_t)n_pairs,
        .n_experts = n_experts,
    };
    cuda_launch(&b->device, KERNEL_rotate_rows, (struct cuda_grid){n_tokens, 1, 1, 0}, &norm);
    /* eight threads for each expert */
    cuda_launch(&b->device, KERNEL_router_logits,
                (struct cuda_grid){grid_blocks(n_experts, ROUTER_THREADS / 8),
                                   grid_blocks(n_tokens, ROUTER_TILE), 1, 0},
                &router);
    cuda_launch(&b->device, KERNEL_choose_experts, (struct cuda_grid){n_tokens, 1, 1, 0}, &pick);
    /* Only experts_many needs the pairs in the order of their experts, but cuda_experts_pass_bytes
     * needs n_active in every pass of several tokens. */
    if (n_tokens > 1)
        cuda_launch(&b->device, KERNEL_sort_pairs, (struct cuda_grid){1, 1, 1, 0}, &sort);
}

void cuda_experts_apply(struct backend *b, size_t layer)
{
    const struct hparams *hp = &b->model->hp;
    const struct cuda_scratch *s = &b->scratch;
    const struct cuda_layer *l = &b->layers[layer];
    const size_t n_tokens = b->pass.n_tokens, n_pairs = n_tokens * hp->n_used_experts;
    struct experts_add_args add = {.chosen = s->chosen,
                                   .y = s->expert_y,
                                   .h = s->h,
                                   .n = (uint32_t)hp->n_embd,
                                   .y_stride = (uint32_t)b->shape.widths.h_stride,
                                   .h_stride = (uint32_t)b->shape.widths.h_stride,
                                   .n_used = (uint32_t)hp->n_used_experts};

    /* choose the experts of each token by the logits W_router norm(h) */
    choose_experts(b, layer);

    /* silu(min(W_gate x, c)) * max(-c, min(W_up x, c)), for each chosen expert; x = norm(h), and c
     * is the clamp of the layer */
    cuda_groups_quantise(b, s->expert_x, NULL, b->shape.widths.h_stride, n_tokens, &l->gate_up);
    multiply_pairs(b, &l->gate_up, hp->n_ff, hp->n_used_experts,
                   b->model->layers[layer].traits.clamp);

    /* h = h + weight * (W_down ffn), for each chosen expert */
    cuda_groups_quantise(b, s->ffn, NULL, b->shape.widths.ffn_stride, n_pairs, &l->down);
    multiply_pairs(b, &l->down, hp->n_embd, 1, 0.0f);
    cuda_launch(&b->device, KERNEL_add_experts,
                (struct cuda_grid){n_tokens, grid_blocks(hp->n_embd, ADD_THREADS), 1, 0}, &add);
}

/* With one token sort_pairs does not run, and each chosen expert counts once. Each expert counts
 * with the average size: sizes differ only if the tensors have different classes of scales. */
uint64_t cuda_experts_pass_bytes(const struct backend *b)
{
    const struct hparams *hp = &b->model->hp;
    const size_t n_all = hp->n_layers * hp->n_experts;
    uint64_t n_read = b->pass.n_tokens == 1 ? hp->n_layers * hp->n_used_experts : 0;
    if (n_all == 0)
        return 0;
    for (size_t i = 0; b->pass.n_tokens > 1 && i < hp->n_layers; i++)
        n_read += b->host.n_active[i];
    return b->expert_bytes / n_all * n_read;
}

/* The device stores the low word of a count first. A uint64_t has the same order on every host with
 * a GPU, because they are all little-endian. */
size_t cuda_expert_counts(const struct backend *b, uint64_t *out, size_t cap)
{
    const struct cuda_driver *d = &b->device.driver;
    const size_t n = b->model->hp.n_layers * b->model->hp.n_experts;
    const size_t n_bytes = size_min(n, cap) * sizeof *out;
    const CUdeviceptr from = (CUdeviceptr)(uintptr_t)b->scratch.expert_counts;
    if (n_bytes > 0 && (d->cuCtxSetCurrent(b->device.context) != CUDA_SUCCESS ||
                        d->cuMemcpyDtoH(out, from, n_bytes) != CUDA_SUCCESS))
        memset(out, 0, n_bytes); /* the next eval reports that the device is lost */
    return n;
}
