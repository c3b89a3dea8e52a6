/*
 * Model, session and sampler of the engine behind the three calls that the worker makes.
 */
#include "app/generator.h"

#include "engine/base/memory.h"

#include <math.h>

struct generator {
    struct bn_model *model;
    struct bn_session *session;
    struct sampler *sampler;
    struct head_row all; /* (n_vocab) every logit, made when alternatives are first asked for */
};

bool generator_open(const struct bn_file *file, const struct bn_model_config *cfg, size_t n_ctx,
                    struct generator **out, struct bn_error *err)
{
    struct generator *g = mem_alloc(1, sizeof(*g));
    if (!g)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    if (!bn_model_open(file, cfg, &g->model, err))
        goto fail;
    const struct bn_session_config session = {.n_ctx = n_ctx};
    if (!bn_session_open(g->model, &session, &g->session, err))
        goto fail;
    if (!sampler_open(bn_model_info(g->model)->n_vocab, &g->sampler, err))
        goto fail;
    *out = g;
    return true;
fail:
    generator_close(g);
    return false;
}

void generator_close(struct generator *g)
{
    if (!g)
        return;
    sampler_close(g->sampler);
    bn_session_close(g->session);
    bn_model_close(g->model);
    mem_free(g->all.cands);
    mem_free(g);
}

const struct bn_model_info *generator_info(const struct generator *g)
{
    return bn_model_info(g->model);
}

size_t generator_n_ctx(const struct generator *g)
{
    return bn_session_n_ctx(g->session);
}

bool generator_set(struct generator *g, const struct sampler_params *params, struct bn_error *err)
{
    return sampler_set(g->sampler, params, err);
}

bool generator_step(struct generator *g, const int32_t *ids, size_t n_ids,
                    const struct bn_control *control, struct bn_sync_stats *stats, int32_t *next,
                    struct bn_error *err)
{
    struct head_request request;
    struct head_row *row;
    sampler_head(g->sampler, ids, n_ids, &request, &row);
    if (!bn_session_sync(g->session, ids, n_ids, &request, row, control, stats, err))
        return false;
    *next = sampler_pick(g->sampler, row, ids, n_ids);
    return true;
}

const int32_t *generator_ids(const struct generator *g, size_t *n_ids)
{
    return bn_session_ids(g->session, n_ids);
}

const char *generator_kv_version(const struct generator *g)
{
    return bn_session_kv_version(g->session);
}

bool generator_save(struct generator *g, const struct bn_stream *out, struct bn_error *err)
{
    return bn_session_save(g->session, out, err);
}

bool generator_load(struct generator *g, const struct bn_stream *in, struct bn_error *err)
{
    return bn_session_load(g->session, in, err);
}

void generator_cut(struct generator *g, size_t n_keep)
{
    bn_session_truncate(g->session, n_keep);
}

struct generator_lane {
    struct bn_session *session;
    struct sampler *sampler;
};

bool generator_lane_open(struct generator *g, struct generator_lane **out, struct bn_error *err)
{
    const struct bn_session_config cfg = {.n_ctx = generator_n_ctx(g)};
    struct generator_lane *lane = mem_alloc(1, sizeof(*lane));
    if (!lane)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    if (!bn_session_open(g->model, &cfg, &lane->session, err) ||
        !sampler_open(bn_model_info(g->model)->n_vocab, &lane->sampler, err)) {
        generator_lane_close(lane);
        return false;
    }
    *out = lane;
    return true;
}

void generator_lane_close(struct generator_lane *lane)
{
    if (!lane)
        return;
    sampler_close(lane->sampler);
    bn_session_close(lane->session);
    mem_free(lane);
}

bool generator_lane_set(struct generator_lane *lane, const struct sampler_params *params,
                        struct bn_error *err)
{
    return sampler_set(lane->sampler, params, err);
}

bool generator_lane_read(struct generator_lane *lane, const int32_t *ids, size_t n_ids,
                         const struct bn_control *control, struct bn_sync_stats *stats,
                         int32_t *next, struct bn_error *err)
{
    struct head_request request;
    struct head_row *row;
    sampler_head(lane->sampler, ids, n_ids, &request, &row);
    if (!bn_session_sync(lane->session, ids, n_ids, &request, row, control, stats, err))
        return false;
    *next = sampler_pick(lane->sampler, row, ids, n_ids);
    return true;
}

bool generator_lanes_step(struct generator_step *steps, size_t n_steps,
                          const struct bn_control *control, struct bn_error *err)
{
    struct bn_item items[GENERATOR_MAX_LANES];
    for (size_t i = 0; i < n_steps; i++) {
        const struct generator_step *s = &steps[i];
        items[i] = (struct bn_item){
            .session = s->lane->session, .ids = s->ids + s->n_ids - 1, .n_ids = 1, .n_rows = 1};
        sampler_head(s->lane->sampler, s->ids, s->n_ids, &items[i].head, &items[i].rows);
    }
    if (!bn_eval(items, n_steps, control, err))
        return false;
    for (size_t i = 0; i < n_steps; i++)
        steps[i].next =
            sampler_pick(steps[i].lane->sampler, items[i].rows, steps[i].ids, steps[i].n_ids);
    return true;
}

/* log of the sum of exp(logit), the largest taken out first. */
static double log_total(const struct head_row *row)
{
    double best = -INFINITY, sum = 0;
    for (size_t i = 0; i < row->n; i++)
        best = fmax(best, (double)row->cands[i].logit);
    for (size_t i = 0; i < row->n; i++)
        sum += exp((double)row->cands[i].logit - best);
    return best + log(sum);
}

/* Insert into the n best so far; ids come in ascending order, so ties keep the lower one first. */
static void keep_best(struct generator_alt *out, size_t n_kept, struct generator_alt alt)
{
    for (size_t i = 0; i < n_kept; i++) {
        if (alt.logprob > out[i].logprob) {
            const struct generator_alt pushed = out[i];
            out[i] = alt;
            alt = pushed;
        }
    }
}

bool generator_alts(struct generator *g, const int32_t *ids, size_t n_ids, int32_t chosen,
                    struct generator_alt *out, size_t n, struct bn_error *err)
{
    const size_t n_vocab = bn_model_info(g->model)->n_vocab;
    if (!g->all.cands && !(g->all.cands = mem_alloc(n_vocab, sizeof(*g->all.cands))))
        return bn_fail(err, BN_ENOMEM, "out of memory for the logits of %zu tokens", n_vocab);
    g->all.cap = n_vocab;
    const struct head_request request = {.kind = HEAD_ALL};
    if (!bn_session_sync(g->session, ids, n_ids, &request, &g->all, &(struct bn_control){0}, NULL,
                         err))
        return false;
    const double total = log_total(&g->all);
    for (size_t i = 0; i < n; i++)
        out[i] = (struct generator_alt){-1, -INFINITY};
    for (size_t i = 0; i < g->all.n; i++) {
        const struct head_cand c = g->all.cands[i];
        const struct generator_alt alt = {c.id, (float)((double)c.logit - total)};
        keep_best(out, n - 1, alt);
        if (c.id == chosen)
            out[n - 1] = alt;
    }
    return true;
}
