/*
 * One evaluation: checks the items, writes the table of the pass and runs it. The lengths of
 * sequences and the numbers of candidates in rows change only after success.
 */
#include "engine/base/size.h"
#include "engine/cuda/cuda_experts.h"
#include "engine/cuda/cuda_ring.h"
#include "engine/cuda/cuda_state.h"
#include "engine/model/rope.h"

/* Bytes of the position blocks that the tokens from position `begin` to `end` - 1 read. A block
 * counts once, even if several tokens read it. All layers with a ring count as if they had the
 * longest window. A layer with a window but without a ring counts as if its tokens saw all
 * positions. */
static uint64_t kv_bytes(const struct backend *b, size_t begin, size_t end)
{
    const size_t oldest = window_begin(&b->shape.ring, begin);
    const size_t last = (end - 1) / KV_BLOCK; /* position block */
    return (uint64_t)b->shape.block_bytes * (last + 1) +
           b->shape.ring_kv.block_elems * sizeof(uint16_t) * (last + 1 - oldest / KV_BLOCK);
}

/* How often the kernels read the whole head, or its coarse plane, for n_rows requested rows (at
 * most HEAD_PASS_ROWS). */
static size_t head_reads(const struct backend *b, size_t n_rows)
{
    if (b->ternary_head.groups.n_groups == 0)
        return grid_blocks(n_rows, HEAD_ROWS);
    /* r16_many shares a load between tokens, r16_float does not. */
    return b->shape.widths.n_planes > 0 ? grid_blocks(n_rows, R16_WARP_TOKENS) : n_rows;
}

/* Bytes that a pass reads: layers, embedding rows, the head (head_reads), single rows of the head,
 * keys and values. A layer counts once, even if several thread blocks read the same weights.
 * Recurrent states count twice, because they are also written. */
static uint64_t pass_bytes(const struct backend *b)
{
    const struct pass *pass = &b->pass;
    const size_t n_vocab = b->model->hp.n_vocab, head_row_bytes = b->shape.head_row_bytes;
    uint64_t n = b->layer_bytes - b->expert_bytes + cuda_experts_pass_bytes(b) +
                 pass->n_tokens * b->shape.row_bytes + pass->n_single_rows * head_row_bytes;
    for (size_t i = 0; i < pass->n_requests; i += HEAD_PASS_ROWS) {
        const size_t n_rows = size_min(HEAD_PASS_ROWS, pass->n_requests - i);
        const size_t n_reads = head_reads(b, n_rows);
        n += n_reads *
             (cuda_head_screened(b, i, n_rows) ? cuda_head_bytes(b) : n_vocab * head_row_bytes);
    }
    for (size_t i = 0; i < pass->n_items; i++) {
        const struct eval_item *item = &pass->items[i];
        if (item->n_ids > 0)
            n += kv_bytes(b, item->seq->length, item->seq->length + item->n_ids);
    }
    return n + 2 * (uint64_t)pass->n_runs * b->shape.state_bytes;
}

static struct cuda_request device_request(const struct head_request *head, size_t token,
                                          size_t position)
{
    struct cuda_request w = {.token = (uint32_t)token};
    if (head->kind == HEAD_TOP) {
        /* k is 0 if only a list of ids is requested. The device then returns the best candidate,
         * which finish_top drops. */
        w.k = (uint32_t)size_min(size_max(head->k, 1), UINT32_MAX);
        w.gap = head->gap;
    } else if (head->kind == HEAD_GUMBEL) {
        w.seed = head->seed;
        w.position = position;
        w.beta = 1.0 / (double)head->temp;
    }
    return w;
}

/* Decodes row `id` of a ternary embedding to h and applies embd_scale: the device has no kernel for
 * such rows. */
static void embed_on_host(const struct backend *b, int32_t id, float *h)
{
    const float factor = (float)b->model->hp.embd_scale;
    ternary_row_decode(&b->model->ternary_embd, (size_t)id, h);
    for (size_t i = 0; i < b->model->hp.n_embd; i++)
        h[i] = h[i] * factor;
}

/* The tokens of an item are one run. It reads the current copy of the recurrent state, or starts
 * from zeros in an empty sequence, and writes the other copy. */
static void write_run(struct backend *b, const struct eval_item *item, size_t token0)
{
    struct seq *s = item->seq;
    struct cuda_run *runs = (void *)(b->host.table + b->pass.layout.runs);
    const CUdeviceptr from = cuda_state_at(s, s->copies.current);
    if (item->n_ids == 0)
        return;
    runs[b->pass.n_runs++] =
        (struct cuda_run){.from = s->length > 0 ? (const float *)(uintptr_t)from : NULL,
                          .to = (float *)(uintptr_t)cuda_state_at(s, 1 - s->copies.current),
                          .token0 = (uint32_t)token0,
                          .n_tokens = (uint32_t)item->n_ids};
    copies_begin(&s->copies);
}

/* Writes the item's tokens and requests to the table and to host.requests, from indices token0 and
 * request0 on. */
static void write_item(struct backend *b, const struct eval_item *item, size_t token0,
                       size_t request0)
{
    const struct pass_layout *l = &b->pass.layout;
    const size_t n_pairs = b->model->hp.n_rot / 2, first = item->n_ids - item->n_rows;
    uint8_t *table = b->host.table;
    struct cuda_request *requests = (void *)(table + l->requests);
    struct cuda_token *tokens = (void *)(table + l->tokens);
    float *c = (void *)(table + l->rope_c), *s = (void *)(table + l->rope_s);
    for (size_t i = 0; i < item->n_ids; i++) {
        const size_t t = token0 + i, pos = item->seq->length + i;
        tokens[t] = (struct cuda_token){.kv = (uint16_t *)(uintptr_t)item->seq->memory,
                                        .ring = (uint16_t *)(uintptr_t)item->seq->ring,
                                        .slots = (float *)(uintptr_t)item->seq->slots,
                                        .pos = (int32_t)pos,
                                        .id = item->ids[i],
                                        .ring_blocks = (uint32_t)item->seq->contents.n_blocks};
        if (b->model->ternary_embd.bytes)
            embed_on_host(b, item->ids[i], b->host.embd + t * b->shape.widths.h_stride);
        rope_angles(item->seq->rope_freq, n_pairs, b->model->hp.rope_magnitude, pos,
                    c + t * n_pairs, s + t * n_pairs);
    }
    for (size_t i = 0; item->head.kind != HEAD_NONE && i < item->n_rows; i++) {
        /* the token to draw follows the token of this row */
        const size_t position = item->seq->length + first + i + 1;
        b->host.requests[request0 + i] =
            (struct row_request){.head = &item->head, .row = &item->rows[i], .position = position};
        requests[request0 + i] = device_request(&item->head, token0 + first + i, position);
    }
}

/* Sets b->pass and writes the table. After an error no sequence has changed. */
static bool begin_pass(struct backend *b, struct eval_item *items, size_t n_items,
                       const atomic_bool *cancel, struct bn_error *err)
{
    struct pass *pass = &b->pass;
    *pass = (struct pass){.items = items,
                          .n_items = n_items,
                          .split = b->shape.can_split,
                          .n_shares = 1,
                          .cancel = cancel};
    for (size_t i = 0; i < n_items; i++) {
        if (!eval_item_fits(&items[i], pass->n_tokens, b->n_ubatch, items[i].seq->length,
                            items[i].seq->n_ctx, err))
            return false;
        pass->split &= items[i].n_ids <= 1;
        const size_t n_blocks = grid_blocks(items[i].seq->length + items[i].n_ids, KV_BLOCK);
        pass->n_shares = size_min(size_max(pass->n_shares, n_blocks), ATTN_MAX_SHARES);
        pass->n_tokens += items[i].n_ids;
        pass->n_requests += items[i].head.kind == HEAD_NONE ? 0 : items[i].n_rows;
    }
    pass->layout = cuda_pass_layout(b->model, pass->n_tokens, pass->n_requests);
    size_t token0 = 0, request0 = 0;
    for (size_t i = 0; i < n_items; i++) {
        write_item(b, &items[i], token0, request0);
        if (b->shape.state_bytes > 0)
            write_run(b, &items[i], token0);
        ring_begin_write(&items[i].seq->contents, items[i].seq->length + items[i].n_ids);
        token0 += items[i].n_ids;
        request0 += items[i].head.kind == HEAD_NONE ? 0 : items[i].n_rows;
    }
    return true;
}

bool cuda_eval(struct backend *b, struct eval_item *items, size_t n_items,
               const struct backend_control *control, uint64_t *n_bytes, struct bn_error *err)
{
    struct pass *pass = &b->pass;
    if (!cuda_enter(&b->device, err) ||
        !begin_pass(b, items, n_items, control ? control->cancel : NULL, err))
        return false;
    *n_bytes = 0;
    if (pass->n_tokens == 0)
        return true;
    if (!cuda_forward(b, err))
        return cuda_check_lost(&b->device, err);
    *n_bytes = pass_bytes(b);
    for (size_t i = 0; i < n_items; i++) {
        struct seq *s = items[i].seq;
        s->length += items[i].n_ids;
        if (b->shape.state_bytes > 0 && items[i].n_ids > 0)
            copies_commit(&s->copies, s->length);
    }
    for (size_t i = 0; i < pass->n_requests; i++)
        b->host.requests[i].row->n = b->host.requests[i].n_found;
    return true;
}
