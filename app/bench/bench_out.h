/*
 * Results of bitnet-bench, as a table for people and as one JSON object.
 */
#ifndef APP_BENCH_OUT_H
#define APP_BENCH_OUT_H

#include "app/bench/bench_machine.h"
#include "app/common/report.h"

#define BENCH "bitnet-bench"

struct bench_result {
    const char *path;
    const struct bn_model_info *info;
    const struct bench_machine *machine;
    double first_eval_s;            /* from nothing to one evaluated token */
    const char *head, *skip, *spec; /* as the options are spelled */
    bool with_sampling, with_profile;
    const struct bench_row *rows; /* (n_rows) */
    size_t n_rows;
};

/* "pp512" */
void bench_name_test(const struct bench_row *row, char out[32]);
/* "pp512", "tg128, depth 2048, batch 4" */
void bench_name_row(const struct bench_row *row, char *out, size_t cap);

void bench_print_table(const struct bench_result *r);
enum exit_code bench_print_json(const struct bench_result *r);

#endif
