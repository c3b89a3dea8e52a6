/*
 * Reads a baseline and compares rows with it: see bench_baseline.h.
 */
#include "app/bench/bench.h"

#include "app/common/file/paths.h"
#include "app/common/json_out.h"
#include "engine/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)16 << 20) /* more than 10000 rows with profiles */
/* A smaller difference is not worth an alarm, however small the noise is. */
#define MAX_LOSS 0.05
/* Per second. Far from what any machine reaches, and their ratios are far from the largest double,
 * so that each number of the output is finite. */
#define MIN_RATE 1e-9
#define MAX_RATE 1e18
#define NAME_BYTES 80 /* enough for the name of each row */

bool bench_baseline_parse(const char *name, struct bn_str text, json_t **out, struct bn_error *err)
{
    json_error_t where;
    json_t *const o = json_loadb(text.ptr, text.n_bytes, JSON_REJECT_DUPLICATES, &where);
    if (!o) {
        json_correct_error(&where);
        return bn_fail(err, BN_EARG,
                       "the baseline '%.200s' is not JSON: line %d, column %d: %.100s", name,
                       where.line, where.column, where.text);
    }
    if (!json_is_object(o)) {
        json_decref(o);
        return bn_fail(err, BN_EARG, "the baseline '%.200s' is not a JSON object", name);
    }
    *out = o;
    return true;
}

bool bench_baseline_read(const char *path, json_t **out, struct bn_error *err)
{
    char *text;
    size_t n_bytes;
    if (!path_read_all(path, MAX_BYTES, &text, &n_bytes, err))
        return false;
    const bool ok = bench_baseline_parse(path, (struct bn_str){text, n_bytes}, out, err);
    mem_free(text);
    return ok;
}

/* The value as JSON text, for messages. "?": out of memory. */
static void value_text(const json_t *value, char out[NAME_BYTES])
{
    char *const text = json_dumps(value, JSON_ENCODE_ANY);
    (void)snprintf(out, NAME_BYTES, "%s", text ? text : "?"); /* a longer text is cut */
    free(text);
}

static bool check_settings(const json_t *baseline, json_t *settings, struct bn_error *err)
{
    const char *key;
    json_t *now;
    if (json_string_length(json_object_get(settings, "processor")) == 0)
        return bn_fail(err, BN_EARG,
                       "this processor has no name in /proc/cpuinfo: results cannot be compared "
                       "with a baseline, which may be of another one");
    json_object_foreach(settings, key, now)
    {
        char before_text[NAME_BYTES], now_text[NAME_BYTES];
        const json_t *const before = json_object_get(baseline, key);
        if (!before)
            return bn_fail(err, BN_EARG,
                           "the baseline has no \"%s\": it is not the output of bitnet-bench "
                           "--json, or of an older version",
                           key);
        if (json_equal(before, now))
            continue;
        value_text(before, before_text);
        value_text(now, now_text);
        if (strcmp(key, "fingerprint") == 0)
            return bn_fail(err, BN_EARG, "the baseline is of another model file (\"%s\" differs)",
                           key);
        return bn_fail(err, BN_EARG, "the baseline has \"%s\" %s, but this run has %s", key,
                       before_text, now_text);
    }
    return true;
}

static bool check_runs(const json_t *baseline, struct bn_error *err)
{
    const json_t *const runs = json_object_get(baseline, "runs");
    const json_int_t n = json_integer_value(runs); /* 0 if it is no integer */
    if (n >= BENCH_MIN_RUNS)
        return true;
    return bn_fail(err, BN_EARG,
                   "the baseline was measured with %lld runs, too few for a comparison: measure it "
                   "again with -r %d or more",
                   (long long)n, BENCH_MIN_RUNS);
}

/* Whether o[key] is a rate that something can have. */
static bool get_rate(const json_t *o, const char *key, double *out)
{
    const json_t *const value = json_object_get(o, key);
    *out = json_number_value(value); /* 0 if it is no number */
    return *out >= MIN_RATE && *out <= MAX_RATE;
}

static bool is_count(const json_t *o, const char *key, size_t n)
{
    const json_t *const value = json_object_get(o, key);
    return json_is_integer(value) && json_integer_value(value) == (json_int_t)n;
}

static const json_t *find_row(const json_t *rows, const struct bench_row *test)
{
    char name[32];
    size_t i;
    const json_t *o;
    bench_name_test(test, name);
    json_array_foreach(rows, i, o)
    {
        const char *const other = json_string_value(json_object_get(o, "test"));
        if (other && strcmp(other, name) == 0 && is_count(o, "depth", test->depth) &&
            is_count(o, "batch", test->batch))
            return o;
    }
    return NULL;
}

static bool read_row(const json_t *o, struct bench_change *c)
{
    const char *const checksum = json_string_value(json_object_get(o, "checksum"));
    if (!get_rate(o, "tokens_per_s", &c->old_tokens_per_s) ||
        !get_rate(o, "median_low", &c->old_low) || !get_rate(o, "median_high", &c->old_high) ||
        c->old_low > c->old_tokens_per_s || c->old_high < c->old_tokens_per_s || !checksum ||
        strlen(checksum) >= sizeof(c->old_checksum))
        return false;
    (void)snprintf(c->old_checksum, sizeof(c->old_checksum), "%s", checksum); /* fits */
    c->old_peak = 0;
    return json_is_null(json_object_get(o, "peak_per_s")) ||
           get_rate(o, "peak_per_s", &c->old_peak);
}

bool bench_baseline_match(const json_t *baseline, json_t *settings, const struct bench_row *rows,
                          size_t n_rows, struct bench_change *changes, struct bn_error *err)
{
    const json_t *const list = json_object_get(baseline, "rows");
    if (!check_settings(baseline, settings, err) || !check_runs(baseline, err))
        return false;
    for (size_t i = 0; i < n_rows; i++) {
        char name[NAME_BYTES];
        const json_t *const o = find_row(list, &rows[i]);
        bench_name_row(&rows[i], name, sizeof(name));
        if (!o)
            return bn_fail(err, BN_EARG, "the baseline has no row %s", name);
        if (!read_row(o, &changes[i]))
            return bn_fail(err, BN_EARG, "the row %s of the baseline is broken", name);
    }
    return true;
}

void bench_baseline_compare(struct bench_change *c, const struct bench_row *row)
{
    char checksum[20];
    bench_name_checksum(row->checksum, checksum);
    c->ratio = row->tokens_per_s / c->old_tokens_per_s;
    c->low = row->low / c->old_high;
    c->high = row->high / c->old_low;
    c->peak_ratio = c->old_peak > 0 ? row->peak / c->old_peak : 0;
    c->is_same_output = strcmp(checksum, c->old_checksum) == 0;
    /* What a change of the machine alone explains. */
    const double slower = c->peak_ratio > 0 ? fmin(c->peak_ratio, 1) : 1;
    const double faster = fmax(c->peak_ratio, 1);
    c->verdict = c->high < (1 - MAX_LOSS) * slower  ? BENCH_SLOWER
                 : c->low > (1 + MAX_LOSS) * faster ? BENCH_FASTER
                                                    : BENCH_SAME;
}

const char *bench_verdict_name(enum bench_verdict verdict)
{
    static const char *const names[] = {
        [BENCH_SAME] = "same", [BENCH_SLOWER] = "slower", [BENCH_FASTER] = "faster"};
    return names[verdict];
}
