/*
 * Reads any bytes as the baseline of bitnet-bench. The file is accepted for two rows, or refused
 * with a message. If it is accepted, each number of the comparison is finite, so that it can be
 * printed as JSON.
 */
#include "app/bench/bench.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_ROWS 2

static const struct bench_row rows[N_ROWS] = {
    /* rates of a very slow and of a very fast machine */
    {.test = BENCH_PP, .n_tokens = 5, .batch = 1, .tokens_per_s = 1e-3, .low = 1e-4, .high = 1e-2},
    {.test = BENCH_TG,
     .n_tokens = 4,
     .depth = 9,
     .batch = 2,
     .tokens_per_s = 1e6,
     .low = 1e5,
     .high = 1e7,
     .peak = 1e14}};

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void check_change(struct bench_change *c, const struct bench_row *row)
{
    bench_baseline_compare(c, row);
    check(isfinite(c->ratio) && isfinite(c->low) && isfinite(c->high) && isfinite(c->peak_ratio));
    check(c->old_low > 0 && c->low > 0 && c->low <= c->ratio && c->ratio <= c->high);
    check(strlen(c->old_checksum) < sizeof(c->old_checksum));
    check(bench_verdict_name(c->verdict) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    struct bench_change changes[N_ROWS];
    struct bn_error err = {0};
    json_t *baseline = NULL;
    json_t *const settings =
        json_pack("{s:s, s:I, s:b}", "processor", "A", "threads", (json_int_t)2, "sample", 0);
    check(settings != NULL);
    const struct bn_str text = {(const char *)bytes, n_bytes};
    if (bench_baseline_parse("base.json", text, &baseline, &err) &&
        bench_baseline_match(baseline, settings, rows, N_ROWS, changes, &err)) {
        for (size_t i = 0; i < N_ROWS; i++)
            check_change(&changes[i], &rows[i]);
    } else {
        check(err.code == BN_EARG && strstr(err.text, "baseline"));
    }
    json_decref(baseline);
    json_decref(settings);
    return 0;
}
