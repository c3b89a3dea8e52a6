/*
 * The loop that generates an answer: see answer_run.h.
 */
#include "app/chat/answer/answer_run.h"

#include "app/common/timing/run_clock.h"
#include "engine/base/size.h"

#define RATE_MIN_TOKENS 2 /* no rate over fewer tokens */
/* Least seconds between two reports within a micro-batch. A small model evaluates a layer in much
 * less than a millisecond, and each report wakes the main thread, which takes time from the threads
 * of the engine. The status row is written twice per second, and that of a pipe ten times. */
#define PART_SECONDS 0.1

struct run {
    struct generator *g;
    const struct answer_job *job;
    const struct answer_sink *sink;
    struct bn_cancel *cancel;
    struct answer_state answer;
    bool is_refused;               /* the sink returned false */
    double started, first, last;   /* run_clock_seconds: of the job, its first and its last token */
    struct answer_prefill prefill; /* the last report; n_total is 0 before the first one */
    uint64_t first_bytes, last_bytes; /* generator_bytes_read at the first and last token */
    struct gap_times gaps;            /* from one token to the next */
};

size_t answer_n_decoded(const struct answer_result *r)
{
    return r->n_tokens - size_min(r->n_first, r->n_tokens);
}

double answer_rate(size_t n_tokens, double seconds)
{
    return n_tokens >= RATE_MIN_TOKENS && seconds > 0 ? (double)n_tokens / seconds : 0;
}

double answer_prefill_rate(const struct answer_result *r)
{
    return answer_rate(r->n_evaluated, r->prefill_s);
}

double answer_decode_rate(const struct answer_result *r)
{
    return answer_rate(answer_n_decoded(r), r->decode_s);
}

double answer_decode_bytes(const struct answer_result *r)
{
    const size_t n = answer_n_decoded(r);
    return n >= RATE_MIN_TOKENS ? (double)r->decode_bytes / (double)n : 0;
}

void answer_state_finish(struct answer_state *s)
{
    detok_close(s->detok);
    think_watch_finish(&s->think);
    token_list_finish(&s->ids);
    *s = (struct answer_state){0};
}

bool answer_state_add(struct answer_state *s, int32_t id, struct bn_str *text, struct bn_error *err)
{
    bool stopped = false;
    *text = (struct bn_str){0};
    /* A model may have more rows than its tokenizer has tokens. Such an id has no text, and the
     * next prompt could not contain it. */
    const bool is_padding = (size_t)id >= tokenizer_info(s->tokenizer)->n_vocab;
    if (is_padding || tokenizer_is_eog(s->tokenizer, id)) {
        s->finish = FINISH_STOP;
        return true;
    }
    const bool repeats = s->n_tokens > 0 && s->ids.ids[s->ids.n - 1] == id;
    s->n_same = repeats ? s->n_same + 1 : 1;
    if (!token_list_push(&s->ids, id, err) || !detok_push(s->detok, id, text, &stopped, err))
        return false;
    s->n_tokens++;
    think_watch_add(&s->think, tokenizer_piece(s->tokenizer, id, TOKENIZER_SPECIAL_HIDE));
    if (stopped)
        s->finish = FINISH_STOP_STRING;
    else if (s->n_same >= ANSWER_DEGENERATE)
        s->finish = FINISH_DEGENERATE;
    else if (s->n_tokens == s->max_tokens)
        s->finish = FINISH_LENGTH;
    else if (s->ids.n >= s->n_ctx)
        s->finish = FINISH_CONTEXT;
    return true;
}

/* The prefill has ended early: count the micro-batches that it has evaluated, and their time. */
static void count_partial_prefill(const struct run *run, struct answer_result *r)
{
    const struct answer_prefill *p = &run->prefill;
    r->n_reused = r->n_prompt - p->n_total;
    r->n_evaluated = p->n_evaluated;
    r->prefill_s = p->n_evaluated > 0 ? p->evaluated_at - run->started : 0;
}

static bool is_cancelled(const struct run *run)
{
    return run->is_refused || atomic_load_explicit(&run->cancel->requested, memory_order_relaxed);
}

/* A progress callback of the engine. */
static void on_prefill(void *ud, size_t n_done, size_t n_total)
{
    struct run *run = ud;
    struct answer_prefill *p = &run->prefill;
    const double now = run_clock_seconds();
    size_t n_held;
    (void)generator_ids(run->g, &n_held); /* only the count is needed */
    const size_t n_evaluated = n_held - (run->job->n_prompt - n_total);
    if (n_done == 0)
        *p = (struct answer_prefill){.n_total = n_total, .begun = now, .evaluated_at = now};
    else if (n_evaluated == p->n_evaluated && now - p->done_at < PART_SECONDS)
        return;
    if (n_evaluated > p->n_evaluated)
        p->evaluated_at = now;
    p->n_evaluated = n_evaluated;
    p->n_done = n_done;
    p->done_at = now;
    run->sink->prefill(run->sink->ud, p);
}

/* The first step evaluates the prompt and reports its progress. Each other step evaluates the ids
 * that were added since the last one: usually one token. */
static bool step(struct run *run, struct answer_result *r, int32_t *id, struct bn_error *err)
{
    const bool is_first = run->answer.n_tokens == 0;
    struct bn_control control = {.cancel = run->cancel};
    struct bn_sync_stats stats = {0};
    if (is_first) {
        control.progress = (struct bn_progress){.report = on_prefill, .ud = run};
        control.n_stable = run->job->n_stable;
        (void)generator_ids(run->g, &r->n_held); /* only the count is needed */
    }
    if (!generator_step(run->g, run->answer.ids.ids, run->answer.ids.n, &control, &stats, id,
                        err)) {
        if (run->prefill.n_total > 0 && is_first)
            count_partial_prefill(run, r);
        return false;
    }
    if (is_first) {
        run->first = run_clock_seconds();
        run->first_bytes = generator_bytes_read(run->g);
        r->prefill_s = run->first - run->started;
        r->n_reused = stats.n_reused;
        r->n_evaluated = stats.n_evaluated;
        r->n_reevaluated = stats.n_reevaluated;
    }
    return true;
}

/* Choose the next token. A token that closes a thought is known, so it needs no step: the next step
 * evaluates it. Two exceptions: the prompt must be evaluated, and alternatives to report come from
 * a step. */
static bool choose(struct run *run, struct answer_result *r, int32_t *id, struct bn_error *err)
{
    int32_t close;
    const bool is_closing = think_watch_next(&run->answer.think, &close);
    if ((!is_closing || run->answer.n_tokens == 0 || run->job->n_alts > 0) &&
        !step(run, r, id, err))
        return false;
    if (is_closing) {
        generator_replace(run->g, close);
        *id = close;
    }
    return true;
}

static void emit_token(struct run *run, int32_t id, struct bn_str text,
                       const struct generator_alt *alts, size_t n_alts)
{
    const struct answer_token token = {.id = id, .text = text, .alts = alts, .n_alts = n_alts};
    if (!run->sink->token(run->sink->ud, &token))
        run->is_refused = true;
}

/* Append a chosen token to the answer and pass it to the sink. */
static bool add(struct run *run, struct answer_result *r, int32_t id, struct bn_error *err)
{
    struct generator_alt alts[GENERATOR_MAX_ALTS + 1];
    const size_t n_alts = run->job->n_alts > 0 ? run->job->n_alts + 1 : 0;
    const size_t n_before = run->answer.n_tokens;
    struct bn_str text;
    if (!answer_state_add(&run->answer, id, &text, err))
        return false;
    if (run->answer.n_tokens == n_before)
        return true; /* this token ends the answer */
    if (n_alts > 0)
        generator_alts(run->g, alts);
    const double now = run_clock_seconds();
    if (n_before > 0)
        gap_times_add(&run->gaps, now - run->last);
    run->last = now;
    run->last_bytes = generator_bytes_read(run->g);
    if (run->last_bytes == run->first_bytes)
        r->n_first = run->answer.n_tokens; /* nothing was evaluated since the prompt */
    emit_token(run, id, text, alts, n_alts);
    return true;
}

static bool generate(struct run *run, struct answer_result *r, struct bn_error *err)
{
    struct answer_state *a = &run->answer;
    while (a->finish == FINISH_NONE) {
        int32_t id;
        if (is_cancelled(run)) {
            a->finish = FINISH_INTERRUPTED;
        } else if (!choose(run, r, &id, err)) {
            if (err->code != BN_ECANCELLED)
                return false;
            a->finish = FINISH_INTERRUPTED;
        } else if (!add(run, r, id, err)) {
            return false;
        }
    }
    r->finish = a->finish;
    r->n_tokens = a->n_tokens;
    r->n_thought = a->think.n_thought;
    r->is_thought_cut = a->think.is_cut;
    return true;
}

bool answer_run(struct generator *g, const struct tokenizer *tokenizer,
                const struct answer_job *job, const struct answer_sink *sink,
                struct bn_cancel *cancel, struct answer_result *result, struct bn_error *err)
{
    struct run run = {.g = g,
                      .job = job,
                      .sink = sink,
                      .cancel = cancel,
                      .answer = {.tokenizer = tokenizer,
                                 .max_tokens = job->max_tokens,
                                 .n_ctx = generator_n_ctx(g)},
                      .started = run_clock_seconds()};
    struct answer_result r = {.n_prompt = job->n_prompt};
    const struct spec_stats before = generator_spec_stats(g);
    const struct detok_config detok = {
        .stops = job->stops, .n_stops = job->n_stops, .at_start = job->at_start};
    bool ok = generator_set(g, &job->sampler, job->n_alts, err) &&
              detok_open(tokenizer, &detok, &run.answer.detok, err);
    generator_speculate(g, job->spec);
    think_watch_init(&run.answer.think, &job->think);
    for (size_t i = 0; ok && i < job->n_prompt; i++)
        ok = token_list_push(&run.answer.ids, job->prompt[i], err);
    ok = ok && generate(&run, &r, err);
    if (ok) {
        const struct bn_str rest = detok_flush(run.answer.detok); /* empty after a stop string */
        if (rest.n_bytes > 0)
            emit_token(&run, TOKEN_NONE, rest, NULL, 0);
        if (r.n_tokens > 0) {
            r.first_token_s = run.first - run.started;
            r.decode_s = run.last - run.first;
            r.gaps = gap_times_percentiles(&run.gaps);
            r.decode_bytes = run.last_bytes - run.first_bytes;
        }
        r.states = generator_states(g);
        const struct spec_stats after = generator_spec_stats(g);
        r.n_drafted = after.n_drafted - before.n_drafted;
        r.n_accepted = after.n_accepted - before.n_accepted;
        *result = r;
    }
    answer_state_finish(&run.answer);
    return ok;
}
