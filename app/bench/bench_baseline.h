/*
 * A baseline: the output of an earlier `bitnet-bench --json`, with which the rows are compared.
 *
 * Two medians differ by chance. So each has a confidence interval (bench_median_bound), and a row
 * counts as slower only if the whole interval of the ratio is below 0.95. On a shared machine,
 * memory and processor can also be slower for hours. The peak rates that are measured between the
 * runs show this: if the peak of a row has fallen by some factor, the row may fall by the same
 * factor before it counts as slower.
 */
#ifndef APP_BENCH_BASELINE_H
#define APP_BENCH_BASELINE_H

#include "app/bench/bench_run.h"

#include <jansson.h>

/* If nothing has changed, n new runs are all slower than n old ones with a probability of
 * n! n! / (2 n)!: 50 percent for one run, 5 for three, and 0.4 for five. With nine runs, where the
 * intervals leave out the extreme ones, a new interval is below the old one in 0.2 percent. */
#define BENCH_MIN_RUNS 5

enum bench_verdict { BENCH_SAME, BENCH_SLOWER, BENCH_FASTER }; /* SAME: within the noise */

struct bench_change {
    /* set by bench_baseline_match: fields of struct bench_row, from the baseline */
    double old_tokens_per_s, old_low, old_high;
    double old_peak; /* 0: unknown */
    char old_checksum[20];
    /* set by bench_baseline_compare */
    double ratio;        /* the median divided by old_tokens_per_s */
    double low, high;    /* smallest and largest ratio of values in the two confidence intervals */
    double peak_ratio;   /* the peak rate divided by that of the baseline; 0: unknown */
    bool is_same_output; /* equal checksums */
    enum bench_verdict verdict;
};

/* Read the file, whose contents are not trusted; json_decref(*out) frees the result. BN_EIO: it
 * cannot be read, or is too large. BN_EARG: not a JSON object. BN_ENOMEM. */
bool bench_baseline_read(const char *path, json_t **out, struct bn_error *err);
/* The same with the text of the file; `name` is for messages. */
bool bench_baseline_parse(const char *name, struct bn_str text, json_t **out, struct bn_error *err);

/* Check that the baseline has the same settings (bench_settings_json), which stay with the caller,
 * and find the rows of the same tests: changes[i] belongs to rows[i], both (n_rows). The baseline
 * may have more rows. BN_EARG: another setting, the processor is unknown ("processor" is missing or
 * ""), fewer than BENCH_MIN_RUNS runs, or a row is missing or broken. */
bool bench_baseline_match(const json_t *baseline, json_t *settings, const struct bench_row *rows,
                          size_t n_rows, struct bench_change *changes, struct bn_error *err);

/* Compare a measured row with the row of the baseline in *c. */
void bench_baseline_compare(struct bench_change *c, const struct bench_row *row);

const char *bench_verdict_name(enum bench_verdict verdict); /* "same", "slower", "faster" */

#endif
