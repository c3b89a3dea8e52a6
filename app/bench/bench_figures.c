/*
 * See bench_figures.h.
 */
#include "app/bench/bench_figures.h"

#include <stdlib.h>

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof(*values), compare_values);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

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

double bench_step_percent(const struct bn_profile_step *step, const struct bench_roofs *roofs)
{
    const double arithmetic = step->mac == BN_MAC_F32 ? roofs->fma_per_s : roofs->macs_per_s;
    if (step->seconds <= 0)
        return 0;
    const double of_memory =
        percent_of((double)step->n_bytes / step->seconds, roofs->read_bytes_per_s);
    const double of_arithmetic = percent_of((double)step->n_macs / step->seconds, arithmetic);
    return of_memory > of_arithmetic ? of_memory : of_arithmetic;
}

struct bench_gain bench_gain_of(double rate, double rate_of_one, size_t n)
{
    const double speed_up = rate_of_one > 0 ? rate / rate_of_one : 0;
    return (struct bench_gain){speed_up, speed_up / (double)n};
}
