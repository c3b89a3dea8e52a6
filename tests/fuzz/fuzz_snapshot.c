/*
 * A hostile KV snapshot for a tiny model. It must be refused with a message and leave the session
 * empty, or be loaded so that the next token can be computed.
 *
 * The first byte of an input selects fields that are overwritten with correct values, so that the
 * other bytes pass the earlier checks: 1 magic number, model and version; 2 token ids; 4 the
 * checksum at the end; 8 everything after the last byte of the input. The correct values come from
 * a snapshot that is written once. With 16 the last ids are overwritten with others than those of
 * the conversation, so that the session is cut after it was loaded.
 */
#include "app/chat/answer/snapshot.h"
#include "engine/base/hash.h"
#include "engine/base/size.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/synth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N_SAVED 6       /* even, so that all fields are multiples of 8 bytes */
#define N_OTHER 2       /* tokens that CHANGE_END replaces */
#define N_PROMPT 8      /* tokens of the conversation */
#define HEADER_BYTES 72 /* magic number, fingerprint, version */
#define SNAPSHOT_IDS_END (80 + 4 * N_SAVED)
#define IDS_END (SNAPSHOT_IDS_END + 32 + 8 + 8 + 4 * N_SAVED) /* of the ids of the session */
#define MAX_FILE (1 << 20)

enum overwritten {
    REPAIR_HEADER = 1,
    REPAIR_IDS = 2,
    REPAIR_SUM = 4,
    REPAIR_REST = 8,
    CHANGE_END = 16,
};

static const int32_t prompt[N_PROMPT] = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'};

static struct {
    struct synth_model model;
    struct generator *g;
    char path[64];
    uint8_t *correct; /* (n_correct) snapshot of the first N_SAVED ids */
    size_t n_correct;
} made;

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void delete_file(void)
{
    (void)unlink(made.path);
}

static void write_file(const uint8_t *bytes, size_t n_bytes)
{
    FILE *f = fopen(made.path, "wb");
    check(f && fwrite(bytes, 1, n_bytes, f) == n_bytes && fclose(f) == 0);
}

/* The checksum of docs/session-format.md, for a file of whole 8-byte words. */
static uint64_t sum_of(const uint8_t *bytes, size_t n_bytes)
{
    uint64_t sum = 0;
    for (size_t i = 0; i + 8 <= n_bytes; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        sum = fnv1a_add(sum, word);
        sum ^= sum >> 29;
    }
    return sum;
}

static void overwrite(uint8_t *bytes, size_t n_bytes, unsigned fields)
{
    if (fields & REPAIR_HEADER)
        memcpy(bytes, made.correct, size_min(n_bytes, HEADER_BYTES));
    if ((fields & REPAIR_IDS) && n_bytes > HEADER_BYTES)
        memcpy(bytes + HEADER_BYTES, made.correct + HEADER_BYTES,
               size_min(n_bytes, IDS_END) - HEADER_BYTES);
    for (size_t i = 1; (fields & CHANGE_END) && n_bytes >= IDS_END && i <= N_OTHER; i++) {
        const int32_t id = 'x';
        memcpy(bytes + SNAPSHOT_IDS_END - i * sizeof(id), &id, sizeof(id));
        memcpy(bytes + IDS_END - i * sizeof(id), &id, sizeof(id));
    }
    if ((fields & REPAIR_SUM) && n_bytes >= 8) {
        const uint64_t sum = sum_of(bytes, n_bytes - 8);
        memcpy(bytes + n_bytes - 8, &sum, 8);
    }
}

/* This file must be accepted, and n_tokens of its ids used. Otherwise no input would pass the first
 * checks. */
static void check_accepted(const uint8_t *bytes, size_t n_bytes, size_t n_tokens)
{
    struct snapshot_result result;
    struct bn_error err;
    uint64_t sum;
    memcpy(&sum, bytes + n_bytes - 8, 8);
    check(sum == sum_of(bytes, n_bytes - 8));
    write_file(bytes, n_bytes);
    generator_truncate(made.g, 0);
    check(snapshot_read(made.g, made.model.file, prompt, N_PROMPT, made.path, NULL, &result, &err));
    check(result.n_tokens == n_tokens);
}

static void check_correct(void)
{
    uint8_t *copy = malloc(made.n_correct);
    check(copy != NULL);
    memcpy(copy, made.correct, made.n_correct);
    check_accepted(copy, made.n_correct, N_SAVED);
    overwrite(copy, made.n_correct, CHANGE_END | REPAIR_SUM);
    check_accepted(copy, made.n_correct, N_SAVED - N_OTHER);
    free(copy);
}

static void make(void)
{
    struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.device = "cpu", .isa = "ref", .n_threads = 1};
    const struct bn_session_config session = {.n_ctx = N_PROMPT + 2};
    struct snapshot_result result;
    struct bn_error err;
    uint64_t n_bytes;
    int32_t next;
    spec.n_layers = spec.n_kv_heads = 1; /* a block of the cache has 16 kB */
    strcpy(made.path, "/tmp/fuzz-snapshot-XXXXXX");
    const int fd = mkstemp(made.path);
    check(fd >= 0 && close(fd) == 0);
    (void)atexit(delete_file);
    check(synth_open(&spec, &made.model, &err));
    check(generator_open(made.model.file, &cfg, &session, &made.g, &err));
    const struct bn_control control = {0};
    check(generator_step(made.g, prompt, N_SAVED, &control, NULL, &next, &err));
    check(snapshot_prepare(made.g, prompt, N_SAVED, &n_bytes, &err));
    check(snapshot_write(made.g, made.model.file, made.path, NULL, &result, &err));
    check(result.n_bytes == n_bytes);
    made.n_correct = (size_t)result.n_bytes;
    made.correct = malloc(made.n_correct);
    FILE *f = fopen(made.path, "rb");
    check(made.correct && f && fread(made.correct, 1, made.n_correct, f) == made.n_correct);
    (void)fclose(f);
    check_correct();
}

static void check_read(void)
{
    const struct bn_control control = {0};
    struct snapshot_result result;
    struct bn_error err = {0};
    size_t n_held;
    int32_t next;
    generator_truncate(made.g, 0);
    const bool ok =
        snapshot_read(made.g, made.model.file, prompt, N_PROMPT, made.path, NULL, &result, &err);
    const int32_t *held = generator_ids(made.g, &n_held);
    check(ok || (err.text[0] && n_held == 0));
    check(n_held == result.n_tokens || !ok);
    check(n_held == 0 || memcmp(held, prompt, n_held * sizeof(*held)) == 0);
    if (n_held > 0) /* a damaged cache may give any token or an error with a message */
        check(generator_step(made.g, prompt, N_PROMPT, &control, NULL, &next, &err) || err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (!made.g)
        make();
    if (n_bytes == 0 || n_bytes > MAX_FILE)
        return 0;
    const size_t n_input = n_bytes - 1;
    const size_t n = bytes[0] & REPAIR_REST ? size_max(n_input, made.n_correct) : n_input;
    uint8_t *copy = malloc(n + 1); /* + 1 because n may be 0 */
    check(copy != NULL);
    if (n > n_input)
        memcpy(copy, made.correct, n);
    memcpy(copy, bytes + 1, n_input);
    overwrite(copy, n, bytes[0]);
    write_file(copy, n);
    free(copy);
    check_read();
    return 0;
}
