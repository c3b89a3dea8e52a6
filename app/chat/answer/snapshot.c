/*
 * Snapshot files: see snapshot.h. docs/session-format.md has the layout.
 *
 * Numbers are written in this machine's byte order, because a snapshot never leaves it. In another
 * byte order the magic number differs, so such a file is refused. The checksum at the end finds
 * accidental damage and does not protect against deliberate changes.
 */
#include "app/chat/answer/snapshot.h"

#include "app/common/file/new_file.h"
#include "engine/base/clock.h"
#include "engine/base/hash.h"
#include "engine/base/size.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAGIC 0x31564b54414843bfu /* the bytes BF "CHATKV1" on a little-endian machine */
#define IDS_AT_ONCE 1024          /* a buffer of 4 KiB on the stack */
/* A snapshot is loaded if at least 1 / MIN_SHARED of its tokens begin the prompt. A fast GPU
 * evaluates a token about as fast as its keys and values are read from a disk. So if fewer of them
 * are of use, the prompt may be evaluated sooner than the file is read. */
#define MIN_SHARED 2

struct snapshot_header { /* no padding: 80 bytes */
    uint64_t magic;
    uint8_t fingerprint[BN_FINGERPRINT_BYTES];
    char kv_version[32]; /* padded with zeros */
    uint64_t n_ids;
};

struct id_counts {
    size_t file, prompt; /* ids of the snapshot and of the prompt */
    size_t same;         /* with which both begin */
};

struct transfer {
    FILE *f;
    const struct bn_cancel *cancel;
    enum { TRANSFER_IN, TRANSFER_OUT } way;
    uint64_t sum, n_bytes; /* checksum and number of the bytes so far */
};

bool snapshot_path(const char *saved, char out[PATH_BYTES], struct bn_error *err)
{
    char name[64], whole[PATH_BYTES];
    struct sha256 sum;
    uint8_t digest[SHA256_BYTES];
    path_canonical(saved, whole);
    const char *key = whole[0] ? whole : saved; /* "": the saved chat does not exist yet */
    sha256_init(&sum);
    sha256_add(&sum, key, strlen(key));
    sha256_end(&sum, digest);
    size_t n = (size_t)snprintf(name, sizeof(name), "kv/");
    for (size_t i = 0; i < 16; i++) /* 128 bits: enough to avoid collisions */
        n += (size_t)snprintf(name + n, sizeof(name) - n, "%02x", digest[i]);
    (void)snprintf(name + n, sizeof(name) - n, ".kv"); /* 3 + 32 + 3 bytes */
    return path_of(PATH_CACHE, name, out, err);
}

/* The checksum is FNV-1a over words of 8 bytes; it begins with 0 instead of FNV1A_START. In the
 * multiplication of FNV-1a a bit affects only bits at or above it. The shift lets high bytes of a
 * word affect the low bits too. A call pads its last word with zeros, so a reader must move pieces
 * of the same lengths as the writer. */
static uint64_t add_to_sum(uint64_t sum, const uint8_t *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size_min(8, n_bytes - i));
        sum = fnv1a_add(sum, word);
        sum ^= sum >> 29;
    }
    return sum;
}

/* bn_stream.move: reads or writes, and adds the bytes to the checksum. */
static bool move(void *ud, void *bytes, size_t n_bytes)
{
    struct transfer *t = ud;
    if (t->cancel && atomic_load_explicit(&t->cancel->requested, memory_order_relaxed))
        return false;
    const size_t n =
        t->way == TRANSFER_IN ? fread(bytes, 1, n_bytes, t->f) : fwrite(bytes, 1, n_bytes, t->f);
    t->sum = add_to_sum(t->sum, bytes, n);
    t->n_bytes += n;
    return n == n_bytes;
}

static struct snapshot_header make_header(const struct generator *g, const struct bn_file *file,
                                          size_t n_ids)
{
    struct snapshot_header h = {.magic = MAGIC, .n_ids = n_ids};
    const char *version = generator_kv_version(g);
    bn_file_fingerprint(file, h.fingerprint);
    memcpy(h.kv_version, version, size_min(strlen(version), sizeof(h.kv_version) - 1));
    return h;
}

static size_t count_shared(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b)
{
    size_t n = 0;
    while (n < n_a && n < n_b && a[n] == b[n])
        n++;
    return n;
}

/* If a stop was requested, replace *err by BN_ECANCELLED. Returns whether it was. */
static bool fail_if_cancelled(const struct transfer *t, struct bn_error *err)
{
    if (!t->cancel || !atomic_load_explicit(&t->cancel->requested, memory_order_relaxed))
        return false;
    (void)bn_fail(err, BN_ECANCELLED, "cancelled");
    return true;
}

/* ---- writing ---- */

static bool write_all(struct generator *g, const struct bn_file *file, struct new_file *to,
                      struct transfer *t, struct bn_error *err)
{
    const struct bn_stream stream = {move, t};
    size_t n_ids;
    const int32_t *ids = generator_ids(g, &n_ids);
    struct snapshot_header header = make_header(g, file, n_ids);
    int32_t block[IDS_AT_ONCE];
    if (!move(t, &header, sizeof(header)))
        return new_file_fail(to, err);
    for (size_t i = 0; i < n_ids; i += IDS_AT_ONCE) {
        const size_t n = size_min(IDS_AT_ONCE, n_ids - i);
        memcpy(block, ids + i, n * sizeof(*block)); /* a copy: move does not take const bytes */
        if (!move(t, block, n * sizeof(*block)))
            return new_file_fail(to, err);
    }
    if (!generator_save(g, &stream, err)) {
        if (err->code == BN_EIO) /* replace the message: "disk full" is clearer */
            (void)new_file_fail(to, err);
        return false;
    }
    uint64_t sum = t->sum; /* a copy, because move changes t->sum */
    return move(t, &sum, sizeof(sum)) || new_file_fail(to, err);
}

bool snapshot_prepare(struct generator *g, const int32_t *ids, size_t n_ids, uint64_t *n_bytes,
                      struct bn_error *err)
{
    size_t n_held;
    const int32_t *held = generator_ids(g, &n_held);
    const size_t n_shared = count_shared(held, n_held, ids, n_ids);
    /* If no id is shared, the session stays as it is. */
    const size_t n = n_shared > 0 ? generator_truncate(g, n_shared) : 0;
    if (n == 0)
        return bn_fail(err, BN_EARG, "the model has not read this conversation yet");
    *n_bytes = sizeof(struct snapshot_header) + n * sizeof(int32_t) + generator_save_bytes(g) +
               sizeof(uint64_t); /* the checksum */
    return true;
}

bool snapshot_write(struct generator *g, const struct bn_file *file, const char *path,
                    const struct bn_cancel *cancel, struct snapshot_result *result,
                    struct bn_error *err)
{
    struct new_file to;
    const double started = clock_seconds();
    size_t n_ids;
    (void)generator_ids(g, &n_ids); /* only the count is needed */
    if (!new_file_open(&to, path, err))
        return false;
    struct transfer t = {.f = to.f, .cancel = cancel, .way = TRANSFER_OUT};
    const bool ok = write_all(g, file, &to, &t, err);
    if (!ok)
        (void)fail_if_cancelled(&t, err); /* replaces the error about a write that `move` refused */
    /* Not NEW_FILE_SYNC: the checksum in the file shows whether a crash damaged it. */
    if (!new_file_close(&to, ok ? NEW_FILE_KEEP : NEW_FILE_DROP, err))
        return false; /* NEW_FILE_DROP returns false, too, and keeps *err */
    *result = (struct snapshot_result){n_ids, t.n_bytes, clock_seconds() - started};
    return true;
}

/* ---- reading ---- */

static bool fail_damaged(struct bn_error *err)
{
    return bn_fail(err, BN_EFORMAT, "the snapshot is damaged");
}

/* 1 to 31 lower-case letters, digits and '-', then a zero byte: safe to print. */
static bool is_name(const char text[32])
{
    size_t n = 0;
    while (n < 31 && (text[n] == '-' || (text[n] >= '0' && text[n] <= '9') ||
                      (text[n] >= 'a' && text[n] <= 'z')))
        n++;
    return n > 0 && text[n] == '\0';
}

static bool check_header(const struct snapshot_header *got, const struct snapshot_header *expected,
                         struct bn_error *err)
{
    if (got->magic != expected->magic)
        return bn_fail(err, BN_EFORMAT, "the file is not a snapshot of this version");
    if (memcmp(got->fingerprint, expected->fingerprint, sizeof(expected->fingerprint)) != 0)
        return bn_fail(err, BN_EFORMAT, "the snapshot belongs to another model");
    if (memcmp(got->kv_version, expected->kv_version, sizeof(expected->kv_version)) != 0)
        return bn_fail(
            err, BN_EFORMAT,
            "the KV cache of the snapshot has type %s, but %s is needed (--kv, device or "
            "version differ)",
            is_name(got->kv_version) ? got->kv_version : "unknown", expected->kv_version);
    return true;
}

/* Read the n ids of the file. *n_same: how many of them begin the prompt, too. */
static bool read_ids(struct transfer *t, size_t n, const int32_t *ids, size_t n_ids, size_t *n_same,
                     struct bn_error *err)
{
    int32_t block[IDS_AT_ONCE];
    *n_same = 0;
    for (size_t i = 0; i < n; i += IDS_AT_ONCE) {
        const size_t n_now = size_min(IDS_AT_ONCE, n - i);
        if (!move(t, block, n_now * sizeof(*block)))
            return fail_damaged(err);
        if (*n_same == i && i < n_ids)
            *n_same += count_shared(block, n_now, ids + i, n_ids - i);
    }
    return true;
}

static bool fail_other(size_t n_same, struct bn_error *err)
{
    return bn_fail(err, BN_EFORMAT, "the conversation differs from its snapshot at token %zu",
                   n_same);
}

/* After loading: the session must hold as many ids as the file says, and the same number of them
 * must begin the prompt; the checksum must match, and the file must end. */
static bool check_rest(struct generator *g, struct transfer *t, const struct id_counts *n,
                       const int32_t *ids, struct bn_error *err)
{
    const uint64_t sum = t->sum; /* before move adds the stored checksum to it */
    uint64_t stored;
    size_t n_held;
    const int32_t *held = generator_ids(g, &n_held);
    if (n_held != n->file || count_shared(held, n_held, ids, n->prompt) != n->same ||
        !move(t, &stored, sizeof(stored)) || stored != sum || fgetc(t->f) != EOF)
        return fail_damaged(err);
    return true;
}

/* Load the session, and cut it where it differs from the prompt. A model with recurrent states or
 * rings returns to a saved state at or before this place; there may be none. */
static bool load_prefix(struct generator *g, struct transfer *t, const struct id_counts *n,
                        const int32_t *ids, size_t *n_tokens, struct bn_error *err)
{
    const struct bn_stream stream = {move, t};
    if (!generator_load(g, &stream, err) || !check_rest(g, t, n, ids, err)) {
        (void)generator_truncate(g, 0);
        return false;
    }
    *n_tokens = generator_truncate(g, n->same);
    return *n_tokens > 0 || fail_other(n->same, err);
}

static bool read_all(struct generator *g, const struct bn_file *file, const int32_t *ids,
                     size_t n_ids, struct transfer *t, size_t *n_tokens, struct bn_error *err)
{
    const struct snapshot_header expected = make_header(g, file, 0);
    struct snapshot_header header;
    size_t n_held;
    const int32_t *held = generator_ids(g, &n_held);
    if (!move(t, &header, sizeof(header)))
        return fail_damaged(err);
    if (!check_header(&header, &expected, err))
        return false;
    if (header.n_ids > generator_n_ctx(g))
        return bn_fail(err, BN_EFORMAT,
                       "the snapshot has %llu tokens, but the context has room for only %zu",
                       (unsigned long long)header.n_ids, generator_n_ctx(g));
    struct id_counts n = {.file = (size_t)header.n_ids, .prompt = n_ids};
    *n_tokens = 0;
    if (!read_ids(t, n.file, ids, n_ids, &n.same, err))
        return false;
    if (n.same * MIN_SHARED < n.file)
        return fail_other(n.same, err);
    if (count_shared(held, n_held, ids, n_ids) >= n.same)
        return true;
    return load_prefix(g, t, &n, ids, n_tokens, err);
}

bool snapshot_read(struct generator *g, const struct bn_file *file, const int32_t *ids,
                   size_t n_ids, const char *path, const struct bn_cancel *cancel,
                   struct snapshot_result *result, struct bn_error *err)
{
    const double started = clock_seconds();
    struct transfer t = {.f = fopen(path, "rb"), .cancel = cancel, .way = TRANSFER_IN};
    *result = (struct snapshot_result){0};
    if (!t.f)
        return errno == ENOENT ||
               bn_fail(err, BN_EIO, "cannot open '%s': %s", path, strerror(errno));
    const bool ok = read_all(g, file, ids, n_ids, &t, &result->n_tokens, err);
    if (!ok)
        (void)fail_if_cancelled(&t, err); /* replaces the error about a file that seems too short */
    (void)fclose(t.f);                    /* opened for reading: nothing can be lost */
    result->n_bytes = t.n_bytes;
    result->seconds = clock_seconds() - started;
    return ok;
}
