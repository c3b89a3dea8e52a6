/*
 * The interface between the engine and its devices: a backend runs a whole model on one device.
 *
 * No member of backend_ops may be NULL. Every backend computes the same bits, which docs/kernels.md
 * defines. session.c checks ids and requests before it calls eval; eval itself checks only that
 * tokens and results fit, and reports it as an error. The threading rule of engine.h applies.
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

struct backend; /* the weights on one device */
struct seq;     /* one sequence: its KV cache and recurrent states on that device */

/* Cancel flag and progress callback of one call. */
struct backend_control {
    /* May be NULL. The CPU tests it at least once per layer. CUDA tests it before it enqueues a
     * layer, or a graph of the whole pass; work that is enqueued by then still runs. */
    const atomic_bool *cancel;
    /* May be NULL. Called on the thread that made the call. `open` counts bytes of the file. `eval`
     * counts layers: the CPU calls it after each layer but the last, before it tests the cancel
     * flag. CUDA never calls it in eval: the host has enqueued all layers before the device ends
     * the first ones, and a micro-batch takes only milliseconds. */
    void (*progress)(void *ud, size_t n_done, size_t n_total);
    void *ud;
};

struct backend_config {
    size_t index;     /* number of the device among those of its kind */
    const char *isa;  /* highest CPU instruction set; NULL: no limit */
    size_t n_threads; /* 0: one per core that this process may use, within its CPU quota */
    size_t n_ubatch;  /* most tokens in one eval, 1 to BN_MAX_UBATCH */
    enum bn_head_mode head;
    enum bn_kv_type kv;
    bool profile; /* measure times for backend_ops.profile */
    bool pin;     /* CPU: bind each thread to a core */
    /* CUDA, for tests. no_graph: launch every kernel by itself instead of in a CUDA graph.
     * no_early_launch: start no kernel before the previous one has ended. */
    bool no_graph, no_early_launch;
    bool no_ring; /* for tests: layers with a window keep keys and values of all positions */
    enum bn_skip skip;
    bool file_mapped; /* the model's bytes are a file mapping: pages may be dropped after loading */
    struct bn_log log;
    /* for tests, see bn_model_config */
    void (*trace)(void *ud, const char *step, size_t layer, const float *x, size_t n);
    void *trace_ud;
    /* output: why "auto" skipped a preferred kind of device of this build; not written if none */
    char skip_reason[160];
};

/* Memory in bytes, computed before anything is allocated. */
struct backend_plan {
    size_t weight_bytes;
    size_t kv_bytes_per_token;
    size_t scratch_bytes;   /* intermediate results of a pass */
    size_t seq_fixed_bytes; /* of a sequence besides its tokens, at most: rings, recurrent states */
    size_t state_bytes; /* of one saved state, see state_save; 0: truncate reaches every length */
};

struct backend_info {
    char text[160];   /* "CPU, 2 threads, AVX-512 VNNI" */
    const char *isa;  /* instruction set in use; "cuda" on a GPU */
    size_t n_threads; /* of the CPU; 1 with a GPU */
    struct backend_plan plan;
    size_t bytes_per_token; /* read to decode one token, without keys and values; a recurrent state
                               counts twice, because it is also written */
    size_t head_bytes;      /* part of bytes_per_token: the output head */
    const char *kv_type;    /* "f16" or "q8" */
    const char *kv_version; /* layout and arithmetic of the bytes of seq_save: "cpu-f16-1" */
};

/* New ids of one sequence. Logits are requested for the last n_rows ids: 0 for a part of a prompt
 * before its end, 1 to choose the next token, more for perplexity and for the verification of
 * drafts. */
struct eval_item {
    struct seq *seq;
    const int32_t *ids; /* (n_ids), each from 0 to n_vocab - 1 */
    size_t n_ids;
    size_t n_rows; /* at most n_ids */
    struct head_request head;
    struct head_row *rows; /* (n_rows) */
};

/* Whether a micro-batch that has n_tokens tokens already, and a context of n_ctx positions of which
 * `length` are in use, have room for the ids of the item. n_tokens is at most n_ubatch, and length
 * at most n_ctx. BN_EARG: no room in the micro-batch. BN_ECONTEXT: no room in the context. */
static inline bool eval_item_fits(const struct eval_item *item, size_t n_tokens, size_t n_ubatch,
                                  size_t length, size_t n_ctx, struct bn_error *err)
{
    if (item->n_ids > n_ubatch - n_tokens)
        return bn_fail(err, BN_EARG, "more tokens than the micro-batch of %zu", n_ubatch);
    return item->n_ids <= n_ctx - length ||
           bn_fail(err, BN_ECONTEXT, "%zu more tokens do not fit in a context of %zu", item->n_ids,
                   n_ctx);
}

struct backend_ops {
    const char *name; /* "cpu" or "cuda" */

    /* Test whether this device can run here. Writes one line: a description of the device,
     * or why it cannot be used. */
    bool (*probe)(const struct backend_config *cfg, char *text, size_t text_bytes);
    /* Compute the memory sizes. BN_EUNSUPPORTED: this backend cannot run the model. BN_EARG: a
     * value of cfg is out of range. */
    bool (*plan)(const struct model *m, const struct backend_config *cfg, struct backend_plan *out,
                 struct bn_error *err);
    /* Load the weights. `m` must outlive the backend. Errors are those of bn_model_open. `control`
     * must not be NULL. *cfg is copied, except what its pointers point to. */
    bool (*open)(const struct model *m, const struct backend_config *cfg,
                 const struct backend_control *control, struct backend **out, struct bn_error *err);
    void (*close)(struct backend *b);                            /* b may be NULL */
    const struct backend_info *(*info)(const struct backend *b); /* owned by b */

    /* See the functions bn_model_* of the same names. */
    double (*bandwidth)(struct backend *b);
    double (*mac_peak)(struct backend *b, enum bn_mac kind);
    size_t (*explain)(const struct backend *b, size_t n_items, size_t n_ids, char *text,
                      size_t text_bytes);
    size_t (*profile)(struct backend *b, struct bn_profile_step *out, size_t cap);
    /* How often each expert of each layer was chosen since the model was opened: (n_layers,
     * n_experts) numbers, of which the first `cap` are written. Returns n_layers * n_experts, 0
     * without experts. */
    size_t (*expert_counts)(const struct backend *b, uint64_t *out, size_t cap);
    /* Free memory for KV caches in bytes; SIZE_MAX if unknown. */
    size_t (*free_bytes)(struct backend *b);

    /* Open an empty sequence of at most n_ctx positions. BN_EARG: n_ctx is 0 or too large.
     * BN_ENOMEM. BN_EDEVICE, BN_ELOST: the device failed. */
    bool (*seq_open)(struct backend *b, size_t n_ctx, struct seq **out, struct bn_error *err);
    void (*seq_close)(struct seq *s); /* s may be NULL */

    /* Append the ids of each item to its sequence in one pass over the weights. At most n_ubatch
     * ids in total, each sequence at most once and within its n_ctx. Allocates nothing. *n_bytes is
     * the number of bytes read from memory, undefined after an error. `control` may be NULL.
     * After an error or a cancellation every sequence has its old length and, except after
     * BN_ELOST, can continue from there; see "Earlier lengths" below.
     * BN_EARG: a row has too little room for its results, or the ids are more than n_ubatch.
     * BN_ECONTEXT: more ids than a sequence has room for. BN_ECANCELLED. BN_EDEVICE.
     * BN_ELOST: the device has failed; every later call fails the same way. */
    bool (*eval)(struct backend *b, struct eval_item *items, size_t n_items,
                 const struct backend_control *control, uint64_t *n_bytes, struct bn_error *err);

    /* Earlier lengths. A KV cache of all positions can be cut at every length. A ring, which holds
     * only the last positions, and a recurrent state, which is one result of all positions, cannot:
     * for such sequences the session saves states and loads them later. "Saved states" in
     * docs/architecture.md has an example, and says how the old length survives a failed eval.
     *
     * reachable: the largest length up to n_keep that truncate accepts now, possibly 0; n_keep
     * itself if state_bytes is 0. n_keep is at most the length of the sequence.
     * truncate: n_keep is 0 or a length for which reachable returns n_keep.
     *
     * state_save writes backend_plan.state_bytes bytes, which state_load needs to return to the
     * present length: the recurrent states and the window before the next position, but nothing
     * that truncate keeps. The bytes depend only on the model, its settings and the ids. The
     * sequence does not change. False: the device has failed.
     * state_load cuts a sequence of at least `length` positions to `length`, with a state that was
     * saved at this length of the same ids. Every byte string is safe to load, because states come
     * from files too. False: the device has failed; the sequence is then empty. */
    size_t (*reachable)(const struct seq *s, size_t n_keep);
    void (*truncate)(struct seq *s, size_t n_keep);
    bool (*state_save)(struct seq *s, void *to);
    bool (*state_load)(struct seq *s, const void *from, size_t length);

    /* seq_save writes the whole sequence as bytes, with the state of its length. seq_save_bytes is
     * their number. seq_load replaces a sequence by `length` saved positions. BN_ECONTEXT: n_ctx is
     * smaller, and nothing changes; after any other error the sequence is empty. BN_EIO: the stream
     * failed. BN_ENOMEM. BN_EDEVICE. BN_ELOST. */
    bool (*seq_save)(struct seq *s, const struct bn_stream *out, struct bn_error *err);
    size_t (*seq_save_bytes)(const struct seq *s);
    bool (*seq_load)(struct seq *s, size_t length, const struct bn_stream *in,
                     struct bn_error *err);
};

/* Kinds of devices, best first, including those without a backend in this build. backend_name
 * returns NULL past the last kind. backend_probe calls backend_ops.probe of a valid kind i; if this
 * build has no such backend, it writes that and returns false. */
const char *backend_name(size_t i);
bool backend_probe(size_t i, const struct backend_config *cfg, char *text, size_t text_bytes);

/* Choose the backend for "auto" (or NULL), "cpu", "cuda" or "cuda:N", and set cfg->index. "auto"
 * selects the first kind that can run here; it logs why it skipped others and sets
 * cfg->skip_reason. "cpu:0" is the same as "cpu".
 * BN_EARG: unknown name, or N above 1023. BN_EDEVICE: the device cannot run here, or with "auto" no
 * device can. */
bool backend_choose(const char *device, struct backend_config *cfg, const struct backend_ops **out,
                    struct bn_error *err);

/* Plan the memory of a model on the backend *ops, which backend_choose has chosen. With "auto", a
 * backend that does not support the model is replaced in *ops by the next kind that can run here;
 * the reason is logged and set in cfg->skip_reason. Errors are those of backend_ops.plan, and
 * BN_EDEVICE if no further kind can run here. */
bool backend_plan_model(const char *device, const struct model *m, struct backend_config *cfg,
                        const struct backend_ops **ops, struct backend_plan *plan,
                        struct bn_error *err);

/* With "auto", replace the backend *ops, which failed with *err, by the next kind that can run
 * here; the reason is logged and set in cfg->skip_reason. False: `device` is not "auto", or no
 * further kind can run here; then nothing but the log changes. */
bool backend_use_next(const char *device, const struct bn_error *err, struct backend_config *cfg,
                      const struct backend_ops **ops);

#endif
