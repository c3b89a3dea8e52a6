/*
 * The head as launches: the final norm, then logits of the whole table or bounds from its coarse
 * plane, a floor under what is wanted, and what reaches it on its way to the host. A group of up to
 * HEAD_GROUP rows is screened if every one of them may be.
 */
#include "engine/cuda/cuda_state.h"

static size_t blocks_of(size_t n, size_t unit)
{
    return (n + unit - 1) / unit;
}

bool cuda_head_screened(const struct backend *b, size_t first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!cuda_screen_serves(b, b->host.wants[first + i].head))
            return false;
    return true;
}

struct dot_args cuda_head_dots(const struct backend *b, size_t i, size_t n)
{
    const struct model *m = b->model;
    const struct cuda_scratch *s = &b->scratch;
    return (struct dot_args){.table = b->head,
                             .x = s->head_x + i * b->shape.h_stride,
                             .out = {.z = s->z,
                                     .parts = s->parts,
                                     .n_vocab = (uint32_t)m->hp.n_vocab,
                                     .z_stride = (uint32_t)b->shape.vocab_stride,
                                     .part_stride = (uint32_t)b->shape.part_stride},
                             .found = s->found,
                             .row_bytes = b->shape.head_row_bytes,
                             .n = (uint32_t)m->hp.n_embd,
                             .x_stride = (uint32_t)b->shape.h_stride,
                             .n_rows = (uint32_t)n,
                             .type = m->head.type};
}

/* Logits of the whole table, or a bound of each. */
static void head_multiply(struct backend *b, size_t n, bool screened)
{
    const size_t n_vocab = b->model->hp.n_vocab, n_groups = n == 1 ? 1 : blocks_of(n, HEAD_ROWS);
    struct dot_args dot = cuda_head_dots(b, 0, n);
    struct bound_args bound = {
        .plane = b->coarse, .query = cuda_screen_room(b), .out = dot.out, .n_rows = (uint32_t)n};
    if (screened)
        cuda_launch(&b->device, n == 1 ? KERNEL_coarse_bound_one : KERNEL_coarse_bound_few,
                    (struct cuda_grid){blocks_of(n_vocab, BOUND_ROWS), n_groups, 1, 0}, &bound);
    else
        cuda_launch(&b->device, n == 1 ? KERNEL_rows_dot_one : KERNEL_rows_dot_few,
                    (struct cuda_grid){blocks_of(n_vocab, DOT_ROWS), n_groups, 1, 0}, &dot);
}

void cuda_head_apply(struct backend *b, size_t first, size_t n)
{
    const struct model *m = b->model;
    const struct cuda_scratch *s = &b->scratch;
    const bool screened = cuda_head_screened(b, first, n);
    const struct cuda_want *wants =
        (const struct cuda_want *)(const void *)(s->table + b->pass.layout.wants) + first;
    struct head_norm_args norm = {.wants = wants,
                                  .h = s->h,
                                  .w = b->output_norm,
                                  .x = s->head_x,
                                  .found = s->found,
                                  .query = cuda_screen_room(b),
                                  .eps = m->hp.rms_eps,
                                  .n = (uint32_t)m->hp.n_embd,
                                  .h_stride = (uint32_t)b->shape.h_stride,
                                  .stride = (uint32_t)b->shape.h_stride};
    struct pick_args pick = {.wants = wants,
                             .dot = cuda_head_dots(b, 0, n),
                             .screens = s->query.screens,
                             .more = s->more,
                             .is_exact = !screened};
    if (!screened)
        norm.query.n_blocks = 0;
    cuda_launch(&b->device, KERNEL_head_norm, (struct cuda_grid){n, 1, 1, 0}, &norm);
    head_multiply(b, n, screened);
    cuda_launch(&b->device, KERNEL_pick_floor, (struct cuda_grid){n, 1, 1, 0}, &pick);
    cuda_launch(&b->device, KERNEL_pick_take,
                (struct cuda_grid){blocks_of(m->hp.n_vocab, TAKE_IDS), n, 1, 0}, &pick);
    cuda_keep(&b->device,
              b->device.driver.cuMemcpyDtoHAsync(b->host.found, (CUdeviceptr)(uintptr_t)s->found,
                                                 n * sizeof *b->host.found, b->device.stream),
              "reading results");
}
