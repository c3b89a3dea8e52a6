/*
 * Only times are measured. Bytes follow from the shapes: each matrix once per pass, less the
 * skipped weights; of the experts those that were chosen; keys and values once per token block.
 * Multiply-adds follow from the shapes too, those with skipped weights included. The output head
 * counts its bytes itself; its multiply-adds are not counted. A pass that was cancelled counts as a
 * whole, except experts, skipped weights and the output head.
 */
#include "engine/cpu/cpu_profile.h"

#include "engine/base/clock.h"
#include "engine/base/size.h"
#include "engine/cpu/cpu_attn.h"
#include "engine/cpu/cpu_delta.h"
#include "engine/cpu/cpu_experts.h"

static const char *const names[PROFILE_N] = {
    "embedding", "norm, quantise", "q, k, v", "RoPE, cache", "attention", "delta net",
    "o",         "gate, up",       "down",    "router",      "experts",   "head",
};

void profile_begin(struct pass *pass)
{
    if (pass->b->cfg.profile)
        pass->profile.last = clock_seconds();
}

void profile_mark(struct pass *pass, enum profile_step step)
{
    const double now = clock_seconds();
    pass->profile.seconds[step] += now - pass->profile.last;
    pass->profile.last = now;
    pass->profile.n_calls[step]++;
}

/* Count one matrix. Multiply-adds count once per plane of activations, as in count_experts. */
static void count_weights(struct pass *pass, enum profile_step step, const struct weights *w,
                          size_t n_cols)
{
    uint64_t n_bytes = w->mat.n_rows * w->mat.n_lines * LINE_BYTES, n_rows = 0;
    for (size_t i = 0; i < w->n_sections; i++) {
        const struct r16_mat *g = &w->sections[i].groups; /* no groups in R1-256 */
        n_rows += w->sections[i].n_rows;
        n_bytes += g->n_groups * g->n_lines * LINE_BYTES;
        if (g->scale_step > 0)
            n_bytes += g->n_groups * (g->n_lines * R16_LINE_COLS / g->span_cols) * R16_ROWS *
                       sizeof *g->scales;
    }
    pass->profile.n_bytes[step] += n_bytes;
    pass->profile.n_macs[step] +=
        n_rows * n_cols * pass->n_tokens * size_max(pass->b->shape.widths.n_planes, 1);
}

static void count_attention(struct pass *pass)
{
    const struct backend *b = pass->b;
    uint64_t n_seen = 0;
    for (size_t layer = 0; layer < b->model->hp.n_layers; layer++)
        for (size_t i = 0; !b->model->layers[layer].traits.is_delta_net && i < pass->n_token_blocks;
             i++) {
            const struct token_block *tokens = &b->scratch.token_blocks[i];
            for (size_t pos = tokens->pos0; pos < tokens->pos0 + tokens->n_tokens; pos++)
                n_seen += pos + 1 - attn_oldest_key(b, layer, pos);
        }
    pass->profile.n_macs[PROFILE_ATTN] += 2 * n_seen * b->shape.widths.q_width;
    pass->profile.n_bytes[PROFILE_ATTN] += attn_bytes(pass);
}

static void count_experts(struct pass *pass)
{
    const struct backend *b = pass->b;
    const struct hparams *hp = &b->model->hp;
    const uint64_t n_pairs = pass->n_tokens * hp->n_used_experts * hp->n_layers;
    const uint64_t n_router = hp->n_layers * hp->n_experts * hp->n_embd;
    pass->profile.n_bytes[PROFILE_ROUTER] += n_router * sizeof(float);
    pass->profile.n_macs[PROFILE_ROUTER] += n_router * pass->n_tokens;
    pass->profile.n_bytes[PROFILE_EXPERTS] += experts_pass_bytes(pass);
    pass->profile.n_macs[PROFILE_EXPERTS] +=
        n_pairs * 3 * hp->n_embd * hp->n_ff * size_max(b->shape.widths.n_planes, 1);
}

void profile_end(struct pass *pass)
{
    const struct backend *b = pass->b;
    const struct hparams *hp = &b->model->hp;
    if (!b->cfg.profile)
        return;
    for (size_t i = 0; i < hp->n_layers; i++) {
        const struct cpu_layer *layer = &b->layers[i];
        count_weights(pass, PROFILE_QKV, &layer->qkv, hp->n_embd);
        count_weights(pass, PROFILE_O, &layer->o, layer->o.n_cols);
        if (b->model->arch->experts)
            continue;
        count_weights(pass, PROFILE_GATE_UP, &layer->gate_up, hp->n_embd);
        count_weights(pass, PROFILE_DOWN, &layer->down, hp->n_ff);
    }
    if (b->model->arch->experts)
        count_experts(pass);
    for (size_t i = 0; i < b->n_threads; i++) {
        pass->profile.n_bytes[PROFILE_GATE_UP] -= b->scratch.threads[i].up_skipped;
        pass->profile.n_bytes[PROFILE_DOWN] -= b->scratch.threads[i].down_skipped;
    }
    count_attention(pass);
    pass->profile.n_bytes[PROFILE_DELTA] += delta_bytes(pass);
    pass->profile.n_macs[PROFILE_DELTA] += delta_macs(pass);
    pass->profile.n_bytes[PROFILE_EMBED] += pass->n_tokens * b->shape.row_bytes;
    pass->profile.n_bytes[PROFILE_HEAD] +=
        atomic_load_explicit(&pass->head_bytes, memory_order_relaxed);
}

/* Whether this model has the step. */
static bool has_step(const struct backend *b, size_t step)
{
    const bool experts = b->model->arch->experts;
    if (step == PROFILE_DELTA)
        return b->model->arch->delta_nets;
    if (step == PROFILE_ROUTER || step == PROFILE_EXPERTS)
        return experts;
    return !experts || (step != PROFILE_GATE_UP && step != PROFILE_DOWN);
}

/* Whether the multiply-adds of the step are compared with the limit of floats. Attention counts as
 * float also with a Q8 cache, and a linear layer as int8 also if its input is not quantised. */
static bool is_float(size_t step)
{
    return step == PROFILE_ATTN || step == PROFILE_ROUTER || step == PROFILE_DELTA;
}

size_t cpu_profile(struct backend *b, struct bn_profile_step *out, size_t cap)
{
    struct profile *p = &b->pass.profile;
    size_t n = 0;
    if (!b->cfg.profile)
        return 0;
    for (size_t i = 0; i < PROFILE_N && n < cap; i++)
        if (has_step(b, i))
            out[n++] = (struct bn_profile_step){
                names[i],      p->seconds[i], p->n_calls[i],
                p->n_bytes[i], p->n_macs[i],  is_float(i) ? BN_MAC_F32 : BN_MAC_INT8};
    *p = (struct profile){0};
    return n;
}
