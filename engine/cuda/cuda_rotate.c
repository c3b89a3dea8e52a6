/*
 * Launches of the rotation kernel, for the inputs of linear layers and for hidden states.
 */
#include "engine/cuda/cuda_state.h"

#include <math.h>

void cuda_rotate_rows(struct backend *b, const struct rotation *r, struct rotate_args *args,
                      size_t n_rows)
{
    /* r->signs points into the signs of the model; b->signs is a copy of them on the device. */
    const float *const signs = b->model->rotation.signs;
    args->signs = r->signs ? b->signs + (r->signs - signs) : NULL;
    args->eps = b->model->hp.rms_eps;
    args->factor = (float)(1.0 / sqrt((double)r->block));
    args->block = (uint32_t)r->block;
    args->n_outer = (uint32_t)r->n_outer;
    args->n_inner = (uint32_t)r->n_inner;
    cuda_launch(&b->device, KERNEL_rotate_rows, (struct cuda_grid){n_rows, 1, 1, 0}, args);
}

void cuda_rotate(struct backend *b, const struct rotation *r, float *x, size_t n_rows,
                 bool is_inverse)
{
    const uint32_t stride = (uint32_t)b->shape.widths.h_stride;
    struct rotate_args args = {.x = x,
                               .y = x,
                               .n = (uint32_t)b->model->hp.n_embd,
                               .x_stride = stride,
                               .y_stride = stride,
                               .is_inverse = is_inverse};
    if (r->block > 0)
        cuda_rotate_rows(b, r, &args, n_rows);
}
