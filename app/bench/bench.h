/*
 * The parts that the main of bitnet-bench combines: the options, the table of results and the
 * measurement of scaling.
 */
#ifndef APP_BENCH_H
#define APP_BENCH_H

#include "app/bench/bench_baseline.h"
#include "app/bench/bench_run.h"
#include "app/common/report.h"
#include "app/options/model_args.h"

#include <jansson.h>

#define BENCH "bitnet-bench"

extern const struct option_table *const bench_tables[];
extern const size_t n_bench_tables;

/* The rows to measure: one for each combination of the listed values, without tests of 0 tokens.
 * They are sorted by test (pp, then tg), then by number of tokens, by depth and by batch, each in
 * the order of its list. Free *out with mem_free, also on error. BN_EARG: no rows, or too many.
 * BN_ENOMEM. */
bool bench_options_rows(const struct options *o, struct bench_row **out, size_t *n_rows,
                        struct bn_error *err);

/* Returns a plan with all fields except model and machine, which are NULL. */
struct bench_plan bench_options_plan(const struct options *o);

#define BENCH_FINGERPRINT_BYTES (2 * BN_FINGERPRINT_BYTES + 1) /* hexadecimal, and a 0 */

/* All that the table or the JSON object shows. */
struct bench_result {
    const char *path;
    const struct bn_model_info *info;
    struct bench_machine *machine;
    double first_eval_s;              /* seconds from opening the file to one evaluated token */
    const char *head, *skip, *spec;   /* the values of these options as text */
    bool with_sampling, with_profile; /* --sample, --profile */
    size_t n_ubatch, n_runs;          /* --ubatch, --runs */
    char fingerprint[BENCH_FINGERPRINT_BYTES];
    struct bench_row *rows; /* (n_rows) */
    size_t n_rows;
    const char *baseline;         /* path of the baseline; NULL: none */
    struct bench_change *changes; /* (n_rows) against the baseline; NULL: none */
};

/* What decides how fast the program is, besides the program itself: model, machine, settings. A
 * result can be compared only with one that has the same members. NULL: out of memory. */
json_t *bench_settings_json(const struct bench_result *r);

/* "pp512" */
void bench_name_test(const struct bench_row *row, char out[32]);
/* "pp512", "tg128, depth 2048, batch 4". out_bytes is at least 32; 80 is enough for every name, and
 * a name that does not fit is cut. */
void bench_name_row(const struct bench_row *row, char *out, size_t out_bytes);
/* 16 hexadecimal digits */
void bench_name_checksum(uint64_t checksum, char out[20]);

/* The rate that limits the test, per second: bytes read for tg, multiply-adds of the linear layers
 * for pp. */
double bench_row_rate(const struct bn_model_info *info, const struct bench_row *row);
/* bench_row_rate in percent of the row's peak rate; 0 if the peak is unknown. More than
 * REPORT_MAX_PERCENT means that the measurement was disturbed. */
double bench_row_percent(const struct bn_model_info *info, const struct bench_row *row);
/* A step reads memory at one rate and multiplies at another. Returns the larger of the two in
 * percent of its peak in `peaks` (BENCH_N_PEAKS, per second). A rate with an unknown peak counts as
 * 0 percent. */
double bench_step_percent(const struct bn_profile_step *step, const double *peaks);

/* How all tables and JSON objects of this program show a percentage of a peak. Text: " 84.2 %", or
 * "disturbed" above REPORT_MAX_PERCENT. JSON: null if it is unknown (0) or disturbed, and out of
 * memory is NULL. */
#define BENCH_PERCENT_BYTES 16
const char *bench_percent_text(double percent, char out[BENCH_PERCENT_BYTES]);
json_t *bench_percent_json(double percent);

/* Print the results on stdout. If bench_print_json fails, it prints the error on stderr and returns
 * its code, else EXIT_DONE. */
void bench_print_table(const struct bench_result *r);
enum exit_code bench_print_json(const struct bench_result *r);

struct bench_scaling {
    const struct bn_file *file;
    struct bn_model_config cfg; /* n_threads is N; 0: as many as the engine chooses */
    struct bench_plan plan;     /* without model and machine */
    size_t n_prompt;            /* tokens of pp; 0: no pp */
    size_t n_tokens, depth;     /* tokens of tg, at least 1; depth of both tests */
    bool is_json;               /* print one JSON object instead of a table */
};

/* Measure pp and tg with 1 to N threads (at most 1024) and one sequence, and tg with N threads and
 * 2, 4, 8 and 16 sequences, as far as n_ubatch permits. Print the speed-up over one thread or one
 * sequence, and two efficiencies: the speed-up divided by the number of threads or sequences, and
 * the rate in percent of what the machine can do with that number of threads (bench_row_percent).
 * The second shows whether the machine or the program limits the first. An efficiency of threads
 * below 60 % is reported as a warning. Returns EXIT_DONE; or an error is printed on stderr, and its
 * code is returned. */
enum exit_code bench_scaling_run(const struct bench_scaling *s);

/* Measure the tokenizer of the model file `path`, which may hold only a vocabulary, with --runs,
 * --json and --no-repair, and print tokens and bytes per second on one thread for texts of several
 * kinds and lengths. Returns as bench_scaling_run. */
enum exit_code bench_tokenizer_run(const struct options *o, const char *path);

#endif
