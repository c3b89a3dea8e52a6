/*
 * The one thread that enters the engine: it loads the model at once, then answers job after job.
 *
 * Everything it has to say comes out of worker_next as events, and a byte is written to the wake
 * pipe when there are some; a full ring makes the worker wait, so a slow terminal or pipe slows the
 * answer and memory stays bounded. Signals are blocked in it and in every thread it starts. All
 * functions are for the main thread.
 */
#ifndef APP_WORKER_H
#define APP_WORKER_H

#include "app/chat/answer/answer_run.h"
#include "app/chat/answer/generator.h"

struct worker;

struct worker_config {
    const struct bn_file *file;
    const struct tokenizer *tokenizer;
    struct bn_model_config model; /* progress and cancel are the worker's own */
    size_t n_ctx;
    int wake_fd; /* write end, non-blocking */
};

enum worker_event_kind {
    WORKER_LOADING,  /* n_done of n_total bytes */
    WORKER_LOADED,   /* worker_info and worker_n_ctx may be asked from here on */
    WORKER_READING,  /* n_done of n_total tokens of the prompt */
    WORKER_TOKEN,    /* id, text, alts */
    WORKER_REMARK,   /* text: a sentence about a snapshot; err.code says whether something failed */
    WORKER_MEASURED, /* peaks */
    WORKER_DONE,     /* result; the worker is idle again */
    WORKER_FAILED,   /* err; idle again, or, before WORKER_LOADED, ended */
};

struct worker_event {
    enum worker_event_kind kind;
    size_t n_done, n_total;
    int32_t id;
    struct bn_str text;         /* owned by the event */
    struct generator_alt *alts; /* (n_alts), owned by the event */
    size_t n_alts;
    struct answer_result result;
    struct generator_peaks peaks;
    struct bn_error err;
};

/* Starts the thread and the load. BN_ENOMEM, BN_EIO (the system gives no thread). */
bool worker_open(const struct worker_config *cfg, struct worker **out, struct bn_error *err);
/* Cancels what runs, waits for it, frees everything. NULL is fine. */
void worker_close(struct worker *w);

/* The next event; false when there is none. Finish it with worker_event_finish. */
bool worker_next(struct worker *w, struct worker_event *event);
void worker_event_finish(struct worker_event *event);

/* Hand over a job (copied); the worker must be loaded and answer nothing. */
bool worker_answer(struct worker *w, const struct answer_job *job, struct bn_error *err);
/* Write what the session shares with ids as a snapshot to path (all copied), after what runs now; a
 * WORKER_REMARK says how it went. */
bool worker_save(struct worker *w, const int32_t *ids, size_t n_ids, const char *path,
                 struct bn_error *err);
/* Measure what the device can do at all, after what runs now: WORKER_MEASURED. */
bool worker_measure(struct worker *w, struct bn_error *err);
bool worker_is_idle(struct worker *w); /* nothing runs or waits to be run */
/* Stop the running job or load soon; nothing happens when idle. */
void worker_cancel(struct worker *w);

const struct bn_model_info *worker_info(const struct worker *w); /* NULL before WORKER_LOADED */
/* As bn_model_explain, for one sequence; the worker must be loaded and idle. */
size_t worker_explain(const struct worker *w, size_t n_tokens, char *text, size_t text_bytes);
size_t worker_n_ctx(const struct worker *w); /* 0 before */

#endif
