/*
 * The interface between the worker and the engine: open a model, then compute the next token.
 *
 * The caller always passes all ids that the session should hold, and gets the id that follows. The
 * session reuses the common prefix. So a first step evaluates the new part of a prompt, and each
 * later step one token. All functions run on the worker's thread. Tests link a scripted generator
 * (tests/app/fake_engine.c) instead.
 */
#ifndef APP_GENERATOR_H
#define APP_GENERATOR_H

#include "app/common/sense_check.h"
#include "app/options/chat_options.h"
#include "engine/engine.h"
#include "engine/sampler/sampler.h"
#include "engine/spec/spec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct generator;

/* Open the model, a session and a sampler. Errors of bn_model_open, bn_session_open and
 * sampler_open. */
bool generator_open(const struct bn_file *file, const struct bn_model_config *cfg,
                    const struct bn_session_config *session, struct generator **out,
                    struct bn_error *err);
void generator_close(struct generator *g); /* NULL is fine */

const struct bn_model_info *generator_info(const struct generator *g);
size_t generator_n_ctx(const struct generator *g);
/* Most bytes of saved states of all sequences together; 0: the model needs none. */
size_t generator_state_memory(const struct generator *g);
/* See bn_model_explain. */
size_t generator_explain(const struct generator *g, size_t n_sequences, size_t n_tokens, char *text,
                         size_t text_bytes);

/* Bytes that all steps together have read from memory. */
uint64_t generator_bytes_read(const struct generator *g);
/* The limits of the device, measured now in a fraction of a second. 0: unknown. */
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
 * chosen ids do not depend on n_alts. BN_EARG: a value out of range; the old settings stay. */
#define GENERATOR_MAX_ALTS 20
bool generator_set(struct generator *g, const struct sampler_params *params, size_t n_alts,
                   struct bn_error *err);

/* Turn speculative decoding on or off for generator_step. It does not change the chosen ids. The
 * statistics of drafts are reset when the mode changes. A step with n_alts above 0 never
 * speculates. */
void generator_speculate(struct generator *g, enum spec_mode mode);
struct spec_stats generator_spec_stats(const struct generator *g);

/* Make the session hold `ids` (n_ids >= 1) and choose the next id. Errors of bn_session_sync. With
 * speculation the session may hold further ids after these. */
bool generator_step(struct generator *g, const int32_t *ids, size_t n_ids,
                    const struct bn_control *control, struct bn_sync_stats *stats, int32_t *next,
                    struct bn_error *err);

struct generator_alt {
    int32_t id;    /* -1 if the vocabulary is smaller than n_alts */
    float logprob; /* natural logarithm of the probability, before sampling settings are applied */
};
/* The n_alts best ids of the last step, best first, then the chosen id. out (n_alts + 1). Evaluates
 * nothing. */
void generator_alts(const struct generator *g, struct generator_alt *out);
/* The caller continues with this id and not with the one that the last step chose. Only
 * generator_alts needs this call. */
void generator_replace(struct generator *g, int32_t id);

/* The ids in the session; saving and loading its KV cache with the errors of bn_session_save and
 * bn_session_load; and truncation as by bn_session_truncate. */
const int32_t *generator_ids(const struct generator *g, size_t *n_ids);
const char *generator_kv_version(const struct generator *g);
bool generator_save(struct generator *g, const struct bn_stream *out, struct bn_error *err);
bool generator_load(struct generator *g, const struct bn_stream *in, struct bn_error *err);
size_t generator_truncate(struct generator *g, size_t n_keep);
struct bn_state_stats generator_states(const struct generator *g);

/* Independent sequences for --batch. Each has its own session and sampler, and its result does not
 * depend on the others. The n_seqs sequences share the memory for saved states. Same errors as
 * above. Close a sequence before its generator. */
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
bool generator_seq_read(struct generator_seq *seq, const int32_t *ids, size_t n_ids,
                        const struct bn_control *control, struct bn_sync_stats *stats,
                        int32_t *next, struct bn_error *err);
/* Number of sequences that fit into memory, 1 to 16. See bn_model_batch_width. */
size_t generator_batch(const struct generator *g);
struct generator_step {
    struct generator_seq *seq;
    const int32_t *ids; /* (n_ids) all ids; the session holds them without the last */
    size_t n_ids;
    int32_t next; /* out: the chosen id */
};
/* Decode one token for each of at most CHAT_BATCH_MAX sequences, in one pass over the
 * weights. */
bool generator_step_all(struct generator_step *steps, size_t n_steps,
                        const struct bn_control *control, struct bn_error *err);

#endif
