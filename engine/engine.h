/*
 * The engine: token ids in, candidates out. PUBLIC.
 *
 * A model is loaded and never changes; a session is one timeline of tokens with its KV cache. The
 * caller always hands over the full list of ids it wants; bn_session_sync keeps, extends or rolls
 * back the cache to match, so edit, undo, retry and branch need nothing more.
 *
 * Order of opening: bn_file_open, then bn_model_open, then bn_session_open; close in reverse. The
 * file must outlive the model, the model its sessions.
 *
 * Threads: one thread at a time may be inside the functions of one model and its sessions, load
 * included (OpenMP teams belong to the thread that enters them). bn_cancel_request may be called
 * from anywhere.
 *
 * Same model, ids and settings give the same bits, whatever the thread count, instruction set,
 * device, micro-batch, batch neighbours, and whether the KV was reused or recomputed.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/notes.h"
#include "engine/file.h"
#include "engine/head.h"
#include "engine/settings.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bn_model;
struct bn_session;

/* Raised by anyone, polled by load and eval at least once a layer; whoever raised it lowers it. */
struct bn_cancel {
    atomic_bool requested;
};
static inline void bn_cancel_request(struct bn_cancel *c)
{
    atomic_store_explicit(&c->requested, true, memory_order_relaxed);
}

/* Called on the engine's thread, now and then during load (bytes) and prefill (tokens). */
struct bn_progress {
    void (*report)(void *ud, size_t n_done, size_t n_total); /* NULL: nobody listens */
    void *ud;
};

struct bn_model_config {
    const char *device; /* "auto", "cpu", "cuda" or "cuda:N"; NULL is "auto" */
    const char
        *isa; /* highest instruction set to use ("ref", "avx2", ...), NULL: the best there is */
    size_t n_threads; /* 0: what this process may use */
    size_t n_ubatch;  /* most tokens in one pass, 0: 512 */
    enum bn_i2s_layout i2s_layout;
    enum bn_head_mode head;
    enum bn_kv_type kv;
    enum bn_skip skip;
    const char *no_repair;  /* see bn_repair_allowed */
    struct bn_notes *notes; /* receives rules and repairs; may be NULL */
    bool profile;           /* measure where the time goes, for bn_model_profile */
    bool pin;               /* CPU: keep each thread on a core of its own while the model is open */
    struct bn_log log;
    struct bn_progress progress;
    struct bn_cancel *cancel; /* may be NULL */
    /* For tests: sees every intermediate of a forward pass. NULL in production. x is (n), valid in
     * the call. */
    void (*trace)(void *ud, const char *step, size_t layer, const float *x, size_t n);
    void *trace_ud;
};

/* BN_EFORMAT, BN_EUNSUPPORTED: the model; BN_EARG: the config; BN_ENOMEM, BN_EDEVICE,
 * BN_ECANCELLED. */
bool bn_model_open(const struct bn_file *file, const struct bn_model_config *cfg,
                   struct bn_model **out, struct bn_error *err);
void bn_model_close(struct bn_model *model); /* NULL is fine */

struct bn_model_info {
    char name[128]; /* general.name */
    char arch[64];
    char quantisation[32]; /* type of the ternary tensors: "I2_S", "TQ2_0", ... */
    char device[160];      /* "CPU, 2 threads, AVX-512 VNNI", and what is approximate */
    char
        passed_over[160]; /* "cuda is not used: ..." where auto found it and it cannot run; or "" */
    const char *isa;      /* rung in use */
    size_t n_threads;
    size_t n_ubatch; /* most tokens in one pass */
    size_t n_vocab, n_layers, n_embd, n_ff, n_heads, n_kv_heads;
    size_t n_ctx_train;
    uint64_t n_params;
    size_t weight_bytes; /* resident for the weights */
    size_t kv_bytes_per_token;
    const char *kv_type;    /* "f16", "q8" */
    size_t bytes_per_token; /* read from memory for one decoded token, context not counted */
    size_t head_bytes;      /* of these for the output head, rows looked up again not counted */
    double macs_per_token;  /* multiply-adds of the linear layers */
    double load_seconds;
};
const struct bn_model_info *bn_model_info(const struct bn_model *model);

/* Bytes a second the device reads from memory, best of a few loops over a large buffer (about a
 * second). */
double bn_model_bandwidth(struct bn_model *model);

/* Multiply-adds a second that the device can do at all, with nothing read from memory; 0: not
 * known. Takes a fraction of a second. */
double bn_model_mac_peak(struct bn_model *model, enum bn_mac kind);

/* Bytes that all evals of this model together have read from memory: weights that were not left
 * out, keys and values, rows of tables. Differences are of interest. */
uint64_t bn_model_bytes_read(const struct bn_model *model);

/* What would run how for n_sequences with n_tokens each in one pass, as lines of text. Returns the
 * characters it has, as snprintf does. */
size_t bn_model_explain(const struct bn_model *model, size_t n_sequences, size_t n_tokens,
                        char *text, size_t text_bytes);

/* How many sequences of n_ctx tokens (0: the model's training context) to decode together: as many
 * as have room for their KV caches in half of the memory that is free now, at most 16, in one pass;
 * at least 1. */
size_t bn_model_batch_width(const struct bn_model *model, size_t n_ctx);

/* Where the time went since the last call, for a model opened with `profile`: at most cap kinds of
 * work, in the order of a pass; their number is returned. 0: the device does not measure it. */
#define BN_PROFILE_STEPS 16
size_t bn_model_profile(struct bn_model *model, struct bn_profile_step *out, size_t cap);

struct bn_session_config {
    size_t n_ctx; /* most tokens; 0: the model's training context */
};
bool bn_session_open(struct bn_model *model, const struct bn_session_config *cfg,
                     struct bn_session **out, struct bn_error *err);
void bn_session_close(struct bn_session *s); /* NULL is fine */

size_t bn_session_n_ctx(const struct bn_session *s);
const int32_t *bn_session_ids(const struct bn_session *s, size_t *n_ids); /* what the KV holds */

struct bn_control {
    struct bn_progress progress;
    struct bn_cancel *cancel; /* may be NULL */
};

struct bn_sync_stats {
    size_t n_reused;
    size_t n_evaluated;
};

/* Make the session hold exactly `ids` and answer `head` for the last of them: keeps the longest
 * common prefix (at most n_ids - 1, since the last is evaluated for its row), drops the rest,
 * evaluates what is new in micro-batches. n_ids is at least 1. `row` may be NULL with HEAD_NONE.
 * BN_ECONTEXT: more ids than n_ctx. BN_ECANCELLED and others: the session keeps its old ids up to
 * the common prefix and every whole micro-batch evaluated since. BN_EARG: an id is not in the
 * vocabulary. BN_EDEVICE: a logit is not a finite number. BN_ELOST: the device works no more. */
bool bn_session_sync(struct bn_session *s, const int32_t *ids, size_t n_ids,
                     const struct head_request *head, struct head_row *row,
                     const struct bn_control *control, struct bn_sync_stats *stats,
                     struct bn_error *err);

/* Append ids and answer `head` for the last `n_rows` of them: rows[0] belongs to the first of
 * those. All or nothing within one micro-batch. */
bool bn_session_eval(struct bn_session *s, const int32_t *ids, size_t n_ids,
                     const struct head_request *head, struct head_row *rows, size_t n_rows,
                     const struct bn_control *control, struct bn_error *err);

void bn_session_truncate(struct bn_session *s, size_t n_keep); /* n_keep <= what it holds */

/* Several sessions of one model in one weight pass, at most n_ubatch ids in all; each item as in
 * bn_session_eval. All or nothing. */
struct bn_item {
    struct bn_session *session;
    const int32_t *ids;
    size_t n_ids;
    struct head_request head;
    struct head_row *rows;
    size_t n_rows;
};
bool bn_eval(struct bn_item *items, size_t n_items, const struct bn_control *control,
             struct bn_error *err);

/* The KV cache as bytes, for a snapshot: write is called with pieces in order, false stops; read
 * must fill the whole piece. Only a session of a model opened from the same file, on the same
 * backend and layout version (bn_session_kv_version) can take it back; ids are part of the bytes. A
 * load that fails after its header leaves the session empty. */
bool bn_session_save(struct bn_session *s, const struct bn_stream *out, struct bn_error *err);
bool bn_session_load(struct bn_session *s, const struct bn_stream *in, struct bn_error *err);
const char *bn_session_kv_version(const struct bn_session *s); /* "cpu-f16-1" */

/* Why each device can or cannot run, one line each: for `info` and errors. The number
 * of devices there are, of which the first cap are written. */
struct bn_device_line {
    char name[16];
    bool usable;
    char text[160];
};
size_t bn_device_list(struct bn_device_line *out, size_t cap);

#endif
