/*
 * A scripted generator: implements generator.h without the engine, for tests of the chat. The
 * vocabulary is that of the model file. The environment variable BITNET_FAKE holds the script: see
 * `option`.
 */
#include "app/chat/answer/generator.h"
#include "engine/base/clock.h"
#include "engine/base/memory.h"
#include "tokenizer/tokenizer.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_ANSWERS 64
#define WAIT_ID 0x1D /* the vocabulary has one id for each byte */

struct generator {
    struct tokenizer *tokenizer;
    struct bn_model_info info;
    size_t n_ctx;
    struct token_list answers[MAX_ANSWERS];
    size_t n_answers, answer; /* the number of answers, index of the current one */
    size_t n_sent;            /* tokens of the current answer that were returned */
    struct token_list held;   /* the ids in the KV cache of a session */
    int32_t next;             /* the last token returned, TOKEN_NONE at the start */
    bool is_replaced;         /* the caller has replaced tokens since the last step */
    size_t n_alts;
    uint64_t n_steps; /* evaluations */
};

/* The value of an option NAME=VALUE of BITNET_FAKE, up to the next blank; NULL: it is not set.
 *
 *   answers=FILE   bytes of the answers, in order; 0x1E separates two answers. special=1: texts of
 *                  special tokens in them become these tokens
 *   hold=FILE      at a byte 0x1D, an answer waits until the file exists, and deletes it
 *   waiting=FILE   create this file when an answer begins to wait
 *   endless=1      repeat each answer without end; same=1: repeat its first token
 *   load_ms, load_until=FILE, load_error=1   loading takes this time, waits for the file, fails
 *   part_until=FILE   a prompt is one micro-batch: report half of its tokens until the file exists
 *   begun=FILE     create this file before the first token of an answer
 *   read=FILE      create this file when two tokens of a prompt are evaluated
 *   read_us, token_ms, save_us   time for each token of a prompt, an answer, a snapshot
 *   read_stop=N    do not read more than N tokens of a prompt: wait until it is cancelled
 *   together=N     N tokens of an answer come from one evaluation, as with speculative decoding
 *   n_ctx, n_ctx_train   tokens
 *   states=N, again=N    the model needs saved states and has N; N tokens of a prompt that were in
 *                  the cache are evaluated again
 *   no_cuda=1      a message says that CUDA is not used
 *   stuck=1        ignore cancellation
 *   fail_at=N, save_error=1, fault=1   token N fails, saving fails, raise SIGILL
 *   peak_gb=N      the measured bandwidth in GB/s; 10 GMAC/s of arithmetic for each
 *   work=N         a token takes N times as many bytes and multiply-adds
 *   noise=1, noise=2   write a line to stderr before each answer, also before each token
 *   stable=1       write bn_control.n_stable to stderr before each answer
 *   sense=right, sense=nonsense   the verdict of the sense check; without it there is none
 *   checking=FILE, check_until=FILE   a check creates the first file and waits for the second one
 */
static const char *option(const char *name)
{
    const char *words = getenv("BITNET_FAKE");
    const size_t n = strlen(name);
    for (const char *at = words; at && *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return at + n + 1;
    }
    return NULL;
}

static long option_number(const char *name, long fallback)
{
    const char *value = option(name);
    return value ? strtol(value, NULL, 10) : fallback;
}

static void sleep_us(long us)
{
    const struct timespec t = {us / 1000000, us % 1000000 * 1000};
    if (us > 0)
        (void)nanosleep(&t, NULL);
}

static bool is_cancelled(const struct bn_cancel *cancel)
{
    return cancel && atomic_load(&cancel->requested) && option_number("stuck", 0) == 0;
}

/* The path of an option NAME=FILE. False if the option is not set. */
static bool option_path(const char *name, char path[4096])
{
    const char *value = option(name);
    if (value)
        (void)snprintf(path, 4096, "%.*s", (int)strcspn(value, " "), value);
    return value != NULL;
}

static bool file_exists(const char *name)
{
    char path[4096];
    return option_path(name, path) && access(path, F_OK) == 0;
}

/* Delete the file of an option. False if there is no such file. */
static bool delete_file(const char *name)
{
    char path[4096];
    return option_path(name, path) && unlink(path) == 0;
}

static void create_file(const char *name)
{
    char path[4096];
    FILE *f = option_path(name, path) ? fopen(path, "wb") : NULL;
    if (f)
        (void)fclose(f);
}

static bool add_answer(struct generator *g, const char *bytes, size_t n_bytes, struct bn_error *err)
{
    const struct segment s = {.kind = option("special") ? SEGMENT_TEMPLATE : SEGMENT_MESSAGE,
                              .text = {bytes, n_bytes},
                              .message = SEGMENT_NO_MESSAGE};
    return g->n_answers == MAX_ANSWERS || tokenizer_encode(g->tokenizer, &s, 1, TOKENIZER_BOS_NEVER,
                                                           &g->answers[g->n_answers++], err);
}

static bool read_answers(struct generator *g, struct bn_error *err)
{
    static char bytes[1 << 20];
    char path[4096];
    if (!option_path("answers", path))
        return add_answer(g, "Hello.", 6, err);
    FILE *f = fopen(path, "rb");
    if (!f)
        return bn_fail(err, BN_EIO, "no answers in '%s'", path);
    const size_t n = fread(bytes, 1, sizeof(bytes), f);
    (void)fclose(f);
    bool ok = true;
    for (size_t at = 0; ok && at <= n;) {
        const char *end = memchr(bytes + at, 0x1E, n - at);
        const size_t n_answer = (end ? (size_t)(end - bytes) : n) - at;
        ok = add_answer(g, bytes + at, n_answer, err);
        at = end ? at + n_answer + 1 : n + 1;
    }
    return ok;
}

static bool pretend_to_load(const struct bn_model_config *cfg, struct bn_error *err)
{
    const long ms = option_number("load_ms", 0);
    for (long done = 0; done < ms || (option("load_until") && !file_exists("load_until"));
         done += 10) {
        if (is_cancelled(cfg->cancel))
            return bn_fail(err, BN_ECANCELLED, "cancelled");
        cfg->progress.report(cfg->progress.ud, (size_t)(done % 1000), 1000);
        sleep_us(10000);
    }
    return option_number("load_error", 0) == 0 || bn_fail(err, BN_EFORMAT, "tensor 'x' is broken");
}

bool generator_open(const struct bn_file *file, const struct bn_model_config *cfg,
                    const struct bn_session_config *session, struct generator **out,
                    struct bn_error *err)
{
    struct generator *g = mem_alloc(1, sizeof(*g));
    const struct tokenizer_config tokenizer = {0};
    if (!g)
        return bn_fail(err, BN_ENOMEM, "out of memory");
    g->next = TOKEN_NONE;
    g->n_ctx = session->n_ctx > 0 ? session->n_ctx : (size_t)option_number("n_ctx", 4096);
    g->info = (struct bn_model_info){.name = "fake",
                                     .arch = "fake",
                                     .quantisation = "I2_S",
                                     .device = "fake device",
                                     .isa = "ref",
                                     .macs_per_token = 2e6 * (double)option_number("work", 1),
                                     .kv_type = "f16",
                                     .activations = "int8 per token: scripted"};
    g->info.n_ctx_train = (size_t)option_number("n_ctx_train", 0);
    g->info.n_ctx_default = g->n_ctx;
    if (option("states")) {
        g->info.state_bytes = 1000000;
        g->info.seq_fixed_bytes = 2000000;
    }
    if (option("no_cuda"))
        (void)snprintf(g->info.skip_reason, sizeof(g->info.skip_reason),
                       "cuda is not used: no driver");
    if (!tokenizer_open(file, &tokenizer, &g->tokenizer, err) || !read_answers(g, err) ||
        !pretend_to_load(cfg, err)) {
        generator_close(g);
        return false;
    }
    g->info.n_vocab = tokenizer_info(g->tokenizer)->n_vocab;
    g->answer = g->n_answers - 1; /* the first prompt advances to answer 0 */
    *out = g;
    return true;
}

void generator_close(struct generator *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n_answers; i++)
        token_list_finish(&g->answers[i]);
    token_list_finish(&g->held);
    tokenizer_close(g->tokenizer);
    mem_free(g);
}

const struct bn_model_info *generator_info(const struct generator *g)
{
    return &g->info;
}

size_t generator_n_ctx(const struct generator *g)
{
    return g->n_ctx;
}

size_t generator_explain(const struct generator *g, size_t n_sequences, size_t n_tokens, char *text,
                         size_t text_bytes)
{
    (void)g;
    const int n = snprintf(text, text_bytes, "fake plan of %zu\n", n_sequences * n_tokens);
    return n > 0 ? (size_t)n : 0;
}

void generator_speculate(struct generator *g, enum spec_mode mode)
{
    (void)g, (void)mode;
}

struct spec_stats generator_spec_stats(const struct generator *g)
{
    (void)g;
    return (struct spec_stats){0};
}

uint64_t generator_bytes_read(const struct generator *g)
{
    return 5000000 * (uint64_t)option_number("work", 1) * g->n_steps;
}

struct generator_peaks generator_measure(struct generator *g)
{
    (void)g;
    const double gb = (double)option_number("peak_gb", 40);
    return (struct generator_peaks){.read_bytes_per_s = 1e9 * gb, .macs_per_s = 10e9 * gb};
}

bool generator_check(struct generator *g, const struct bn_file *file, const struct tokenizer *t,
                     struct bn_cancel *cancel, struct sense_result *out, struct bn_error *err)
{
    const char *verdict = option("sense");
    (void)g, (void)file, (void)t;
    create_file("checking");
    while (option("check_until") && !file_exists("check_until")) {
        if (is_cancelled(cancel))
            return bn_fail(err, BN_ECANCELLED, "cancelled");
        sleep_us(1000);
    }
    *out = (struct sense_result){.why = "the generator is scripted"};
    if (verdict)
        *out = (struct sense_result){
            .loss = 2, .bound = 1.5, .is_nonsense = strncmp(verdict, "nonsense", 8) == 0};
    return true;
}

bool generator_set(struct generator *g, const struct sampler_params *params, size_t n_alts,
                   struct bn_error *err)
{
    g->n_alts = n_alts;
    return params->temp >= 0 || bn_fail(err, BN_EARG, "temp %f", (double)params->temp);
}

/* Like a session: reuse the longest common prefix, but evaluate at least the last id. */
static size_t common_prefix(const struct generator *g, const int32_t *ids, size_t n_ids)
{
    size_t n = 0;
    while (n < g->held.n && n + 1 < n_ids && g->held.ids[n] == ids[n])
        n++;
    return n;
}

/* Report half of a prompt of n_ids ids until the file of `part_until` exists. The report is
 * repeated because the chat may leave out some. False: cancelled. */
static bool read_half(const struct bn_control *control, size_t n_ids)
{
    while (option("part_until") && n_ids > 1 && !file_exists("part_until")) {
        if (is_cancelled(control->cancel))
            return false;
        control->progress.report(control->progress.ud, n_ids / 2, n_ids);
        sleep_us(1000);
    }
    return true;
}

/* The time to read token i of a prompt. It ends early when the answer is cancelled. */
static void read_token(size_t i, const struct bn_cancel *cancel)
{
    const long stop = option_number("read_stop", LONG_MAX), step_us = 10000;
    const long us = (long)i < stop ? option_number("read_us", 0) : LONG_MAX;
    for (long done = 0; done < us && !is_cancelled(cancel); done += step_us)
        sleep_us(us - done < step_us ? us - done : step_us);
}

static bool read_prompt(struct generator *g, const int32_t *ids, size_t n_ids,
                        const struct bn_control *control, struct bn_error *err)
{
    const size_t n_kept = common_prefix(g, ids, n_ids);
    g->held.n = n_kept;
    if (control->progress.report)
        control->progress.report(control->progress.ud, 0, n_ids - n_kept);
    if (!read_half(control, n_ids - n_kept))
        return bn_fail(err, BN_ECANCELLED, "cancelled");
    for (size_t i = n_kept; i < n_ids; i++) {
        read_token(i - n_kept, control->cancel);
        if (is_cancelled(control->cancel))
            return bn_fail(err, BN_ECANCELLED, "cancelled");
        if (!token_list_push(&g->held, ids[i], err))
            return false;
        if (control->progress.report)
            control->progress.report(control->progress.ud, i + 1 - n_kept, n_ids - n_kept);
        if (i == n_kept + 1)
            create_file("read");
    }
    return true;
}

/* Go on behind the next </think> of the answer and the newlines after it, or else where it is. */
static void skip_thought(struct generator *g)
{
    static const char marker[] = "</think>";
    const struct token_list *answer = &g->answers[g->answer];
    size_t n_match = 0;
    for (size_t i = g->n_sent; i < answer->n; i++) {
        const struct bn_str piece =
            tokenizer_piece(g->tokenizer, answer->ids[i], TOKENIZER_SPECIAL_SHOW);
        for (size_t k = 0; k < piece.n_bytes && n_match < sizeof(marker) - 1; k++)
            n_match = piece.ptr[k] == marker[n_match] ? n_match + 1 : piece.ptr[k] == '<';
        if (n_match < sizeof(marker) - 1)
            continue;
        g->n_sent = i + 1;
        while (g->n_sent < answer->n && answer->ids[g->n_sent] == '\n')
            g->n_sent++;
        return;
    }
}

/* Whether this step continues the answer of the last one: the ids are those in the cache and the
 * token that the last step returned. The first step after generator_replace may have more ids, but
 * ends with the same token. */
static bool continues_answer(const struct generator *g, const int32_t *ids, size_t n_ids)
{
    return g->next != TOKEN_NONE && (n_ids == g->held.n + 1 || g->is_replaced) &&
           common_prefix(g, ids, n_ids) == g->held.n && ids[n_ids - 1] == g->next;
}

static void begin_answer(struct generator *g, const struct bn_control *control, size_t n_ids)
{
    create_file("begun");
    if (option_number("stable", 0))
        fprintf(stderr, "%zu of %zu stable\n", control->n_stable, n_ids);
    if (option_number("noise", 0))
        fputs("from a library\n", stderr);
    g->answer = (g->answer + 1) % g->n_answers;
    g->n_sent = 0;
    g->next = TOKEN_NONE;
}

static void continue_answer(struct generator *g)
{
    if (g->is_replaced)
        skip_thought(g);
    sleep_us(1000 * option_number("token_ms", 0));
    if (option_number("noise", 0) > 1)
        fputs("from a library\n", stderr);
}

/* The token of the answer that was not sent yet, or the end token. */
static int32_t unsent_token(const struct generator *g)
{
    const struct token_list *answer = &g->answers[g->answer];
    if (g->n_sent >= answer->n)
        return tokenizer_info(g->tokenizer)->eog[0];
    return answer->ids[option_number("same", 0) ? 0 : g->n_sent];
}

/* Wait for the file of `hold`. False: cancelled. */
static bool wait_at_mark(const struct bn_cancel *cancel)
{
    create_file("waiting");
    while (!delete_file("hold")) {
        if (is_cancelled(cancel))
            return false;
        sleep_us(1000);
    }
    return true;
}

bool generator_step(struct generator *g, const int32_t *ids, size_t n_ids,
                    const struct bn_control *control, struct bn_sync_stats *stats, int32_t *next,
                    struct bn_error *err)
{
    const size_t n_kept = common_prefix(g, ids, n_ids);
    const bool continues = continues_answer(g, ids, n_ids);
    const size_t n_together = (size_t)option_number("together", 1);
    g->n_steps += !continues || g->n_sent % n_together == 0;
    if (continues)
        continue_answer(g);
    else
        begin_answer(g, control, n_ids);
    g->is_replaced = false;
    if (!read_prompt(g, ids, n_ids, control, err))
        return false;
    if (stats)
        *stats = (struct bn_sync_stats){.n_reused = n_kept,
                                        .n_evaluated = n_ids - n_kept,
                                        .n_reevaluated = (size_t)option_number("again", 0)};
    if (option_number("fault", 0))
        __builtin_trap();
    if (option("fail_at") && (long)g->n_sent + 1 == option_number("fail_at", 0))
        return bn_fail(err, BN_EDEVICE, "the fake device failed");
    if (option_number("endless", 0) && g->n_sent == g->answers[g->answer].n)
        g->n_sent = 0;
    *next = unsent_token(g);
    if (*next == WAIT_ID) {
        if (!wait_at_mark(control->cancel))
            return bn_fail(err, BN_ECANCELLED, "cancelled");
        g->n_sent++;
        *next = unsent_token(g);
    }
    g->n_sent += option_number("same", 0) == 0;
    g->next = *next;
    return true;
}

const int32_t *generator_ids(const struct generator *g, size_t *n_ids)
{
    *n_ids = g->held.n;
    return g->held.ids;
}

const char *generator_kv_version(const struct generator *g)
{
    (void)g;
    return "fake-1";
}

/* The snapshot has the number of ids and the ids. */
bool generator_save(struct generator *g, const struct bn_stream *out, struct bn_error *err)
{
    uint64_t n = g->held.n;
    if (option("save_error"))
        return bn_fail(err, BN_EDEVICE, "the fake device is lost");
    bool ok = out->move(out->ud, &n, sizeof(n));
    for (size_t i = 0; ok && i < g->held.n; i++) {
        sleep_us(option_number("save_us", 0));
        ok = out->move(out->ud, &g->held.ids[i], sizeof(g->held.ids[i]));
    }
    return ok || bn_fail(err, BN_EIO, "the fake session could not be written");
}

size_t generator_save_bytes(const struct generator *g)
{
    return sizeof(uint64_t) + g->held.n * sizeof(*g->held.ids);
}

bool generator_load(struct generator *g, const struct bn_stream *in, struct bn_error *err)
{
    uint64_t n = 0;
    g->held.n = 0;
    bool ok = in->move(in->ud, &n, sizeof(n)) && n <= g->n_ctx;
    for (uint64_t i = 0; ok && i < n; i++) {
        int32_t id;
        sleep_us(option_number("save_us", 0));
        ok = in->move(in->ud, &id, sizeof(id)) && token_list_push(&g->held, id, err);
    }
    return ok || bn_fail(err, BN_EFORMAT, "the saved fake session ends too early");
}

size_t generator_truncate(struct generator *g, size_t n_keep)
{
    if (n_keep < g->held.n)
        g->held.n = n_keep;
    return g->held.n;
}

/* As many states as the option says, of 1 MB each. */
struct bn_state_stats generator_states(const struct generator *g)
{
    const size_t n = (size_t)option_number("states", 0);
    (void)g;
    return (struct bn_state_stats){n, n * 1000000};
}

struct bn_state_stats generator_seq_states(const struct generator_seq *seq)
{
    (void)seq;
    return (struct bn_state_stats){0, 0};
}

size_t generator_state_memory(const struct generator *g)
{
    return g->info.state_bytes > 0 ? 100000000 : 0;
}

/* Tokens that close a thought replace the rest of the thought in the script. */
void generator_replace(struct generator *g, int32_t id)
{
    if (g->n_alts > 0 && g->n_sent > 0)
        g->n_sent--; /* each replaced token follows a step, whose token is not used */
    g->next = id;
    g->is_replaced = true;
}

/* Batches are tested with the engine. */
bool generator_seq_open(struct generator *g, size_t n_seqs, struct generator_seq **out,
                        struct bn_error *err)
{
    (void)g;
    (void)n_seqs;
    (void)out;
    return bn_fail(err, BN_EUNSUPPORTED, "the fake generator has no batches");
}

size_t generator_batch_width(const struct generator *g)
{
    (void)g;
    return 1;
}

void generator_seq_close(struct generator_seq *seq)
{
    (void)seq;
}

bool generator_seq_set(struct generator_seq *seq, const struct sampler_params *params,
                       size_t n_alts, struct bn_error *err)
{
    (void)seq;
    (void)params;
    (void)n_alts;
    return generator_seq_open(NULL, 1, NULL, err);
}

bool generator_seq_step(struct generator_seq *seq, const int32_t *ids, size_t n_ids,
                        const struct bn_control *control, struct bn_sync_stats *stats,
                        int32_t *next, struct bn_error *err)
{
    (void)ids;
    (void)n_ids;
    (void)control;
    (void)stats;
    (void)next;
    return generator_seq_set(seq, NULL, 0, err);
}

bool generator_step_all(struct generator_item *items, size_t n_items,
                        const struct bn_control *control, struct bn_error *err)
{
    (void)items;
    (void)n_items;
    (void)control;
    return generator_seq_open(NULL, 1, NULL, err);
}

void generator_seq_alts(const struct generator_seq *seq, struct generator_alt *out)
{
    (void)seq;
    (void)out;
}

void generator_seq_replace(struct generator_seq *seq, int32_t id)
{
    (void)seq, (void)id;
}

void generator_alts(const struct generator *g, struct generator_alt *out)
{
    for (size_t i = 0; i < g->n_alts; i++)
        out[i] = (struct generator_alt){(int32_t)i, -1.0f - (float)i};
    out[g->n_alts] = (struct generator_alt){g->next, -0.5f};
}
