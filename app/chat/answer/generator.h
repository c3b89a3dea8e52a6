/*
 * The interface between the worker and the engine: open a model, then compute the next token.
 *
 * The caller always passes all ids that the session should hold, and gets the id that follows. The
 * session reuses the common prefix. So the first step of an answer evaluates the new part of the
 * prompt, and each later step the ids since the last step: usually one token. Tests link a scripted
 * generator (tests/app/fake_engine.c) instead.
 *
 * The thread that opens a generator calls all functions: the worker's thread or, with --batch, the
 * main thread. Exceptions: when the worker has loaded the model, the main thread may call
 * generator_info, generator_n_ctx and generator_state_memory at any time, and generator_explain
 * while the worker runs no job.
 */
#ifndef APP_GENERATOR_H
#define APP_GENERATOR_H

#include "app/common/check/sense_check.h"
#include "app/options/chat_options.h"
#include "engine/engine.h"
#include "engine/sampler/sampler.h"
#include "engine/spec/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct generator;

/* Open the model, a session, a sampler and a speculative decoder. `file` must outlive the
 * generator. Errors of bn_model_open, bn_session_open, sampler_open and spec_open. */
bool generator_open(const struct bn_file *file, const struct bn_model_config *cfg,
                    const struct bn_session_config *session, struct generator **out,
                    struct bn_error *err);
void generator_close(struct generator *g); /* NULL is fine */

const struct bn_model_info *generator_info(const struct generator *g);
size_t generator_n_ctx(const struct generator *g);
/* Most bytes of saved states: of the chat's sequence, or of all sequences of a batch together. 0:
 * the model needs no saved states. */
size_t generator_state_memory(const struct generator *g);
/* See bn_model_explain. */
size_t generator_explain(const struct generator *g, size_t n_sequences, size_t n_tokens, char *text,
                         size_t text_bytes);

/* Bytes that all evaluations of the model together have read from memory. */
uint64_t generator_bytes_read(const struct generator *g);
/* The limits of the device. generator_measure takes about a second, longer with a large
 * model. 0: unknown. */
struct generator_peaks {
    double read_bytes_per_s;
    double macs_per_s; /* int8 multiply-adds */
};
struct generator_peaks generator_measure(struct generator *g);
/* Run the sense check in a session of its own. Errors of sense_check. */
bool generator_check(struct generator *g, const struct bn_file *file, const struct tokenizer *t,
                     struct bn_cancel *cancel, struct sense_result *out, struct bn_error *err);

/* Set the sampler, and the number of alternatives that generator_alts returns (at most
 * GENERATOR_MAX_ALTS). With n_alts 0 the output head computes only what the choice needs. The
 * chosen ids do not depend on n_alts. Errors of sampler_set, after which the old settings stay. */
#define GENERATOR_MAX_ALTS 20 /* largest value of --logprobs */
bool generator_set(struct generator *g, const struct sampler_params *params, size_t n_alts,
                   struct bn_error *err);

/* Set the mode of speculative decoding for generator_step. It does not change the chosen ids. A
 * change of the mode drops the measured times and success rates, on which SPEC_AUTO bases its
 * choice, but not the counts of generator_spec_stats. A step with n_alts above 0 never
 * speculates. */
void generator_speculate(struct generator *g, enum spec_mode mode);
struct spec_stats generator_spec_stats(const struct generator *g);

/* Make the session hold `ids` (n_ids >= 1) and choose the next id. control and stats may be NULL.
 * Errors of bn_session_sync. With speculation the session may then hold more ids, or with recurrent
 * states a few fewer (spec.h). */
bool generator_step(struct generator *g, const int32_t *ids, size_t n_ids,
                    const struct bn_control *control, struct bn_sync_stats *stats, int32_t *next,
                    struct bn_error *err);

struct generator_alt {
    int32_t id;    /* -1 (logprob: -INFINITY): the vocabulary has fewer than n_alts tokens */
    float logprob; /* natural logarithm of the probability, before sampling settings are applied */
};
/* The n_alts best ids of the last step, best first, then the chosen id. out (n_alts + 1). The
 * last step must have run with n_alts above 0: otherwise not all logits exist. */
void generator_alts(const struct generator *g, struct generator_alt *out);
/* Make `id`, which must be in the vocabulary, the chosen id of generator_alts, because the caller
 * continues with it instead of the id that the last step chose. */
void generator_replace(struct generator *g, int32_t id);

/* These call the functions bn_session_... of the same name for the session of the chat, with the
 * same errors. */
const int32_t *generator_ids(const struct generator *g, size_t *n_ids);
const char *generator_kv_version(const struct generator *g);
bool generator_save(struct generator *g, const struct bn_stream *out, struct bn_error *err);
size_t generator_save_bytes(const struct generator *g);
bool generator_load(struct generator *g, const struct bn_stream *in, struct bn_error *err);
size_t generator_truncate(struct generator *g, size_t n_keep);
struct bn_state_stats generator_states(const struct generator *g);

/* Independent sequences for --batch. Each has a session and a sampler, and its result does not
 * depend on other sequences. n_seqs (at least 1) is the number of sequences that will be open: each
 * gets the same part of the memory for saved states. Errors of generator_seq_open: those of
 * bn_session_open and sampler_open. The other functions work like those above with the same name.
 * Close a sequence before its generator. */
struct generator_seq;
bool generator_seq_open(struct generator *g, size_t n_seqs, struct generator_seq **out,
                        struct bn_error *err);
void generator_seq_close(struct generator_seq *seq); /* NULL is fine */
bool generator_seq_set(struct generator_seq *seq, const struct sampler_params *params,
                       size_t n_alts, struct bn_error *err);
struct bn_state_stats generator_seq_states(const struct generator_seq *seq);
void generator_seq_alts(const struct generator_seq *seq, struct generator_alt *out);
void generator_seq_replace(struct generator_seq *seq, int32_t id);
/* Like generator_step, but for this sequence and without speculation. */
bool generator_seq_step(struct generator_seq *seq, const int32_t *ids, size_t n_ids,
                        const struct bn_control *control, struct bn_sync_stats *stats,
                        int32_t *next, struct bn_error *err);
/* The number of sequences to decode together, from 1 to 16: see bn_model_batch_width. */
size_t generator_batch_width(const struct generator *g);
struct generator_item {
    struct generator_seq *seq;
    const int32_t *ids; /* (n_ids) all ids; the session holds all of them but the last */
    size_t n_ids;
    int32_t next; /* out: the chosen id */
};
/* Decode one token for each of 1 to CHAT_BATCH_MAX sequences, in one pass over the weights.
 * `control` may be NULL. Fails with the errors of bn_batch_eval; then no sequence and no `next` has
 * changed. */
bool generator_step_all(struct generator_item *items, size_t n_items,
                        const struct bn_control *control, struct bn_error *err);

#endif
