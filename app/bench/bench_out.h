/*
 * Results of bitnet-bench: a table for people and one JSON object.
 */
#ifndef APP_BENCH_OUT_H
#define APP_BENCH_OUT_H

#include "app/bench/bench_run.h"
#include "app/common/report.h"

#define BENCH "bitnet-bench"

struct bench_result {
    const char *path;
    const struct bn_model_info *info;
    const struct bench_machine *machine;
    double first_eval_s;            /* from the start to one evaluated token */
    const char *head, *skip, *spec; /* as the options are spelled */
    bool with_sampling, with_profile;
    const struct bench_row *rows; /* (n_rows) */
    size_t n_rows;
};

/* "pp512" */
void bench_name_test(const struct bench_row *row, char out[32]);
/* "pp512", "tg128, depth 2048, batch 4" */
void bench_name_row(const struct bench_row *row, char *out, size_t out_bytes);
/* 16 hexadecimal digits */
void bench_name_checksum(const struct bench_row *row, char out[20]);

/* The rate that limits the test, per second: bytes read for tg, multiply-adds for pp. */
double bench_row_rate(const struct bn_model_info *info, const struct bench_row *row);
/* This rate in percent of the row's peak rate; 0 if the peak is unknown. */
double bench_row_percent(const struct bn_model_info *info, const struct bench_row *row);
/* Rate of one kind of work in percent of its peak rate in memory or in arithmetic, whichever is
 * higher; 0 if unknown. `peaks` has BENCH_N_PEAKS numbers. */
double bench_step_percent(const struct bn_profile_step *step, const double *peaks);

void bench_print_table(const struct bench_result *r);
enum exit_code bench_print_json(const struct bench_result *r);

#endif
