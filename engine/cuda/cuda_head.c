/*
 * The output head as launches: the final norm; all logits, or their upper bounds from the coarse
 * plane (docs/kernels.md, "The head, screened"); a lower limit (floor) for the requested
 * candidates; and all candidates that reach it. Up to HEAD_PASS_ROWS requests run together. They
 * are screened if each of them can be.
 */
#include "engine/base/size.h"
#include "engine/cuda/cuda_state.h"
#include "engine/layout/head_plane.h"

#include <math.h>

#define COPY_BYTES 2048             /* per thread block of copy_words: two words for each thread */
#define MAX_SCREENED_K PICK_THREADS /* pick_floor sets the floor of a larger k to -infinity */

size_t cuda_head_blocks(const struct model *m, enum bn_head_mode head)
{
    /* The kernels for a coarse plane do not support a rotated input. */
    return m->head_rotation.block > 0 ? 0 : head_plane_blocks(m, head == BN_HEAD_EXACT);
}

bool cuda_head_pack(struct backend *b, CUdeviceptr at, size_t n_blocks, struct bn_error *err)
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
        cuda_launch(dev, KERNEL_coarse_pack,
                    (struct cuda_grid){grid_blocks(m->hp.n_vocab, 4), 1, 1, 0}, /* a row per warp */
                    &args);
        ok =
            cuda_finish(dev, err) && cuda_ok(d, d->cuMemcpyDtoH(&too_large, flag, sizeof too_large),
                                             "packing the coarse plane", err);
    }
    (void)d->cuMemFree(flag); /* the plane is complete even if this fails */
    if (ok && !too_large)
        b->coarse = args.plane;
    return ok;
}

/* The buffers with the constants of docs/kernels.md, "The bound". */
static struct query_buffers query_buffers_of(const struct backend *b)
{
    const size_t n_blocks = b->coarse.n_blocks;
    struct query_buffers q = b->scratch.query;
    q.n_blocks = b->coarse.n_blocks;
    q.step_stride = b->coarse.step_stride;
    q.kappa = sqrt(2.0 * (log((double)b->model->hp.n_vocab) + 40.0 * log(2.0)));
    q.gamma = ((double)b->model->hp.n_embd / 64.0 + (double)n_blocks + 64.0) * 0x1p-23;
    q.root = sqrt((double)n_blocks) * sqrt((double)COARSE_COLS);
    return q;
}

/* For k above n_vocab / 16 too many rows would remain after screening (the CPU backend has the same
 * limit); for k above MAX_SCREENED_K all rows would, because the floor is -infinity. */
static bool is_screenable(const struct backend *b, const struct head_request *head)
{
    if (b->coarse.n_blocks == 0)
        return false;
    return head->kind == HEAD_GUMBEL ||
           (head->kind == HEAD_TOP &&
            head->k <= size_min(MAX_SCREENED_K, b->model->hp.n_vocab / 16));
}

size_t cuda_head_bytes(const struct backend *b)
{
    const size_t n_vocab = b->model->hp.n_vocab;
    if (b->coarse.n_blocks == 0)
        return n_vocab * b->shape.head_row_bytes;
    return n_vocab * (b->coarse.n_blocks * LINE_BYTES + b->coarse.step_stride * sizeof(uint16_t));
}

bool cuda_head_screened(const struct backend *b, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_screenable(b, b->host.requests[first + i].head))
            return false;
    return true;
}

struct dot_args cuda_head_dots(const struct backend *b, size_t i, size_t n)
{
    const struct model *m = b->model;
    const struct cuda_scratch *s = &b->scratch;
    return (struct dot_args){.table = b->head,
                             .x = s->head_x + i * b->shape.widths.h_stride,
                             .out = {.z = s->z,
                                     .bests = s->bests,
                                     .n_vocab = (uint32_t)m->hp.n_vocab,
                                     .z_stride = (uint32_t)b->shape.widths.vocab_stride,
                                     .best_stride = (uint32_t)b->shape.best_stride},
                             .found = s->found,
                             .row_bytes = b->shape.head_row_bytes,
                             .n = (uint32_t)m->hp.n_embd,
                             .x_stride = (uint32_t)b->shape.widths.h_stride,
                             .n_rows = (uint32_t)n,
                             .type = m->head.type};
}

/* Enqueues the logits of n requests, or their upper bounds. */
static void head_multiply(struct backend *b, size_t n, bool screened)
{
    const size_t n_vocab = b->model->hp.n_vocab, n_reads = grid_blocks(n, HEAD_ROWS);
    struct dot_args dot = cuda_head_dots(b, 0, n);
    if (b->ternary_head.groups.n_groups > 0) {
        cuda_groups_apply(b, b->scratch.head_x, NULL, b->shape.widths.h_stride, n,
                          &b->ternary_head);
        cuda_launch(&b->device, KERNEL_scan_logits,
                    (struct cuda_grid){grid_blocks(n_vocab, SCAN_THREADS * BEST_ROWS), n, 1, 0},
                    &dot);
        return;
    }
    struct bound_args bound = {
        .plane = b->coarse, .query = query_buffers_of(b), .out = dot.out, .n_rows = (uint32_t)n};
    if (screened)
        cuda_launch(&b->device, n == 1 ? KERNEL_coarse_bound_one : KERNEL_coarse_bound_few,
                    (struct cuda_grid){grid_blocks(n_vocab, BOUND_ROWS), n_reads, 1, 0}, &bound);
    else
        cuda_launch(&b->device, n == 1 ? KERNEL_rows_dot_one : KERNEL_rows_dot_few,
                    (struct cuda_grid){grid_blocks(n_vocab, DOT_ROWS), n_reads, 1, 0}, &dot);
}

void cuda_copy(struct backend *b, CUdeviceptr to, CUdeviceptr from, size_t n_bytes)
{
    struct copy_args args = {.from = (const uint32_t *)(uintptr_t)from,
                             .to = (uint32_t *)(uintptr_t)to,
                             .n_words = (uint32_t)(n_bytes / sizeof(uint32_t))};
    cuda_launch(&b->device, KERNEL_copy_words,
                (struct cuda_grid){grid_blocks(n_bytes, COPY_BYTES), 1, 1, 0}, &args);
}

void cuda_head_apply(struct backend *b, size_t first, size_t n)
{
    const struct model *m = b->model;
    const struct cuda_scratch *s = &b->scratch;
    const bool screened = cuda_head_screened(b, first, n);
    const struct cuda_request *requests =
        (const struct cuda_request *)(const void *)(s->table + b->pass.layout.requests) + first;
    struct head_norm_args norm = {.requests = requests,
                                  .h = s->h,
                                  .w = b->output_norm,
                                  .x = s->head_x,
                                  .found = s->found,
                                  .query = query_buffers_of(b),
                                  .eps = m->hp.rms_eps,
                                  .factor = (float)(1.0 / m->hp.logit_scale),
                                  .n = (uint32_t)m->hp.n_embd,
                                  .h_stride = (uint32_t)b->shape.widths.h_stride,
                                  .stride = (uint32_t)b->shape.widths.h_stride};
    struct pick_args pick = {.requests = requests,
                             .dot = cuda_head_dots(b, 0, n),
                             .screens = s->query.screens,
                             .cands = s->cands,
                             .is_exact = !screened};
    if (!screened)
        norm.query.n_blocks = 0; /* then head_norm makes no query, which only bounds need */
    cuda_launch(&b->device, KERNEL_head_norm, (struct cuda_grid){n, 1, 1, 0}, &norm);
    cuda_rotate(b, &m->head_rotation, s->head_x, n, false);
    head_multiply(b, n, screened);
    cuda_launch(&b->device, KERNEL_pick_floor, (struct cuda_grid){n, 1, 1, 0}, &pick);
    cuda_launch(&b->device, KERNEL_pick_collect,
                (struct cuda_grid){grid_blocks(m->hp.n_vocab, COLLECT_IDS), n, 1, 0}, &pick);
    cuda_copy(b, b->host.found_at, (CUdeviceptr)(uintptr_t)s->found, n * sizeof *b->host.found);
}
