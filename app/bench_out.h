/*
 * Results of bitnet-bench, as a table for people and as one JSON object.
 */
#ifndef APP_BENCH_OUT_H
#define APP_BENCH_OUT_H

#include "app/bench_run.h"
#include "app/report.h"

#define BENCH "bitnet-bench"

struct bench_result {
    const char *path;
    const struct bn_model_info *info;
    double read_bytes_per_s;      /* the better of before and after the rows */
    double macs_per_s;            /* int8 arithmetic from registers, the same; 0: not known */
    size_t peak_bytes;            /* resident memory at its highest: loading, or after a run */
    double steal_percent;         /* of CPU time that the host gave to others; < 0: not known */
    const struct bench_row *rows; /* (n_rows) */
    size_t n_rows;
    bool with_profile;
};

/* "pp512", "tg128, depth 2048, batch 4" */
void bench_name_row(const struct bench_row *row, char *out, size_t cap);

void bench_print_table(const struct bench_result *r);
enum exit_code bench_print_json(const struct bench_result *r);

#endif
