/*
 * The engine computes logits from token ids. Public header.
 *
 * Order of calls: bn_file_open, bn_model_open, bn_session_open, then any number of bn_session_sync.
 * Close in reverse order. The file must outlive the model, and the model its sessions.
 *
 * A model holds weights on one device and never changes. A session holds the KV cache of one
 * sequence. bn_session_sync receives all its ids and evaluates only those that the cache lacks, the
 * last one, and with saved states some more. So undo, retry and edit need no other call.
 *
 * The same model, ids and settings always give the same logits, bit for bit. They do not depend on
 * the thread count, the instruction set, the device, the micro-batch size or the other sequences of
 * a batch, nor on whether keys and values come from the cache.
 *
 * Threads: call the functions of a model and its sessions, also bn_model_open, from one thread,
 * because OpenMP starts a separate team of threads for each calling thread. Any thread may call
 * bn_cancel_request at any time, and bn_model_info, bn_model_explain, bn_session_n_ctx and
 * bn_session_kv_version after opening, because these only read data that never changes.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/base/notes.h"
#include "engine/file.h"
#include "engine/head.h"
#include "engine/model_info.h"
#include "engine/settings.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bn_model;
struct bn_session;

/* Cancel flag. If it is set, loading and evaluation fail with BN_ECANCELLED. Both test it at least
 * once per layer, and loading also before it reads the embedding or the output head. CUDA tests it
 * before it enqueues a layer or graph. Only the caller clears it. */
struct bn_cancel {
    atomic_bool requested;
};
static inline void bn_cancel_request(struct bn_cancel *c)
{
    atomic_store_explicit(&c->requested, true, memory_order_relaxed);
}

/* ---- models ---- */

/* A struct of zeros selects the defaults. */
struct bn_model_config {
    const char *device; /* "auto" (CUDA if possible), "cpu", "cuda" or "cuda:N"; NULL: "auto" */
    const char *isa;    /* highest CPU instruction set ("ref", "avx2", ...); NULL: no limit */
    size_t n_threads;   /* 0: one per physical core of this process, within its CPU quota */
    size_t n_ubatch;    /* most tokens of a pass (a micro-batch), to BN_MAX_UBATCH; 0: 512 */
    /* settings.h explains the next six fields. */
    enum bn_i2s_layout i2s_layout;
    enum bn_head_mode head;
    enum bn_kv_type kv;
    enum bn_activations activations;
    enum bn_window_rule window_rule;
    enum bn_skip skip;
    const char *no_repair; /* repairs that are switched off, see bn_repair_allowed; may be NULL */
    /* (n_ignored_tensors) names of unknown tensors that are left out; a star stands for any text */
    const char *const *ignored_tensors;
    size_t n_ignored_tensors;
    struct bn_notes *notes; /* receives rules, repairs and warnings; may be NULL */
    bool profile;           /* measure times for bn_model_profile */
    bool pin;               /* CPU: bind each thread to a core while the model is open */
    struct bn_log log;
    struct bn_progress progress;
    struct bn_cancel *cancel; /* may be NULL */
    /* For tests, else NULL: receives the vector x (n) of each token after most steps of a forward
     * pass. `step` names the step ("embd", "qkv", "attn_residual", ...) and `layer` is the index of
     * its layer, 0 for "embd". x is valid during the call. */
    void (*trace)(void *ud, const char *step, size_t layer, const float *x, size_t n);
    void *trace_ud;
    bool no_ring; /* for tests: layers with a window keep keys and values of all positions */
};

/* Load the weights of `file`. cfg may be NULL for the defaults. After the call the model uses
 * nothing of cfg except log, trace and their data.
 * BN_EARG: a value of cfg is out of range or unknown. BN_EFORMAT: the file breaks its format.
 * BN_EUNSUPPORTED: the model needs something that this program lacks, or this machine lacks the
 * instruction set. BN_EDEVICE: the device cannot be used. BN_ENOMEM. BN_ECANCELLED. */
bool bn_model_open(const struct bn_file *file, const struct bn_model_config *cfg,
                   struct bn_model **out, struct bn_error *err);
void bn_model_close(struct bn_model *model); /* model may be NULL */

/* Valid until bn_model_close. */
const struct bn_model_info *bn_model_info(const struct bn_model *model);

/* Measure the memory bandwidth of the device in bytes per second; 0 if it cannot be measured. Takes
 * about a second. */
double bn_model_bandwidth(struct bn_model *model);

/* Measure how many multiply-adds per second the device reaches without reading memory; 0 if it
 * cannot be measured. Takes a fraction of a second. */
double bn_model_mac_peak(struct bn_model *model, enum bn_mac kind);

/* Bytes that all successful evaluations of this model have read so far: weights, keys, values, rows
 * of tables, and recurrent states, which count twice. Use the difference of two calls. */
uint64_t bn_model_bytes_read(const struct bn_model *model);

/* Describe in lines of text how a pass over n_sequences with n_tokens each would run. The result
 * and the text are those of snprintf: the bytes of the whole text, which is cut if necessary. */
size_t bn_model_explain(const struct bn_model *model, size_t n_sequences, size_t n_tokens,
                        char *text, size_t text_bytes);

/* How many sequences of n_ctx tokens (0: n_ctx_default) to decode together: as many KV caches as
 * fit into half of the free memory, from 1 to 16, and at most n_ubatch. */
size_t bn_model_batch_width(const struct bn_model *model, size_t n_ctx);

/* Default memory in bytes for the saved states of a session: a quarter of the free main memory, but
 * at least four states, which is also the result if the free memory is unknown. 0 if the model
 * needs no saved states. */
size_t bn_model_state_memory(const struct bn_model *model);

/* Write the time spent in each kind of work since the previous call to out (cap). On the CPU the
 * kinds are in the order in which a pass runs them; on a GPU each kernel is a kind. Returns the
 * number of entries written, at most cap; BN_PROFILE_STEPS is enough for every device. Returns 0 if
 * the model was opened without `profile` or the device cannot measure it. */
size_t bn_model_profile(struct bn_model *model, struct bn_profile_step *out, size_t cap);

/* How often each expert was chosen in all evaluations of this model, including those that failed or
 * were cancelled: once for each token that uses it. Writes the first `cap` of (n_layers, n_experts)
 * numbers to out. Returns n_layers * n_experts, 0 without experts. */
size_t bn_model_expert_counts(const struct bn_model *model, uint64_t *out, size_t cap);

/* ---- sessions ---- */

struct bn_session_config {
    size_t n_ctx; /* most tokens of the sequence; 0: n_ctx_default */
    /* Most bytes of saved states, if the model needs them; 0: bn_model_state_memory. A session of
     * such a model can return only to lengths with a saved state and to some recent lengths. It
     * saves states where a prompt begins, where it diverges from the one before, near its end, and
     * about every 2048 tokens. When the memory is full, it drops the least useful ones. */
    size_t state_memory;
};

/* cfg may be NULL. On the CPU the cache uses memory only as it fills; on a GPU all of it is
 * allocated here. BN_EARG: n_ctx is too large. BN_ENOMEM. BN_EDEVICE. BN_ELOST. */
bool bn_session_open(struct bn_model *model, const struct bn_session_config *cfg,
                     struct bn_session **out, struct bn_error *err);
void bn_session_close(struct bn_session *s); /* s may be NULL */

size_t bn_session_n_ctx(const struct bn_session *s);
/* The ids in the KV cache. Valid until the next call that changes the session. */
const int32_t *bn_session_ids(const struct bn_session *s, size_t *n_ids);

/* Control of one call. A struct of zeros changes nothing. */
struct bn_control {
    struct bn_progress progress;
    struct bn_cancel *cancel; /* may be NULL */
    /* For bn_session_sync: the ids of the next call will probably begin with the first n_stable ids
     * of this call, and then differ. If the model needs saved states, one is saved at this length,
     * unless it is inside the common prefix, only one token is evaluated, or another state (except
     * those at regular intervals) is less than 16 tokens before. 0, n_ids or more: n_ids - 1. */
    size_t n_stable;
};

struct bn_sync_stats {
    size_t n_reused;      /* tokens that stayed in the cache; n_reused + n_evaluated is n_ids */
    size_t n_evaluated;   /* tokens that this call evaluated */
    size_t n_reevaluated; /* those that the cache had held: it returned to an earlier length */
};

/* Make the session hold exactly `ids` (n_ids >= 1), and write the result of `head` for the last id
 * to *row. Keeps the longest common prefix of the cache, at most n_ids - 1 tokens because the last
 * one is evaluated for its logits, removes the other tokens, and evaluates the new ones. head,
 * control and stats may be NULL, and also row if head is NULL or HEAD_NONE.
 * BN_EARG: no ids, an unknown id, a bad request, or a row whose capacity is too small.
 * BN_ECONTEXT: more ids than n_ctx. BN_ECANCELLED. BN_EDEVICE: the device failed in this call, or a
 * logit is not a finite number. BN_ELOST: the device has failed and every later call will fail too.
 * After an error the session holds either its old ids, or the common prefix and every micro-batch
 * that was complete. Models with saved states may keep less of the prefix. */
bool bn_session_sync(struct bn_session *s, const int32_t *ids, size_t n_ids,
                     const struct head_request *head, struct head_row *row,
                     const struct bn_control *control, struct bn_sync_stats *stats,
                     struct bn_error *err);

/* Append ids and write the results of `head` for the last n_rows of them (n_rows <= n_ids) to rows
 * (n_rows), the first row for the first of these ids. n_ids may be 0. head may be NULL; then n_rows
 * is ignored. Errors as in bn_session_sync; after a failure the session holds its old ids and those
 * of every complete micro-batch. */
bool bn_session_eval(struct bn_session *s, const int32_t *ids, size_t n_ids,
                     const struct head_request *head, struct head_row *rows, size_t n_rows,
                     const struct bn_control *control, struct bn_error *err);

/* Keep the first n_keep ids. If the session cannot return to this length, it returns to the nearest
 * shorter length to which it can; after a failure of the device it is empty. Returns the number of
 * ids that the session then holds. */
size_t bn_session_truncate(struct bn_session *s, size_t n_keep);

/* The saved states that the session holds now. */
struct bn_state_stats bn_session_states(const struct bn_session *s);

/* New ids of one session in a batch. */
struct bn_batch_item {
    struct bn_session *session;
    const int32_t *ids; /* (n_ids) */
    size_t n_ids;
    struct head_request head;
    struct head_row *rows; /* (n_rows) */
    size_t n_rows;
};
/* Append ids to several sessions of one model in one pass. Each item works as in bn_session_eval,
 * but reports no progress. BN_EARG also if an item has no ids, the items together have more than
 * n_ubatch ids, a session occurs twice, or the sessions belong to different models. n_items may be
 * 0. After an error no session has changed. */
bool bn_batch_eval(struct bn_batch_item *items, size_t n_items, const struct bn_control *control,
                   struct bn_error *err);

/* Save or load the ids and the KV cache as a stream of bytes. A session can load only what a
 * session of the same model file saved, with the same bn_session_kv_version. The caller makes sure
 * that the file is the same (bn_file_fingerprint): not all weights are compared. BN_EIO: the stream
 * failed or ended early. BN_EFORMAT: it is of another model, I2_S layout, kind of activations,
 * window rule, version or choice of RoPE factors (rope_is_long), or has an unknown id or damaged
 * states. BN_ECONTEXT: more saved tokens than n_ctx. BN_ENOMEM. BN_EDEVICE. BN_ELOST. After a
 * failed load the session is unchanged or empty. */
bool bn_session_save(struct bn_session *s, const struct bn_stream *out, struct bn_error *err);
size_t bn_session_save_bytes(const struct bn_session *s); /* bytes that it would write now */
bool bn_session_load(struct bn_session *s, const struct bn_stream *in, struct bn_error *err);

/* Name of the format of a saved cache, for example "cpu-f16-1": a CUDA session has the same name,
 * because its format is that of the CPU. Static text. */
const char *bn_session_kv_version(const struct bn_session *s);

/* ---- devices ---- */

struct bn_device_line {
    char name[16]; /* "cpu" or "cuda" */
    bool usable;
    char text[160]; /* description of the device, or why it cannot be used */
};

/* Write a line for each kind of device, usable or not, to out (cap), best first. Returns the number
 * of kinds, which may exceed cap. */
size_t bn_device_list(struct bn_device_line *out, size_t cap);

#endif
