/*
 * Launches for matrices in R16 (engine/layout/r16_pack.h): quantisation of the inputs in blocks,
 * then the product. R16 is for activations of every scheme but ACT_TOKEN, for weights with a scale
 * per row or per block, for experts, and for a ternary output head. If any matrix of the layers
 * needs R16, or the ternary output head has more than one scale (model.finest), all matrices of the
 * layers have it.
 */
#include "engine/base/size.h"
#include "engine/cuda/cuda_state.h"
#include "engine/layout/r16_pack.h"

/* Most rows that several thread blocks share if each of them must read the whole row, for the norm
 * or for the scale of the row. More rows keep the device busy without that. */
#define SHARED_ROWS 32

/* Row groups of outputs. With a gate (kind >= LINEAR_RELU2) those of the gate, because a row of the
 * gate and the same row of up give one output. */
static size_t group_count(const struct r16_args *a)
{
    return a->kind >= LINEAR_RELU2 ? a->sections[0].n_groups : a->n_groups;
}

void cuda_groups_quantise(struct backend *b, const float *x, const float *w, size_t x_stride,
                          size_t n_rows, const struct cuda_matrix *matrix)
{
    struct blocks_args args = {.x = x,
                               .w = w,
                               .out = matrix->groups.in,
                               .eps = b->model->hp.rms_eps,
                               .n = matrix->groups.n_cols,
                               .x_stride = (uint32_t)x_stride,
                               .per_token = b->model->act_scheme == ACT_TOKEN};
    const bool whole_rows = n_rows > SHARED_ROWS && (w || args.per_token);
    const size_t n_shares = whole_rows ? 1 : grid_blocks(args.n, 4 * BLOCKS_THREADS);
    cuda_launch(&b->device, KERNEL_blocks_quantise, (struct cuda_grid){n_rows, n_shares, 1, 0},
                &args);
}

void cuda_groups_apply(struct backend *b, const float *x, const float *w, size_t x_stride,
                       size_t n_tokens, const struct cuda_matrix *matrix)
{
    struct cuda_device *dev = &b->device;
    struct r16_args args = matrix->groups;
    const size_t n_groups = group_count(&args);
    /* A thread block of r16_one multiplies two row groups, with a gate those of gate and up. */
    const size_t n_blocks = args.kind >= LINEAR_RELU2 ? n_groups : grid_blocks(n_groups, 2);
    args.n_tokens = (uint32_t)n_tokens;
    cuda_groups_quantise(b, x, w, x_stride, n_tokens, matrix);
    if (args.in.n_planes == 0)
        cuda_launch(dev, KERNEL_r16_float,
                    (struct cuda_grid){grid_blocks(n_groups, R16_FLOAT_GROUPS), n_tokens, 1, 0},
                    &args);
    else if (n_tokens == 1)
        cuda_launch(dev, KERNEL_r16_one, (struct cuda_grid){n_blocks, 1, 1, 0}, &args);
    else
        cuda_launch(dev, KERNEL_r16_many,
                    (struct cuda_grid){grid_blocks(n_groups, R16_MANY_GROUPS),
                                       grid_blocks(n_tokens, R16_WARP_TOKENS), 1, 0},
                    &args);
}
