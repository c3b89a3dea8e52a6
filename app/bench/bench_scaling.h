/*
 * Measures how pp and tg scale with threads, and tg with sequences: 1 to N threads with one
 * sequence, and 1, 2, 4, 8, 16 sequences with N threads. The speed-up is over one thread or one
 * sequence; the efficiency is the speed-up divided by the number of threads or sequences.
 */
#ifndef APP_BENCH_SCALING_H
#define APP_BENCH_SCALING_H

#include "app/bench/bench_run.h"
#include "app/common/report.h"

struct bench_scaling {
    const struct bn_file *file;
    struct bn_model_config cfg; /* n_threads is N; 0: all that this process may use */
    struct bench_plan plan;     /* without model and machine */
    size_t n_prompt;            /* tokens of pp; 0: no pp */
    size_t n_tokens, depth;     /* of tg */
    bool is_json;
};

enum exit_code bench_scaling_run(const struct bench_scaling *s);

#endif
