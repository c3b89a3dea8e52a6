/*
 * What bitnet-bench measures: one row at a time, over sessions of an open model.
 *
 * A row is a test (pp: read a prompt, tg: generate one token after another), a number of tokens, a
 * depth (tokens already in the cache) and a batch (sequences that share each pass over the
 * weights). A first run is discarded; medians are over the others. Every run must give the same
 * checksum.
 */
#ifndef APP_BENCH_RUN_H
#define APP_BENCH_RUN_H

#include "engine/engine.h"
#include "engine/spec.h"

enum bench_test { BENCH_PP, BENCH_TG };

struct bench_row {
    enum bench_test test;
    size_t n_tokens; /* of each sequence */
    size_t depth, batch;
    /* measured */
    double tokens_per_s, min, max; /* of all sequences together; median, slowest, fastest run */
    double bytes_per_token;        /* that were read from memory: weights that a pass needed, shared
                                      by its tokens, keys and values, rows of tables */
    double peak;                   /* median of plan->peak_now around the runs */
    double first_token_s;          /* pp: from the first token of the prompt to the first logits */
    uint64_t checksum;             /* of the ids and logits that came out */
    struct bn_profile_step steps[BN_PROFILE_STEPS]; /* of a model that is profiled: (n_steps) */
    size_t n_steps;
    size_t n_drafted, n_accepted; /* tokens of the last run's drafts */
};

struct bench_plan {
    struct bn_model *model;
    size_t n_ubatch;
    size_t n_runs;
    enum bench_chain {
        BENCH_TOP1,
        BENCH_SAMPLE
    } chain;             /* tg: the best token, or the default sampler */
    enum spec_mode spec; /* tg of one sequence */
    /* Outside the timed part. Before each run: what the machine can do now of what bounds the test,
     * bytes read a second for tg and multiply-adds for pp; 0: not known. And after each run. */
    double (*peak_now)(void *ud, enum bench_test test);
    void (*after_run)(void *ud);
    void *ud;
};

/* BN_ECONTEXT, BN_ENOMEM and what the engine says; BN_EDEVICE: two runs gave different outputs. */
bool bench_run(const struct bench_plan *plan, struct bench_row *row, struct bn_error *err);

/* Open a session, evaluate one token and close it: a model is loaded when this is done. */
bool bench_first_token(struct bn_model *model, struct bn_error *err);

#endif
