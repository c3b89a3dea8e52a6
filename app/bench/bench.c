/*
 * bitnet-bench: measures the speed of a model and compares it with the peak rates of the machine.
 *
 * This file opens the model. bench_run measures each row, bench_machine measures peak rates, and
 * bench_out prints the results. With --baseline, bench_baseline compares them with earlier ones.
 * With --scaling or --tokenizer, bench_scaling or bench_tokenizer opens the file and prints.
 */
#include "app/bench/bench.h"
#include "app/common/file/mapped_file.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "engine/base/size.h"

#include <string.h>

static enum exit_code print_help(const struct options *o)
{
    printf(
        "Usage: " BENCH " [OPTIONS] MODEL.gguf\n\n"
        "Each row is tokens per second: the median, slowest and fastest run. For tg, GB/s and\n"
        "percent are the bytes read from memory, compared with the read bandwidth measured\n"
        "between the runs. For pp, which is limited by arithmetic, GMAC/s and percent are the\n"
        "multiply-adds of the linear layers, compared with the peak of the same instructions.\n"
        "The checksum is over the resulting ids and logits: equal settings give equal checksums\n"
        "on every machine.\n");
    options_print_help(o, stdout, OPTION_HELP_ALL, NULL);
    return report_flush(BENCH);
}

static void show_progress(const struct bench_row *row, size_t i, size_t n)
{
    char name[80];
    bench_name_row(row, name, sizeof(name));
    report_progress("[%zu/%zu] %s", i + 1, n, name);
}

static enum exit_code run_rows(const struct options *o, struct bench_machine *machine,
                               struct bench_row *rows, size_t n_rows)
{
    struct bench_plan plan = bench_options_plan(o);
    struct bn_error err;
    bool ok = true;
    plan.model = machine->model;
    plan.machine = machine;
    bench_machine_measure_all(machine);
    for (size_t i = 0; ok && i < n_rows; i++) {
        show_progress(&rows[i], i, n_rows);
        ok = bench_run(&plan, &rows[i], &err);
    }
    report_progress_erase();
    if (!ok)
        return report_error(BENCH, STAGE_RUN, &err);
    /* These calls measure a peak again if its last measurement is too old. So machine->best, which
     * is printed, covers the time of the last row too. Rows are compared only with these two peaks;
     * that of F32 is for --profile. */
    (void)bench_machine_peak(machine, PEAK_INT8);
    (void)bench_machine_peak(machine, PEAK_READ);
    return EXIT_DONE;
}

/* Describe how each row is computed, on stderr if stdout receives JSON. n is the number of tokens
 * of each sequence in a pass; all sequences together have at most --ubatch. */
static void explain_rows(const struct options *o, const struct bn_model *model,
                         const struct bench_row *rows, size_t n_rows)
{
    FILE *const out = options_flag(o, "json") ? stderr : stdout;
    const size_t n_ubatch = (size_t)options_int(o, "ubatch");
    for (size_t i = 0; i < n_rows; i++) {
        const size_t n = rows[i].test == BENCH_TG
                             ? 1
                             : size_min(rows[i].n_tokens, size_max(n_ubatch / rows[i].batch, 1));
        char name[80], text[2000]; /* enough: a text has at most six lines */
        bench_name_row(&rows[i], name, sizeof(name));
        (void)bn_model_explain(model, rows[i].batch, n, text, sizeof(text));
        fprintf(out, "%s\n%s\n", name, text);
    }
}

static enum bn_skip skip_of(const struct options *o)
{
    return options_choice(o, "skip") == 0 ? BN_SKIP_ON : BN_SKIP_OFF; /* "on|off" */
}

/* Make the list r->changes, with the rows of the baseline. The caller frees it, also on error. */
static bool match_baseline(struct bench_result *r, const json_t *baseline, struct bn_error *err)
{
    json_t *const settings = bench_settings_json(r);
    r->changes = mem_alloc(r->n_rows, sizeof(*r->changes));
    const bool ok =
        ((settings && r->changes) || bn_fail(err, BN_ENOMEM, "out of memory for a baseline")) &&
        bench_baseline_match(baseline, settings, r->rows, r->n_rows, r->changes, err);
    json_decref(settings);
    return ok;
}

/* Measure and print the rows of r. The baseline may be NULL. */
static enum exit_code measure_opened(const struct options *o, struct bench_result *r,
                                     const json_t *baseline)
{
    struct bench_machine *const machine = r->machine;
    struct bn_error err;
    bool is_slower = false;
    if (baseline && !match_baseline(r, baseline, &err)) /* before the measurement, which is long */
        return report_error(BENCH, STAGE_RUN, &err);
    if (options_flag(o, "explain"))
        explain_rows(o, machine->model, r->rows, r->n_rows);
    enum exit_code code = run_rows(o, machine, r->rows, r->n_rows);
    if (code != EXIT_DONE)
        return code;
    for (size_t i = 0; r->changes && i < r->n_rows; i++) {
        bench_baseline_compare(&r->changes[i], &r->rows[i]);
        is_slower |= r->changes[i].verdict == BENCH_SLOWER;
    }
    if (options_flag(o, "json"))
        code = bench_print_json(r);
    else
        bench_print_table(r);
    return code == EXIT_DONE && is_slower ? EXIT_SLOWER : code;
}

/* A model file in hexadecimal, as bn_file_fingerprint identifies it. */
static void name_file(const struct bn_file *file, char out[BENCH_FINGERPRINT_BYTES])
{
    uint8_t bytes[BN_FINGERPRINT_BYTES];
    bn_file_fingerprint(file, bytes);
    for (size_t i = 0; i < BN_FINGERPRINT_BYTES; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", (unsigned)bytes[i]);
}

static enum exit_code measure_rows(const struct options *o, const char *path,
                                   struct bench_row *rows, size_t n_rows)
{
    const char *const baseline_path = options_text(o, "baseline");
    json_t *baseline = NULL;
    const double start = clock_seconds();
    struct bench_machine machine;
    struct bn_model_config cfg = {0};
    struct bn_file *file = NULL;
    struct bn_model *model = NULL;
    struct bn_error err;
    enum exit_code code;
    if (baseline_path && !bench_baseline_read(baseline_path, &baseline, &err))
        return report_error(BENCH, STAGE_RUN, &err);
    bench_machine_init(&machine);
    model_args_config(o, &cfg);
    cfg.profile = options_flag(o, "profile");
    cfg.skip = skip_of(o);
    cfg.progress = (struct bn_progress){.report = bench_machine_loading, .ud = &machine};
    bool ok = bn_file_open(path, &file, &err) && bn_model_open(file, &cfg, &model, &err);
    if (ok) {
        bench_machine_loaded(&machine, model);
        ok = bench_first_token(model, &err);
    }
    if (ok) {
        struct bench_result r = {.path = path,
                                 .baseline = baseline_path,
                                 .n_ubatch = (size_t)options_int(o, "ubatch"),
                                 .n_runs = (size_t)options_int(o, "runs"),
                                 .info = bn_model_info(model),
                                 .machine = &machine,
                                 .first_eval_s = clock_seconds() - start,
                                 .head = options_text(o, "head"),
                                 .skip = options_text(o, "skip"),
                                 .spec = options_text(o, "spec"),
                                 .with_sampling = options_flag(o, "sample"),
                                 .with_profile = options_flag(o, "profile"),
                                 .rows = rows, /* run_rows fills them in */
                                 .n_rows = n_rows};
        name_file(file, r.fingerprint);
        code = measure_opened(o, &r, baseline);
        mem_free(r.changes);
    } else {
        if (file) /* the errors of bn_file_open already contain the path */
            (void)bn_fail_prefix(&err, "%s", path);
        code = report_error(BENCH, STAGE_LOAD, &err);
    }
    bn_model_close(model);
    bn_file_close(file);
    json_decref(baseline);
    return code;
}

/* Run --scaling. Only the first number of each list is used, and --batch is ignored. */
static enum exit_code measure_scaling(const struct options *o, const char *path)
{
    size_t n; /* lengths of the lists, not used */
    struct bench_scaling s = {.plan = bench_options_plan(o),
                              .n_prompt = (size_t)options_ints(o, "prompt", &n)[0],
                              .n_tokens = (size_t)options_ints(o, "generate", &n)[0],
                              .depth = (size_t)options_ints(o, "depth", &n)[0],
                              .is_json = options_flag(o, "json")};
    struct bn_file *file = NULL;
    struct bn_error err;
    if (s.n_tokens == 0)
        return report_fail(BENCH, EXIT_USAGE,
                           "--scaling needs at least one token to generate (-n)");
    if (!bn_file_open(path, &file, &err))
        return report_error(BENCH, STAGE_LOAD, &err);
    model_args_config(o, &s.cfg);
    s.cfg.skip = skip_of(o);
    s.file = file;
    const enum exit_code code = bench_scaling_run(&s);
    bn_file_close(file);
    return code;
}

/* --scaling and --tokenizer measure no rows, so they exclude each other and what shows rows. */
static bool check_modes(const struct options *o, struct bn_error *err)
{
    static const char *const others[] = {"profile", "explain", "baseline", "tokenizer"};
    const char *const mode = options_flag(o, "scaling")     ? "scaling"
                             : options_flag(o, "tokenizer") ? "tokenizer"
                                                            : NULL;
    for (size_t i = 0; mode && i < sizeof(others) / sizeof(others[0]); i++)
        if (strcmp(others[i], mode) != 0 && options_given_on(o, others[i]))
            return bn_fail(err, BN_EARG, "--%s and --%s cannot be used together", others[i], mode);
    return true;
}

static bool check_runs(const struct options *o, struct bn_error *err)
{
    const long long n_runs = options_int(o, "runs");
    return !options_text(o, "baseline") || n_runs >= BENCH_MIN_RUNS ||
           bn_fail(err, BN_EARG,
                   "-r %lld is too few for --baseline: with fewer than %d runs, equal programs "
                   "often differ",
                   n_runs, BENCH_MIN_RUNS);
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
        return report_fail(BENCH, EXIT_USAGE, "expected one model, got %zu arguments (--help)",
                           n_words);
    struct bench_row *rows = NULL;
    struct bn_error err;
    enum exit_code code;
    if (!check_modes(o, &err) || !check_runs(o, &err))
        code = report_error(BENCH, STAGE_RUN, &err);
    else if (options_flag(o, "scaling"))
        code = measure_scaling(o, words[0]);
    else if (options_flag(o, "tokenizer"))
        code = bench_tokenizer_run(o, words[0]);
    else if (bench_options_rows(o, &rows, &n_rows, &err))
        code = measure_rows(o, words[0], rows, n_rows);
    else
        code = report_error(BENCH, STAGE_RUN, &err);
    mem_free(rows);
    const enum exit_code flushed = report_flush(BENCH);
    /* With EXIT_SLOWER the output matters, too: it says which row is slower. */
    return flushed != EXIT_DONE && (code == EXIT_DONE || code == EXIT_SLOWER) ? flushed : code;
}

int main(int argc, char **argv)
{
    struct options *o;
    struct bn_error err;
    mapped_file_watch(BENCH);
    if (!options_open(bench_tables, n_bench_tables, &o, &err))
        return report_error(BENCH, STAGE_RUN, &err);
    const enum exit_code code =
        options_parse(o, argc, argv, &err) && model_args_environment(o, &err)
            ? run(o)
            : report_error(BENCH, STAGE_RUN, &err);
    options_close(o);
    return code;
}
