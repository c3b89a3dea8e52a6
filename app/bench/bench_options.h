/*
 * The rows of bitnet-bench's options, as data: for parsing, --help and the check that the man page
 * agrees.
 */
#ifndef APP_BENCH_OPTIONS_H
#define APP_BENCH_OPTIONS_H

#include "app/options/model_args.h"

extern const struct option_table *const bench_tables[];
extern const size_t n_bench_tables;

#endif
