/*
 * What a device does: run a whole model. The seam between the engine and cpu/, cuda/.
 *
 * No member is optional and there is no fallback per operation: a backend that opens does
 * everything. The numbers are those of docs/kernels.md, the same bits on every backend.
 */
#ifndef ENGINE_BACKEND_BACKEND_H
#define ENGINE_BACKEND_BACKEND_H

#include "engine/base/error.h"
#include "engine/base/log.h"
#include "engine/head.h"
#include "engine/model/model.h"
#include "engine/settings.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct backend; /* weights on one device */
struct seq;     /* one KV cache on it */

/* Cancel flag and progress of one call. */
struct backend_control {
    const atomic_bool *cancel; /* may be NULL; polled at least once a layer */
    void (*progress)(void *ud, size_t n_done, size_t n_total); /* may be NULL */
    void *ud;
};

struct backend_config {
    size_t index;     /* of several devices of this kind */
    const char *isa;  /* highest rung, NULL: the best */
    size_t n_threads; /* 0: what the process may use */
    size_t n_ubatch;  /* most tokens in one eval, at least 1 */
    enum bn_head_mode head;
    enum bn_kv_type kv;
    bool profile; /* measure where the time goes */
    bool pin;     /* CPU: each thread stays on a core of its own */
    enum bn_skip skip;
    bool file_mapped; /* the model's bytes are a file mapping: pages read once may be dropped */
    struct bn_log log;
    void (*trace)(void *ud, const char *step, size_t layer, const float *x, size_t n);
    void *trace_ud;
    char passed_over[160]; /* out: a device that auto would have liked better, and why not; or "" */
};

struct backend_plan { /* bytes, before anything is allocated */
    size_t weight_bytes;
    size_t kv_bytes_per_token;
    size_t scratch_bytes;
};

struct backend_info {
    char text[160];  /* "CPU, 2 threads, AVX-512 VNNI" */
    const char *isa; /* rung in use */
    size_t n_threads;
    struct backend_plan plan;
    size_t bytes_per_token; /* read for one decoded token, context not counted */
    size_t head_bytes;      /* of these for the output head */
    const char *kv_type;    /* "f16", "q8" */
    const char *kv_version; /* layout and numerics of seq_save */
};

/* Results for the last n_rows ids: 0 inner prefill, 1 decode, n_ids perplexity or verification. */
struct eval_item {
    struct seq *seq;
    const int32_t *ids; /* (n_ids), each in the vocabulary */
    size_t n_ids;
    size_t n_rows;
    struct head_request head;
    struct head_row *rows; /* (n_rows) */
};

struct backend_ops {
    const char *name; /* "cpu", "cuda" */

    /* Can this device run here? Writes one line either way: what it is, or why not. */
    bool (*probe)(const struct backend_config *cfg, char *text, size_t text_bytes);
    bool (*plan)(const struct model *m, const struct backend_config *cfg, struct backend_plan *out,
                 struct bn_error *err);
    /* Load the weights; `m` outlives the backend. Progress counts bytes of the file. */
    bool (*open)(const struct model *m, const struct backend_config *cfg,
                 const struct backend_control *control, struct backend **out, struct bn_error *err);
    void (*close)(struct backend *b); /* NULL is fine */
    const struct backend_info *(*info)(const struct backend *b);
    double (*bandwidth)(struct backend *b); /* bytes read a second, measured now */
    /* Multiply-adds a second that the arithmetic of this device reaches with nothing read from
     * memory, measured now; 0: not known. */
    double (*mac_peak)(struct backend *b, enum bn_mac kind);
    /* How an eval of n_items sequences with n_ids ids each runs, in lines of text. Returns the
     * characters it has, as snprintf does. */
    size_t (*explain)(const struct backend *b, size_t n_items, size_t n_ids, char *text,
                      size_t text_bytes);
    /* Memory for KV caches that is free now; SIZE_MAX: not known. */
    size_t (*free_bytes)(struct backend *b);
    /* Where the time went since the last call, with profile on: at most cap steps, their number is
     * returned. 0: this device does not measure it. */
    size_t (*profile)(struct backend *b, struct bn_profile_step *out, size_t cap);

    bool (*seq_open)(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err);
    void (*seq_close)(struct seq *s); /* NULL is fine */
    size_t (*seq_length)(const struct seq *s);

    /* Append each item's ids to its sequence in one pass over the weights. At most n_ubatch ids in
     * all, each sequence at most once, each within its n_ctx. All or nothing: on error or cancel
     * every sequence keeps its length. Allocates nothing. `*n_bytes` is what was read from memory.
     * BN_ELOST: the device works no more; every later call says so too. */
    bool (*eval)(struct backend *b, struct eval_item *items, size_t n_items,
                 const struct backend_control *control, uint64_t *n_bytes, struct bn_error *err);
    void (*truncate)(struct seq *s, size_t n_keep);

    bool (*seq_save)(struct seq *s, const struct bn_stream *out, struct bn_error *err);
    bool (*seq_load)(struct seq *s, size_t length, const struct bn_stream *in,
                     struct bn_error *err);
};

/* The backends of this build in order of preference; NULL ends the list. */
const struct backend_ops *const *backend_list(void);

/* The device names there are, in order of preference, with or without a backend in this build; NULL
 * past the last. */
const char *backend_name(size_t i);

/* Can the device of this name run here? One line either way. */
bool backend_probe(const char *name, const struct backend_config *cfg, char *text,
                   size_t text_bytes);

/* "auto", "cpu", "cuda", "cuda:1" -> ops and index. auto takes the first that probes well and logs
 * why the others were passed over; a named device that does not probe is BN_EDEVICE with its
 * reason. */
bool backend_choose(const char *device, struct backend_config *cfg, const struct backend_ops **out,
                    struct bn_error *err);

#endif
