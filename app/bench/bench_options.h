/*
 * The options of bitnet-bench, and the rows and the plan that they describe.
 */
#ifndef APP_BENCH_OPTIONS_H
#define APP_BENCH_OPTIONS_H

#include "app/bench/bench_run.h"
#include "app/options/model_args.h"

extern const struct option_table *const bench_tables[];
extern const size_t n_bench_tables;

/* The rows to measure, in the order tests, depths, batches; free with mem_free. Tests of 0 tokens
 * are left out. BN_EARG: no rows, or too many. */
bool bench_options_rows(const struct options *o, struct bench_row **out, size_t *n_rows,
                        struct bn_error *err);

/* The settings of the runs, without model and machine. */
struct bench_plan bench_options_plan(const struct options *o);

#endif
