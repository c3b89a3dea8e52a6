/*
 * How reading a prompt and generating grow with threads, and generating with sequences: threads 1
 * to N with one sequence, and 1, 2, 4, 8, 16 sequences with all N. Speed-up is against one thread
 * or one sequence, efficiency is speed-up by threads or sequences.
 */
#ifndef APP_BENCH_SCALING_H
#define APP_BENCH_SCALING_H

#include "app/bench/bench_run.h"
#include "app/common/report.h"

struct bench_scaling {
    const struct bn_file *file;
    struct bn_model_config cfg; /* n_threads is N; 0: what the process may use */
    struct bench_plan plan;     /* its model is opened here, for each number of threads */
    size_t n_prompt;            /* tokens of the prompt; 0: none is read */
    size_t n_tokens, depth;     /* generated, and in the cache already */
    bool is_json;
};

/* Measure and print. */
enum exit_code bench_scaling_run(const struct bench_scaling *s);

#endif
