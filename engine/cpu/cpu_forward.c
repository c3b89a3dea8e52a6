/*
 * The transformer from the embedding to the output head. docs/kernels.md has the formulas and, in
 * "From a step to its kernel", the kernels and shapes of each step; docs/formats.md has the graphs
 * of the architectures.
 *
 * Each pass is one parallel region, and every thread does its part of each step. There is a barrier
 * between two steps if the second reads results of other threads. A pass allocates no memory.
 */
#include "engine/cpu/cpu_forward.h"

#include "engine/cpu/cpu_attn.h"
#include "engine/cpu/cpu_delta.h"
#include "engine/cpu/cpu_experts.h"
#include "engine/cpu/cpu_head.h"
#include "engine/cpu/cpu_linear.h"
#include "engine/cpu/cpu_profile.h"
#include "engine/cpu/cpu_work.h"

/* Thread 0 reads the cancel flag, so that all threads use the same value. */
static bool is_cancelled(struct cpu_thread *th)
{
    struct pass *pass = th->pass;
    if (!pass->control || !pass->control->cancel)
        return false;
    if (th->index == 0)
        pass->stopped = atomic_load_explicit(pass->control->cancel, memory_order_relaxed);
    thread_sync(th);
    return pass->stopped;
}

/* Thread 0, on which eval was called, reports how many layers all threads have done. */
static void report_layers(const struct cpu_thread *th, size_t n_done)
{
    const struct backend_control *control = th->pass->control;
    if (th->index == 0 && n_done > 0 && control && control->progress)
        control->progress(control->ud, n_done, th->pass->b->model->hp.n_layers);
}

/* Call the trace callback, which only tests set, with the result of a step for each token. */
static void trace_step(struct cpu_thread *th, const char *step, size_t layer, struct rows x,
                       size_t n)
{
    const struct backend_config *cfg = &th->pass->b->cfg;
    if (!cfg->trace)
        return;
    thread_sync(th);
    for (size_t t = 0; th->index == 0 && t < th->pass->n_tokens; t++)
        cfg->trace(cfg->trace_ud, step, layer, x.at + t * x.stride, n);
    thread_sync(th);
}

/* Attention with the cache. q, k and v are in scratch.qkv, the results go to scratch.attn. */
static void run_attention(struct cpu_thread *th, size_t i)
{
    const struct backend *b = th->pass->b;
    const struct cpu_shape *shape = &b->shape;
    const struct rows qkv = {b->scratch.qkv, shape->widths.qkv_stride};
    const struct rows attn = {b->scratch.attn, shape->widths.attn_stride};
    trace_step(th, "qkv", i, qkv, shape->widths.q_floats + 2 * shape->widths.kv_width);

    /* apply QK norm and RoPE to q and k, scale q, append k and v to the cache */
    attn_append(th, i);
    thread_sync(th);
    thread_end_step(th, PROFILE_ROPE);
    trace_step(th, "rope", i, qkv, shape->widths.q_floats + shape->widths.kv_width);

    /* softmax(q k) v, causal; each KV head serves n_q_per_kv query heads */
    attn_apply(th, i);
    thread_end_step(th, PROFILE_ATTN);
    trace_step(th, "attn", i, attn, shape->widths.q_width);
}

/* A gated delta net. q, k, v and z are in scratch.qkv, the results go to scratch.attn. */
static void run_delta_net(struct cpu_thread *th, size_t i)
{
    const struct backend *b = th->pass->b;
    const struct delta_shape *d = &b->model->hp.delta;
    const struct rows qkv = {b->scratch.qkv, b->shape.widths.qkv_stride};
    const struct rows attn = {b->scratch.attn, b->shape.widths.attn_stride};
    trace_step(th, "qkv", i, qkv, delta_channels(d) + delta_width(d));
    delta_convolve(th, i);
    thread_sync(th);
    delta_apply(th, i);
    thread_sync(th);
    thread_end_step(th, PROFILE_DELTA);
    trace_step(th, "delta", i, attn, delta_width(d));
}

static void run_experts(struct cpu_thread *th, size_t i)
{
    const struct backend *b = th->pass->b;
    const struct rows h = {b->scratch.h, b->shape.widths.h_stride};
    const struct rows ffn = {b->scratch.ffn, b->shape.widths.ffn_stride};

    /* choose the experts of each token by the logits W_router norm(h) */
    experts_choose(th, i, h);
    thread_end_step(th, PROFILE_ROUTER);

    /* silu(min(W_gate norm(h), limit)) * clamp(W_up norm(h)), for each chosen expert */
    experts_gate(th, i, ffn);
    thread_sync(th);

    /* h = h + weight * (W_down ffn), for each chosen expert */
    experts_add(th, i, ffn, h);
    thread_sync(th);
    thread_end_step(th, PROFILE_EXPERTS);
    trace_step(th, "ffn_residual", i, h, b->model->hp.n_embd);
}

static void run_dense_ffn(struct cpu_thread *th, size_t i)
{
    const struct backend *b = th->pass->b;
    const struct cpu_layer *layer = &b->layers[i];
    const struct hparams *hp = &b->model->hp;
    const struct rows h = {b->scratch.h, b->shape.widths.h_stride};
    const struct rows ffn = {b->scratch.ffn, b->shape.widths.ffn_stride};

    /* act(W_gate norm(h)) * (W_up norm(h)) */
    linear_input(th, &layer->gate_up, h, layer->ffn_norm);
    thread_end_step(th, PROFILE_NORM);
    linear_gate(th, &layer->gate_up, hp->ffn_act, ffn);
    thread_sync(th);
    thread_end_step(th, PROFILE_GATE_UP);
    trace_step(th, "ffn", i, ffn, hp->n_ff);

    /* h = h + W_down norm(ffn); without the norm if the model has no sub-norms */
    linear_input(th, &layer->down, ffn, layer->ffn_sub_norm);
    thread_end_step(th, PROFILE_NORM);
    linear_add(th, &layer->down, h);
    if (i + 1 < hp->n_layers)
        linear_prefetch(th, &layer[1].qkv, 1);
    thread_sync(th);
    thread_end_step(th, PROFILE_DOWN);
    trace_step(th, "ffn_residual", i, h, hp->n_embd);
}

static void run_layer(struct cpu_thread *th, size_t i)
{
    const bool is_delta_net = th->pass->b->model->layers[i].traits.is_delta_net;
    const struct backend *b = th->pass->b;
    const struct cpu_layer *layer = &b->layers[i];
    const struct hparams *hp = &b->model->hp;
    const struct cpu_shape *shape = &b->shape;
    const struct scratch *s = &b->scratch;
    const struct rows h = {s->h, shape->widths.h_stride}, qkv = {s->qkv, shape->widths.qkv_stride};
    const struct rows attn = {s->attn, shape->widths.attn_stride};

    if (is_delta_net)
        delta_gates(th, i); /* from norm(h), before h changes */

    /* q, k, v = W_qkv norm(h); in a delta net also z */
    linear_input(th, &layer->qkv, h, layer->attn_norm);
    thread_end_step(th, PROFILE_NORM);
    linear_store(th, &layer->qkv, qkv);
    linear_prefetch(th, &layer->o, 1);
    thread_sync(th);
    thread_end_step(th, PROFILE_QKV);
    (is_delta_net ? run_delta_net : run_attention)(th, i);

    /* h = h + W_o norm(attention); without the norm if the model has no sub-norms */
    linear_input(th, &layer->o, attn, layer->attn_sub_norm);
    thread_end_step(th, PROFILE_NORM);
    linear_add(th, &layer->o, h);
    if (!b->model->arch->experts) /* the experts of the token are not chosen yet */
        linear_prefetch(th, &layer->gate_up, 2);
    thread_sync(th);
    thread_end_step(th, PROFILE_O);
    trace_step(th, "attn_residual", i, h, hp->n_embd);

    if (b->model->arch->experts)
        run_experts(th, i);
    else
        run_dense_ffn(th, i);
}

static void run_on_thread(void *ud, size_t index, size_t n_threads)
{
    struct pass *pass = ud;
    struct cpu_thread *th = &pass->b->scratch.threads[index];
    th->n_threads = n_threads;
    embed_tokens(th);
    thread_end_step(th, PROFILE_EMBED);
    trace_step(th, "embd", 0, (struct rows){pass->b->scratch.h, pass->b->shape.widths.h_stride},
               pass->b->model->hp.n_embd);
    for (size_t i = 0; i < pass->b->model->hp.n_layers; i++) {
        report_layers(th, i);
        if (is_cancelled(th))
            return;
        run_layer(th, i);
    }
    head_apply(th);
    thread_end_step(th, PROFILE_HEAD);
}

bool forward_run(struct pass *pass, struct bn_error *err)
{
    threads_begin(pass->b->scratch.threads, pass->strategy.n_active);
    team_run(pass->b->n_threads, pass->strategy.n_active, run_on_thread, pass);

    const size_t min_cap = atomic_load_explicit(&pass->min_cap, memory_order_relaxed);
    if (pass->stopped)
        return bn_fail(err, BN_ECANCELLED, "cancelled");
    if (atomic_load_explicit(&pass->not_finite, memory_order_relaxed))
        return bn_fail(err, BN_EDEVICE,
                       "a logit is not a finite number: "
                       "the model file is damaged, or this machine computes wrong results");
    if (min_cap > 0)
        return bn_fail(err, BN_EARG, "a row of candidates needs room for at least %zu", min_cap);
    return true;
}
