/*
 * Measures the tokenizer on generated text: see bench_tokenizer_run in bench.h.
 *
 * Times are CPU times of the thread, so the time in which other programs run on its processor does
 * not count. They can still slow it down, through shared caches. Encoding never waits, so the CPU
 * time includes all of its work.
 *
 * Each kind of text is encoded in three sizes. Equal rates for all of them show that the time is
 * linear in the length. The texts are the same in every run and for every model, so token counts
 * and checksums of two builds can be compared.
 */
#include "app/bench/bench.h"

#include "app/common/json_out.h"
#include "engine/base/clock.h"
#include "engine/base/hash.h"
#include "engine/base/memory.h"

#include <inttypes.h>
#include <math.h>

static const size_t lengths[] = {16384, 131072, 1048576}; /* bytes, ascending */
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))
#define MAX_BYTES 1048576 /* the last of them */

/* ---- texts ---- */

/* Frequent words, and some that a vocabulary may have to divide. */
static const char *const words[] = {
    "the",     "of",     "and",         "to",      "in",         "is",     "that",    "for",
    "it",      "was",    "on",          "are",     "with",       "as",     "at",      "by",
    "this",    "from",   "have",        "not",     "which",      "were",   "when",    "people",
    "there",   "more",   "water",       "between", "government", "small",  "river",   "question",
    "because", "before", "information", "weather", "mountain",   "letter", "evening", "children",
    "measure", "memory", "thermometer", "quickly", "seventeen",  "almost", "nothing", "yesterday",
};
static const char *const syllables[] = {"ka", "ren", "to", "mi", "lan", "or", "es", "vil",
                                        "da", "bur", "ne", "so", "ti",  "gr", "al", "hem"};
static const char *const operators[] = {" = ", " += ", "->", " < ", ", ", "(", " * ", " & "};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct text {
    char *bytes; /* (MAX_BYTES) */
    size_t n;
    uint32_t random;
};

/* A pseudo-random number below `limit`. */
static uint32_t below(struct text *t, size_t limit)
{
    t->random = t->random * 1103515245u + 12345u; /* the example of rand in the C standard */
    return (t->random >> 8) % (uint32_t)limit;    /* the low bits have short periods */
}

static void add(struct text *t, const char *s)
{
    for (; *s && t->n < MAX_BYTES; s++)
        t->bytes[t->n++] = *s;
}

static void add_number(struct text *t, uint32_t number)
{
    char digits[16];
    (void)snprintf(digits, sizeof(digits), "%" PRIu32, number); /* fits */
    add(t, digits);
}

/* A word of 2 to 4 syllables that is in no list, as names are. */
static void add_name(struct text *t)
{
    for (uint32_t i = 0, n = 2 + below(t, 3); i < n; i++)
        add(t, syllables[below(t, COUNT(syllables))]);
}

/* Sentences of 5 to 16 words. One word of eight is a name, one of 30 a number. */
static void add_prose(struct text *t)
{
    const size_t start = t->n;
    for (uint32_t i = 0, n = 5 + below(t, 12); i < n; i++) {
        if (i > 0)
            add(t, below(t, 9) == 0 ? ", " : " ");
        if (below(t, 30) == 0)
            add_number(t, below(t, 3000));
        else if (below(t, 8) == 0)
            add_name(t);
        else
            add(t, words[below(t, COUNT(words))]);
    }
    if (t->bytes[start] >= 'a' && t->bytes[start] <= 'z')
        t->bytes[start] = (char)(t->bytes[start] - 'a' + 'A');
    add(t, below(t, 5) == 0 ? ".\n\n" : ". ");
}

/* A line of C: indentation, identifiers, operators, a number. */
static void add_code(struct text *t)
{
    for (uint32_t i = 0, n = below(t, 4); i < n; i++)
        add(t, "    ");
    for (uint32_t i = 0, n = 2 + below(t, 3); i < n; i++) {
        add(t, words[below(t, COUNT(words))]);
        add(t, "_");
        if (below(t, 3) == 0)
            add_name(t);
        add(t, operators[below(t, COUNT(operators))]);
    }
    add_number(t, below(t, 100000));
    add(t, below(t, 6) == 0 ? ") {\n" : ");\n");
}

/* The rest of the text is one word of random letters. */
static void add_long_word(struct text *t)
{
    while (t->n < MAX_BYTES)
        t->bytes[t->n++] = (char)('a' + below(t, 26));
}

/* Bytes that occur in no character of UTF-8, or only behind another byte. */
static void add_no_utf8(struct text *t)
{
    while (t->n < MAX_BYTES)
        t->bytes[t->n++] = (char)(below(t, 8) == 0 ? 0xf8 + below(t, 8) : 0x80 + below(t, 0x40));
}

static const struct {
    const char *name;
    void (*add)(struct text *t); /* until the text has MAX_BYTES */
} kinds[] = {{"prose", add_prose},
             {"code", add_code},
             {"long word", add_long_word},
             {"no UTF-8", add_no_utf8}};

/* ---- measurement ---- */

struct point {
    const char *text;
    size_t n_bytes, n_tokens;
    double tokens_per_s, min, max;
    uint64_t checksum; /* of the ids */
};
#define N_POINTS (COUNT(kinds) * N_LENGTHS)

struct measurement {
    const struct tokenizer *tokenizer;
    struct token_list ids; /* of the last run */
    double *rates;         /* (n_runs) */
    size_t n_runs;
};

/* The first run is discarded: it allocates memory for the ids. */
static bool measure(struct measurement *m, const char *text, struct point *p, struct bn_error *err)
{
    const struct segment segment = {
        .kind = SEGMENT_MESSAGE, .text = {text, p->n_bytes}, .message = SEGMENT_NO_MESSAGE};
    for (size_t run = 0; run <= m->n_runs; run++) {
        m->ids.n = 0;
        const double start = clock_thread_seconds();
        if (!tokenizer_encode(m->tokenizer, &segment, 1, TOKENIZER_BOS_NEVER, &m->ids, err))
            return false;
        const double seconds = fmax(clock_thread_seconds() - start, 1e-9); /* not 0 */
        if (run > 0)
            m->rates[run - 1] = (double)m->ids.n / seconds;
    }
    p->n_tokens = m->ids.n;
    p->tokens_per_s = bench_median(m->rates, m->n_runs);
    p->min = m->rates[0]; /* sorted by bench_median */
    p->max = m->rates[m->n_runs - 1];
    p->checksum = fnv1a_add_bytes(FNV1A_START, m->ids.ids, m->ids.n * sizeof(*m->ids.ids));
    return true;
}

static bool measure_all(struct measurement *m, struct point *points, struct bn_error *err)
{
    struct text t = {.bytes = mem_alloc(MAX_BYTES, 1)};
    bool ok = t.bytes || bn_fail(err, BN_ENOMEM, "out of memory for a text");
    for (size_t i = 0; ok && i < N_POINTS; i++) {
        const size_t kind = i / N_LENGTHS;
        if (i % N_LENGTHS == 0) {
            t.n = 0;
            t.random = 7; /* any seed; another one would change all checksums */
            while (t.n < MAX_BYTES)
                kinds[kind].add(&t);
        }
        points[i] = (struct point){.text = kinds[kind].name, .n_bytes = lengths[i % N_LENGTHS]};
        report_progress("[%zu/%zu] %s", i + 1, N_POINTS, points[i].text);
        ok = measure(m, t.bytes, &points[i], err);
    }
    report_progress_erase();
    mem_free(t.bytes);
    return ok;
}

/* ---- output ---- */

/* Millions of bytes per second at the median rate. */
static double mb_per_s(const struct point *p)
{
    return p->n_tokens > 0 ? p->tokens_per_s * (double)p->n_bytes / (double)p->n_tokens / 1e6 : 0;
}

static void print_table(const char *path, const struct tokenizer_info *info,
                        const struct bench_machine *machine, const struct point *points)
{
    printf("model      ");
    report_safe(stdout, bn_str_of(path));
    printf("\ntokenizer  %s %s, %zu tokens, %zu merges\nprocessor  ", info->model, info->pre,
           info->n_vocab, info->n_merges);
    report_safe(stdout, bn_str_of(machine->processor));
    printf(", CPU time of one thread\n\n"
           "| text      |   bytes |  tokens |    tokens/s |         min |         max |   MB/s "
           "| checksum         |\n"
           "| --------- | ------: | ------: | ----------: | ----------: | ----------: | -----: "
           "| ---------------- |\n");
    for (size_t i = 0; i < N_POINTS; i++) {
        const struct point *const p = &points[i];
        char checksum[20];
        bench_name_checksum(p->checksum, checksum);
        printf("| %-9s | %7zu | %7zu | %11.0f | %11.0f | %11.0f | %6.2f | %s |\n", p->text,
               p->n_bytes, p->n_tokens, p->tokens_per_s, p->min, p->max, mb_per_s(p), checksum);
    }
}

static enum exit_code print_json(const char *path, const struct tokenizer_info *info,
                                 const struct bench_machine *machine, const struct point *points)
{
    struct bn_error err;
    json_t *rows = json_array();
    for (size_t i = 0; i < N_POINTS; i++) {
        const struct point *const p = &points[i];
        char checksum[20];
        bench_name_checksum(p->checksum, checksum);
        json_out_append(&rows, json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:s}", "text",
                                         p->text, "bytes", (json_int_t)p->n_bytes, "tokens",
                                         (json_int_t)p->n_tokens, "tokens_per_s", p->tokens_per_s,
                                         "min", p->min, "max", p->max, "mb_per_s", mb_per_s(p),
                                         "checksum", checksum));
    }
    json_t *o = json_pack("{s:o, s:o, s:s, s:s, s:I, s:o}", "model", json_out_text(bn_str_of(path)),
                          "processor", json_out_text(bn_str_of(machine->processor)), "tokenizer",
                          info->model, "pre", info->pre, "n_vocab", (json_int_t)info->n_vocab,
                          "rows", rows);
    return json_out_write(o, stdout, JSON_OUT_LINE, &err) ? EXIT_DONE
                                                          : report_error(BENCH, STAGE_RUN, &err);
}

enum exit_code bench_tokenizer_run(const struct options *o, const char *path)
{
    struct bn_file *file = NULL;
    struct tokenizer *tokenizer = NULL;
    struct measurement m = {.n_runs = (size_t)options_int(o, "runs")};
    struct point points[N_POINTS];
    struct bench_machine machine;
    struct bn_error err;
    enum exit_code code = EXIT_DONE;
    bench_machine_init(&machine); /* for the name of the processor */
    if (!bn_file_open(path, &file, &err)) {
        code = report_error(BENCH, STAGE_LOAD, &err);
    } else if (!model_args_tokenizer(o, file, NULL, &tokenizer, &err)) {
        (void)bn_fail_prefix(&err, "%s", path);
        code = report_error(BENCH, STAGE_LOAD, &err);
    }
    bn_file_close(file);
    if (code != EXIT_DONE)
        return code;
    m.tokenizer = tokenizer;
    m.rates = mem_alloc(m.n_runs, sizeof(*m.rates));
    if (!m.rates)
        code = report_fail(BENCH, EXIT_INTERNAL, "out of memory for %zu runs", m.n_runs);
    else if (!measure_all(&m, points, &err))
        code = report_error(BENCH, STAGE_RUN, &err);
    else if (options_flag(o, "json"))
        code = print_json(path, tokenizer_info(tokenizer), &machine, points);
    else
        print_table(path, tokenizer_info(tokenizer), &machine, points);
    mem_free(m.rates);
    token_list_finish(&m.ids);
    tokenizer_close(tokenizer);
    return code;
}
