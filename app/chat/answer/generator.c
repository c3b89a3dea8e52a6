/*
 * Model, sessions and samplers of the engine as the worker and the batch see them. The generator's
 * own timeline is a lane like the others.
 */
#include "app/chat/answer/generator.h"

#include "engine/base/memory.h"

#include <math.h>

/* A timeline of tokens and how the next one is chosen. */
struct generator_lane {
    struct bn_session *session;
    struct sampler *sampler;
    size_t n_alts;
    struct head_row *row; /* of the last step, the sampler's; NULL before it */
    int32_t chosen;       /* in it */
};

struct generator {
    struct bn_model *model;
    struct generator_lane *own;
    struct spec *spec; /* of the own lane */
};

/* ---- lanes ---- */

static bool open_lane(struct bn_model *model, size_t n_ctx, struct generator_lane **out,
                      struct bn_error *err)
{
    const struct bn_session_config cfg = {.n_ctx = n_ctx};
    struct generator_lane *lane = mem_alloc(1, sizeof(*lane));
    if (!lane)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    if (!bn_session_open(model, &cfg, &lane->session, err) ||
        !sampler_open(bn_model_info(model)->n_vocab, &lane->sampler, err)) {
        generator_lane_close(lane);
        return false;
    }
    *out = lane;
    return true;
}

bool generator_lane_open(struct generator *g, struct generator_lane **out, struct bn_error *err)
{
    return open_lane(g->model, generator_n_ctx(g), out, err);
}

size_t generator_batch(const struct generator *g)
{
    return bn_model_batch(g->model, generator_n_ctx(g));
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
                        size_t n_alts, struct bn_error *err)
{
    if (!sampler_set(lane->sampler, params, err))
        return false;
    lane->n_alts = n_alts < GENERATOR_MAX_ALTS ? n_alts : GENERATOR_MAX_ALTS;
    return true;
}

/* One row serves the choice and its alternatives. */
static struct head_request request(struct generator_lane *lane, const int32_t *ids, size_t n_ids)
{
    struct head_request head;
    sampler_head(lane->sampler, ids, n_ids, &head, &lane->row);
    return lane->n_alts > 0 ? (struct head_request){.kind = HEAD_ALL} : head;
}

static int32_t choose(struct generator_lane *lane, const int32_t *ids, size_t n_ids)
{
    lane->chosen = sampler_pick(lane->sampler, lane->row, ids, n_ids);
    return lane->chosen;
}

bool generator_lane_read(struct generator_lane *lane, const int32_t *ids, size_t n_ids,
                         const struct bn_control *control, struct bn_sync_stats *stats,
                         int32_t *next, struct bn_error *err)
{
    const struct head_request head = request(lane, ids, n_ids);
    if (!bn_session_sync(lane->session, ids, n_ids, &head, lane->row, control, stats, err))
        return false;
    *next = choose(lane, ids, n_ids);
    return true;
}

bool generator_lanes_step(struct generator_step *steps, size_t n_steps,
                          const struct bn_control *control, struct bn_error *err)
{
    struct bn_item items[CHAT_BATCH_MAX];
    for (size_t i = 0; i < n_steps; i++) {
        const struct generator_step *s = &steps[i];
        items[i] = (struct bn_item){.session = s->lane->session,
                                    .ids = s->ids + s->n_ids - 1,
                                    .n_ids = 1,
                                    .n_rows = 1,
                                    .head = request(s->lane, s->ids, s->n_ids)};
        items[i].rows = s->lane->row;
    }
    if (!bn_eval(items, n_steps, control, err))
        return false;
    for (size_t i = 0; i < n_steps; i++)
        steps[i].next = choose(steps[i].lane, steps[i].ids, steps[i].n_ids);
    return true;
}

/* ---- alternatives ---- */

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
static void keep_best(struct head_cand *best, size_t n, struct head_cand c)
{
    for (size_t i = n; i > 0 && c.logit > best[i - 1].logit; i--) {
        if (i < n)
            best[i] = best[i - 1];
        best[i - 1] = c;
    }
}

static struct generator_alt alt_of(struct head_cand c, double total)
{
    return (struct generator_alt){c.id, (float)((double)c.logit - total)};
}

void generator_lane_alts(const struct generator_lane *lane, struct generator_alt *out)
{
    struct head_cand best[GENERATOR_MAX_ALTS];
    const double total = log_total(lane->row);
    for (size_t i = 0; i < lane->n_alts; i++)
        best[i] = (struct head_cand){-1, -INFINITY};
    for (size_t i = 0; i < lane->row->n; i++) {
        keep_best(best, lane->n_alts, lane->row->cands[i]);
        if (lane->row->cands[i].id == lane->chosen)
            out[lane->n_alts] = alt_of(lane->row->cands[i], total);
    }
    for (size_t i = 0; i < lane->n_alts; i++)
        out[i] = alt_of(best[i], total);
}

/* ---- the generator and its own lane ---- */

bool generator_open(const struct bn_file *file, const struct bn_model_config *cfg, size_t n_ctx,
                    struct generator **out, struct bn_error *err)
{
    struct generator *g = mem_alloc(1, sizeof(*g));
    if (!g)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    if (!bn_model_open(file, cfg, &g->model, err) || !open_lane(g->model, n_ctx, &g->own, err) ||
        !spec_open(&(struct spec_config){.session = g->own->session,
                                         .sampler = g->own->sampler,
                                         .n_vocab = bn_model_info(g->model)->n_vocab,
                                         .n_ubatch = bn_model_info(g->model)->n_ubatch},
                   &g->spec, err)) {
        generator_close(g);
        return false;
    }
    *out = g;
    return true;
}

void generator_close(struct generator *g)
{
    if (!g)
        return;
    spec_close(g->spec);
    generator_lane_close(g->own);
    bn_model_close(g->model);
    mem_free(g);
}

const struct bn_model_info *generator_info(const struct generator *g)
{
    return bn_model_info(g->model);
}

size_t generator_n_ctx(const struct generator *g)
{
    return bn_session_n_ctx(g->own->session);
}

size_t generator_explain(const struct generator *g, size_t n_sequences, size_t n_tokens, char *text,
                         size_t text_bytes)
{
    return bn_model_explain(g->model, n_sequences, n_tokens, text, text_bytes);
}

uint64_t generator_bytes_read(const struct generator *g)
{
    return bn_model_bytes_read(g->model);
}

struct generator_peaks generator_measure(struct generator *g)
{
    return (struct generator_peaks){bn_model_bandwidth(g->model),
                                    bn_model_mac_peak(g->model, BN_MAC_INT8)};
}

bool generator_set(struct generator *g, const struct sampler_params *params, size_t n_alts,
                   struct bn_error *err)
{
    spec_forget(g->spec);
    return generator_lane_set(g->own, params, n_alts, err);
}

void generator_speculate(struct generator *g, enum spec_mode mode)
{
    if (mode != spec_mode_of(g->spec))
        spec_reset(g->spec, mode);
}

struct spec_stats generator_spec_stats(const struct generator *g)
{
    return spec_stats_of(g->spec);
}

bool generator_step(struct generator *g, const int32_t *ids, size_t n_ids,
                    const struct bn_control *control, struct bn_sync_stats *stats, int32_t *next,
                    struct bn_error *err)
{
    if (g->own->n_alts > 0 || spec_mode_of(g->spec) == SPEC_OFF)
        return generator_lane_read(g->own, ids, n_ids, control, stats, next, err);
    return spec_step(g->spec, ids, n_ids, control, stats, next, err);
}

void generator_alts(const struct generator *g, struct generator_alt *out)
{
    generator_lane_alts(g->own, out);
}

const int32_t *generator_ids(const struct generator *g, size_t *n_ids)
{
    return bn_session_ids(g->own->session, n_ids);
}

const char *generator_kv_version(const struct generator *g)
{
    return bn_session_kv_version(g->own->session);
}

bool generator_save(struct generator *g, const struct bn_stream *out, struct bn_error *err)
{
    return bn_session_save(g->own->session, out, err);
}

bool generator_load(struct generator *g, const struct bn_stream *in, struct bn_error *err)
{
    spec_forget(g->spec);
    return bn_session_load(g->own->session, in, err);
}

void generator_cut(struct generator *g, size_t n_keep)
{
    spec_forget(g->spec);
    bn_session_truncate(g->own->session, n_keep);
}
