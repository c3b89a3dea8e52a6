/*
 * The table and the JSON of the benchmark.
 *
 * Percent of peak is, for tg, what is read from memory against the read bandwidth measured in the
 * same run; for pp, the multiply-adds of the linear layers against those that the same instructions
 * reach with nothing read from memory.
 */
#include "app/bench_out.h"

#include "app/bench_profile.h"
#include "app/json_out.h"

#include <inttypes.h>

/* What a row is bound by, and how much of it there is; 0: not known. */
static double row_rate(const struct bench_result *r, const struct bench_row *row)
{
    return row->tokens_per_s * (row->test == BENCH_TG ? row->bytes_per_token : bench_macs(r->info));
}

static double row_peak(const struct bench_result *r, const struct bench_row *row)
{
    if (row->test == BENCH_TG)
        return row->n_drafted > 0 ? 0 : r->read_bytes_per_s; /* bytes were counted without drafts */
    return r->macs_per_s;
}

static void name_test(const struct bench_row *row, char out[32])
{
    (void)snprintf(out, 32, "%s%zu", row->test == BENCH_PP ? "pp" : "tg", row->n_tokens); /* fits */
}

void bench_name_row(const struct bench_row *row, char *out, size_t cap)
{
    char test[32];
    name_test(row, test);
    const int n = snprintf(out, cap, "%s", test);
    if (row->depth > 0 || row->batch > 1)
        (void)snprintf(out + n, cap - (size_t)n, ", depth %zu, batch %zu", row->depth, row->batch);
}

static void print_row(const struct bench_result *r, const struct bench_row *row)
{
    char test[32], note[80];
    name_test(row, test);
    const int n =
        snprintf(note, sizeof(note), row->test == BENCH_TG ? "%6.1f GB/s" : "%6.0f GMAC/s",
                 row_rate(r, row) / 1e9);
    if (row_peak(r, row) > 0)
        (void)snprintf(note + n, sizeof(note) - (size_t)n, " %5.1f %%",
                       100 * row_rate(r, row) / row_peak(r, row));
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

void bench_print_table(const struct bench_result *r)
{
    const struct bn_model_info *info = r->info;
    printf("model  ");
    report_safe(stdout, bn_str_of(r->path));
    printf(", ");
    report_safe(stdout, bn_str_of(info->name[0] ? info->name : info->arch));
    printf(", %s, %.2f million parameters\n", info->quantisation, (double)info->n_params / 1e6);
    printf("device %s\n", info->device);
    printf("memory %.2f GB/s read, %.1f MB peak resident, loaded in %.2f s\n",
           r->read_bytes_per_s / 1e9, (double)r->peak_bytes / 1e6, info->load_seconds);
    if (r->macs_per_s > 0)
        printf("int8   %.0f GMAC/s from registers\n", r->macs_per_s / 1e9);
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
        bench_profile_print(&r->rows[i], title);
    }
    if (r->steal_percent > 2)
        printf("\nThe host took %.1f %% of the CPU time for others: do not trust these numbers.\n",
               r->steal_percent);
}

static json_t *row_object(const struct bench_result *r, const struct bench_row *row)
{
    char test[32], checksum[20];
    name_test(row, test);
    (void)snprintf(checksum, sizeof(checksum), "%016" PRIx64, row->checksum); /* fits */
    json_t *o = json_object();
    json_out_add(o, "test", json_string(test));
    json_out_add(o, "depth", json_integer((json_int_t)row->depth));
    json_out_add(o, "batch", json_integer((json_int_t)row->batch));
    json_out_add(o, "tokens_per_s", json_real(row->tokens_per_s));
    json_out_add(o, "min", json_real(row->min));
    json_out_add(o, "max", json_real(row->max));
    json_out_add(o, "bytes_per_token", json_real(row->bytes_per_token));
    json_out_add(o, "percent_of_peak",
                 row_peak(r, row) > 0 ? json_real(100 * row_rate(r, row) / row_peak(r, row))
                                      : json_null());
    if (row->test == BENCH_TG) {
        json_out_add(o, "drafted_tokens", json_integer((json_int_t)row->n_drafted));
        json_out_add(o, "accepted_tokens", json_integer((json_int_t)row->n_accepted));
    }
    if (row->test == BENCH_PP) {
        json_out_add(o, "first_token_s", json_real(row->first_token_s));
        json_out_add(o, "gmac_per_s", json_real(row->tokens_per_s * bench_macs(r->info) / 1e9));
    }
    json_out_add(o, "checksum", json_string(checksum));
    if (r->with_profile)
        json_out_add(o, "profile", bench_profile_json(row));
    return o;
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
    json_out_add(o, "read_gb_per_s", json_real(r->read_bytes_per_s / 1e9));
    json_out_add(o, "int8_gmac_per_s",
                 r->macs_per_s > 0 ? json_real(r->macs_per_s / 1e9) : json_null());
    json_out_add(o, "load_s", json_real(info->load_seconds));
    json_out_add(o, "peak_rss_bytes", json_integer((json_int_t)r->peak_bytes));
    json_out_add(o, "steal_percent",
                 r->steal_percent >= 0 ? json_real(r->steal_percent) : json_null());
    if (!json_out_add(o, "rows", rows)) {
        json_decref(o);
        return report_fail(BENCH, EXIT_INTERNAL, "out of memory for JSON output");
    }
    return json_out_write(o, stdout, JSON_OUT_LINE, &err) ? EXIT_DONE
                                                          : report_error(BENCH, STAGE_RUN, &err);
}
