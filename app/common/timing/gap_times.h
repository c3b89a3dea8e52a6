/*
 * Percentiles of the time between two tokens.
 *
 * The times are counted in a histogram with logarithmic buckets, as HdrHistogram does: each power
 * of two of nanoseconds is divided into 64 equal buckets. So the memory is fixed (9 KB) however
 * long an answer is, and adding a time allocates nothing. The price is an error: a percentile is
 * the middle of its bucket, so it is wrong by at most 1/128 of its value (0.8 %), or by a
 * nanosecond if it is shorter than 64. Longer times than GAP_MAX_SECONDS count as that time.
 */
#ifndef APP_GAP_TIMES_H
#define APP_GAP_TIMES_H

#include <stdint.h>

/* 2^40 nanoseconds, 18 minutes: far longer than the time for a token. */
#define GAP_MAX_BITS 40
#define GAP_MAX_SECONDS 1099.511627776
#define GAP_STEP_BITS 6 /* 2^6 buckets for each power of two */
#define GAP_BUCKETS ((GAP_MAX_BITS - GAP_STEP_BITS + 1) << GAP_STEP_BITS)

struct gap_times { /* all zeros: no times */
    uint32_t counts[GAP_BUCKETS];
    uint64_t n; /* the sum of `counts` */
};

struct gap_percentiles { /* in seconds; all 0 without times */
    double p50, p95, p99;
};

void gap_times_add(struct gap_times *g, double seconds);
/* The smallest time for which at least `percent` (above 0, at most 100) of the times are not
 * longer: the nearest-rank definition. With fewer than 100 times, p99 is the longest. 0: no
 * times. */
double gap_times_percentile(const struct gap_times *g, double percent);
struct gap_percentiles gap_times_percentiles(const struct gap_times *g);

#endif
