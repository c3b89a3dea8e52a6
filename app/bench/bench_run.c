/*
 * One row of the benchmark: evaluates `depth` tokens in each session. Then each run evaluates
 * n_tokens more and truncates the sessions to `depth` again.
 *
 * Prompt ids are fixed pseudo-random numbers. They are the same in every run and for every model
 * with the same vocabulary size, so that checksums of two builds can be compared.
 */
#include "app/bench/bench_run.h"

#include "engine/base/clock.h"
#include "engine/base/fp16.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/sampler/sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sequence { /* one sequence of the batch */
    struct bn_session *session;
    struct sampler *sampler;
    int32_t *ids;          /* (depth + n_tokens + 1): prompt, for tg then generated ids */
    size_t n_ids;          /* ids in the session; ids[n_ids] is the next to evaluate */
    struct spec *spec;     /* NULL: no speculative decoding */
    struct head_cand cand; /* the best token */
    struct head_row top;   /* receives `cand` */
};

struct bench {
    const struct bench_plan *plan;
    const struct bench_row *row;
    struct sequence *seqs;       /* (batch) */
    struct bn_batch_item *items; /* (batch) */
    double *rates;               /* (n_runs) tokens per second */
    double *peaks;               /* (n_runs) peak rate before each run, see bench_row.peak */
    uint64_t checksum;           /* of the ids and logits of the current run */
    struct spec_stats drafts;    /* of the current run */
    /* of the timed runs of tg; one time for a step, in which each sequence gets a token */
    struct gap_times gaps;
    double last_s; /* clock_seconds of the last token, or of the start of a run */
};

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare_values);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

size_t bench_median_bound(size_t n)
{
    double exactly_i = ldexp(1, -(int)n), at_most_i = exactly_i; /* P(i of n below the median) */
    size_t i = 0;
    while (true) {
        exactly_i *= (double)(n - i) / (double)(i + 1);
        at_most_i += exactly_i; /* now for i + 1 */
        if (2 * at_most_i > 0.05)
            return i;
        i++;
    }
}

static void add_to_checksum(struct bench *b, int32_t id, float logit)
{
    const uint32_t words[2] = {(uint32_t)id, f32_bits(logit)};
    b->checksum = fnv1a_add_bytes(b->checksum, words, sizeof(words));
}

static void fill_prompt_ids(int32_t *ids, size_t n, size_t i_seq, size_t n_vocab)
{
    uint32_t x = (uint32_t)i_seq + 7; /* any seed; another one would change all checksums */
    for (size_t i = 0; i < n; i++) {
        x = x * 1103515245u + 12345u;           /* the example of rand in the C standard */
        ids[i] = (int32_t)((x >> 8) % n_vocab); /* the low bits of x have short periods */
    }
}

static bool sequence_open(const struct bench *b, struct sequence *seq, size_t i,
                          struct bn_error *err)
{
    const size_t n_vocab = bn_model_info(b->plan->model)->n_vocab;
    const size_t n_ctx = b->row->depth + b->row->n_tokens + 1;
    const struct bn_session_config cfg = {.n_ctx = n_ctx};
    /* The defaults of the chat's options (some models have others in the chat), with the
     * temperature 0 unless tokens are sampled. */
    const struct sampler_params params = {.temp = b->plan->with_sampling ? 0.7f : 0.0f,
                                          .top_k = 40,
                                          .top_p = 0.95f,
                                          .min_p = 0.05f,
                                          .typical = 1,
                                          .repeat_penalty = 1,
                                          .seed = i + 1}; /* sequences differ */
    seq->ids = mem_alloc(n_ctx, sizeof(*seq->ids));
    if (!seq->ids)
        return bn_fail(err, BN_ENOMEM, "out of memory for %zu ids", n_ctx);
    fill_prompt_ids(seq->ids, n_ctx, i, n_vocab);
    seq->top = (struct head_row){.cands = &seq->cand, .cap = 1};
    return bn_session_open(b->plan->model, &cfg, &seq->session, err) &&
           sampler_open(n_vocab, &seq->sampler, err) && sampler_set(seq->sampler, &params, err) &&
           (b->row->batch > 1 || b->row->test == BENCH_PP || b->plan->spec == SPEC_OFF ||
            spec_open(&(struct spec_config){.session = seq->session,
                                            .sampler = seq->sampler,
                                            .n_vocab = n_vocab,
                                            .n_ubatch = b->plan->n_ubatch,
                                            .mode = b->plan->spec},
                      &seq->spec, err));
}

static void bench_close(struct bench *b)
{
    for (size_t i = 0; b->seqs && i < b->row->batch; i++) {
        spec_close(b->seqs[i].spec);
        bn_session_close(b->seqs[i].session);
        sampler_close(b->seqs[i].sampler);
        mem_free(b->seqs[i].ids);
    }
    mem_free(b->seqs);
    mem_free(b->items);
    mem_free(b->rates);
    mem_free(b->peaks);
}

static bool bench_open(struct bench *b, struct bn_error *err)
{
    b->seqs = mem_alloc(b->row->batch, sizeof(*b->seqs));
    b->items = mem_alloc(b->row->batch, sizeof(*b->items));
    b->rates = mem_alloc(b->plan->n_runs, sizeof(*b->rates));
    b->peaks = mem_alloc(b->plan->n_runs, sizeof(*b->peaks));
    if (!b->seqs || !b->items || !b->rates || !b->peaks)
        return bn_fail(err, BN_ENOMEM, "out of memory for a batch of %zu", b->row->batch);
    for (size_t i = 0; i < b->row->batch; i++)
        if (!sequence_open(b, &b->seqs[i], i, err))
            return false;
    return true;
}

/* Evaluate ids n_ids .. n_end - 1 of all sequences together, and find the best next tokens. n_ids
 * is the same in all sequences; if it is n_end already, nothing happens. A pass has at most
 * n_ubatch tokens, so n_pass of each sequence. */
static bool eval_ids(struct bench *b, size_t n_end, struct bn_error *err)
{
    const size_t batch = b->row->batch;
    const size_t n_pass = size_max(b->plan->n_ubatch / batch, 1);
    for (size_t at = b->seqs[0].n_ids; at < n_end; at += n_pass) {
        const size_t n = size_min(n_pass, n_end - at);
        const bool is_last = at + n == n_end;
        for (size_t i = 0; i < batch; i++) {
            struct sequence *seq = &b->seqs[i];
            b->items[i] =
                (struct bn_batch_item){.session = seq->session,
                                       .ids = seq->ids + at,
                                       .n_ids = n,
                                       .head = {.kind = is_last ? HEAD_TOP : HEAD_NONE, .k = 1},
                                       .rows = &seq->top,
                                       .n_rows = is_last};
        }
        if (!bn_batch_eval(b->items, batch, NULL, err))
            return false;
    }
    for (size_t i = 0; i < batch; i++)
        b->seqs[i].n_ids = n_end;
    return true;
}

/* Make *item evaluate the last id of seq, which is not in the session yet, and return the logits
 * for the choice of the next one. */
static void request_token(struct bench *b, struct sequence *seq, struct bn_batch_item *item)
{
    *item = (struct bn_batch_item){.session = seq->session,
                                   .ids = seq->ids + seq->n_ids,
                                   .n_ids = 1,
                                   .head = {.kind = HEAD_TOP, .k = 1},
                                   .rows = &seq->top,
                                   .n_rows = 1};
    if (b->plan->with_sampling) /* replaces head and rows */
        sampler_request(seq->sampler, seq->ids, seq->n_ids + 1, &item->head, &item->rows);
}

/* Count the time since the last token. */
static void note_token(struct bench *b)
{
    const double now = clock_seconds();
    gap_times_add(&b->gaps, now - b->last_s);
    b->last_s = now;
}

/* Append `id` to the ids. The checksum gets it with the logit of the first candidate, which is the
 * best token in the rows of HEAD_TOP. With sampling, `id` can be another token. */
static void append_token(struct bench *b, struct sequence *seq, int32_t id,
                         const struct head_row *result)
{
    seq->ids[++seq->n_ids] = id;
    add_to_checksum(b, id, result->cands[0].logit);
}

/* Without spec_reset a run would use tokens and times that an earlier run recorded. */
static bool speculate(struct bench *b, struct sequence *seq, struct bn_error *err)
{
    const struct spec_stats before = spec_stats_of(seq->spec);
    spec_reset(seq->spec, b->plan->spec);
    for (size_t t = 0; t < b->row->n_tokens; t++) {
        int32_t id;
        if (!spec_step(seq->spec, seq->ids, seq->n_ids + 1, NULL, NULL, &id, err))
            return false;
        append_token(b, seq, id, spec_row(seq->spec));
        note_token(b);
    }
    const struct spec_stats now = spec_stats_of(seq->spec);
    b->drafts.n_drafted = now.n_drafted - before.n_drafted;
    b->drafts.n_accepted = now.n_accepted - before.n_accepted;
    return true;
}

/* Repeat n_tokens times: evaluate the last id of each sequence, and append the id that follows. */
static bool generate(struct bench *b, struct bn_error *err)
{
    if (b->seqs[0].spec)
        return speculate(b, &b->seqs[0], err);
    for (size_t t = 0; t < b->row->n_tokens; t++) {
        for (size_t i = 0; i < b->row->batch; i++)
            request_token(b, &b->seqs[i], &b->items[i]);
        if (!bn_batch_eval(b->items, b->row->batch, NULL, err))
            return false;
        for (size_t i = 0; i < b->row->batch; i++) {
            struct sequence *seq = &b->seqs[i];
            const struct head_row *result = b->items[i].rows;
            append_token(b, seq,
                         b->plan->with_sampling
                             ? sampler_pick(seq->sampler, result, seq->ids, seq->n_ids + 1)
                             : result->cands[0].id,
                         result);
        }
        note_token(b);
    }
    return true;
}

/* Truncate the sessions to the depth. A session with saved states may have to go back further; then
 * all of them do, and the ids up to the depth are evaluated again. */
static bool roll_back(struct bench *b, struct bn_error *err)
{
    size_t n_held = b->row->depth;
    for (size_t i = 0; i < b->row->batch; i++)
        n_held = size_min(n_held, bn_session_truncate(b->seqs[i].session, b->row->depth));
    for (size_t i = 0; i < b->row->batch; i++)
        b->seqs[i].n_ids = bn_session_truncate(b->seqs[i].session, n_held);
    return n_held == b->row->depth || eval_ids(b, b->row->depth, err);
}

static bool run_once(struct bench *b, double *seconds, struct bn_error *err)
{
    b->checksum = FNV1A_START;
    const double start = b->last_s = clock_seconds();
    if (b->row->test == BENCH_PP) {
        if (!eval_ids(b, b->row->depth + b->row->n_tokens, err))
            return false;
        for (size_t i = 0; i < b->row->batch; i++)
            add_to_checksum(b, b->seqs[i].cand.id, b->seqs[i].cand.logit);
    } else if (!generate(b, err)) {
        return false;
    }
    *seconds = clock_seconds() - start;
    if (b->plan->machine)
        bench_machine_note_memory(b->plan->machine);
    return true;
}

/* Add the profile since the last call to the steps of the row. */
static void add_profile(const struct bench *b, struct bench_row *row)
{
    struct bn_profile_step now[BN_PROFILE_STEPS];
    const size_t n = bn_model_profile(b->plan->model, now, BN_PROFILE_STEPS);
    for (size_t i = 0; i < n; i++) {
        size_t at = 0;
        while (at < row->n_steps && strcmp(row->steps[at].name, now[i].name) != 0)
            at++;
        if (at == row->n_steps) { /* fits: no device has more than BN_PROFILE_STEPS names */
            row->steps[row->n_steps++] = now[i];
            continue;
        }
        row->steps[at].seconds += now[i].seconds;
        row->steps[at].n_calls += now[i].n_calls;
        row->steps[at].n_bytes += now[i].n_bytes;
        row->steps[at].n_macs += now[i].n_macs;
    }
}

/* Roll back without counting: neither the time nor the profile of this work is reported. */
static bool roll_back_unmeasured(struct bench *b, struct bn_error *err)
{
    struct bn_profile_step unused[BN_PROFILE_STEPS];
    const bool ok = roll_back(b, err);
    (void)bn_model_profile(b->plan->model, unused, BN_PROFILE_STEPS);
    return ok;
}

static bool measure(struct bench *b, struct bench_row *row, struct bn_error *err)
{
    const double n = (double)row->n_tokens * (double)row->batch;
    /* Generation is usually limited by reading the weights from memory, a prompt by
     * multiplications. */
    const enum bench_peak limit = row->test == BENCH_TG ? PEAK_READ : PEAK_INT8;
    double seconds;
    if (!eval_ids(b, row->depth, err) ||
        !run_once(b, &seconds, err) || /* discarded: loads pages and raises the clock rate */
        !roll_back_unmeasured(b, err))
        return false;
    row->checksum = b->checksum;
    b->gaps = (struct gap_times){0}; /* without the discarded run */
    uint64_t n_bytes = 0;
    for (size_t r = 0; r < b->plan->n_runs; r++) {
        b->peaks[r] = b->plan->machine ? bench_machine_peak(b->plan->machine, limit) : 0;
        const uint64_t before = bn_model_bytes_read(b->plan->model);
        if (!run_once(b, &seconds, err))
            return false;
        n_bytes += bn_model_bytes_read(b->plan->model) - before;
        add_profile(b, row);
        if (!roll_back_unmeasured(b, err))
            return false;
        if (b->checksum != row->checksum)
            return bn_fail(err, BN_EDEVICE, "two runs of the same %s%zu gave different outputs",
                           row->test == BENCH_PP ? "pp" : "tg", row->n_tokens);
        b->rates[r] = n / seconds;
    }
    row->tokens_per_s = bench_median(b->rates, b->plan->n_runs);
    row->min = b->rates[0]; /* sorted by bench_median */
    row->max = b->rates[b->plan->n_runs - 1];
    const size_t bound = bench_median_bound(b->plan->n_runs);
    row->low = b->rates[bound];
    row->high = b->rates[b->plan->n_runs - 1 - bound];
    row->peak = bench_median(b->peaks, b->plan->n_runs);
    row->bytes_per_token = (double)n_bytes / n / (double)b->plan->n_runs;
    row->n_drafted = b->drafts.n_drafted;
    row->n_accepted = b->drafts.n_accepted;
    row->gaps = gap_times_percentiles(&b->gaps);
    row->first_token_s = row->test == BENCH_PP ? n / row->tokens_per_s : 0;
    return true;
}

bool bench_run(const struct bench_plan *plan, struct bench_row *row, struct bn_error *err)
{
    struct bench b = {.plan = plan, .row = row};
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
    struct head_row result = {.cands = &cand, .cap = 1};
    struct bn_session *session;
    if (!bn_session_open(model, &cfg, &session, err))
        return false;
    const bool ok = bn_session_eval(session, &id, 1, &head, &result, 1, NULL, err);
    bn_session_close(session);
    return ok;
}
