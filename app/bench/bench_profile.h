/*
 * Where the time of a benchmark's row goes, by kind of work.
 */
#ifndef APP_BENCH_PROFILE_H
#define APP_BENCH_PROFILE_H

#include "app/bench/bench_figures.h"

#include <jansson.h>

/* A table on stdout; a line that says so where the device does not measure it. */
void bench_profile_print(const struct bench_row *row, const struct bench_roofs *roofs,
                         const char *title);
/* [{"step", "seconds", "share", "calls", "gb_per_s", "gmac_per_s", "percent_of_peak"}]; NULL: out
 * of memory. */
json_t *bench_profile_json(const struct bench_row *row, const struct bench_roofs *roofs);

#endif
