/*
 * The worker thread, its ring of events and its queue of jobs: see worker.h.
 *
 * One lock protects the ring, the queue, `running` and is_closing. A progress event replaces the
 * newest unread event if both are of the same kind, so that a fast load does not fill the ring.
 */
#include "app/chat/answer/worker.h"

#include "app/chat/answer/snapshot.h"
#include "app/common/strbuf.h"
#include "app/common/timing/run_clock.h"
#include "app/terminal/signals.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#define RING_EVENTS 64 /* about a second of tokens of a 2B model on a CPU */

enum job_kind { JOB_ANSWER, JOB_SAVE, JOB_MEASURE, JOB_CHECK };

/* A job in the queue. It owns copies of all arrays and texts of `answer`, which points to them. */
struct job {
    struct answer_job answer;
    int32_t *prompt; /* (answer.n_prompt); JOB_SAVE: the ids of the conversation */
    char **stops;    /* (answer.n_stops) */
    struct sampler_bias *biases;
    int32_t *close; /* (answer.think.n_close) */
    char *snapshot; /* JOB_ANSWER: file to load before it, or NULL. JOB_SAVE: file to write */
    enum job_kind kind;
    bool yields; /* JOB_CHECK: WORKER_CHECK_YIELDS */
    struct job *next;
};

/* What the thread executes. Any new job cancels a check that yields. */
enum running { RUNNING_NOTHING, RUNNING_JOB, RUNNING_CHECK, RUNNING_CHECK_YIELDS };

struct worker {
    struct worker_config cfg;
    struct bn_cancel cancel;       /* of loading, answers and snapshots */
    struct bn_cancel check_cancel; /* written with the lock held: the thread clears it when it takes
                                      a job, and this must not undo a later request */
    struct generator *g; /* used by the thread, and after loading by the functions from worker_info
                            on, which the main thread calls */
    bool lost_token;     /* used by the thread: no memory for an event, the answer is incomplete */
    bool is_loaded;      /* used by the main thread: it has received WORKER_LOADED */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* the ring has space, a job was added, or the worker closes */
    struct worker_event ring[RING_EVENTS];
    size_t first, n_events;
    struct job *jobs;     /* waiting jobs, oldest first */
    enum running running; /* the kind of the job that the thread has taken */
    bool is_closing;
};

static void job_free(struct job *job)
{
    if (!job)
        return;
    for (size_t i = 0; job->stops && i < job->answer.n_stops; i++)
        mem_free(job->stops[i]);
    mem_free(job->stops);
    mem_free(job->prompt);
    mem_free(job->biases);
    mem_free(job->close);
    mem_free(job->snapshot);
    mem_free(job);
}

/* NULL only if memory ran out: mem_alloc returns a pointer for n = 0 too. */
static void *copy_bytes(const void *bytes, size_t n, size_t unit_bytes)
{
    void *copy = mem_alloc(n, unit_bytes);
    if (copy && n > 0)
        memcpy(copy, bytes, n * unit_bytes);
    return copy;
}

static struct job *job_copy(const struct answer_job *answer)
{
    struct job *job = mem_alloc(1, sizeof(*job));
    if (!job)
        return NULL;
    job->answer = *answer;
    job->prompt = copy_bytes(answer->prompt, answer->n_prompt, sizeof(*job->prompt));
    job->biases =
        copy_bytes(answer->sampler.biases, answer->sampler.n_biases, sizeof(*job->biases));
    job->close = copy_bytes(answer->think.close, answer->think.n_close, sizeof(*job->close));
    job->stops = mem_alloc(answer->n_stops, sizeof(*job->stops));
    if (answer->snapshot)
        job->snapshot = copy_bytes(answer->snapshot, strlen(answer->snapshot) + 1, 1);
    bool ok = job->prompt && job->biases && job->close && job->stops &&
              (job->snapshot || !answer->snapshot);
    for (size_t i = 0; ok && i < answer->n_stops; i++) {
        job->stops[i] = copy_bytes(answer->stops[i], strlen(answer->stops[i]) + 1, 1);
        ok = job->stops[i] != NULL;
    }
    if (!ok) {
        job_free(job);
        return NULL;
    }
    job->answer.prompt = job->prompt;
    job->answer.sampler.biases = job->biases;
    job->answer.think.close = job->close;
    job->answer.stops = (const char *const *)job->stops;
    job->answer.snapshot = job->snapshot;
    return job;
}

void worker_event_finish(struct worker_event *event)
{
    mem_free((void *)(uintptr_t)event->text.ptr); /* own memory; the cast drops const */
    mem_free(event->alts);
    *event = (struct worker_event){0};
}

static bool is_progress(enum worker_event_kind kind)
{
    return kind == WORKER_LOADING || kind == WORKER_PREFILL;
}

/* Move an event into the ring. False: the program ends, and the event was freed. */
static bool post(struct worker *w, struct worker_event *event)
{
    pthread_mutex_lock(&w->lock);
    struct worker_event *newest =
        w->n_events > 0 ? &w->ring[(w->first + w->n_events - 1) % RING_EVENTS] : NULL;
    if (newest && is_progress(event->kind) && newest->kind == event->kind) {
        *newest = *event;
        pthread_mutex_unlock(&w->lock);
        return true;
    }
    while (w->n_events == RING_EVENTS && !w->is_closing)
        pthread_cond_wait(&w->changed, &w->lock);
    const bool accepted = !w->is_closing;
    if (accepted)
        w->ring[(w->first + w->n_events++) % RING_EVENTS] = *event;
    pthread_mutex_unlock(&w->lock);
    if (!accepted)
        worker_event_finish(event);
    else
        /* A full pipe also wakes the main thread. With "!", gcc accepts the ignored result. */
        (void)!write(w->cfg.wake_fd, "w", 1);
    return accepted;
}

/* For bn_progress. */
static void post_loading(void *ud, size_t n_done, size_t n_total)
{
    struct worker_event event = {.kind = WORKER_LOADING, .n_done = n_done, .n_total = n_total};
    (void)post(ud, &event); /* false only when the program ends */
}

/* For answer_sink. The engine's threads wait for this call. It never waits for room in the ring:
 * when prefill begins, the ring is empty or has few remarks, and later reports replace an unread
 * one. */
static void post_prefill(void *ud, const struct answer_prefill *prefill)
{
    struct worker_event event = {.kind = WORKER_PREFILL, .prefill = *prefill};
    (void)post(ud, &event); /* false only when the program ends */
}

/* For answer_sink. False, which stops the answer: no memory for the event, or the program ends. */
static bool post_token(void *ud, const struct answer_token *token)
{
    struct worker *w = ud;
    struct worker_event event = {
        .kind = WORKER_TOKEN,
        .id = token->id,
        .text = {copy_bytes(token->text.ptr, token->text.n_bytes, 1), token->text.n_bytes},
        .alts = copy_bytes(token->alts, token->n_alts, sizeof(*token->alts)),
        .n_alts = token->n_alts,
        .time = run_clock_seconds()};
    if (!event.text.ptr || !event.alts) {
        worker_event_finish(&event);
        w->lost_token = true;
        return false;
    }
    return post(w, &event);
}

static void post_failure(struct worker *w, const struct bn_error *err)
{
    struct worker_event event = {.kind = WORKER_FAILED, .err = *err};
    (void)post(w, &event); /* false only when the program ends */
}

/* Call with the lock held. */
static void append(struct worker *w, struct job *job)
{
    struct job **end = &w->jobs;
    while (*end)
        end = &(*end)->next;
    job->next = NULL;
    *end = job;
}

/* Call with the lock held and at least one waiting job. A check that yields is taken only if no
 * other job waits. The queue has at most one such check. */
static struct job *take_job(struct worker *w)
{
    struct job *job = w->jobs;
    w->jobs = job->next;
    if (!job->yields || !w->jobs)
        return job;
    append(w, job);
    job = w->jobs;
    w->jobs = job->next;
    return job;
}

static struct job *wait_for_job(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    w->running = RUNNING_NOTHING;
    while (!w->jobs && !w->is_closing)
        pthread_cond_wait(&w->changed, &w->lock);
    struct job *job = w->is_closing ? NULL : take_job(w);
    if (job) {
        w->running = job->kind != JOB_CHECK ? RUNNING_JOB
                     : job->yields          ? RUNNING_CHECK_YIELDS
                                            : RUNNING_CHECK;
        atomic_store(&w->check_cancel.requested, false);
    }
    pthread_mutex_unlock(&w->lock);
    return job;
}

static void post_remark(struct worker *w, struct strbuf *text, const struct bn_error *err)
{
    /* The length first: strbuf_take empties the buffer. */
    struct worker_event event = {
        .kind = WORKER_REMARK, .text = {strbuf_text(text), text->n_bytes}, .err = *err};
    event.text.ptr = strbuf_take(text);
    if (event.text.ptr)        /* NULL: no memory, so there is no remark */
        (void)post(w, &event); /* false only when the program ends */
}

static void add_result(struct strbuf *text, const char *action, const struct snapshot_result *r)
{
    strbuf_addf(text, "%s %zu tok, %.1f MB, in %.2f s", action, r->n_tokens,
                (double)r->n_bytes / 1e6, r->seconds);
}

static void run_save(struct worker *w, const struct job *job)
{
    struct snapshot_result r;
    struct strbuf text = {0};
    struct bn_error err = {0};
    uint64_t n_bytes;
    bool ok = snapshot_prepare(w->g, job->prompt, job->answer.n_prompt, &n_bytes, &err);
    if (ok) {
        strbuf_addf(&text, "writing a snapshot of %.1f MB to %s", (double)n_bytes / 1e6,
                    job->snapshot);
        post_remark(w, &text, &err);
        ok = snapshot_write(w->g, w->cfg.file, job->snapshot, &w->cancel, &r, &err);
    }
    if (ok)
        add_result(&text, "snapshot written:", &r);
    else
        strbuf_addf(&text, "no snapshot was written: %s", err.text);
    post_remark(w, &text, &err);
}

/* Load a snapshot. If that fails, the conversation is read again and the reason is reported,
 * unless the user stopped the answer. */
static void load_snapshot(struct worker *w, const struct job *job)
{
    struct snapshot_result r;
    struct strbuf text = {0};
    struct bn_error err = {0};
    if (!snapshot_read(w->g, w->cfg.file, job->prompt, job->answer.n_prompt, job->snapshot,
                       &w->cancel, &r, &err)) {
        if (err.code != BN_ECANCELLED)
            strbuf_addf(&text, "%s; the conversation is read again", err.text);
    } else if (r.n_tokens > 0) {
        add_result(&text, "snapshot loaded:", &r);
    }
    if (text.n_bytes > 0)
        post_remark(w, &text, &err);
}

static void run_measure(struct worker *w)
{
    struct worker_event event = {.kind = WORKER_MEASURED, .peaks = generator_measure(w->g)};
    (void)post(w, &event); /* false only when the program ends */
}

/* Put a check that was cancelled behind the other jobs. False: it does not yield, or the program
 * ends, so the check has no result. */
static bool requeue_check(struct worker *w, struct job *job)
{
    pthread_mutex_lock(&w->lock);
    const bool again = job->yields && !w->is_closing;
    if (again)
        append(w, job);
    pthread_mutex_unlock(&w->lock);
    return again;
}

/* False: the job is in the queue again and must not be freed. */
static bool run_check(struct worker *w, struct job *job)
{
    struct worker_event event = {.kind = WORKER_CHECKED};
    const double begun = clock_seconds();
    if (!generator_check(w->g, w->cfg.file, w->cfg.tokenizer, &w->check_cancel, &event.sense,
                         &event.err) &&
        event.err.code == BN_ECANCELLED)
        return !requeue_check(w, job);
    event.seconds = clock_seconds() - begun;
    (void)post(w, &event); /* false only when the program ends */
    return true;
}

static void run_answer(struct worker *w, const struct job *job)
{
    if (job->snapshot)
        load_snapshot(w, job);
    const struct answer_sink sink = {.prefill = post_prefill, .token = post_token, .ud = w};
    struct worker_event event = {.kind = WORKER_DONE};
    struct bn_error err = {0};
    w->lost_token = false;
    bool ok =
        answer_run(w->g, w->cfg.tokenizer, &job->answer, &sink, &w->cancel, &event.result, &err);
    if (ok && w->lost_token)
        ok = bn_fail(&err, BN_ENOMEM, "out of memory for a token of the answer");
    if (ok)
        (void)post(w, &event); /* false only when the program ends */
    else
        post_failure(w, &err);
}

static void run_job(struct worker *w, struct job *job)
{
    switch (job->kind) {
    case JOB_ANSWER:
        run_answer(w, job);
        break;
    case JOB_SAVE:
        run_save(w, job);
        break;
    case JOB_MEASURE:
        run_measure(w);
        break;
    case JOB_CHECK:
        if (!run_check(w, job))
            return;
        break;
    }
    job_free(job);
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    struct bn_error err = {0};
    if (!generator_open(w->cfg.file, &w->cfg.model, &w->cfg.session, &w->g, &err)) {
        post_failure(w, &err);
        return NULL;
    }
    struct worker_event loaded = {.kind = WORKER_LOADED};
    if (post(w, &loaded))
        for (struct job *job; (job = wait_for_job(w)) != NULL;)
            run_job(w, job);
    generator_close(w->g); /* the thread that opened it closes it */
    return NULL;
}

/* Threads inherit the signal mask of their creator. Block all signals but fatal ones while the
 * worker's thread is created, so that it and its OpenMP threads never handle a blocked signal. */
static bool start_thread(struct worker *w, struct bn_error *err)
{
    sigset_t others, before;
    signals_set_non_fatal(&others);
    pthread_sigmask(SIG_BLOCK, &others, &before);
    const int rc = pthread_create(&w->thread, NULL, thread_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 || bn_fail(err, BN_EIO, "cannot start a thread: %s", strerror(rc));
}

bool worker_open(const struct worker_config *cfg, struct worker **out, struct bn_error *err)
{
    struct worker *w = mem_alloc(1, sizeof(*w));
    if (!w)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    w->cfg = *cfg;
    w->cfg.model.cancel = &w->cancel;
    w->cfg.model.progress = (struct bn_progress){.report = post_loading, .ud = w};
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (!start_thread(w, err)) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
        mem_free(w);
        return false;
    }
    *out = w;
    return true;
}

void worker_close(struct worker *w)
{
    if (!w)
        return;
    bn_cancel_request(&w->cancel);
    pthread_mutex_lock(&w->lock);
    bn_cancel_request(&w->check_cancel);
    w->is_closing = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    for (struct worker_event event; worker_next(w, &event);)
        worker_event_finish(&event);
    for (struct job *job; (job = w->jobs) != NULL;) {
        w->jobs = job->next;
        job_free(job);
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    mem_free(w);
}

bool worker_next(struct worker *w, struct worker_event *event)
{
    pthread_mutex_lock(&w->lock);
    const bool any = w->n_events > 0;
    if (any) {
        *event = w->ring[w->first];
        w->ring[w->first] = (struct worker_event){0};
        w->first = (w->first + 1) % RING_EVENTS;
        w->n_events--;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    if (any && event->kind == WORKER_LOADED)
        w->is_loaded = true;
    return any;
}

static void submit(struct worker *w, struct job *job)
{
    pthread_mutex_lock(&w->lock);
    if (job->kind != JOB_CHECK) /* a check does not read w->cancel */
        atomic_store(&w->cancel.requested, false);
    if (w->running == RUNNING_CHECK_YIELDS)
        bn_cancel_request(&w->check_cancel);
    append(w, job);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static bool submit_copy(struct worker *w, enum job_kind kind, const struct answer_job *answer,
                        struct bn_error *err)
{
    struct job *job = job_copy(answer);
    if (!job)
        return bn_fail(err, BN_ENOMEM, "out of memory for a job of %zu tokens", answer->n_prompt);
    job->kind = kind;
    submit(w, job);
    return true;
}

bool worker_answer(struct worker *w, const struct answer_job *answer, struct bn_error *err)
{
    return submit_copy(w, JOB_ANSWER, answer, err);
}

bool worker_save(struct worker *w, const int32_t *ids, size_t n_ids, const char *path,
                 struct bn_error *err)
{
    const struct answer_job answer = {.prompt = ids, .n_prompt = n_ids, .snapshot = path};
    return submit_copy(w, JOB_SAVE, &answer, err);
}

bool worker_measure(struct worker *w, struct bn_error *err)
{
    const struct answer_job answer = {0};
    return submit_copy(w, JOB_MEASURE, &answer, err);
}

bool worker_check(struct worker *w, enum worker_check how, struct bn_error *err)
{
    const struct answer_job answer = {0};
    struct job *job = job_copy(&answer);
    if (!job)
        return bn_fail(err, BN_ENOMEM, "out of memory for a job");
    job->kind = JOB_CHECK;
    job->yields = how == WORKER_CHECK_YIELDS;
    submit(w, job);
    return true;
}

bool worker_is_idle(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    bool is_idle = w->running == RUNNING_NOTHING || w->running == RUNNING_CHECK_YIELDS;
    for (const struct job *job = w->jobs; job; job = job->next)
        is_idle = is_idle && job->yields;
    pthread_mutex_unlock(&w->lock);
    return is_idle;
}

void worker_cancel(struct worker *w)
{
    bn_cancel_request(&w->cancel);
    pthread_mutex_lock(&w->lock);
    if (w->running == RUNNING_CHECK)
        bn_cancel_request(&w->check_cancel);
    pthread_mutex_unlock(&w->lock);
}

const struct bn_model_info *worker_info(const struct worker *w)
{
    return w->is_loaded ? generator_info(w->g) : NULL;
}

size_t worker_state_memory(const struct worker *w)
{
    return w->is_loaded ? generator_state_memory(w->g) : 0;
}

size_t worker_n_ctx(const struct worker *w)
{
    return w->is_loaded ? generator_n_ctx(w->g) : 0;
}

size_t worker_explain(const struct worker *w, size_t n_tokens, char *text, size_t text_bytes)
{
    return generator_explain(w->g, 1, n_tokens, text, text_bytes);
}
