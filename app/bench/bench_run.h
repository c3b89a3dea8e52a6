/*
 * Measures one row of the benchmark on sessions of an open model.
 *
 * A row is a test (pp, prompt processing: evaluate a prompt; tg, text generation: generate one
 * token after another), a number of tokens, a depth (tokens in the KV cache before the test) and a
 * batch (sequences that share each pass over the weights). The first run is discarded; medians are
 * over the other runs. Every run must have the same checksum.
 */
#ifndef APP_BENCH_RUN_H
#define APP_BENCH_RUN_H

#include "app/bench/bench_machine.h"
#include "app/common/timing/gap_times.h"
#include "engine/spec/spec.h"

enum bench_test { BENCH_PP, BENCH_TG };

struct bench_row {
    enum bench_test test;
    size_t n_tokens;     /* of each sequence, at least 1 */
    size_t depth, batch; /* batch is at least 1 */
    /* set by bench_run; all zeros before it */
    double tokens_per_s, min, max; /* of all sequences together: median, slowest, fastest run */
    /* 95 % confidence interval of the median. With fewer than nine runs it is min to max, which has
     * 94 % with five runs and 75 % with three. */
    double low, high;
    /* read from memory: weights (shared by the tokens of a pass), keys and values, table rows;
     * recurrent states count twice, because they are also written */
    double bytes_per_token;
    /* median over the runs of the peak rate that limits the test, per second: bytes read for tg,
     * int8 multiply-adds for pp; 0: unknown */
    double peak;
    struct gap_percentiles gaps; /* tg: times between tokens, all timed runs; pp: all 0 */
    double first_token_s;        /* pp: seconds to evaluate the prompts at tokens_per_s; tg: 0 */
    uint64_t checksum;           /* of the resulting ids and logits */
    /* (n_steps) sums over the timed runs; n_steps is 0 if the model is not profiled */
    struct bn_profile_step steps[BN_PROFILE_STEPS];
    size_t n_steps;
    size_t n_drafted, n_accepted; /* draft tokens of the last run; 0 without speculation */
};

struct bench_plan {
    struct bn_model *model;
    struct bench_machine *machine; /* measured between the runs; NULL: not measured */
    size_t n_ubatch;               /* most tokens of a pass, as the model was opened with */
    size_t n_runs;                 /* without the discarded one, at least 1 */
    bool with_sampling;            /* tg: sample with the defaults of the chat's options;
                                      false: the best token */
    enum spec_mode spec;           /* for tg with one sequence; other rows do not speculate */
};

/* Measure the row with an open model. The fields that bench_run sets must be zeros before the call.
 * BN_EARG: batch > n_ubatch. BN_EDEVICE: two runs gave different outputs. BN_ENOMEM. Errors of the
 * engine. After an error some results of the row may already be set. */
bool bench_run(const struct bench_plan *plan, struct bench_row *row, struct bn_error *err);

/* Evaluate one token in a new session. The first evaluation also reads what bn_model_open left for
 * the first use, such as pages of the file. Errors of the engine. */
bool bench_first_token(struct bn_model *model, struct bn_error *err);

/* The confidence interval of the median of n sorted values goes from the value with this index to
 * the one with the same index from the end. It holds for any distribution: the number of values
 * below the true median is binomial. The index is the largest for which the median is outside in at
 * most 5 % of all cases; 0 if there are too few values for that. n is 1 to 1000. */
size_t bench_median_bound(size_t n);

/* Returns the median, for an even n the mean of the two values in the middle. Sorts the values in
 * ascending order. n is at least 1. */
double bench_median(double *values, size_t n);

#endif
