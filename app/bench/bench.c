/*
 * bitnet-bench: how fast a model runs here, and how much of the machine that is.
 *
 * This file opens the model, makes the list of rows and hands the results to bench_out. Measuring
 * rows is bench_run's, and what the machine can do at all bench_machine's.
 */
#include "app/bench/bench_options.h"
#include "app/bench/bench_out.h"
#include "app/bench/bench_scaling.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"
#include "engine/gguf/gguf_file.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX 10000 /* every number of a row comes from a list on the command line */

static enum exit_code print_help(const struct options *o)
{
    printf(
        "Usage: " BENCH " [OPTIONS] MODEL.gguf\n\n"
        "Rows are tokens a second: median, slowest and fastest run. For tg, GB/s and percent are\n"
        "the bytes read from memory against the read bandwidth measured in the same run. For pp,\n"
        "which is bound by arithmetic, they are multiply-adds of the linear layers a second "
        "against\n"
        "those that the same instructions reach from registers. The checksum is of the ids and\n"
        "logits that came out: equal settings give equal checksums on every machine.\n");
    options_print_help(o, stdout, OPTION_HELP_ALL, NULL);
    return report_flush(BENCH);
}

/* Rows in the order tests, depths, batches; tests of 0 tokens are left out. */
static bool list_rows(const struct options *o, struct bench_row **out, size_t *n_rows,
                      struct bn_error *err)
{
    static const char *const names[] = {"prompt", "generate"}; /* BENCH_PP, BENCH_TG */
    size_t n_depths, n_batches, cap = 0;
    const int64_t *depths = options_ints(o, "depth", &n_depths);
    const int64_t *batches = options_ints(o, "batch", &n_batches);
    *out = NULL;
    *n_rows = 0;
    for (size_t test = 0; test < 2; test++) {
        size_t n_sizes, per_size;
        const int64_t *sizes = options_ints(o, names[test], &n_sizes);
        if (!size_mul3(&per_size, n_depths, n_batches, n_sizes) || per_size > ROWS_MAX)
            return bn_fail(err, BN_EARG, "more than %d rows", ROWS_MAX);
        if (!mem_grow(out, &cap, *n_rows + per_size, sizeof(**out)))
            return bn_fail(err, BN_ENOMEM, "out of memory for %zu rows", *n_rows + per_size);
        for (size_t i = 0; i < per_size; i++) {
            const size_t n = (size_t)sizes[i / (n_depths * n_batches)];
            if (n > 0)
                (*out)[(*n_rows)++] =
                    (struct bench_row){.test = (enum bench_test)test,
                                       .n_tokens = n,
                                       .depth = (size_t)depths[i / n_batches % n_depths],
                                       .batch = (size_t)batches[i % n_batches]};
        }
    }
    return *n_rows > 0 || bn_fail(err, BN_EARG, "nothing to measure: -p and -n are both 0");
}

/* ---- running ---- */

static void say_progress(const struct bench_row *row, size_t i, size_t n)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r[%zu/%zu] %s%zu, depth %zu, batch %zu \033[K", i + 1, n,
                row->test == BENCH_PP ? "pp" : "tg", row->n_tokens, row->depth, row->batch);
}

/* Without a model and who is told of the runs. */
static struct bench_plan plan_of(const struct options *o)
{
    return (struct bench_plan){.n_ubatch = (size_t)options_int(o, "ubatch"),
                               .n_runs = (size_t)options_int(o, "runs"),
                               .chain = options_flag(o, "sample") ? BENCH_SAMPLE : BENCH_TOP1,
                               .spec = (enum spec_mode)options_choice(o, "spec")};
}

static enum exit_code run_rows(const struct options *o, struct bench_machine *machine,
                               struct bench_row *rows, size_t n_rows)
{
    struct bench_plan plan = plan_of(o);
    struct bn_error err;
    bool ok = true;
    plan.model = machine->model;
    plan.peak_now = bench_machine_peak;
    plan.after_run = bench_machine_note;
    plan.ud = machine;
    bench_machine_measure(machine);
    for (size_t i = 0; ok && i < n_rows; i++) {
        say_progress(&rows[i], i, n_rows);
        ok = bench_run(&plan, &rows[i], &err);
    }
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    if (!ok)
        return report_error(BENCH, STAGE_RUN, &err);
    for (enum bench_test test = BENCH_PP; test <= BENCH_TG; test++)
        (void)bench_machine_peak(machine, test); /* `best` may become better */
    return EXIT_DONE;
}

/* On stderr where stdout is for JSON. A pass takes at most --ubatch tokens of all sequences. */
static void explain_rows(const struct options *o, const struct bn_model *model,
                         const struct bench_row *rows, size_t n_rows)
{
    FILE *const out = options_flag(o, "json") ? stderr : stdout;
    const size_t n_ubatch = (size_t)options_int(o, "ubatch");
    for (size_t i = 0; i < n_rows; i++) {
        const size_t n = rows[i].test == BENCH_TG
                             ? 1
                             : size_min(rows[i].n_tokens, size_max(n_ubatch / rows[i].batch, 1));
        char name[80], text[2000];
        bench_name_row(&rows[i], name, sizeof(name));
        (void)bn_model_explain(model, rows[i].batch, n, text, sizeof(text));
        fprintf(out, "%s\n%s\n", name, text);
    }
}

/* With rows that are not measured yet. */
static struct bench_result result_of(const struct options *o, const char *path,
                                     const struct bn_model *model, struct bench_machine *m)
{
    return (struct bench_result){.path = path,
                                 .info = bn_model_info(model),
                                 .machine = m,
                                 .head = options_text(o, "head"),
                                 .skip = options_text(o, "skip"),
                                 .spec = options_text(o, "spec"),
                                 .with_sampling = options_flag(o, "sample"),
                                 .with_profile = options_flag(o, "profile")};
}

static enum exit_code measure(const struct options *o, const char *path, struct bench_row *rows,
                              size_t n_rows)
{
    const double start = clock_seconds();
    struct bench_machine machine;
    struct bn_model_config cfg = {0};
    struct bn_file *file = NULL;
    struct bn_model *model = NULL;
    struct bn_error err;
    enum exit_code code;
    bench_machine_init(&machine);
    model_args_config(o, &cfg);
    cfg.profile = options_flag(o, "profile");
    cfg.skip = options_choice(o, "skip") == 0 ? BN_SKIP_ON : BN_SKIP_OFF;
    cfg.progress = (struct bn_progress){.report = bench_machine_loading, .ud = &machine};
    bool ok = bn_file_open(path, &file, &err) && bn_model_open(file, &cfg, &model, &err);
    if (ok) {
        bench_machine_loaded(&machine, model);
        ok = bench_first_token(model, &err);
    }
    if (ok) {
        struct bench_result r = result_of(o, path, model, &machine);
        r.first_eval_s = clock_seconds() - start;
        r.rows = rows;
        r.n_rows = n_rows;
        if (options_flag(o, "explain"))
            explain_rows(o, model, rows, n_rows);
        code = run_rows(o, &machine, rows, n_rows);
        if (code == EXIT_DONE && options_flag(o, "json"))
            code = bench_print_json(&r);
        else if (code == EXIT_DONE)
            bench_print_table(&r);
    } else {
        if (file)
            (void)bn_fail_prefix(&err, "%s", path);
        code = report_error(BENCH, STAGE_LOAD, &err);
    }
    bn_model_close(model);
    bn_file_close(file);
    return code;
}

/* The first of each list is meant. */
static enum exit_code scale(const struct options *o, const char *path)
{
    size_t n;
    struct bench_scaling s = {.plan = plan_of(o),
                              .n_prompt = (size_t)options_ints(o, "prompt", &n)[0],
                              .n_tokens = (size_t)options_ints(o, "generate", &n)[0],
                              .depth = (size_t)options_ints(o, "depth", &n)[0],
                              .is_json = options_flag(o, "json")};
    struct bn_file *file = NULL;
    struct bn_error err;
    if (s.n_tokens == 0)
        return report_fail(BENCH, EXIT_USAGE, "--scaling generates at least one token (-n)");
    if (!bn_file_open(path, &file, &err))
        return report_error(BENCH, STAGE_LOAD, &err);
    model_args_config(o, &s.cfg);
    s.file = file;
    const enum exit_code code = bench_scaling_run(&s);
    bn_file_close(file);
    return code;
}

static enum exit_code run(const struct options *o)
{
    size_t n_words, n_rows;
    const char *const *words = options_words(o, &n_words);
    if (options_flag(o, "help"))
        return print_help(o);
    if (options_flag(o, "version")) {
        printf(BENCH " %s\n", report_version());
        return report_flush(BENCH);
    }
    if (n_words != 1)
        return report_fail(BENCH, EXIT_USAGE, "expected one model, got %zu words (--help)",
                           n_words);
    if (options_flag(o, "scaling")) {
        const enum exit_code scaled = scale(o, words[0]);
        const enum exit_code written = report_flush(BENCH);
        return scaled == EXIT_DONE ? written : scaled;
    }
    struct bench_row *rows;
    struct bn_error err;
    enum exit_code code = list_rows(o, &rows, &n_rows, &err) ? measure(o, words[0], rows, n_rows)
                                                             : report_error(BENCH, STAGE_RUN, &err);
    mem_free(rows);
    const enum exit_code flushed = report_flush(BENCH);
    return code == EXIT_DONE ? flushed : code;
}

int main(int argc, char **argv)
{
    struct options *o;
    struct bn_error err;
    if (!options_open(bench_tables, n_bench_tables, &o, &err))
        return report_error(BENCH, STAGE_RUN, &err);
    const enum exit_code code =
        options_parse(o, argc, argv, &err) ? run(o) : report_error(BENCH, STAGE_RUN, &err);
    options_close(o);
    return code;
}
