/*
 * The table and the JSON of the benchmark: see bench.h.
 *
 * Percent of peak of a row: tg compares the bytes read from memory with the read bandwidth, pp the
 * multiply-adds of the linear layers with the peak rate of int8 multiply-adds on registers, both
 * measured between the runs. A profile compares with the best of all measurements, and F32
 * multiply-adds with the F32 peak.
 */
#include "app/bench/bench.h"

#include "app/common/json_out.h"

#include <inttypes.h>

void bench_name_test(const struct bench_row *row, char out[32])
{
    (void)snprintf(out, 32, "%s%zu", row->test == BENCH_PP ? "pp" : "tg", row->n_tokens); /* fits */
}

void bench_name_row(const struct bench_row *row, char *out, size_t out_bytes)
{
    char test[32];
    bench_name_test(row, test);
    const int n = snprintf(out, out_bytes, "%s", test);
    if (row->depth > 0 || row->batch > 1)
        (void)snprintf(out + n, out_bytes - (size_t)n, ", depth %zu, batch %zu", row->depth,
                       row->batch);
}

void bench_name_checksum(uint64_t checksum, char out[20])
{
    (void)snprintf(out, 20, "%016" PRIx64, checksum); /* fits */
}

/* ---- rates ---- */

/* 0 if the peak is unknown. */
static double percent_of(double rate, double peak)
{
    return peak > 0 ? 100 * rate / peak : 0;
}

double bench_row_rate(const struct bn_model_info *info, const struct bench_row *row)
{
    return row->tokens_per_s *
           (row->test == BENCH_TG ? row->bytes_per_token : info->macs_per_token);
}

double bench_row_percent(const struct bn_model_info *info, const struct bench_row *row)
{
    return percent_of(bench_row_rate(info, row), row->peak);
}

/* n divided by the seconds of the step, in units of 1e9 per second. */
static double step_rate(uint64_t n, const struct bn_profile_step *step)
{
    return step->seconds > 0 ? (double)n / step->seconds / 1e9 : 0;
}

double bench_step_percent(const struct bn_profile_step *step, const double *peaks)
{
    const double mac_peak = peaks[step->mac == BN_MAC_F32 ? PEAK_F32 : PEAK_INT8];
    const double of_memory = percent_of(step_rate(step->n_bytes, step) * 1e9, peaks[PEAK_READ]);
    const double of_arithmetic = percent_of(step_rate(step->n_macs, step) * 1e9, mac_peak);
    return of_memory > of_arithmetic ? of_memory : of_arithmetic;
}

static double total_seconds(const struct bench_row *row)
{
    double sum = 0;
    for (size_t i = 0; i < row->n_steps; i++)
        sum += row->steps[i].seconds;
    return sum;
}

/* ---- tables ---- */

const char *bench_percent_text(double percent, char out[BENCH_PERCENT_BYTES])
{
    if (percent > REPORT_MAX_PERCENT)
        return "disturbed";
    (void)snprintf(out, BENCH_PERCENT_BYTES, "%5.1f %%", percent); /* fits */
    return out;
}

static void print_row(const struct bench_result *r, const struct bench_row *row)
{
    char test[32], note[80], checksum[20], percent[BENCH_PERCENT_BYTES];
    bench_name_test(row, test);
    bench_name_checksum(row->checksum, checksum);
    const int n =
        snprintf(note, sizeof(note), row->test == BENCH_TG ? "%6.1f GB/s" : "%6.0f GMAC/s",
                 bench_row_rate(r->info, row) / 1e9);
    if (row->peak > 0)
        (void)snprintf(note + n, sizeof(note) - (size_t)n, " %s",
                       bench_percent_text(bench_row_percent(r->info, row), percent));
    if (row->n_drafted > 0) /* speculative decoding: replaces the rate */
        (void)snprintf(note, sizeof(note), "%zu of %zu drafts", row->n_accepted, row->n_drafted);
    printf("| %-7s | %6zu | %5zu | %9.2f | %9.2f | %9.2f | %8.2f | %-23s | ", test, row->depth,
           row->batch, row->tokens_per_s, row->min, row->max, row->bytes_per_token / 1e6, note);
    if (row->test == BENCH_PP)
        (void)snprintf(note, sizeof(note), "first token after %.3f s", row->first_token_s);
    else
        (void)snprintf(note, sizeof(note), "p50 %.2f, p95 %.2f, p99 %.2f ms", 1e3 * row->gaps.p50,
                       1e3 * row->gaps.p95, 1e3 * row->gaps.p99);
    printf("%-37s | %s |\n", note, checksum);
}

static void print_header(const struct bench_result *r)
{
    const struct bn_model_info *info = r->info;
    const struct bench_machine *m = r->machine;
    printf("model  ");
    report_safe(stdout, bn_str_of(r->path));
    printf(", ");
    report_safe(stdout, bn_str_of(info->name[0] ? info->name : info->arch));
    printf(", %s, %.2f million parameters\n", info->quantisation, (double)info->n_params / 1e6);
    printf("device %s", info->device);
    if (m->processor[0]) {
        printf(", ");
        report_safe(stdout, bn_str_of(m->processor));
    }
    printf("\n");
    printf("load   %.2f s, at most %.1f MB; first token evaluated %.2f s after the start\n",
           info->load_seconds, (double)m->load_peak_bytes / 1e6, r->first_eval_s);
    printf("memory at most %.1f MB: %.1f MB of this process, %.1f MB of reclaimable file pages\n",
           (double)m->peak_bytes / 1e6, (double)m->anon_bytes / 1e6, (double)m->file_bytes / 1e6);
    printf("reads  %.2f GB/s\n", m->best[PEAK_READ] / 1e9);
    if (m->best[PEAK_INT8] > 0)
        printf("int8   %.0f GMAC/s from registers\n", m->best[PEAK_INT8] / 1e9);
    if (m->best[PEAK_F32] > 0)
        printf("F32    %.0f GMAC/s from registers\n", m->best[PEAK_F32] / 1e9);
}

/* "%8.1f", or blanks for 0. */
static void print_rate(uint64_t n, const struct bn_profile_step *step)
{
    if (n > 0)
        printf(" %8.1f |", step_rate(n, step));
    else
        printf(" %8s |", "");
}

/* Seconds are sums over the timed runs. */
static void print_profile(const struct bench_row *row, const double *peaks)
{
    const double total = total_seconds(row);
    char title[80], text[BENCH_PERCENT_BYTES];
    bench_name_row(row, title, sizeof(title));
    if (row->n_steps == 0) {
        printf("\n%s: no profile on this device\n", title);
        return;
    }
    printf("\n%s: %.3f s\n\n", title, total);
    printf("| step           |  time ms |  share |     GB/s |   GMAC/s |   of peak |    calls |\n"
           "| -------------- | -------: | -----: | -------: | -------: | --------: | -------: |\n");
    for (size_t i = 0; i < row->n_steps; i++) {
        const struct bn_profile_step *s = &row->steps[i];
        const double percent = bench_step_percent(s, peaks);
        printf("| %-14s | %8.2f | %4.1f %% |", s->name, 1e3 * s->seconds,
               total > 0 ? 100 * s->seconds / total : 0);
        print_rate(s->n_bytes, s);
        print_rate(s->n_macs, s);
        printf(" %9s |", percent > 0 ? bench_percent_text(percent, text) : "");
        printf(" %8" PRIu64 " |\n", s->n_calls);
    }
}

/* Ratios to the baseline; with its confidence interval, and of the peak rates. */
static void print_changes(const struct bench_result *r)
{
    printf("\nCompared with ");
    report_safe(stdout, bn_str_of(r->baseline));
    printf(":\n\n"
           "| test    |  depth | batch |  tokens/s |    before | ratio |  from |    to |   peak "
           "| output  | result |\n"
           "| ------- | -----: | ----: | --------: | --------: | ----: | ----: | ----: | -----: "
           "| ------- | ------ |\n");
    for (size_t i = 0; i < r->n_rows; i++) {
        const struct bench_row *const row = &r->rows[i];
        const struct bench_change *const c = &r->changes[i];
        char test[32], peak[16] = "";
        bench_name_test(row, test);
        if (c->peak_ratio > 0)
            (void)snprintf(peak, sizeof(peak), "%.3f", c->peak_ratio); /* a longer one is cut */
        printf(
            "| %-7s | %6zu | %5zu | %9.2f | %9.2f | %5.3f | %5.3f | %5.3f | %6s | %-7s | %-6s |\n",
            test, row->depth, row->batch, row->tokens_per_s, c->old_tokens_per_s, c->ratio, c->low,
            c->high, peak, c->is_same_output ? "same" : "differs", bench_verdict_name(c->verdict));
    }
    printf(
        "\nFrom and to: smallest and largest ratio of values in the confidence intervals of the\n"
        "two medians. Peak: ratio of the peak rates of the machine. A row is slower if the\n"
        "largest ratio is below 0.95 after a smaller peak is taken into account.\n");
}

void bench_print_table(const struct bench_result *r)
{
    const double steal_percent = bench_machine_steal(r->machine);
    print_header(r);
    printf(
        "\n"
        "| test    |  depth | batch |  tokens/s |       min |       max | MB/token "
        "| of the machine          | first token; times between tokens     | checksum         |\n"
        "| ------- | -----: | ----: | --------: | --------: | --------: | -------: "
        "| ----------------------- | ------------------------------------- | ---------------- |\n");
    for (size_t i = 0; i < r->n_rows; i++)
        print_row(r, &r->rows[i]);
    for (size_t i = 0; r->with_profile && i < r->n_rows; i++)
        print_profile(&r->rows[i], r->machine->best);
    if (r->changes)
        print_changes(r);
    if (steal_percent > 2) /* a smaller share changes the results little */
        printf("\nThe host gave %.1f %% of the CPU time to others: do not trust these numbers.\n",
               steal_percent);
}

/* ---- JSON; NULL means "out of memory", which json_out_write reports ---- */

/* null for 0, which means unknown. */
static json_t *number_or_null(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

json_t *bench_percent_json(double percent)
{
    return number_or_null(percent > REPORT_MAX_PERCENT ? 0 : percent);
}

static json_int_t count(uint64_t n)
{
    return (json_int_t)n;
}

static json_t *profile_array(const struct bench_row *row, const double *peaks)
{
    const double total = total_seconds(row);
    json_t *steps = json_array();
    for (size_t i = 0; i < row->n_steps; i++) {
        const struct bn_profile_step *s = &row->steps[i];
        json_out_append(
            &steps,
            json_pack("{s:s, s:f, s:f, s:I, s:o, s:o, s:o}", "step", s->name, "seconds", s->seconds,
                      "share", total > 0 ? s->seconds / total : 0, "calls", count(s->n_calls),
                      "gb_per_s", s->n_bytes ? json_real(step_rate(s->n_bytes, s)) : json_null(),
                      "gmac_per_s", s->n_macs ? json_real(step_rate(s->n_macs, s)) : json_null(),
                      "percent_of_peak", bench_percent_json(bench_step_percent(s, peaks))));
    }
    return steps;
}

static json_t *change_object(const struct bench_change *c)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:o, s:b, s:s}", "tokens_per_s", c->old_tokens_per_s,
                     "ratio", c->ratio, "ratio_low", c->low, "ratio_high", c->high, "peak_ratio",
                     number_or_null(c->peak_ratio), "same_output", c->is_same_output, "result",
                     bench_verdict_name(c->verdict));
}

static json_t *row_object(const struct bench_result *r, const struct bench_row *row)
{
    const double percent = bench_row_percent(r->info, row);
    char test[32], checksum[20];
    bench_name_test(row, test);
    bench_name_checksum(row->checksum, checksum);
    json_t *o = json_pack(
        "{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:b}", "test", test, "depth",
        count(row->depth), "batch", count(row->batch), "tokens_per_s", row->tokens_per_s, "min",
        row->min, "max", row->max, "bytes_per_token", row->bytes_per_token, "gmac_per_s",
        row->tokens_per_s * r->info->macs_per_token / 1e9, "peak_per_s", number_or_null(row->peak),
        "percent_of_peak", bench_percent_json(percent), "disturbed", percent > REPORT_MAX_PERCENT);
    json_out_merge(&o,
                   row->test == BENCH_TG
                       ? json_pack("{s:I, s:I, s:f, s:f, s:f}", "drafted_tokens",
                                   count(row->n_drafted), "accepted_tokens", count(row->n_accepted),
                                   "token_gap_p50_s", row->gaps.p50, "token_gap_p95_s",
                                   row->gaps.p95, "token_gap_p99_s", row->gaps.p99)
                       : json_pack("{s:f}", "first_token_s", row->first_token_s));
    json_out_merge(&o, json_pack("{s:f, s:f, s:s}", "median_low", row->low, "median_high",
                                 row->high, "checksum", checksum));
    if (r->with_profile)
        json_out_put(&o, "profile", profile_array(row, r->machine->best));
    if (r->changes)
        json_out_put(&o, "baseline", change_object(&r->changes[row - r->rows]));
    return o;
}

static json_t *machine_object(const struct bench_result *r)
{
    const struct bench_machine *m = r->machine;
    const double steal_percent = bench_machine_steal(m);
    return json_pack(
        "{s:f, s:o, s:o, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:o}", "read_gb_per_s",
        m->best[PEAK_READ] / 1e9, "int8_gmac_per_s", number_or_null(m->best[PEAK_INT8] / 1e9),
        "f32_gmac_per_s", number_or_null(m->best[PEAK_F32] / 1e9), "load_s", r->info->load_seconds,
        "first_eval_s", r->first_eval_s, "load_peak_bytes", count(m->load_peak_bytes),
        "peak_rss_bytes", count(m->peak_bytes), "anon_bytes", count(m->anon_bytes), "file_bytes",
        count(m->file_bytes), "kv_bytes_per_token", count(r->info->kv_bytes_per_token),
        "steal_percent", steal_percent >= 0 ? json_real(steal_percent) : json_null());
}

json_t *bench_settings_json(const struct bench_result *r)
{
    const struct bn_model_info *info = r->info;
    /* s* leaves the member "isa" out if it is NULL. */
    return json_pack("{s:s, s:o, s:o, s:s*, s:I, s:I, s:s, s:s, s:s, s:b, s:s, s:s}", "fingerprint",
                     r->fingerprint, "processor", json_out_text(bn_str_of(r->machine->processor)),
                     "device", json_out_text(bn_str_of(info->device)), "isa", info->isa, "threads",
                     count(info->n_threads), "ubatch", count(r->n_ubatch), "head", r->head, "skip",
                     r->skip, "spec", r->spec, "sample", r->with_sampling, "kv", info->kv_type,
                     "activations", info->activations);
}

enum exit_code bench_print_json(const struct bench_result *r)
{
    const struct bn_model_info *info = r->info;
    struct bn_error err;
    json_t *rows = json_array();
    for (size_t i = 0; i < r->n_rows; i++)
        json_out_append(&rows, row_object(r, &r->rows[i]));
    json_t *o =
        json_pack("{s:o, s:o, s:s, s:I, s:I}", "model", json_out_text(bn_str_of(r->path)), "name",
                  json_out_text(bn_str_of(info->name)), "quantisation", info->quantisation,
                  "n_params", count(info->n_params), "runs", count(r->n_runs));
    json_out_merge(&o, bench_settings_json(r));
    json_out_merge(&o, machine_object(r));
    json_out_put(&o, "rows", rows);
    return json_out_write(o, stdout, JSON_OUT_LINE, &err) ? EXIT_DONE
                                                          : report_error(BENCH, STAGE_RUN, &err);
}
