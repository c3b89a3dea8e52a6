/*
 * Options of bitnet-bench.
 */
#include "app/bench/bench_options.h"

static const struct option test_rows[] = {
    {.name = "prompt",
     .letter = 'p',
     .kind = OPTION_INTS,
     .ints = {0, 1048576},
     .fallback = "128,512",
     .arg = "N,N",
     .help = "prompt lengths in tokens (rows ppN); 0: none"},
    {.name = "generate",
     .letter = 'n',
     .kind = OPTION_INTS,
     .ints = {0, 1048576},
     .fallback = "128",
     .arg = "N,N",
     .help = "numbers of tokens to generate (rows tgN); 0: none"},
    {.name = "depth",
     .letter = 'd',
     .kind = OPTION_INTS,
     .ints = {0, 1048576},
     .fallback = "0",
     .arg = "N,N",
     .help = "tokens in the KV cache before the test"},
    {.name = "batch",
     .letter = 'b',
     .kind = OPTION_INTS,
     .ints = {1, 4096},
     .fallback = "1",
     .arg = "N,N",
     .help = "sequences that are evaluated together; rates are for all of them"},
    {.name = "runs",
     .letter = 'r',
     .kind = OPTION_INT,
     .ints = {1, 1000},
     .fallback = "3",
     .help = "timed runs of each row, after one that is discarded"},
    {.name = "spec",
     .kind = OPTION_CHOICE,
     .choices = SPEC_CHOICES,
     .fallback = "off",
     .help = "tg, batch 1: speculative decoding as in the chat; same checksum"},
    {.name = "sample",
     .kind = OPTION_FLAG,
     .help = "tg: sample with the default settings of the chat"},
    {.name = "scaling",
     .kind = OPTION_FLAG,
     .help = "measure with 1 to N threads and with batches of 1 to 16"},
    {.name = "skip",
     .kind = OPTION_CHOICE,
     .choices = "on|off",
     .fallback = "on",
     .help = "do not read weights of zero activations; same outputs"},
};

static const struct option output_rows[] = {
    {.name = "profile",
     .kind = OPTION_FLAG,
     .help = "print a table with the time of each kind of work for each row"},
    {.name = "explain", .kind = OPTION_FLAG, .help = "describe how each row is computed"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print one JSON object instead of a table"},
};

static const struct option general_rows[] = {
    {.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this"},
    {.name = "version", .kind = OPTION_FLAG, .help = "show the version"},
};

static const struct option_table tests = OPTION_TABLE("Tests", test_rows);
static const struct option_table output = OPTION_TABLE("Output", output_rows);
static const struct option_table general = OPTION_TABLE("General", general_rows);
const struct option_table *const bench_tables[] = {&tests, &output, &general, &model_run_options,
                                                   &model_file_options};
const size_t n_bench_tables = sizeof(bench_tables) / sizeof(bench_tables[0]);
