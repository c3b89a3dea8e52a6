/*
 * Checks parameters, writes requests for logits, applies biases and penalties, and draws.
 * sampler_chain.c removes candidates.
 *
 * The parameters decide which logits a choice can depend on, so with most settings the engine does
 * not compute all logits. sampler_pick gives the same id for the requested logits as for all
 * logits.
 *
 * The draw is the argmax of logit / temp plus Gumbel noise, a function of seed, position and id
 * (see base/noise.h). The backends compute the same argmax over the whole vocabulary for
 * HEAD_GUMBEL. The noise of a candidate does not depend on the other candidates.
 */
#include "engine/sampler/sampler.h"

#include "engine/base/memory.h"
#include "engine/base/noise.h"
#include "engine/base/size.h"
#include "engine/sampler/sampler_chain.h"

#include <math.h>

struct sampler {
    size_t n_vocab;
    struct sampler_params params; /* params.biases points to own_biases */
    struct sampler_bias *own_biases;
    float *bias;     /* (n_vocab) sum of the biases of each id */
    uint32_t *count; /* (n_vocab) occurrences in the window; zero between calls */
    int32_t *ids;    /* (2 n_vocab) ids with a bias, then ids with a penalty; n_ids distinct ones */
    size_t n_ids;
    struct head_row row;     /* with n_vocab candidates, for sampler_request */
    struct chain_cand *work; /* (n_vocab) candidates of sampler_pick */
};

/* ---- parameters ---- */

static bool in_range(double v, double lo, double hi)
{
    return v >= lo && v <= hi; /* false for NaN */
}

static bool check_params(const struct sampler_params *p, size_t n_vocab, struct bn_error *err)
{
    if (!in_range((double)p->temp, 0.0, 100.0))
        return bn_fail(err, BN_EARG, "temperature %g is out of range, expected 0 to 100",
                       (double)p->temp);
    if (p->top_k < 0)
        return bn_fail(err, BN_EARG, "top-k %d is negative, expected 0 (off) or more", p->top_k);
    if (!in_range((double)p->top_p, 0.0, 1.0) || p->top_p == 0.0f)
        return bn_fail(err, BN_EARG, "top-p %g is out of range, expected above 0 to 1",
                       (double)p->top_p);
    if (!in_range((double)p->min_p, 0.0, 1.0))
        return bn_fail(err, BN_EARG, "min-p %g is out of range, expected 0 to 1", (double)p->min_p);
    if (!in_range((double)p->typical, 0.0, 1.0) || p->typical == 0.0f)
        return bn_fail(err, BN_EARG, "typical %g is out of range, expected above 0 to 1",
                       (double)p->typical);
    if (!in_range((double)p->repeat_penalty, 0.0, 1e3) || p->repeat_penalty == 0.0f)
        return bn_fail(err, BN_EARG, "repeat penalty %g is out of range, expected above 0 to 1000",
                       (double)p->repeat_penalty);
    if (!in_range((double)p->presence_penalty, -1e3, 1e3) ||
        !in_range((double)p->frequency_penalty, -1e3, 1e3))
        return bn_fail(
            err, BN_EARG,
            "presence penalty %g or frequency penalty %g is out of range, expected -1000 to 1000",
            (double)p->presence_penalty, (double)p->frequency_penalty);
    if (p->repeat_last_n < -1)
        return bn_fail(
            err, BN_EARG,
            "penalty window %d is out of range, expected -1 (whole context), 0 (off) or more",
            p->repeat_last_n);
    for (size_t i = 0; i < p->n_biases; i++) {
        const struct sampler_bias b = p->biases[i];
        if (b.id < 0 || (size_t)b.id >= n_vocab)
            return bn_fail(err, BN_EARG, "bias for unknown token %d, the vocabulary has %zu tokens",
                           b.id, n_vocab);
        if (b.bias != -INFINITY && !in_range((double)b.bias, -SAMPLER_MAX_BIAS, SAMPLER_MAX_BIAS))
            return bn_fail(err, BN_EARG,
                           "bias %g for token %d is out of range, expected -10000 to 10000",
                           (double)b.bias, b.id);
    }
    return true;
}

bool sampler_set(struct sampler *s, const struct sampler_params *params, struct bn_error *err)
{
    if (!check_params(params, s->n_vocab, err))
        return false;
    struct sampler_bias *copy = mem_alloc(params->n_biases, sizeof(*copy));
    if (!copy)
        return bn_fail(err, BN_ENOMEM, "no memory for %zu biases", params->n_biases);
    for (size_t i = 0; i < s->params.n_biases; i++)
        s->bias[s->own_biases[i].id] = 0.0f;
    for (size_t i = 0; i < params->n_biases; i++) {
        copy[i] = params->biases[i];
        s->bias[copy[i].id] += copy[i].bias;
    }
    mem_free(s->own_biases);
    s->own_biases = copy;
    s->params = *params;
    s->params.biases = copy;
    return true;
}

bool sampler_open(size_t n_vocab, struct sampler **out, struct bn_error *err)
{
    if (n_vocab < 1 || n_vocab > INT32_MAX)
        return bn_fail(err, BN_EARG, "a sampler needs 1 to %d tokens, not %zu", INT32_MAX, n_vocab);
    struct sampler *s = mem_alloc(1, sizeof(*s));
    if (!s)
        return bn_fail(err, BN_ENOMEM, "no memory for a sampler");
    s->n_vocab = n_vocab;
    s->params = (struct sampler_params){
        .top_p = 1.0f, .typical = 1.0f, .repeat_penalty = 1.0f}; /* greedy */
    s->bias = mem_alloc(n_vocab, sizeof(*s->bias));
    s->count = mem_alloc(n_vocab, sizeof(*s->count));
    s->ids = mem_alloc(n_vocab, 2 * sizeof(*s->ids));
    s->row = (struct head_row){mem_alloc(n_vocab, sizeof(struct head_cand)), n_vocab, 0};
    s->work = mem_alloc(n_vocab, sizeof(*s->work));
    if (!s->bias || !s->count || !s->ids || !s->row.cands || !s->work) {
        sampler_close(s);
        return bn_fail(err, BN_ENOMEM, "no memory to sample from %zu tokens", n_vocab);
    }
    *out = s;
    return true;
}

void sampler_close(struct sampler *s)
{
    if (!s)
        return;
    mem_free(s->own_biases);
    mem_free(s->bias);
    mem_free(s->count);
    mem_free(s->ids);
    mem_free(s->row.cands);
    mem_free(s->work);
    mem_free(s);
}

/* ---- requests ---- */

static bool has_penalties(const struct sampler_params *p)
{
    return p->repeat_last_n != 0 && (p->repeat_penalty != 1.0f || p->presence_penalty != 0.0f ||
                                     p->frequency_penalty != 0.0f);
}

/* Count the ids of the penalty window: the last repeat_last_n + n_more ids, or all ids if there are
 * fewer or repeat_last_n is -1. List each id that has a bias or a penalty in s->ids. clear_window
 * resets the counts. */
static void count_window(struct sampler *s, const int32_t *ids, size_t n_ids, size_t n_more)
{
    const struct sampler_params *p = &s->params;
    s->n_ids = 0;
    /* Several biases can have the same id: the counts keep it from being listed twice. */
    for (size_t i = 0; i < p->n_biases; i++) {
        if (s->count[p->biases[i].id]++ == 0)
            s->ids[s->n_ids++] = p->biases[i].id;
    }
    for (size_t i = 0; i < s->n_ids; i++)
        s->count[s->ids[i]] = 0;
    const size_t n_biased = s->n_ids;
    if (!has_penalties(p))
        return;
    const size_t window =
        p->repeat_last_n < 0 ? n_ids : size_min(n_ids, (size_t)p->repeat_last_n + n_more);
    for (size_t i = n_ids - window; i < n_ids; i++) {
        if (ids[i] >= 0 && (size_t)ids[i] < s->n_vocab && s->count[ids[i]]++ == 0)
            s->ids[s->n_ids++] = ids[i];
    }
    /* An id with a bias and a penalty is in the list twice: remove the first entry. */
    size_t n_kept = 0;
    for (size_t i = 0; i < s->n_ids; i++) {
        if (i >= n_biased || s->count[s->ids[i]] == 0)
            s->ids[n_kept++] = s->ids[i];
    }
    s->n_ids = n_kept;
}

/* Reset the counts of count_window. s->ids remains. */
static void clear_window(struct sampler *s)
{
    for (size_t i = 0; i < s->n_ids; i++)
        s->count[s->ids[i]] = 0;
}

/* The request that the parameters and the ids in s->ids need. If P logits have a bias or penalty,
 * the k best of the others are among the k + P best of all. The P logits are requested by id. */
static struct head_request request_of(const struct sampler *s)
{
    const struct sampler_params *p = &s->params;
    struct head_request r = {.kind = HEAD_ALL, .ids = s->ids, .n_ids = s->n_ids};
    const size_t k = p->temp == 0.0f ? 1 : (size_t)p->top_k;
    if (k > 0) {
        if (k < s->n_vocab && s->n_ids < s->n_vocab - k) {
            r.kind = HEAD_TOP;
            r.k = k + s->n_ids;
        }
        return r;
    }
    /* Top-p and typical sum over the vocabulary; a bias or penalty may change the best logit. */
    if (p->top_p < 1.0f || p->typical < 1.0f || s->n_ids > 0)
        return r;
    if (p->min_p > 0.0f) {
        r.kind = HEAD_TOP;
        r.k = 1;
        /* min-p as a gap; 0.01 is far more than the rounding errors */
        r.gap = (float)-noise_log((double)p->min_p) + 0.01f;
        return r;
    }
    r.kind = HEAD_GUMBEL;
    r.temp = p->temp;
    r.seed = p->seed;
    return r;
}

/* The penalty window is longer by n_draft tokens, so that it contains the windows of all n_draft +
 * 1 contexts. */
void sampler_request_draft(struct sampler *s, const int32_t *ids, size_t n_ids, size_t n_draft,
                           struct head_request *request)
{
    count_window(s, ids, n_ids, n_draft);
    clear_window(s); /* keeps s->ids, which the request points to */
    *request = request_of(s);
}

void sampler_request(struct sampler *s, const int32_t *ids, size_t n_ids,
                     struct head_request *request, struct head_row **row)
{
    sampler_request_draft(s, ids, n_ids, 0, request);
    s->row.n = 0;
    *row = &s->row;
}

/* ---- choice ---- */

/* Logit after bias and penalties. */
static float logit_after_penalties(const struct sampler *s, struct head_cand c)
{
    const struct sampler_params *p = &s->params;
    const uint32_t n_seen = s->count[c.id];
    float z = c.logit + s->bias[c.id];
    if (n_seen == 0)
        return z;
    z = z > 0.0f ? z / p->repeat_penalty : z * p->repeat_penalty;
    return z - p->frequency_penalty * (float)n_seen - p->presence_penalty;
}

/* Copy the candidates to s->work after bias and penalties, without banned ids. Returns their
 * number. */
static size_t load_row(struct sampler *s, const struct head_row *row)
{
    size_t n = 0;
    for (size_t i = 0; i < row->n; i++) {
        const float z = logit_after_penalties(s, row->cands[i]);
        if (z > -INFINITY)
            s->work[n++] = (struct chain_cand){.id = row->cands[i].id, .logit = z};
    }
    return n;
}

static int32_t pick_best(const struct chain_cand *cands, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        if (cands[i].logit > cands[best].logit ||
            (cands[i].logit == cands[best].logit && cands[i].id < cands[best].id))
            best = i;
    }
    return cands[best].id;
}

/* The same arithmetic as for HEAD_GUMBEL: in double, with one division per row. */
static int32_t draw_id(const struct sampler_params *p, const struct chain_cand *cands, size_t n,
                       uint64_t position)
{
    const uint64_t key = noise_key(p->seed, position);
    const double beta = 1.0 / (double)p->temp;
    double best = -INFINITY;
    int32_t best_id = cands[0].id;
    for (size_t i = 0; i < n; i++) {
        const double scaled = (double)cands[i].logit * beta;
        if (scaled + NOISE_GUMBEL_MAX < best)
            continue; /* even the largest noise gives less; an equal sum can win by a lower id */
        const double noisy = scaled + noise_gumbel(key, (uint64_t)cands[i].id);
        if (noisy > best || (noisy == best && cands[i].id < best_id)) {
            best = noisy;
            best_id = cands[i].id;
        }
    }
    return best_id;
}

int32_t sampler_pick(struct sampler *s, const struct head_row *row, const int32_t *ids,
                     size_t n_ids)
{
    const struct sampler_params *p = &s->params;
    count_window(s, ids, n_ids, 0);
    const struct head_request request = request_of(s);
    size_t n = load_row(s, row);
    clear_window(s);
    if ((request.kind == HEAD_GUMBEL && row->n == 1) || n == 0)
        return row->cands[0].id; /* drawn by the head, or all are banned */
    if (p->temp == 0.0f)
        return pick_best(s->work, n);
    n = chain_top_k(s->work, n, (size_t)p->top_k);
    if (p->typical < 1.0f)
        n = chain_typical(s->work, n, (double)p->typical);
    if (p->top_p < 1.0f)
        n = chain_top_p(s->work, n, (double)p->top_p);
    if (p->min_p > 0.0f)
        n = chain_min_p(s->work, n, (double)p->min_p);
    return draw_id(p, s->work, n, n_ids);
}
