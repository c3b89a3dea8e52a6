/*
 * The histogram of the times between tokens: see gap_times.h.
 *
 * Times below 2^GAP_STEP_BITS nanoseconds have a bucket each. From there on, the bucket is chosen
 * by the position of the highest bit and the GAP_STEP_BITS bits behind it.
 */
#include "app/common/timing/gap_times.h"

#include <math.h>
#include <stddef.h>

#define STEPS ((uint64_t)1 << GAP_STEP_BITS) /* buckets for each power of two */

/* A time is shifted right until it is below 2 * STEPS. `shift` is 0 in the first two groups of
 * STEPS buckets, 1 in the third, and so on. */
static size_t bucket_of(uint64_t nanoseconds)
{
    unsigned shift = 0;
    while (nanoseconds >> shift >= 2 * STEPS)
        shift++;
    return (size_t)(shift * STEPS + (nanoseconds >> shift));
}

static double middle_seconds(size_t bucket)
{
    if (bucket < 2 * STEPS)
        return (double)bucket * 1e-9; /* one nanosecond wide */
    const unsigned shift = (unsigned)(bucket / STEPS) - 1;
    const uint64_t first = (bucket - shift * STEPS) << shift;
    return ((double)first + ldexp(0.5, (int)shift)) * 1e-9;
}

void gap_times_add(struct gap_times *g, double seconds)
{
    const uint64_t max = ((uint64_t)1 << GAP_MAX_BITS) - 1;
    const uint64_t ns = !(seconds > 0)               ? 0
                        : seconds >= GAP_MAX_SECONDS ? max
                                                     : (uint64_t)(seconds * 1e9);
    g->counts[bucket_of(ns < max ? ns : max)]++;
    g->n++;
}

double gap_times_percentile(const struct gap_times *g, double percent)
{
    const double rank = ceil(percent / 100 * (double)g->n); /* from 1 */
    uint64_t n_so_far = 0;
    for (size_t i = 0; i < GAP_BUCKETS; i++) {
        n_so_far += g->counts[i];
        if (n_so_far > 0 && (double)n_so_far >= rank)
            return middle_seconds(i);
    }
    return 0;
}

struct gap_percentiles gap_times_percentiles(const struct gap_times *g)
{
    return (struct gap_percentiles){.p50 = gap_times_percentile(g, 50),
                                    .p95 = gap_times_percentile(g, 95),
                                    .p99 = gap_times_percentile(g, 99)};
}
