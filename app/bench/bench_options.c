/*
 * Options of bitnet-bench, and their conversion to rows and a plan: see bench.h.
 */
#include "app/bench/bench.h"

#include "engine/base/memory.h"
#include "engine/base/size.h"

/* Most rows, far more than anyone measures. The limit is needed because the number of rows of a
 * test is the product of the lengths of three lists. */
#define ROWS_MAX 10000

/* clang-format off */
/* Numbers of tokens are at most 2^20, far more than a benchmark needs, so their sums cannot
 * overflow. A batch has at most as many sequences as a pass can have tokens: 4096, the limit of
 * --ubatch. */
static const struct option test_rows[] = {
    {.name = "prompt", .letter = 'p', .kind = OPTION_INTS, .ints = {0, 1048576},
     .fallback = "128,512", .arg = "N,N", .help = "prompt lengths in tokens (rows ppN); 0: none"},
    {.name = "generate", .letter = 'n', .kind = OPTION_INTS, .ints = {0, 1048576},
     .fallback = "128", .arg = "N,N", .help = "numbers of tokens to generate (rows tgN); 0: none"},
    {.name = "depth", .letter = 'd', .kind = OPTION_INTS, .ints = {0, 1048576}, .fallback = "0",
     .arg = "N,N", .help = "tokens in the KV cache before the test"},
    {.name = "batch", .letter = 'b', .kind = OPTION_INTS, .ints = {1, 4096}, .fallback = "1",
     .arg = "N,N", .help = "sequences that are evaluated together; rates are for all of them"},
    {.name = "runs", .letter = 'r', .kind = OPTION_INT, .ints = {1, 1000}, .fallback = "5",
     .help = "timed runs of each row, after one that is discarded"},
    {.name = "spec", .kind = OPTION_CHOICE, .choices = SPEC_CHOICES, .fallback = "off",
     .help = "tg, batch 1: speculative decoding as in the chat; same checksum"},
    {.name = "sample", .kind = OPTION_FLAG,
     .help = "tg: sample with the default settings of the chat"},
    {.name = "scaling", .kind = OPTION_FLAG,
     .help = "no rows: measure with 1 to N threads and batches of 1 to 16"},
    {.name = "tokenizer", .kind = OPTION_FLAG,
     .help = "no rows: measure how fast generated texts are converted to tokens"},
    {.name = "skip", .kind = OPTION_CHOICE, .choices = "on|off", .fallback = "on",
     .help = "do not read weights of zero activations; same outputs"},
};

static const struct option output_rows[] = {
    {.name = "profile", .kind = OPTION_FLAG,
     .help = "print a table with the time of each kind of work for each row"},
    {.name = "explain", .kind = OPTION_FLAG, .help = "describe how each row is computed"},
    {.name = "baseline", .kind = OPTION_TEXT, .paths = OPTION_PATH, .arg = "FILE",
     .help = "compare with the output of an earlier --json; exit 6 if a row is slower"},
    {.name = "json", .kind = OPTION_FLAG, .help = "print one JSON object instead of a table"},
};

static const struct option general_rows[] = {
    {.name = "help", .letter = 'h', .kind = OPTION_FLAG, .help = "show this"},
    {.name = "version", .kind = OPTION_FLAG, .help = "show the version"},
};
/* clang-format on */

static const struct option_table tests = OPTION_TABLE("Tests", test_rows);
static const struct option_table output = OPTION_TABLE("Output", output_rows);
static const struct option_table general = OPTION_TABLE("General", general_rows);
const struct option_table *const bench_tables[] = {&tests, &output, &general, &model_run_options,
                                                   &model_file_options};
const size_t n_bench_tables = sizeof(bench_tables) / sizeof(bench_tables[0]);

bool bench_options_rows(const struct options *o, struct bench_row **out, size_t *n_rows,
                        struct bn_error *err)
{
    static const char *const names[] = {"prompt", "generate"}; /* by enum bench_test */
    size_t n_depths, n_batches, cap = 0;
    const int64_t *depths = options_ints(o, "depth", &n_depths);
    const int64_t *batches = options_ints(o, "batch", &n_batches);
    const int64_t n_ubatch = options_int(o, "ubatch");
    *out = NULL;
    *n_rows = 0;
    for (size_t i = 0; i < n_batches; i++)
        if (batches[i] > n_ubatch)
            return bn_fail(err, BN_EARG, "a batch of %lld is larger than --ubatch %lld",
                           (long long)batches[i], (long long)n_ubatch);
    for (size_t test = 0; test < 2; test++) {
        size_t n_counts, n_test_rows;
        const int64_t *token_counts = options_ints(o, names[test], &n_counts);
        if (!size_mul3(&n_test_rows, n_depths, n_batches, n_counts) ||
            n_test_rows > ROWS_MAX - *n_rows)
            return bn_fail(err, BN_EARG, "more than %d rows", ROWS_MAX);
        if (!mem_grow(out, &cap, *n_rows + n_test_rows, sizeof(**out)))
            return bn_fail(err, BN_ENOMEM, "out of memory for %zu rows", *n_rows + n_test_rows);
        /* The batch changes with each row, then the depth, then the number of tokens. */
        for (size_t i = 0; i < n_test_rows; i++) {
            const size_t n = (size_t)token_counts[i / (n_depths * n_batches)];
            if (n > 0)
                (*out)[(*n_rows)++] =
                    (struct bench_row){.test = (enum bench_test)test,
                                       .n_tokens = n,
                                       .depth = (size_t)depths[i / n_batches % n_depths],
                                       .batch = (size_t)batches[i % n_batches]};
        }
    }
    return *n_rows > 0 || bn_fail(err, BN_EARG, "nothing to measure: -p and -n are both 0");
}

struct bench_plan bench_options_plan(const struct options *o)
{
    return (struct bench_plan){.n_ubatch = (size_t)options_int(o, "ubatch"),
                               .n_runs = (size_t)options_int(o, "runs"),
                               .with_sampling = options_flag(o, "sample"),
                               .spec = (enum spec_mode)options_choice(o, "spec")};
}
