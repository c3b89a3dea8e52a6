/*
 * The start and the end of a pass: embeddings with the angles of RoPE, and the output head. Up to
 * HEAD_PASS_ROWS rows of logits are computed while the output head is read once. First
 * the vocabulary is divided over the threads to compute logits, then the rows of logits are divided
 * to select candidates. Only a list of ids (reads_only_list) is computed by one thread.
 */
#include "engine/cpu/cpu_head.h"

#include "engine/base/fp16.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_kv.h"
#include "engine/cpu/cpu_linear_r16.h"
#include "engine/cpu/cpu_pick.h"
#include "engine/cpu/cpu_screen.h"
#include "engine/cpu/cpu_work.h"
#include "engine/model/rope.h"

#include <math.h>
#include <string.h>

/* Table rows multiplied at a time: 320 kB of F16 at width 2560 stay in the second-level cache. */
#define TABLE_ROWS 64

static int32_t token_id(const struct pass *pass, size_t token)
{
    const struct eval_item *item = pass->items;
    while (token >= item->n_ids)
        token -= (item++)->n_ids;
    return item->ids[token];
}

static void scale_floats(float *x, size_t n, float factor)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] * factor;
}

/* Turn a row of a rotated embedding into the hidden state. */
static void unrotate(const struct backend *b, float *h)
{
    const struct rotation *r = &b->model->embd_rotation;
    const size_t n = b->model->hp.n_embd;
    b->k.rotate(h, NULL, n, r->block, h);
    for (size_t i = 0; r->signs && i < n; i++)
        h[i] = h[i] * r->signs[i];
}

static void embed_token(struct cpu_thread *th, const struct seq *seq, size_t token, size_t pos)
{
    const struct backend *b = th->pass->b;
    const struct model *m = b->model;
    const size_t n_pairs = m->hp.n_rot / 2;
    const int32_t id = token_id(th->pass, token);
    float *h = b->scratch.h + token * b->shape.widths.h_stride;
    if (m->ternary_embd.bytes)
        ternary_row_decode(&m->ternary_embd, (size_t)id, h);
    else
        b->k.row_decode[m->embd.type](m->embd.bytes + (size_t)id * b->shape.row_bytes, m->hp.n_embd,
                                      h);
    if (m->embd_rotation.block)
        unrotate(b, h);
    if (m->hp.embd_scale != 1.0)
        scale_floats(h, m->hp.n_embd, (float)m->hp.embd_scale);
    rope_angles(seq->rope_freq, n_pairs, b->model->hp.rope_magnitude, pos,
                b->scratch.rope_c + token * n_pairs, b->scratch.rope_s + token * n_pairs);
}

void embed_tokens(struct cpu_thread *th)
{
    const struct pass *pass = th->pass;
    const struct work_range blocks = thread_range(th, pass->n_token_blocks, 1);
    for (size_t i = blocks.begin; i < blocks.end; i++) {
        const struct token_block *tokens = &pass->b->scratch.token_blocks[i];
        for (size_t t = 0; t < tokens->n_tokens; t++)
            embed_token(th, tokens->seq, tokens->token0 + t, tokens->pos0 + t);
    }
    thread_sync(th);
}

/* Raise *best to the largest of z (n) if that is higher; true if a logit is infinite or NaN. */
static bool scan_row(const float *z, size_t n, float *best)
{
    uint32_t largest = 0; /* as bits, which also order infinity and NaN */
    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = f32_bits(z[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
        *best = z[i] > *best ? z[i] : *best;
    }
    return largest >= 0x7f800000u; /* infinity */
}

/* Whether only the logits of the listed ids are computed. A ternary head multiplies whole row
 * groups (R16), so it computes all logits. */
static bool reads_only_list(const struct backend *b, const struct head_request *request)
{
    return head_is_list(request) && b->ternary_head.n_groups == 0;
}

/* The logits of a list of ids, for row i of those computed together. */
static void multiply_list(struct cpu_thread *th, const struct head_request *request, size_t i)
{
    const struct backend *b = th->pass->b;
    const size_t row_bytes = b->shape.head_row_bytes;
    float *z = b->scratch.z + i * b->shape.widths.vocab_stride, best = -INFINITY;
    for (size_t j = 0; j < request->n_ids; j++) {
        float *out = z + request->ids[j];
        const struct table_rows row = {b->head.bytes, row_bytes, 1, &request->ids[j]};
        b->k.rows_dot[b->head.type](&row, b->scratch.head_x + i * b->shape.widths.h_stride,
                                    b->model->hp.n_embd, out, th->row);
        if (scan_row(out, 1, &best))
            atomic_store_explicit(&th->pass->not_finite, true, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&th->pass->head_bytes, request->n_ids * row_bytes,
                              memory_order_relaxed);
}

/* Logits of this thread's part of the vocabulary, for the requested rows that are neither
 * screened nor lists, and this thread's best, best_noisy and best_noisy_id of these rows. Resets
 * the three for all requested rows. */
static void multiply_table(struct cpu_thread *th, const struct requested_row *reqs, size_t n_reqs)
{
    const struct backend *b = th->pass->b;
    const struct model *m = b->model;
    const struct cpu_shape *shape = &b->shape;
    const rows_dot_fn dot = b->k.rows_dot[b->head.type];
    const struct work_range ids = thread_range(th, m->hp.n_vocab, ROW_UNIT);
    bool bad = false, any = false;
    for (size_t i = 0; i < n_reqs; i++) {
        th->best[i] = th->best_noisy[i] = -INFINITY;
        th->best_noisy_id[i] = -1;
        any |= !reqs[i].screened && !reads_only_list(b, reqs[i].request);
    }
    if (!any)
        return;
    atomic_fetch_add_explicit(&th->pass->head_bytes, (ids.end - ids.begin) * shape->head_row_bytes,
                              memory_order_relaxed);
    if (b->ternary_head.n_groups > 0)
        linear_r16_multiply(th, &b->ternary_head, ids.begin, ids.end, n_reqs,
                            (struct rows){b->scratch.z + ids.begin, shape->widths.vocab_stride});
    for (size_t id = ids.begin; id < ids.end; id += TABLE_ROWS) {
        const size_t n = size_min(TABLE_ROWS, ids.end - id);
        for (size_t i = 0; i < n_reqs; i++) {
            float *z = b->scratch.z + i * shape->widths.vocab_stride + id;
            if (reqs[i].screened || reads_only_list(b, reqs[i].request))
                continue;
            const struct table_rows rows = {b->head.bytes + id * shape->head_row_bytes,
                                            shape->head_row_bytes, n, NULL};
            if (b->ternary_head.n_groups == 0)
                dot(&rows, b->scratch.head_x + i * shape->widths.h_stride, m->hp.n_embd, z,
                    th->row);
            bad |= scan_row(z, n, &th->best[i]);
            if (reqs[i].request->kind == HEAD_GUMBEL)
                pick_gumbel(z, id, n, reqs[i].request, reqs[i].position, &th->best_noisy[i],
                            &th->best_noisy_id[i]);
        }
    }
    if (bad)
        atomic_store_explicit(&th->pass->not_finite, true, memory_order_relaxed);
}

/* The ranges of the threads ascend, so the first of equal values has the lowest id. */
static void finish_gumbel(const struct cpu_thread *th, size_t i, struct requested_row *req)
{
    const struct cpu_thread *threads = th->pass->b->scratch.threads, *top = &threads[0];
    for (size_t j = 1; j < th->n_threads; j++)
        if (threads[j].best_noisy[i] > top->best_noisy[i])
            top = &threads[j];
    const int32_t id = top->best_noisy_id[i];
    const float *z = th->pass->b->scratch.z + i * th->pass->b->shape.widths.vocab_stride;
    req->row->cands[0] = (struct head_cand){id, z[id]};
    req->n_found = 1;
}

static void finish_row(struct cpu_thread *th, size_t i, struct requested_row *req)
{
    const struct backend *b = th->pass->b;
    const size_t n_vocab = b->model->hp.n_vocab;
    const float *z = b->scratch.z + i * b->shape.widths.vocab_stride;
    bool has_room = true;
    if (req->request->kind == HEAD_GUMBEL) {
        finish_gumbel(th, i, req);
    } else if (req->request->kind == HEAD_ALL) {
        has_room = pick_all(z, n_vocab, req->row, &req->n_found);
    } else {
        float best = -INFINITY;
        for (size_t j = 0; j < th->n_threads; j++)
            best = fmaxf(best, b->scratch.threads[j].best[i]);
        has_room = pick_top(z, n_vocab, best, req->request, req->row, th->seen, &req->n_found);
    }
    if (!has_room)
        atomic_store_explicit(&th->pass->min_cap, req->n_found, memory_order_relaxed);
}

/* Compute the logits that can matter, for the HEAD_TOP rows that are screened. The last rows come
 * first, since their bounds are still in the cache. */
static void screen_rows(struct cpu_thread *th, const struct requested_row *reqs, size_t n_reqs)
{
    bool any = false;
    for (size_t i = n_reqs; i-- > 0;)
        if (reqs[i].screened && reqs[i].request->kind == HEAD_TOP) {
            screen_rescore(th, i, &reqs[i]);
            any = true;
        }
    if (any)
        thread_sync(th);
}

static void apply_rows(struct cpu_thread *th, struct requested_row *reqs, size_t n_reqs)
{
    const struct backend *b = th->pass->b;
    const struct hparams *hp = &b->model->hp;
    const struct rotation *rotation = &b->model->head_rotation;
    const struct work_range rows = thread_range(th, n_reqs, 1);
    for (size_t i = rows.begin; i < rows.end; i++) {
        float *x = b->scratch.head_x + i * b->shape.widths.h_stride;
        b->k.rms_norm(b->scratch.h + reqs[i].token * b->shape.widths.h_stride, b->output_norm,
                      hp->n_embd, hp->rms_eps, x);
        if (hp->logit_scale != 1.0)
            scale_floats(x, hp->n_embd, (float)(1.0 / hp->logit_scale));
        if (rotation->block)
            b->k.rotate(x, rotation->signs, hp->n_embd, rotation->block, x);
        if (b->ternary_head.n_groups > 0)
            linear_r16_quantise(th, &b->ternary_head, x, i);
        else
            screen_query(b, i, &reqs[i]);
    }
    thread_sync(th);
    for (size_t i = rows.begin; i < rows.end; i++)
        if (reads_only_list(b, reqs[i].request))
            multiply_list(th, reqs[i].request, i);
    multiply_table(th, reqs, n_reqs);
    screen_bounds(th, reqs, n_reqs);
    thread_sync(th);
    screen_rows(th, reqs, n_reqs);
    /* All threads read the same value: not_finite is not written between the last barrier above and
     * the one below. */
    if (!atomic_load_explicit(&th->pass->not_finite, memory_order_relaxed))
        for (size_t i = rows.begin; i < rows.end; i++)
            finish_row(th, i, &reqs[i]);
    thread_sync(th);
}

void head_apply(struct cpu_thread *th)
{
    const struct pass *pass = th->pass;
    for (size_t i = 0; i < pass->n_requested_rows; i += HEAD_PASS_ROWS)
        apply_rows(th, pass->b->scratch.requested_rows + i,
                   size_min(HEAD_PASS_ROWS, pass->n_requested_rows - i));
}
