/*
 * Gated delta nets. docs/kernels.md, "Gated delta nets", has the arithmetic.
 *
 * A work item is one head and all tokens that a sequence has in the pass, so the state of the head
 * stays in the cache of a core. The tokens pass through the state one after the other, so no sum
 * depends on how a prompt is split.
 */
#include "engine/cpu/cpu_delta.h"

#include "engine/cpu/cpu_kv.h"
#include "engine/cpu/cpu_work.h"
#include "engine/cpu/ref/kernels_ref.h"

#include <math.h>
#include <string.h>

_Static_assert(MODEL_MAX_HEADS <= MATMUL_TOKENS * PANEL_ROWS, "gates_of uses cpu_thread.y");

/* The gates of these heads of one token, from the normed input x. */
static void gates_of(struct cpu_thread *th, const struct cpu_delta *d, struct work_range heads,
                     const float *x, struct delta_gate *out)
{
    const struct backend *b = th->pass->b;
    const size_t n = heads.end - heads.begin;
    float *const z[2] = {th->y[0], th->y[1]};
    const struct float_matrix *const m[2] = {&d->alpha, &d->beta};
    for (size_t i = 0; i < 2; i++) {
        const struct table_rows rows = {.table = m[i]->rows + heads.begin * m[i]->row_bytes,
                                        .row_bytes = m[i]->row_bytes,
                                        .n_rows = n};
        b->k.rows_dot[m[i]->type](&rows, x, b->model->hp.n_embd, z[i], th->row);
    }
    for (size_t i = 0; i < n; i++) { /* with scalar functions of ref: there are few heads */
        const size_t h = heads.begin + i;
        /* Not positive, as exp0 requires: the model loader refuses a positive a. */
        const float g = d->a[h] * softplus_ref(z[0][i] + d->dt_bias[h]);
        out[h] = (struct delta_gate){exp0_ref(g), sigmoid_ref(z[1][i])};
    }
}

static void token_gates(struct cpu_thread *th, size_t layer, size_t token, struct work_range heads)
{
    const struct backend *b = th->pass->b;
    const struct cpu_layer *l = &b->layers[layer];
    if (heads.begin == heads.end)
        return;
    b->k.rms_norm(b->scratch.h + token * b->shape.widths.h_stride, l->attn_norm,
                  b->model->hp.n_embd, b->model->hp.rms_eps, th->norm);
    gates_of(th, &l->delta, heads, th->norm,
             b->scratch.delta_gates + token * b->model->hp.delta.n_value_heads);
}

void delta_gates(struct cpu_thread *th, size_t layer)
{
    const size_t n_heads = th->pass->b->model->hp.delta.n_value_heads;
    if (thread_has_one_token(th)) {
        token_gates(th, layer, 0, thread_range(th, n_heads, 1));
        return;
    }
    const struct work_range tokens = thread_range(th, th->pass->n_tokens, 1);
    for (size_t t = tokens.begin; t < tokens.end; t++)
        token_gates(th, layer, t, (struct work_range){0, n_heads});
}

/* Input number i of a run, from element `channel` on: the three inputs before its first token,
 * which `old` holds, then those of its tokens. */
static const float *conv_input(const struct backend *b, const struct token_block *run,
                               const float *old, size_t channel, size_t i)
{
    if (i < DELTA_TAPS - 1)
        return old + i * delta_channels(&b->model->hp.delta) + channel;
    return b->scratch.qkv + (run->token0 + i - (DELTA_TAPS - 1)) * b->shape.widths.qkv_stride +
           channel;
}

/* Convolve one head of queries, keys or values, and save its last inputs. Results overwrite the
 * inputs, which later tokens read, so the last token comes first. */
static void convolve_head(const struct cpu_thread *th, size_t layer, const struct token_block *run,
                          size_t head)
{
    const struct backend *b = th->pass->b;
    const struct delta_shape *d = &b->model->hp.delta;
    const struct cpu_delta *l = &b->layers[layer].delta;
    const struct recurrent *r = &run->seq->recurrent;
    const size_t dim = d->dim, channel = head * dim, n_channels = delta_channels(d);
    const size_t conv0 = d->n_value_heads * dim * dim;
    const float *old = recurrent_from(r, d, l->index) + conv0;
    float *const kept = recurrent_to(r, d, l->index) + conv0 + channel;
    for (size_t i = 0; i < DELTA_TAPS - 1; i++)
        memcpy(kept + i * n_channels, conv_input(b, run, old, channel, run->n_tokens + i),
               dim * sizeof(float));
    const float q_scale = (float)(1.0 / sqrt((double)dim));
    for (size_t t = run->n_tokens; t-- > 0;) {
        const float *x[DELTA_TAPS];
        for (size_t i = 0; i < DELTA_TAPS; i++)
            x[i] = conv_input(b, run, old, channel, t + i);
        float *y = b->scratch.qkv + (run->token0 + t) * b->shape.widths.qkv_stride + channel;
        b->k.conv_silu(x, l->conv + channel, n_channels, dim, y);
        if (head < 2 * d->n_key_heads)
            b->k.unit_norm(y, dim, b->model->hp.rms_eps, head < d->n_key_heads ? q_scale : 1.0f, y);
    }
}

/* One value head: the state, then norm and gate of its results. */
static void run_head(const struct cpu_thread *th, size_t layer, const struct token_block *run,
                     size_t head)
{
    const struct backend *b = th->pass->b;
    const struct delta_shape *d = &b->model->hp.delta;
    const struct cpu_delta *l = &b->layers[layer].delta;
    const struct recurrent *r = &run->seq->recurrent;
    const size_t dim = d->dim, key_head = head % d->n_key_heads,
                 stride = b->shape.widths.qkv_stride;
    const float *row = b->scratch.qkv + run->token0 * stride;
    float *out = b->scratch.attn + run->token0 * b->shape.widths.attn_stride + head * dim;
    b->k.delta_run(&(struct delta_run){
        .q = row + key_head * dim,
        .k = row + (d->n_key_heads + key_head) * dim,
        .v = row + (2 * d->n_key_heads + head) * dim,
        .stride = stride,
        .gates = b->scratch.delta_gates + run->token0 * d->n_value_heads + head,
        .gate_stride = d->n_value_heads,
        .n_tokens = run->n_tokens,
        .dim = dim,
        .from = recurrent_from(r, d, l->index) + head * dim * dim,
        .to = recurrent_to(r, d, l->index) + head * dim * dim,
        .out = out,
        .out_stride = b->shape.widths.attn_stride,
    });
    const float *z = row + delta_channels(d) + head * dim;
    for (size_t t = 0; t < run->n_tokens; t++, out += b->shape.widths.attn_stride, z += stride) {
        b->k.rms_norm(out, l->norm, dim, b->model->hp.rms_eps, out);
        b->k.silu_gate(z, out, dim, out);
    }
}

typedef void (*head_fn)(const struct cpu_thread *th, size_t layer, const struct token_block *run,
                        size_t head);

/* Call `fn` for every head of every run. */
static void each_head(struct cpu_thread *th, size_t layer, size_t n_heads, head_fn fn)
{
    const struct pass *pass = th->pass;
    const struct token_block *runs = pass->b->scratch.runs;
    const size_t n_items = pass->n_runs * n_heads;
    /* With one token all threads wait for memory. Taking work in small parts would not help then,
     * so each thread has a fixed part. */
    if (thread_has_one_token(th)) {
        const struct work_range heads = thread_range(th, n_items, 1);
        for (size_t i = heads.begin; i < heads.end; i++)
            fn(th, layer, &runs[0], i);
        return;
    }
    for (struct work_item p = {0}; thread_take_work(th, n_items, 1, 1, &p);)
        fn(th, layer, &runs[p.begin / n_heads], p.begin % n_heads);
}

void delta_convolve(struct cpu_thread *th, size_t layer)
{
    const struct delta_shape *d = &th->pass->b->model->hp.delta;
    each_head(th, layer, 2 * d->n_key_heads + d->n_value_heads, convolve_head);
}

void delta_apply(struct cpu_thread *th, size_t layer)
{
    each_head(th, layer, th->pass->b->model->hp.delta.n_value_heads, run_head);
}

uint64_t delta_bytes(const struct pass *pass)
{
    const struct hparams *hp = &pass->b->model->hp;
    return 2 * (uint64_t)pass->n_runs * (hp->n_layers - hp->n_attn_layers) *
           delta_state_floats(&hp->delta) * sizeof(float);
}

uint64_t delta_macs(const struct pass *pass)
{
    const struct hparams *hp = &pass->b->model->hp;
    return (uint64_t)pass->n_tokens * (hp->n_layers - hp->n_attn_layers) * 3 * hp->delta.dim *
           delta_width(&hp->delta);
}
