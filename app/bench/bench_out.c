/*
 * The table and the JSON of the benchmark.
 *
 * Percent of peak is, for tg, what was read from memory against the read bandwidth measured between
 * the runs; for pp, the multiply-adds of the linear layers against those that the same instructions
 * reach with nothing read from memory.
 */
#include "app/bench/bench_out.h"

#include "app/bench/bench_profile.h"
#include "app/common/json_out.h"

#include <inttypes.h>

void bench_name_test(const struct bench_row *row, char out[32])
{
    (void)snprintf(out, 32, "%s%zu", row->test == BENCH_PP ? "pp" : "tg", row->n_tokens); /* fits */
}

void bench_name_row(const struct bench_row *row, char *out, size_t cap)
{
    char test[32];
    bench_name_test(row, test);
    const int n = snprintf(out, cap, "%s", test);
    if (row->depth > 0 || row->batch > 1)
        (void)snprintf(out + n, cap - (size_t)n, ", depth %zu, batch %zu", row->depth, row->batch);
}

static void print_row(const struct bench_result *r, const struct bench_row *row)
{
    char test[32], note[80];
    bench_name_test(row, test);
    const int n =
        snprintf(note, sizeof(note), row->test == BENCH_TG ? "%6.1f GB/s" : "%6.0f GMAC/s",
                 bench_row_rate(r->info, row) / 1e9);
    if (row->peak > 0)
        (void)snprintf(note + n, sizeof(note) - (size_t)n, " %5.1f %%",
                       bench_row_percent(r->info, row));
    if (row->n_drafted > 0)
        (void)snprintf(note, sizeof(note), "%zu of %zu drafts", row->n_accepted, row->n_drafted);
    printf("| %-7s | %6zu | %5zu | %9.2f | %9.2f | %9.2f | %8.2f | %-20s | ", test, row->depth,
           row->batch, row->tokens_per_s, row->min, row->max, row->bytes_per_token / 1e6, note);
    if (row->test == BENCH_PP)
        printf("%9.3f s | ", row->first_token_s);
    else
        printf("%11s | ", "");
    printf("%016" PRIx64 " |\n", row->checksum);
}

static void print_head(const struct bench_result *r)
{
    const struct bn_model_info *info = r->info;
    const struct bench_machine *m = r->machine;
    printf("model  ");
    report_safe(stdout, bn_str_of(r->path));
    printf(", ");
    report_safe(stdout, bn_str_of(info->name[0] ? info->name : info->arch));
    printf(", %s, %.2f million parameters\n", info->quantisation, (double)info->n_params / 1e6);
    printf("device %s\n", info->device);
    printf("load   %.2f s, %.1f MB at most; first token evaluated %.2f s after the start\n",
           info->load_seconds, (double)m->load_peak_bytes / 1e6, r->first_eval_s);
    printf("memory %.1f MB at most: of its own %.1f MB, of files, which the system may take back, "
           "%.1f MB\n",
           (double)m->peak_bytes / 1e6, (double)m->anon_bytes / 1e6, (double)m->file_bytes / 1e6);
    printf("reads  %.2f GB/s\n", m->best.read_bytes_per_s / 1e9);
    if (m->best.macs_per_s > 0)
        printf("int8   %.0f GMAC/s from registers\n", m->best.macs_per_s / 1e9);
    if (m->best.fma_per_s > 0)
        printf("F32    %.0f GMAC/s from registers\n", m->best.fma_per_s / 1e9);
}

void bench_print_table(const struct bench_result *r)
{
    const double steal_percent = bench_machine_steal(r->machine);
    print_head(r);
    printf("\n");
    printf("| test    |  depth | batch |  tokens/s |       min |       max | MB/token | %-20s | "
           "first token | checksum         |\n",
           "of the machine");
    printf("| ------- | -----: | ----: | --------: | --------: | --------: | -------: | %s | "
           "----------: | ---------------- |\n",
           "--------------------");
    for (size_t i = 0; i < r->n_rows; i++)
        print_row(r, &r->rows[i]);
    for (size_t i = 0; r->with_profile && i < r->n_rows; i++) {
        char title[80];
        bench_name_row(&r->rows[i], title, sizeof(title));
        bench_profile_print(&r->rows[i], &r->machine->best, title);
    }
    if (steal_percent > 2)
        printf("\nThe host took %.1f %% of the CPU time for others: do not trust these numbers.\n",
               steal_percent);
}

static json_t *known(double value)
{
    return value > 0 ? json_real(value) : json_null();
}

static json_t *row_object(const struct bench_result *r, const struct bench_row *row)
{
    char test[32], checksum[20];
    bench_name_test(row, test);
    (void)snprintf(checksum, sizeof(checksum), "%016" PRIx64, row->checksum); /* fits */
    json_t *o = json_object();
    json_out_add(o, "test", json_string(test));
    json_out_add(o, "depth", json_integer((json_int_t)row->depth));
    json_out_add(o, "batch", json_integer((json_int_t)row->batch));
    json_out_add(o, "tokens_per_s", json_real(row->tokens_per_s));
    json_out_add(o, "min", json_real(row->min));
    json_out_add(o, "max", json_real(row->max));
    json_out_add(o, "bytes_per_token", json_real(row->bytes_per_token));
    json_out_add(o, "gmac_per_s", json_real(row->tokens_per_s * r->info->macs_per_token / 1e9));
    json_out_add(o, "peak_per_s", known(row->peak));
    json_out_add(o, "percent_of_peak", known(bench_row_percent(r->info, row)));
    if (row->test == BENCH_TG) {
        json_out_add(o, "drafted_tokens", json_integer((json_int_t)row->n_drafted));
        json_out_add(o, "accepted_tokens", json_integer((json_int_t)row->n_accepted));
    }
    if (row->test == BENCH_PP)
        json_out_add(o, "first_token_s", json_real(row->first_token_s));
    json_out_add(o, "checksum", json_string(checksum));
    if (r->with_profile)
        json_out_add(o, "profile", bench_profile_json(row, &r->machine->best));
    return o;
}

static void add_machine(json_t *o, const struct bench_result *r)
{
    const struct bench_machine *m = r->machine;
    const double steal_percent = bench_machine_steal(m);
    json_out_add(o, "read_gb_per_s", json_real(m->best.read_bytes_per_s / 1e9));
    json_out_add(o, "int8_gmac_per_s", known(m->best.macs_per_s / 1e9));
    json_out_add(o, "f32_gmac_per_s", known(m->best.fma_per_s / 1e9));
    json_out_add(o, "load_s", json_real(r->info->load_seconds));
    json_out_add(o, "first_eval_s", json_real(r->first_eval_s));
    json_out_add(o, "load_peak_bytes", json_integer((json_int_t)m->load_peak_bytes));
    json_out_add(o, "peak_rss_bytes", json_integer((json_int_t)m->peak_bytes));
    json_out_add(o, "anon_bytes", json_integer((json_int_t)m->anon_bytes));
    json_out_add(o, "file_bytes", json_integer((json_int_t)m->file_bytes));
    json_out_add(o, "kv_bytes_per_token", json_integer((json_int_t)r->info->kv_bytes_per_token));
    json_out_add(o, "kv", json_string(r->info->kv_type));
    json_out_add(o, "steal_percent", steal_percent >= 0 ? json_real(steal_percent) : json_null());
}

enum exit_code bench_print_json(const struct bench_result *r)
{
    const struct bn_model_info *info = r->info;
    struct bn_error err;
    json_t *o = json_object(), *rows = json_array();
    for (size_t i = 0; i < r->n_rows; i++)
        json_array_append_new(rows, row_object(r, &r->rows[i]));
    json_out_add(o, "model", json_out_text(bn_str_of(r->path)));
    json_out_add(o, "name", json_out_text(bn_str_of(info->name)));
    json_out_add(o, "quantisation", json_string(info->quantisation));
    json_out_add(o, "n_params", json_integer((json_int_t)info->n_params));
    json_out_add(o, "device", json_out_text(bn_str_of(info->device)));
    json_out_add(o, "isa", json_string(info->isa));
    json_out_add(o, "threads", json_integer((json_int_t)info->n_threads));
    json_out_add(o, "head", json_string(r->head));
    json_out_add(o, "skip", json_string(r->skip));
    json_out_add(o, "spec", json_string(r->spec));
    json_out_add(o, "sample", json_boolean(r->with_sampling));
    add_machine(o, r);
    if (!json_out_add(o, "rows", rows)) {
        json_decref(o);
        return report_fail(BENCH, EXIT_INTERNAL, "out of memory for JSON output");
    }
    return json_out_write(o, stdout, JSON_OUT_LINE, &err) ? EXIT_DONE
                                                          : report_error(BENCH, STAGE_RUN, &err);
}
