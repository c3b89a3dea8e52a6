/*
 * Seconds are of the timed runs together; rates are of the step's own time, and "of peak" is what
 * they are of the nearer roof: memory, or the arithmetic of its kind.
 */
#include "app/bench/bench_profile.h"

#include "app/common/json_out.h"

#include <stdio.h>

static double total_seconds(const struct bench_row *row)
{
    double sum = 0;
    for (size_t i = 0; i < row->n_steps; i++)
        sum += row->steps[i].seconds;
    return sum;
}

static double rate_of(uint64_t n, const struct bn_profile_step *step)
{
    return step->seconds > 0 ? (double)n / step->seconds / 1e9 : 0;
}

static void print_rate(uint64_t n, const struct bn_profile_step *step)
{
    if (n > 0)
        printf(" %8.1f |", rate_of(n, step));
    else
        printf(" %8s |", "");
}

static void print_percent(double percent)
{
    if (percent > 0)
        printf(" %5.1f %% |", percent);
    else
        printf(" %7s |", "");
}

void bench_profile_print(const struct bench_row *row, const struct bench_roofs *roofs,
                         const char *title)
{
    const double total = total_seconds(row);
    if (row->n_steps == 0) {
        printf("\n%s: this device does not measure where its time goes\n", title);
        return;
    }
    printf("\n%s: %.3f s\n\n", title, total);
    printf("| step           |  time ms |  share |     GB/s |   GMAC/s | of peak |    calls |\n"
           "| -------------- | -------: | -----: | -------: | -------: | ------: | -------: |\n");
    for (size_t i = 0; i < row->n_steps; i++) {
        const struct bn_profile_step *s = &row->steps[i];
        printf("| %-14s | %8.2f | %4.1f %% |", s->name, 1e3 * s->seconds,
               total > 0 ? 100 * s->seconds / total : 0);
        print_rate(s->n_bytes, s);
        print_rate(s->n_macs, s);
        print_percent(bench_step_percent(s, roofs));
        printf(" %8llu |\n", (unsigned long long)s->n_calls);
    }
}

json_t *bench_profile_json(const struct bench_row *row, const struct bench_roofs *roofs)
{
    const double total = total_seconds(row);
    json_t *steps = json_array();
    for (size_t i = 0; i < row->n_steps; i++) {
        const struct bn_profile_step *s = &row->steps[i];
        const double percent = bench_step_percent(s, roofs);
        json_t *o = json_object();
        json_out_add(o, "step", json_string(s->name));
        json_out_add(o, "seconds", json_real(s->seconds));
        json_out_add(o, "share", json_real(total > 0 ? s->seconds / total : 0));
        json_out_add(o, "calls", json_integer((json_int_t)s->n_calls));
        json_out_add(o, "gb_per_s", s->n_bytes ? json_real(rate_of(s->n_bytes, s)) : json_null());
        json_out_add(o, "gmac_per_s", s->n_macs ? json_real(rate_of(s->n_macs, s)) : json_null());
        json_out_add(o, "percent_of_peak", percent > 0 ? json_real(percent) : json_null());
        json_array_append_new(steps, o);
    }
    return steps;
}
