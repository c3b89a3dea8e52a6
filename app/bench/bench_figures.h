/*
 * The arithmetic of the benchmark: what is made of times, bytes and shapes. Pure functions; a rate
 * or a share that is not known is 0.
 */
#ifndef APP_BENCH_FIGURES_H
#define APP_BENCH_FIGURES_H

#include "app/bench/bench_run.h"

/* What the machine can do, measured in the same run. */
struct bench_roofs {
    double read_bytes_per_s;
    double macs_per_s; /* of bytes, from registers */
    double fma_per_s;  /* of floats, from registers */
};

/* The middle of n values, which are sorted; n is at least 1. */
double bench_median(double *values, size_t n);

/* What a row is bound by, a second: bytes read for tg, multiply-adds for pp; and what it is of the
 * row's own peak, in percent. */
double bench_row_rate(const struct bn_model_info *info, const struct bench_row *row);
double bench_row_percent(const struct bn_model_info *info, const struct bench_row *row);

/* A kind of work against the roof that is nearer to it, of memory or of arithmetic, in percent. */
double bench_step_percent(const struct bn_profile_step *step, const struct bench_roofs *roofs);

/* How many times as fast n of something are as one of it, and what each of them gives of that. */
struct bench_gain {
    double speed_up, efficiency;
};
struct bench_gain bench_gain_of(double rate, double rate_of_one, size_t n);

#endif
