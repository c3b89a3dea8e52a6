/*
 * The transformer, top to bottom. Formulas: docs/kernels.md; graphs: docs/formats.md.
 *
 * One parallel region a pass. Each function below is entered by every lane and does its share;
 * where the next step reads what other lanes wrote, there is a barrier. Nothing here allocates.
 */
#include "engine/cpu/cpu_forward.h"

#include "engine/cpu/cpu_attn.h"
#include "engine/cpu/cpu_head.h"
#include "engine/cpu/cpu_linear.h"
#include "engine/cpu/cpu_profile.h"
#include "engine/cpu/cpu_share.h"

/* Lane 0 looks at the cancel flag; the barrier makes its finding everyone's. */
static bool is_cancelled(struct lane *l)
{
    struct pass *pass = l->pass;
    if (!pass->cancel)
        return false;
    if (l->index == 0)
        pass->stopped = atomic_load_explicit(pass->cancel, memory_order_relaxed);
    lane_sync(l);
    return pass->stopped;
}

/* Show a step to the trace callback, token by token. All lanes call; nothing happens in production.
 */
static void show(struct lane *l, const char *step, size_t layer, struct rows x, size_t n)
{
    const struct backend_config *cfg = &l->pass->b->cfg;
    if (!cfg->trace)
        return;
    lane_sync(l);
    for (size_t t = 0; l->index == 0 && t < l->pass->n_tokens; t++)
        cfg->trace(cfg->trace_ud, step, layer, x.at + t * x.stride, n);
    lane_sync(l);
}

static void run_layer(struct lane *l, size_t i)
{
    const struct backend *b = l->pass->b;
    const struct cpu_layer *layer = &b->layers[i];
    const struct hparams *hp = &b->model->hp;
    const struct cpu_shape *shape = &b->shape;
    const struct scratch *s = &b->scratch;
    const struct rows h = {s->h, shape->h_stride}, qkv = {s->qkv, shape->qkv_stride};
    const struct rows attn = {s->attn, shape->attn_stride}, ffn = {s->ffn, shape->ffn_stride};

    /* q, k, v = W_qkv norm(h) */
    linear_input(l, &layer->qkv, h, layer->attn_norm);
    lane_done(l, PROFILE_NORM);
    linear_store(l, &layer->qkv, qkv);
    linear_fetch(l, &layer->o, layer->o.mat.n_rows);
    lane_sync(l);
    lane_done(l, PROFILE_QKV);
    show(l, "qkv", i, qkv, shape->q_width + 2 * shape->kv_width);

    /* rotate q and k, scale q, k and v to the cache */
    attn_append(l, i);
    lane_sync(l);
    lane_done(l, PROFILE_ROPE);
    show(l, "rope", i, qkv, shape->q_width + shape->kv_width);

    /* softmax(q k) v, causal, a group of query heads for each KV head */
    attn_apply(l, i);
    lane_done(l, PROFILE_ATTN);
    show(l, "attn", i, attn, shape->q_width);

    /* h = h + W_o norm(attention); without sub-norms the attention as it is */
    linear_input(l, &layer->o, attn, layer->attn_sub_norm);
    lane_done(l, PROFILE_NORM);
    linear_add(l, &layer->o, h);
    linear_fetch(l, &layer->gate_up, hp->n_ff);
    lane_sync(l);
    lane_done(l, PROFILE_O);
    show(l, "attn_residual", i, h, hp->n_embd);

    /* act(W_gate norm(h)) * (W_up norm(h)) */
    linear_input(l, &layer->gate_up, h, layer->ffn_norm);
    lane_done(l, PROFILE_NORM);
    linear_gate(l, &layer->gate_up, hp->act, ffn);
    lane_sync(l);
    lane_done(l, PROFILE_GATE_UP);
    show(l, "ffn", i, ffn, hp->n_ff);

    /* h = h + W_down norm(that) */
    linear_input(l, &layer->down, ffn, layer->ffn_sub_norm);
    lane_done(l, PROFILE_NORM);
    linear_add(l, &layer->down, h);
    if (i + 1 < hp->n_layers)
        linear_fetch(l, &layer[1].qkv, layer[1].qkv.mat.n_rows);
    lane_sync(l);
    lane_done(l, PROFILE_DOWN);
    show(l, "ffn_residual", i, h, hp->n_embd);
}

static void run_lane(void *ud, size_t index, size_t n_lanes)
{
    struct pass *pass = ud;
    struct lane *l = &pass->b->scratch.lanes[index];
    l->n_lanes = n_lanes;
    head_embed(l);
    lane_done(l, PROFILE_EMBED);
    show(l, "embd", 0, (struct rows){pass->b->scratch.h, pass->b->shape.h_stride},
         pass->b->model->hp.n_embd);
    for (size_t i = 0; i < pass->b->model->hp.n_layers; i++) {
        if (is_cancelled(l))
            return;
        run_layer(l, i);
    }
    head_apply(l);
    lane_done(l, PROFILE_HEAD);
}

bool forward_run(struct pass *pass, struct bn_error *err)
{
    lanes_begin(pass->b->scratch.lanes, pass->plan.n_lanes);
    team_run(pass->b->n_threads, pass->plan.n_lanes, run_lane, pass);

    const size_t room_wanted = atomic_load_explicit(&pass->room_wanted, memory_order_relaxed);
    if (pass->stopped)
        return bn_fail(err, BN_ECANCELLED, "cancelled");
    if (atomic_load_explicit(&pass->not_finite, memory_order_relaxed))
        return bn_fail(err, BN_EDEVICE,
                       "a logit is not a finite number: the weights do not fit this program, or "
                       "the machine computed nonsense");
    if (room_wanted > 0)
        return bn_fail(err, BN_EARG, "a row of candidates needs room for at least %zu",
                       room_wanted);
    return true;
}
