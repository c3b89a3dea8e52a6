/*
 * One row of the benchmark: sessions are filled to the depth, then each run extends them, is timed,
 * and rolls them back.
 *
 * Ids of prompts are a fixed pseudo-random sequence, the same in every run and for every model of
 * one vocabulary size, so checksums of two builds can be compared.
 */
#include "app/bench/bench_run.h"

#include "app/bench/bench_figures.h"
#include "engine/base/clock.h"
#include "engine/base/fp16.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/sampler.h"

#include <string.h>

struct lane { /* one sequence of the batch */
    struct bn_session *session;
    struct sampler *sampler;
    int32_t *ids; /* (depth + n_tokens + 1): prompt, then what was generated */
    size_t n_ids;
    struct spec *spec;     /* of the only lane that speculates; NULL: none does */
    struct head_cand cand; /* room for TOP 1 */
    struct head_row row;
};

struct bench {
    const struct bench_plan *plan;
    const struct bench_row *row;
    struct lane *lanes;       /* (batch) */
    struct bn_item *items;    /* (batch) */
    double *rates;            /* (n_runs) */
    double *peaks;            /* (n_runs) */
    uint64_t checksum;        /* of the current run */
    struct spec_stats drafts; /* the same */
};

static void mix(uint64_t *sum, uint32_t word)
{
    *sum = fnv1a_add_bytes(*sum, &word, sizeof(word));
}

static void prompt_ids(int32_t *ids, size_t n, size_t lane, size_t n_vocab)
{
    uint32_t x = (uint32_t)lane + 7;
    for (size_t i = 0; i < n; i++) {
        x = x * 1103515245u + 12345u; /* C's example of rand: any sequence will do */
        ids[i] = (int32_t)((x >> 8) % n_vocab);
    }
}

static bool lane_open(const struct bench *b, struct lane *lane, size_t i, struct bn_error *err)
{
    const size_t n_vocab = bn_model_info(b->plan->model)->n_vocab;
    const size_t n_ctx = b->row->depth + b->row->n_tokens + 1;
    const struct bn_session_config cfg = {.n_ctx = n_ctx};
    /* The defaults of the chat. */
    const struct sampler_params params = {.temp = b->plan->chain == BENCH_SAMPLE ? 0.7f : 0.0f,
                                          .top_k = 40,
                                          .top_p = 0.95f,
                                          .min_p = 0.05f,
                                          .typical = 1,
                                          .repeat_penalty = 1,
                                          .seed = i + 1};
    lane->ids = mem_alloc(n_ctx, sizeof(*lane->ids));
    if (!lane->ids)
        return bn_fail(err, BN_ENOMEM, "out of memory for %zu ids", n_ctx);
    prompt_ids(lane->ids, n_ctx, i, n_vocab);
    lane->row = (struct head_row){.cands = &lane->cand, .cap = 1};
    return bn_session_open(b->plan->model, &cfg, &lane->session, err) &&
           sampler_open(n_vocab, &lane->sampler, err) && sampler_set(lane->sampler, &params, err) &&
           (b->row->batch > 1 || b->row->test == BENCH_PP || b->plan->spec == SPEC_OFF ||
            spec_open(&(struct spec_config){.session = lane->session,
                                            .sampler = lane->sampler,
                                            .n_vocab = n_vocab,
                                            .n_ubatch = b->plan->n_ubatch,
                                            .mode = b->plan->spec},
                      &lane->spec, err));
}

static void bench_close(struct bench *b)
{
    for (size_t i = 0; b->lanes && i < b->row->batch; i++) {
        spec_close(b->lanes[i].spec);
        bn_session_close(b->lanes[i].session);
        sampler_close(b->lanes[i].sampler);
        mem_free(b->lanes[i].ids);
    }
    mem_free(b->lanes);
    mem_free(b->items);
    mem_free(b->rates);
    mem_free(b->peaks);
}

static bool bench_open(struct bench *b, struct bn_error *err)
{
    b->lanes = mem_alloc(b->row->batch, sizeof(*b->lanes));
    b->items = mem_alloc(b->row->batch, sizeof(*b->items));
    b->rates = mem_alloc(b->plan->n_runs, sizeof(*b->rates));
    b->peaks = mem_alloc(b->plan->n_runs, sizeof(*b->peaks));
    if (!b->lanes || !b->items || !b->rates || !b->peaks)
        return bn_fail(err, BN_ENOMEM, "out of memory for a batch of %zu", b->row->batch);
    for (size_t i = 0; i < b->row->batch; i++)
        if (!lane_open(b, &b->lanes[i], i, err))
            return false;
    return true;
}

/* Read ids n_ids .. n_end - 1 of every lane, in passes that all lanes share; the last one answers
 * TOP 1. */
static bool read_ids(struct bench *b, size_t n_end, struct bn_error *err)
{
    const size_t batch = b->row->batch;
    const size_t n_pass = size_max(b->plan->n_ubatch / batch, 1);
    for (size_t at = b->lanes[0].n_ids; at < n_end; at += n_pass) {
        const size_t n = size_min(n_pass, n_end - at);
        const bool is_last = at + n == n_end;
        for (size_t i = 0; i < batch; i++) {
            struct lane *l = &b->lanes[i];
            b->items[i] = (struct bn_item){.session = l->session,
                                           .ids = l->ids + at,
                                           .n_ids = n,
                                           .head = {.kind = is_last ? HEAD_TOP : HEAD_NONE, .k = 1},
                                           .rows = &l->row,
                                           .n_rows = is_last};
        }
        if (!bn_eval(b->items, batch, NULL, err))
            return false;
    }
    for (size_t i = 0; i < batch; i++)
        b->lanes[i].n_ids = n_end;
    return true;
}

static void keep_outputs(struct bench *b)
{
    for (size_t i = 0; i < b->row->batch; i++) {
        mix(&b->checksum, (uint32_t)b->lanes[i].row.cands[0].id);
        mix(&b->checksum, f32_bits(b->lanes[i].row.cands[0].logit));
    }
}

static void ask_head(struct bench *b, struct lane *l, struct bn_item *item)
{
    *item = (struct bn_item){.session = l->session,
                             .ids = l->ids + l->n_ids,
                             .n_ids = 1,
                             .head = {.kind = HEAD_TOP, .k = 1},
                             .rows = &l->row,
                             .n_rows = 1};
    if (b->plan->chain == BENCH_SAMPLE)
        sampler_request(l->sampler, l->ids, l->n_ids + 1, &item->head, &item->rows);
}

static void keep_token(struct bench *b, struct lane *l, int32_t id, const struct head_row *row)
{
    l->ids[++l->n_ids] = id;
    mix(&b->checksum, (uint32_t)id);
    mix(&b->checksum, f32_bits(row->cands[0].logit));
}

/* What a run learns of the text is forgotten before the next. */
static bool speculate(struct bench *b, struct lane *l, struct bn_error *err)
{
    const struct spec_stats before = spec_stats_of(l->spec);
    spec_reset(l->spec, b->plan->spec);
    for (size_t t = 0; t < b->row->n_tokens; t++) {
        int32_t id;
        if (!spec_step(l->spec, l->ids, l->n_ids + 1, NULL, NULL, &id, err))
            return false;
        keep_token(b, l, id, spec_row(l->spec));
    }
    const struct spec_stats now = spec_stats_of(l->spec);
    b->drafts.n_drafted = now.n_drafted - before.n_drafted;
    b->drafts.n_accepted = now.n_accepted - before.n_accepted;
    return true;
}

/* Each lane's last id goes in, the id that follows comes out, n_tokens times. */
static bool generate(struct bench *b, struct bn_error *err)
{
    if (b->lanes[0].spec)
        return speculate(b, &b->lanes[0], err);
    for (size_t t = 0; t < b->row->n_tokens; t++) {
        for (size_t i = 0; i < b->row->batch; i++)
            ask_head(b, &b->lanes[i], &b->items[i]);
        if (!bn_eval(b->items, b->row->batch, NULL, err))
            return false;
        for (size_t i = 0; i < b->row->batch; i++) {
            struct lane *l = &b->lanes[i];
            const struct head_row *row = b->items[i].rows;
            keep_token(b, l,
                       b->plan->chain == BENCH_SAMPLE
                           ? sampler_pick(l->sampler, row, l->ids, l->n_ids + 1)
                           : row->cands[0].id,
                       row);
        }
    }
    return true;
}

static void roll_back(struct bench *b)
{
    for (size_t i = 0; i < b->row->batch; i++) {
        bn_session_truncate(b->lanes[i].session, b->row->depth);
        b->lanes[i].n_ids = b->row->depth;
    }
}

static bool run_once(struct bench *b, double *seconds, struct bn_error *err)
{
    b->checksum = FNV1A_START;
    const double start = clock_seconds();
    if (b->row->test == BENCH_PP) {
        if (!read_ids(b, b->row->depth + b->row->n_tokens, err))
            return false;
        keep_outputs(b);
    } else if (!generate(b, err)) {
        return false;
    }
    *seconds = clock_seconds() - start;
    b->plan->after_run(b->plan->ud);
    roll_back(b);
    return true;
}

static bool measure(struct bench *b, struct bench_row *row, struct bn_error *err)
{
    const double n = (double)row->n_tokens * (double)row->batch;
    double seconds;
    if (!read_ids(b, row->depth, err) || !run_once(b, &seconds, err)) /* discarded: pages, clocks */
        return false;
    row->checksum = b->checksum;
    (void)bn_model_profile(b->plan->model, row->steps,
                           BN_PROFILE_STEPS); /* of what was not timed */
    uint64_t n_bytes = 0;
    for (size_t r = 0; r < b->plan->n_runs; r++) {
        b->peaks[r] = b->plan->peak_now(b->plan->ud, row->test);
        const uint64_t before = bn_model_bytes_read(b->plan->model);
        if (!run_once(b, &seconds, err))
            return false;
        n_bytes += bn_model_bytes_read(b->plan->model) - before;
        if (b->checksum != row->checksum)
            return bn_fail(err, BN_EDEVICE, "two runs of the same %s%zu gave different outputs",
                           row->test == BENCH_PP ? "pp" : "tg", row->n_tokens);
        b->rates[r] = n / seconds;
    }
    row->n_steps = bn_model_profile(b->plan->model, row->steps, BN_PROFILE_STEPS);
    row->tokens_per_s = bench_median(b->rates, b->plan->n_runs);
    row->min = b->rates[0];
    row->max = b->rates[b->plan->n_runs - 1];
    row->peak = bench_median(b->peaks, b->plan->n_runs);
    row->bytes_per_token = (double)n_bytes / n / (double)b->plan->n_runs;
    row->n_drafted = b->drafts.n_drafted;
    row->n_accepted = b->drafts.n_accepted;
    row->first_token_s = row->test == BENCH_PP ? n / row->tokens_per_s : 0;
    return true;
}

bool bench_run(const struct bench_plan *plan, struct bench_row *row, struct bn_error *err)
{
    struct bench b = {.plan = plan, .row = row};
    if (row->batch > plan->n_ubatch)
        return bn_fail(err, BN_EARG, "a batch of %zu does not fit a pass of %zu tokens (--ubatch)",
                       row->batch, plan->n_ubatch);
    const bool ok = bench_open(&b, err) && measure(&b, row, err);
    bench_close(&b);
    return ok;
}

bool bench_first_token(struct bn_model *model, struct bn_error *err)
{
    const struct bn_session_config cfg = {.n_ctx = 1};
    const struct head_request head = {.kind = HEAD_TOP, .k = 1};
    const int32_t id = 0;
    struct head_cand cand;
    struct head_row row = {.cands = &cand, .cap = 1};
    struct bn_session *session;
    if (!bn_session_open(model, &cfg, &session, err))
        return false;
    const bool ok = bn_session_eval(session, &id, 1, &head, &row, 1, NULL, err);
    bn_session_close(session);
    return ok;
}
