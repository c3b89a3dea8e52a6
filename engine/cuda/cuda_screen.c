/*
 * The screened head on the host's side: is there one, how large is its plane, and making it on the
 * device from the table that was uploaded. docs/kernels.md, "The head, screened".
 */
#include "engine/base/size.h"
#include "engine/cuda/cuda_state.h"
#include "engine/model/head_plane.h"

#include <math.h>

#define MOST_K PICK_THREADS /* more have no floor, and leave most rows standing anyway */

_Static_assert(COARSE_COLS == HEAD_PLANE_COLS && LINE_BYTES == HEAD_PLANE_COLS / 2,
               "the kernels' plane is the one that is measured out");

bool cuda_screen_pack(struct backend *b, CUdeviceptr at, size_t n_blocks, struct bn_error *err)
{
    const struct model *m = b->model;
    struct cuda_device *dev = &b->device;
    struct cuda_driver *d = &dev->driver;
    CUdeviceptr flag;
    uint32_t too_large = 0;
    struct coarse_args args = {
        .table = b->head,
        .plane = {.lines = (uint8_t *)(uintptr_t)at,
                  .steps = (uint16_t *)(uintptr_t)(at + m->hp.n_vocab * n_blocks * LINE_BYTES),
                  .n_blocks = (uint32_t)n_blocks,
                  .step_stride = (uint32_t)head_plane_stride(n_blocks)},
        .row_bytes = b->shape.head_row_bytes,
        .n = (uint32_t)m->hp.n_embd,
        .n_vocab = (uint32_t)m->hp.n_vocab,
        .type = m->head.type};
    if (!cuda_ok(d, d->cuMemAlloc(&flag, sizeof too_large), "GPU memory for a flag", err))
        return false;
    args.too_large = (uint32_t *)(uintptr_t)flag;
    bool ok = cuda_ok(d, d->cuMemsetD8(flag, 0, sizeof too_large), "clearing GPU memory", err);
    if (ok) {
        cuda_launch(dev, KERNEL_coarse_pack, (struct cuda_grid){(m->hp.n_vocab + 3) / 4, 1, 1, 0},
                    &args);
        ok = cuda_finish(dev, err) &&
             cuda_ok(d, d->cuMemcpyDtoH(&too_large, flag, sizeof too_large), "the plane", err);
    }
    (void)d->cuMemFree(flag); /* nothing to be done about it */
    if (ok && !too_large)
        b->coarse = args.plane;
    return ok;
}

struct query_room cuda_screen_room(const struct backend *b)
{
    const size_t n_blocks = b->coarse.n_blocks;
    struct query_room q = b->scratch.query;
    q.n_blocks = b->coarse.n_blocks;
    q.step_stride = b->coarse.step_stride;
    q.kappa = sqrt(2.0 * (log((double)b->model->hp.n_vocab) + 40.0 * log(2.0)));
    q.gamma = ((double)b->model->hp.n_embd / 64.0 + (double)n_blocks + 64.0) * 0x1p-23;
    q.root = sqrt((double)n_blocks) * sqrt((double)COARSE_COLS);
    return q;
}

bool cuda_screen_serves(const struct backend *b, const struct head_request *head)
{
    if (b->coarse.n_blocks == 0)
        return false;
    return head->kind == HEAD_GUMBEL ||
           (head->kind == HEAD_TOP && head->k <= size_min(MOST_K, b->model->hp.n_vocab / 16));
}
