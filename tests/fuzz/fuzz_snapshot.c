/*
 * A hostile KV snapshot against a tiny model: it is refused with a sentence and the session is
 * empty again, or it is taken up and the next token can be computed from it.
 *
 * The first byte of an input says what of the rest is put right before the file is read, so that
 * hostile bytes get past the checks before them: 1 mark, model and version; 2 the token ids; 4 the
 * sum at the end; 8 all that follows the last byte of the input. What is right is taken from a
 * snapshot written once.
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

#define N_SAVED 6                                   /* even: then all parts are whole 8 bytes */
#define N_PROMPT 8                                  /* what the conversation reads in all */
#define HEAD_BYTES 72                               /* mark, fingerprint, version */
#define IDS_END (80 + 2 * 4 * N_SAVED + 32 + 8 + 8) /* the ids twice: ours, the session's */
#define MAX_FILE (1 << 20)

enum put_right { RIGHT_HEAD = 1, RIGHT_IDS = 2, RIGHT_SUM = 4, RIGHT_REST = 8 };

static const int32_t prompt[N_PROMPT] = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'};

static struct {
    struct synth_model model;
    struct generator *g;
    char path[64];
    uint8_t *right; /* (n_right) a whole snapshot of the first N_SAVED ids */
    size_t n_right;
} made;

static void hold(bool always)
{
    if (!always)
        abort();
}

static void forget_file(void)
{
    (void)unlink(made.path); /* ours */
}

static void write_file(const uint8_t *bytes, size_t n_bytes)
{
    FILE *f = fopen(made.path, "wb");
    hold(f && fwrite(bytes, 1, n_bytes, f) == n_bytes && fclose(f) == 0);
}

/* As docs/session-format.md says, for a file whose parts are whole 8 bytes. */
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

/* What is right must be taken, or no input would get far. */
static void check_right(void)
{
    struct snapshot_result result;
    struct bn_error err;
    uint64_t sum;
    memcpy(&sum, made.right + made.n_right - 8, 8);
    hold(sum == sum_of(made.right, made.n_right - 8));
    generator_cut(made.g, 0);
    hold(snapshot_read(made.g, made.model.file, prompt, N_PROMPT, made.path, NULL, &result, &err));
    hold(result.n_tokens == N_SAVED);
}

static void make(void)
{
    struct synth_spec spec = synth_preset("tiny");
    const struct bn_model_config cfg = {.device = "cpu", .isa = "ref", .n_threads = 1};
    struct snapshot_result result;
    struct bn_error err;
    int32_t next;
    spec.n_layers = spec.n_kv_heads = 1; /* a block of the cache is 16 kB then */
    (void)snprintf(made.path, sizeof(made.path), "/tmp/fuzz-snapshot-%ld", (long)getpid());
    hold(synth_open(&spec, &made.model, &err));
    hold(generator_open(made.model.file, &cfg, N_PROMPT + 2, &made.g, &err));
    const struct bn_control control = {0};
    hold(generator_step(made.g, prompt, N_SAVED, &control, NULL, &next, &err));
    hold(snapshot_write(made.g, made.model.file, prompt, N_SAVED, made.path, NULL, &result, &err));
    made.n_right = (size_t)result.n_bytes;
    made.right = malloc(made.n_right);
    FILE *f = fopen(made.path, "rb");
    hold(made.right && f && fread(made.right, 1, made.n_right, f) == made.n_right);
    (void)fclose(f); /* only read */
    (void)atexit(forget_file);
    check_right();
}

static void put_right(uint8_t *bytes, size_t n_bytes, unsigned what)
{
    if (what & RIGHT_HEAD)
        memcpy(bytes, made.right, size_min(n_bytes, HEAD_BYTES));
    if ((what & RIGHT_IDS) && n_bytes > HEAD_BYTES)
        memcpy(bytes + HEAD_BYTES, made.right + HEAD_BYTES,
               size_min(n_bytes, IDS_END) - HEAD_BYTES);
    if ((what & RIGHT_SUM) && n_bytes >= 8) {
        const uint64_t sum = sum_of(bytes, n_bytes - 8);
        memcpy(bytes + n_bytes - 8, &sum, 8);
    }
}

static void check_read(void)
{
    const struct bn_control control = {0};
    struct snapshot_result result;
    struct bn_error err = {0};
    size_t n_held;
    int32_t next;
    generator_cut(made.g, 0);
    const bool ok =
        snapshot_read(made.g, made.model.file, prompt, N_PROMPT, made.path, NULL, &result, &err);
    const int32_t *held = generator_ids(made.g, &n_held);
    hold(ok || (err.text[0] && n_held == 0));
    hold(n_held == result.n_tokens || !ok);
    hold(n_held == 0 || memcmp(held, prompt, n_held * sizeof(*held)) == 0);
    if (n_held > 0) /* a damaged cache may give any token, or say why there is none */
        hold(generator_step(made.g, prompt, N_PROMPT, &control, NULL, &next, &err) || err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (!made.g)
        make();
    if (n_bytes == 0 || n_bytes > MAX_FILE)
        return 0;
    const size_t n_own = n_bytes - 1;
    const size_t n = bytes[0] & RIGHT_REST ? size_max(n_own, made.n_right) : n_own;
    uint8_t *copy = malloc(n + 1); /* one more: n may be 0 */
    hold(copy != NULL);
    if (n > n_own)
        memcpy(copy, made.right, n);
    memcpy(copy, bytes + 1, n_own);
    put_right(copy, n, bytes[0]);
    write_file(copy, n);
    free(copy);
    check_read();
    return 0;
}
