/*
 * The worker: the thread that calls the engine. It loads the model, then runs one job after the
 * other. Only the functions from worker_info on, at the end of this file, call the engine on the
 * main thread.
 *
 * worker_next returns the progress and the results of loading and of the jobs as events. For each
 * event the worker writes a byte to the wake pipe, except for a WORKER_LOADING or WORKER_PREFILL
 * that replaces an unread event of the same kind. If the ring of events is full, the worker waits,
 * so memory stays bounded if a terminal or pipe is slow. Signals, except fatal ones, are blocked in
 * the worker's thread and in all threads that it starts. Call all functions on the main thread.
 */
#ifndef APP_WORKER_H
#define APP_WORKER_H

#include "app/chat/answer/answer_run.h"
#include "app/chat/answer/generator.h"

struct worker;

struct worker_config {
    const struct bn_file *file;
    const struct tokenizer *tokenizer;
    struct bn_model_config model; /* the worker sets progress and cancel. Its thread writes the
                                     notes until WORKER_LOADED or WORKER_FAILED */
    struct bn_session_config session;
    int wake_fd; /* write end of the wake pipe, non-blocking */
};

enum worker_event_kind {
    WORKER_LOADING,  /* n_done of n_total bytes */
    WORKER_LOADED,   /* worker_info and worker_n_ctx are valid from here on */
    WORKER_PREFILL,  /* prefill */
    WORKER_TOKEN,    /* id, text, alts: as in struct answer_token; time */
    WORKER_REMARK,   /* text: about a snapshot; err.code is set if writing or loading failed */
    WORKER_MEASURED, /* peaks */
    WORKER_CHECKED,  /* sense, seconds; err.code is set if the check failed */
    WORKER_DONE,     /* result; worker_answer may be called again */
    WORKER_FAILED,   /* err, of an answer or of loading. After an answer worker_answer may be
                        called again; after loading the thread has ended */
};

struct worker_event {
    enum worker_event_kind kind;
    size_t n_done, n_total;
    struct answer_prefill prefill;
    int32_t id;
    struct bn_str text;         /* owned by the event */
    struct generator_alt *alts; /* (n_alts), owned by the event */
    size_t n_alts;
    struct answer_result result;
    struct generator_peaks peaks;
    struct sense_result sense;
    double seconds; /* that the check took */
    double time;    /* run_clock_seconds when the token came */
    struct bn_error err;
};

/* Start the thread, which begins to load. Copies *cfg, but not the objects it points to; they must
 * outlive the worker. BN_ENOMEM; BN_EIO: the system refuses a thread. */
bool worker_open(const struct worker_config *cfg, struct worker **out, struct bn_error *err);
/* Cancel the loading or the running job, drop the waiting jobs, wait for the thread and free
 * everything. A measurement runs to its end first. NULL is fine. */
void worker_close(struct worker *w);

/* Get the next event, and free it with worker_event_finish. False: there is none, and *event does
 * not change. */
bool worker_next(struct worker *w, struct worker_event *event);
void worker_event_finish(struct worker_event *event);

/* Queue an answer. The job is copied. The model must be loaded and no answer may be running. Its
 * last event is WORKER_DONE or WORKER_FAILED. BN_ENOMEM, as for the other jobs. */
bool worker_answer(struct worker *w, const struct answer_job *job, struct bn_error *err);
/* Queue a job that writes a snapshot to `path`: the part of the session that is a prefix of `ids`.
 * Copies `ids` and `path`. A WORKER_REMARK reports the size before the file is written, and another
 * one the result, unless memory runs out for them. */
bool worker_save(struct worker *w, const int32_t *ids, size_t n_ids, const char *path,
                 struct bn_error *err);
/* Queue a job that measures the limits of the device. The result is WORKER_MEASURED. */
bool worker_measure(struct worker *w, struct bn_error *err);
enum worker_check {
    WORKER_CHECK_YIELDS, /* another job cancels it, and it starts again after that job */
    WORKER_CHECK_RUNS,   /* other jobs wait until it ends; worker_cancel stops it if it has begun */
};
/* Queue the sense check (see sense_check.h). The result is WORKER_CHECKED; a check that
 * worker_cancel or worker_close ends has no result. BN_ENOMEM. */
bool worker_check(struct worker *w, enum worker_check how, struct bn_error *err);
/* Whether no job runs or waits. A check that yields does not count, and neither does the loading of
 * the model. */
bool worker_is_idle(struct worker *w);
/* Request that the loading of the model, the running job, and all queued answers and snapshots stop
 * soon. A measurement and a check that yields continue. A later worker_answer, worker_save or
 * worker_measure withdraws the request, except from a check that runs. */
void worker_cancel(struct worker *w);

/* NULL before WORKER_LOADED; valid until worker_close. */
const struct bn_model_info *worker_info(const struct worker *w);
/* See bn_model_explain, for one sequence. No job and no check may run or wait. */
size_t worker_explain(const struct worker *w, size_t n_tokens, char *text, size_t text_bytes);
size_t worker_n_ctx(const struct worker *w); /* 0 before WORKER_LOADED */
/* The limit of the memory for saved states, in bytes. 0 before WORKER_LOADED, or if the model needs
 * none. */
size_t worker_state_memory(const struct worker *w);

#endif
